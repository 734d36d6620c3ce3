//! The three programs of the 2001 paper, section 4: which function dominates on how many CPUs. Also the measured gain
//! if each function becomes a fifth faster, compared with the prediction from a recording.

use anyhow::Result;
use longpole_tests::{Report, workload};
use serde_json::{Value, json};

use super::programs::{LIMIT, launch, seconds_on};
use crate::command;
use crate::measure::{Measurement, Need, Runs, Setting, Side, table};
use crate::sample::Sample;

/// The part of a function's time by which it becomes faster.
const FASTER: f64 = 0.2;
/// The CPU counts of the predictions.
const CPUS: std::ops::RangeInclusive<u32> = 1..=8;

struct Subject {
    source: &'static str,
    title: &'static str,
    /// Arguments of the unchanged program, which is recorded.
    plain: &'static str,
    /// Options for the program's recording.
    options: &'static str,
    /// Each function, and the arguments with which it takes four fifths of its time.
    functions: &'static [(&'static str, &'static str)],
}

const SUBJECTS: [Subject; 3] = [
    Subject {
        source: "quicksort.c",
        title: "Parallel quick sort (4.1; the paper's crossover lies between 5 and 6)",
        plain: "3 2000000 100000 25 25",
        // The change makes RecursiveQuickSort faster together with SortRange, on which its recursion depends. Without
        // probes, SortRange counts for RecursiveQuickSort.
        options: "--exclude SortRange",
        functions: &[
            ("RecursiveQuickSort", "3 2000000 100000 25 0"),
            ("ParallelQuickSort", "3 2000000 100000 0 25"),
        ],
    },
    Subject {
        source: "nlargest.c",
        title: "The n largest h(x) (4.2; between 4 and 5)",
        plain: "8 900 100 100",
        options: "",
        functions: &[("f", "8 900 80 100"), ("g", "8 900 100 80")],
    },
    Subject {
        source: "billing.c",
        title: "Billing gateway without I/O (4.3; Writer and Sorter between 2 and 3, Reader and Writer between 3 and 4)",
        plain: "20000000 100 100 100",
        options: "",
        functions: &[
            ("Reader", "20000000 80 100 100"),
            ("Sorter", "20000000 100 80 100"),
            ("Writer", "20000000 100 100 80"),
        ],
    },
];

pub const EFFECTS: Measurement = Measurement {
    name: "effects",
    about: "What optimizing a function by a fifth gains, for the three programs of the 2001 paper",
    title: "The three programs of the 2001 paper",
    needs: &[Need::Recorder],
    runs: Runs::Inside(7),
    sides: |setting| {
        let side = |subject: &'static Subject| Side::new(subject.title, move |_| subject.compared(setting));
        Ok(SUBJECTS.iter().map(side).collect())
    },
    says: "Recorded on one CPU. Each function's own time on the extended critical path in percent of the predicted \
           time, on 1 to 8\nCPUs; the dominating function stands out. Below is the measured gain of the run when \
           that function takes a fifth less. It was measured on the available CPUs ({runs} runs each, in \
           alternation), and is next to a fifth of that percentage.",
    ends: |results| {
        let tables = results.values().zip(&SUBJECTS).map(|((title, value), subject)| {
            let heads =
                format!("function | {}", CPUS.map(|cpus| cpus.to_string()).collect::<Vec<_>>().join(" | "));
            let (shares, gains) = (subject.shares(value), subject.gains(value));
            let changes = "a fifth less in | CPUs | predicted gain | measured gain";
            format!("### {title}\n\n{}\n{}", table(&heads, shares), table(changes, gains))
        });
        Ok(tables.collect::<Vec<_>>().join("\n"))
    },
    ..Measurement::NEW
};

impl Subject {
    /// `shares` has the share of each function by number of CPUs. `gains` has the gain of each function by number of
    /// CPUs that this machine has.
    fn compared(&self, setting: &Setting) -> Result<Value> {
        let program = workload::build(self.source)?;
        let file = setting.file("effects.lp");
        let options = format!("--exact --cpu-list 0 --overhead none -F 0 {}", self.options);
        launch(setting, &options, &program, self.plain, &file)?;
        let report = command::good(setting.call("report --json --cpus 1-8").arg(&file), LIMIT)?;
        let report = Report::parse(&report.stdout);
        let share = |function: &str, cpus: u32| {
            let answer = report.at(cpus);
            answer.function(function, "tet_ns").unwrap_or(0.0) / answer.time_ns()
        };
        let shares =
            |(function, _): &(&str, &str)| CPUS.map(|cpus| share(function, cpus)).collect::<Vec<f64>>();
        let shares: Vec<Vec<f64>> = self.functions.iter().map(shares).collect();
        let machine = std::thread::available_parallelism().map_or(1, usize::from);
        let lists: Vec<String> = (0..machine.min(8)).map(|last| format!("0-{last}")).collect();
        // In each turn, the program runs on all numbers of CPUs, unchanged and with every function made faster.
        let count = 1 + self.functions.len();
        let mut times = vec![vec![Sample::default(); count]; lists.len()];
        for turn in 0..setting.runs {
            for (times, list) in times.iter_mut().zip(&lists) {
                for variant in (0..count).map(|place| (turn + place) % count) {
                    let function = variant.checked_sub(1).map(|at| self.functions[at]);
                    let words = function.map_or(self.plain, |(_, words)| words);
                    times[variant].push(seconds_on(list, &program, words, None)?);
                }
            }
        }
        let gain = |times: &Vec<Sample>, at: usize| 1.0 - times[at].median() / times[0].median();
        let gains: Vec<Vec<f64>> =
            (1..count).map(|at| times.iter().map(|times| gain(times, at)).collect()).collect();
        Ok(json!({ "shares": shares, "gains": gains }))
    }

    /// A row for each function with its shares. The share of the dominating function is bold.
    fn shares(&self, value: &Value) -> Vec<String> {
        let share = |at: usize, place: usize| value["shares"][at][place].as_f64().unwrap_or(f64::NAN);
        let row = |(at, (function, _)): (usize, &(&str, &str))| {
            let cell = |place: usize| {
                let own = share(at, place);
                let is_first = (0..self.functions.len()).all(|other| share(other, place) <= own);
                let mark = if is_first { "**" } else { "" };
                format!(" | {mark}{:.1}{mark}", own * 100.0)
            };
            format!("{function}{}", (0..CPUS.count()).map(cell).collect::<String>())
        };
        self.functions.iter().enumerate().map(row).collect()
    }

    /// A row for each function and number of CPUs, with the predicted and the measured gain.
    fn gains(&self, value: &Value) -> Vec<String> {
        let mut rows = Vec::new();
        for (at, (function, _)) in self.functions.iter().enumerate() {
            for (place, gain) in value["gains"][at].as_array().into_iter().flatten().enumerate() {
                let share = value["shares"][at][place].as_f64().unwrap_or(f64::NAN);
                let [predicted, gain] =
                    [FASTER * share, gain.as_f64().unwrap_or(f64::NAN)].map(|part| part * 100.0);
                rows.push(format!("{function} | {} | {predicted:.1} % | {gain:.1} %", place + 1));
            }
        }
        rows
    }
}
