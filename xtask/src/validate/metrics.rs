//! Which metric names the right function first, on programs whose functions can really be made faster. Each function is
//! made faster, and the function with the largest gain is the right one. Other functions are right, too, if their gains
//! are equal as far as can be measured.

use std::path::Path;

use anyhow::Result;
use longpole_tests::workload;
use serde_json::{Value, json};

use super::programs::{LIMIT, launch, seconds_on};
use crate::command;
use crate::measure::{Measurement, Need, Results, Runs, Setting, Side, in_turns};
use crate::sample::Sample;

/// The CPUs on which programs are recorded and run.
const CPUS: &str = "0-1";

struct Subject {
    source: &'static str,
    title: &'static str,
    /// Arguments of the unchanged program, which is recorded.
    plain: &'static str,
    /// Each function, the arguments with which it changes, and the change: half of its work ([`HALF`]), or a
    /// description.
    changes: &'static [(&'static str, &'static str, &'static str)],
}

const HALF: &str = "half";

const SUBJECTS: [Subject; 8] = [
    Subject {
        source: "nlargest.c",
        title: "parallel search, then a serial end",
        plain: "8 900 20 100",
        changes: &[("f", "8 900 10 100", HALF), ("g", "8 900 20 50", HALF)],
    },
    Subject {
        source: "nlargest.c",
        title: "the same with more to search",
        plain: "8 450 100 100",
        changes: &[("f", "8 450 50 100", HALF), ("g", "8 450 100 50", HALF)],
    },
    Subject {
        source: "billing.c",
        title: "two lines of three stages, more threads than CPUs",
        plain: "60000000 100 100 100",
        changes: &[
            ("Reader", "60000000 50 100 100", HALF),
            ("Sorter", "60000000 100 50 100", HALF),
            ("Writer", "60000000 100 100 50", HALF),
        ],
    },
    Subject {
        source: "store.c",
        title: "one lock",
        plain: "4 1500 1 56000 100000",
        changes: &[
            ("parse_row", "4 1500 1 28000 100000", HALF),
            ("digest_row", "4 1500 8 56000 100000", "lock split in 8"),
        ],
    },
    Subject {
        source: "producer_consumer.c",
        title: "a queue of eight",
        plain: "1000 80000 100 100",
        changes: &[("Produce", "1000 80000 50 100", HALF), ("Consume", "1000 80000 100 50", HALF)],
    },
    Subject {
        source: "rivals.c",
        title: "the largest function off the way to the end",
        plain: "0 8000000",
        changes: &[
            ("Front", "0 8000000 50", HALF),
            ("Back", "0 8000000 100 50", HALF),
            ("Side", "0 8000000 100 100 50", HALF),
        ],
    },
    Subject {
        source: "rivals.c",
        title: "a start, then two long ways of nearly the same length",
        plain: "1 6000000",
        changes: &[
            ("Prepare", "1 6000000 50", HALF),
            ("Left", "1 6000000 100 50", HALF),
            ("Right", "1 6000000 100 100 50", HALF),
        ],
    },
    Subject {
        source: "rivals.c",
        title: "one long branch and five short ones",
        plain: "2 12000000",
        changes: &[("Long", "2 12000000 50", HALF), ("Short", "2 12000000 100 50", HALF)],
    },
];

