//! The three programs of the 2001 paper, section 4: which function dominates on how many CPUs, and the measured gain of
//! making each a fifth faster, compared with the prediction from a recording.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use longpole_tests::{Report, workload};

use crate::bench::Scratch;
use crate::command;
use crate::sample::Sample;
use crate::workspace::Workspace;

/// Part of a function's time that is taken off.
const FASTER: f64 = 0.2;
/// A run that takes longer fails.
const LIMIT: Duration = Duration::from_secs(600);

struct Subject {
    source: &'static str,
    title: &'static str,
    /// Arguments of the recorded program.
    plain: &'static [&'static str],
    /// Options for recording the program.
    options: &'static [&'static str],
    /// Each function, and the arguments with which it takes four fifths of its time.
    functions: &'static [(&'static str, &'static [&'static str])],
}

const SUBJECTS: [Subject; 3] = [
    Subject {
        source: "quicksort.c",
        title: "Parallel quick sort (4.1; the paper's crossover lies between 5 and 6)",
        plain: &["3", "2000000", "100000", "25", "25"],
        // The change makes RecursiveQuickSort faster including its recursion, SortRange: without probes, SortRange
        // counts for it.
        options: &["--exclude", "SortRange"],
        functions: &[
            ("RecursiveQuickSort", &["3", "2000000", "100000", "25", "0"]),
            ("ParallelQuickSort", &["3", "2000000", "100000", "0", "25"]),
        ],
    },
    Subject {
        source: "nlargest.c",
        title: "The n largest h(x) (4.2; between 4 and 5)",
        plain: &["8", "900", "100", "100"],
        options: &[],
        functions: &[("f", &["8", "900", "80", "100"]), ("g", &["8", "900", "100", "80"])],
    },
    Subject {
        source: "billing.c",
        title: "Billing gateway without I/O (4.3; Writer and Sorter between 2 and 3, Reader and Writer between 3 and 4)",
        plain: &["20000000", "100", "100", "100"],
        options: &[],
        functions: &[
            ("Reader", &["20000000", "80", "100", "100"]),
            ("Sorter", &["20000000", "100", "80", "100"]),
            ("Writer", &["20000000", "100", "100", "80"]),
        ],
    },
];

/// Compares all three.
///
/// # Errors
/// A program or longpole fails.
pub fn compare(workspace: &Workspace, longpole: &Path, runs: usize) -> Result<String> {
    let scratch = Scratch::new(workspace, "effects")?;
    let mut text = format!(
        "## The three programs of the 2001 paper\n\nRecorded on one CPU. Each function's own time on the extended \
         critical path in percent of the predicted time, on 1 to 8\nCPUs; the dominating function stands out. Below \
         is the measured gain of the run when that function takes a fifth less. It was measured on the available CPUs \
         ({runs} runs each, in alternation), and is next to a fifth of that percentage.\n"
    );
    for subject in &SUBJECTS {
        eprintln!("{}", subject.title);
        let program = workload::build(subject.source)?;
        let file = scratch.0.join("effects.lp");
        let report = recorded(longpole, &program, subject, &file)?;
        dominance(&mut text, subject, &report)?;
        gains(&mut text, subject, &report, &program, runs)?;
    }
    Ok(text)
}

fn recorded(longpole: &Path, program: &Path, subject: &Subject, file: &Path) -> Result<Report> {
    let mut record = Command::new(longpole);
    record
        .args(["record", "--exact", "--cpu-list", "0", "--overhead", "none", "-F", "0", "--force"])
        .args(subject.options)
        .arg("-o")
        .arg(file)
        .arg("--")
        .arg(program)
        .args(subject.plain);
    command::good(&mut record, LIMIT)?;
    let mut report = Command::new(longpole);
    report.args(["report", "--json", "--cpus", "1-8"]).arg(file);
    Ok(Report::parse(&command::good(&mut report, LIMIT)?.stdout))
}

/// A function's own part of the predicted time.
fn share(report: &Report, cpus: u32, function: &str) -> f64 {
    let answer = report.at(cpus);
    answer.function(function, "tet_ns").unwrap_or(0.0) / answer.time_ns()
}

fn dominance(text: &mut String, subject: &Subject, report: &Report) -> Result<()> {
    write!(text, "\n### {}\n\n| function |", subject.title)?;
    (1..=8).try_for_each(|cpus| write!(text, " {cpus} |"))?;
    write!(text, "\n|---|{}\n", "---|".repeat(8))?;
    for (function, _) in subject.functions {
        write!(text, "| {function} |")?;
        for cpus in 1..=8 {
            let own = share(report, cpus, function);
            let first = subject.functions.iter().all(|(other, _)| share(report, cpus, other) <= own);
            let mark = if first { "**" } else { "" };
            write!(text, " {mark}{:.1}{mark} |", own * 100.0)?;
        }
        text.push('\n');
    }
    Ok(())
}

fn gains(text: &mut String, subject: &Subject, report: &Report, program: &Path, runs: usize) -> Result<()> {
    let machine = u32::try_from(std::thread::available_parallelism().map_or(1, usize::from)).unwrap_or(1);
    let counts: Vec<u32> = (1..=machine.min(8)).collect();
    // For each number of CPUs: times of the unchanged program, followed by those with each function made faster.
    let mut times = vec![vec![Sample::default(); 1 + subject.functions.len()]; counts.len()];
    for turn in 0..runs {
        for (place, &cpus) in counts.iter().enumerate() {
            let mut order: Vec<usize> = (0..=subject.functions.len()).collect();
            order.rotate_left(turn % (subject.functions.len() + 1));
            for variant in order {
                let arguments = match variant.checked_sub(1).and_then(|at| subject.functions.get(at)) {
                    Some((_, arguments)) => arguments,
                    None => subject.plain,
                };
                times[place][variant].push(once(program, arguments, cpus)?);
            }
        }
    }
    text.push_str("\n| a fifth less in | CPUs | predicted gain | measured gain |\n|---|---|---|---|\n");
    for (at, (function, _)) in subject.functions.iter().enumerate() {
        for (place, &cpus) in counts.iter().enumerate() {
            let plain = times[place][0].median();
            writeln!(
                text,
                "| {function} | {cpus} | {:.1} % | {:.1} % |",
                FASTER * share(report, cpus, function) * 100.0,
                (plain - times[place][at + 1].median()) / plain * 100.0
            )?;
        }
    }
    Ok(())
}

/// Wall time of one run on the first `cpus` CPUs, seconds.
fn once(program: &Path, arguments: &[&str], cpus: u32) -> Result<f64> {
    let list = format!("0-{}", cpus.saturating_sub(1));
    command::seconds(Command::new("taskset").args(["-c", &list]).arg(program).args(arguments), LIMIT)
}