const SAYS: &str = "Programs of which each function can be made faster, recorded and run on two CPUs. The change is really made: with half \
     of the\nfunction's work, or as written. Gains are medians of {runs} turns in which the program runs without and with \
     each change. ± is twice\ntheir standard error, from the median deviation: a turn in which the host took a CPU away \
     says nothing. **Right** is the function with the largest gain, and any function with the same gain within ±. Each \
     program\nis recorded 3 times, unchanged: `2x` was named in two of them. Metrics are those of `longpole \
     compare-metrics`, the advice is\nthe first line of `longpole parallelism`.\n\n\
     What this does not show: how often metrics are right on programs in general. The programs of rivals.c were written so \
     that metrics\ndisagree. Half of a function's work is one change of many; a metric may be right about another. Slack, \
     zeroing and benefit are\nby definition of unlimited CPUs, and here judged by gains on two.\n\n\
     - profile: the most CPU time. Quartz: CPU time divided by busy CPUs. path: the most on the extended critical path.\n\
     - slack: the function's time on the critical path, as far as that stays the longest for sure (the slack metric).\n\
     - zeroing: how much shorter the critical path gets if the function takes no time and the order of locks stays (logical \
     zeroing).\n- benefit: the least, over the longest paths, of the function's time on the path and what that is shorter \
     than the critical path\n  (maximum benefit).\n- simulated: the program run again in simulation without the function.";

/// Number of methods that name a function: the metrics of `compare-metrics`, the first line of `parallelism`, and the
/// largest simulated gain. The heads of the table name the methods.
const NAMERS: usize = 8;
/// Number of recordings of each program. The metrics are computed for each.
const RECORDINGS: usize = 3;
/// The ± of a median is this many standard errors. Gains within it count as equal.
const SURE: f64 = 2.0;

pub const METRICS: Measurement = Measurement {
    name: "metrics",
    about: "Which metric names the function that is worth most when it is really made faster",
    title: "Which metric names the right function",
    needs: &[Need::Recorder],
    runs: Runs::Inside(7),
    sides: |setting| {
        let side = |subject: &'static Subject| {
            Side::new(format!("{} ({})", subject.title, subject.source), move |_| subject.compared(setting))
        };
        Ok(SUBJECTS.iter().map(side).collect())
    },
    says: SAYS,
    heads: "program | gains | profile | Quartz | Quartz's advice | path | slack | zeroing | benefit | simulated",
    rows: Some(rows),
    ..Measurement::NEW
};

fn rows(results: &Results) -> Result<Vec<String>> {
    let strings = |list: &Value| -> Vec<String> {
        let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    };
    let (mut rows, mut right) = (Vec::new(), [0; NAMERS]);
    for (label, value) in results.values() {
        let best = strings(&value["best"]);
        let mut row = vec![label.to_owned(), strings(&value["gains"]).join(", ")];
        for (at, right) in right.iter_mut().enumerate() {
            let names = strings(&value["named"][at]);
            *right += names.iter().filter(|name| best.contains(name)).count();
            row.push(cell(&names, &best));
        }
        rows.push(row.join(" | "));
    }
    let right = right.map(|right| format!(" | {right}")).concat();
    rows.push(format!("right of {} |{right}", SUBJECTS.len() * RECORDINGS));
    Ok(rows)
}

/// The functions that a method named. Each has the number of recordings in which it was named, unless all recordings
/// agree.
fn cell(names: &[String], best: &[String]) -> String {
    let mut different: Vec<&String> = Vec::new();
    for name in names {
        if !different.contains(&name) {
            different.push(name);
        }
    }
    let told = |name: &&String| {
        let mark = if best.contains(name) { "**" } else { "" };
        match names.iter().filter(|other| other == name).count() {
            count if count == names.len() => format!("{mark}{name}{mark}"),
            count => format!("{mark}{name}{mark} {count}x"),
        }
    };
    different.iter().map(told).collect::<Vec<_>>().join(", ")
}

impl Subject {
    /// `gains` has the cells of the changes, the best first. `best` has the right functions. `named` has, for each
    /// method, the function that it named in each recording.
    fn compared(&self, setting: &Setting) -> Result<Value> {
        let program = workload::build(self.source)?;
        let mut gains = self.gains(&program, setting.runs)?;
        gains.sort_by(|a, b| b.of_turns.median().total_cmp(&a.of_turns.median()));
        let is_best = |gain: &&Gain| gains.first().is_some_and(|first| gain.is_as_good_as(first));
        let best: Vec<&str> = gains.iter().filter(is_best).map(|gain| gain.function).collect();
        let told: Vec<String> = gains.iter().map(|gain| gain.told(best.contains(&gain.function))).collect();
        let mut named = vec![Vec::new(); NAMERS];
        for _ in 0..RECORDINGS {
            for (names, name) in named.iter_mut().zip(self.named(setting, &program)?) {
                names.push(name.unwrap_or_else(|| "none".to_owned()));
            }
        }
        Ok(json!({ "gains": told, "best": best, "named": named }))
    }

    /// Measures the gain of each change.
    fn gains(&self, program: &Path, runs: usize) -> Result<Vec<Gain>> {
        let times = in_turns(runs, 1 + self.changes.len(), true, |variant| {
            let change = variant.checked_sub(1).and_then(|at| self.changes.get(at));
            seconds_on(CPUS, program, change.map_or(self.plain, |(_, words, _)| *words), None)
        })?;
        let gain = |(&(function, _, how), time): (&(&'static str, &str, &'static str), &Sample)| Gain {
            function,
            how,
            of_turns: time.with(&times[0], |time, plain| 1.0 - time / plain),
        };
        Ok(self.changes.iter().zip(&times[1..]).map(gain).collect())
    }

    /// The function that comes first, for each column.
    fn named(&self, setting: &Setting, program: &Path) -> Result<[Option<String>; NAMERS]> {
        let file = setting.file("metrics.lp");
        let options = format!("--exact --overhead none -F 0 --cpu-list {CPUS}");
        launch(setting, &options, program, self.plain, &file)?;
        let json = |name: &str| command::json(setting.call(name).arg("--json").arg(&file), LIMIT);
        let (metrics, parallelism) = (json("compare-metrics")?, json("parallelism")?);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let first = |metric: &str| {
            let mut firsts = metrics["first"].as_array()?.iter();
            text(&firsts.find(|first| first["metric"] == metric)?["function"])
        };
        let mut own =
            metrics["functions"].as_array().into_iter().flatten().filter(|row| row["is_foreign"] == false);
        Ok([
            first("profile"),
            first("quartz"),
            text(&parallelism["first"]["name"]).map(of_lock),
            first("critical_path"),
            first("slack"),
            first("zeroing"),
            first("maximum_benefit"),
            own.find(|row| row["simulated_ns"].is_number()).and_then(|row| text(&row["function"])),
        ])
    }
}

/// Replaces the name of the lock in `store.c` by the function whose change is about the lock.
fn of_lock(name: String) -> String {
    if name.ends_with("registry.gate") { "digest_row".to_owned() } else { name }
}

/// The measured gain of a change.
struct Gain {
    function: &'static str,
    how: &'static str,
    /// The gain as a share of the time, for each turn.
    of_turns: Sample,
}

impl Gain {
    /// Whether this gain equals the best one as far as can be measured.
    fn is_as_good_as(&self, best: &Gain) -> bool {
        let less = best.of_turns.with(&self.of_turns, |best, own| best - own);
        less.median() <= error(&less)
    }

    fn told(&self, is_right: bool) -> String {
        let Gain { function, how, of_turns } = self;
        let how = if *how == HALF { String::new() } else { format!(" ({how})") };
        let mark = if is_right { "**" } else { "" };
        let error = (error(of_turns) * 100.0).max(1.0);
        // Zero is printed without a minus sign.
        let percent = (of_turns.median() * 100.0).round() + 0.0;
        format!("{mark}{function}{mark}{how} {percent:.0} ±{error:.0} %")
    }
}

/// Half of the width of the interval that would contain the median of many values, if these had a normal distribution
/// apart from outliers.
fn error(values: &Sample) -> f64 {
    let middle = values.median();
    let deviations: Sample = values.values().iter().map(|value| (value - middle).abs()).collect();
    // For a normal distribution, the standard deviation is 1.483 times the median deviation. The error of a median is
    // 1.253 times that of a mean.
    SURE * 1.253 * 1.483 * deviations.median() / (values.len().max(1) as f64).sqrt()
}
