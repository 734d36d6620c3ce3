//! Finds which metric names the right function first, on programs whose functions can really be made faster. Each
//! function is made faster in turn. The function that gains most is the right one, and so is another one whose gain
//! cannot be distinguished from that by measuring.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use longpole_tests::workload;
use serde_json::Value;

use crate::bench::Scratch;
use crate::command;
use crate::sample::Sample;
use crate::workspace::Workspace;

/// The CPUs on which programs are recorded and run.
const CPUS: &str = "0-1";
const LIMIT: Duration = Duration::from_secs(300);

struct Subject {
    source: &'static str,
    title: &'static str,
    /// Arguments of the recorded program.
    plain: &'static [&'static str],
    /// Each function, the arguments with which it changes, and how it changes: half of its work, or as the text says.
    changes: &'static [(&'static str, &'static [&'static str], &'static str)],
}

const HALF: &str = "half";

const SUBJECTS: [Subject; 8] = [
    Subject {
        source: "nlargest.c",
        title: "parallel search, then a serial end",
        plain: &["8", "900", "20", "100"],
        changes: &[("f", &["8", "900", "10", "100"], HALF), ("g", &["8", "900", "20", "50"], HALF)],
    },
    Subject {
        source: "nlargest.c",
        title: "the same with more to search",
        plain: &["8", "450", "100", "100"],
        changes: &[("f", &["8", "450", "50", "100"], HALF), ("g", &["8", "450", "100", "50"], HALF)],
    },
    Subject {
        source: "billing.c",
        title: "two lines of three stages, more threads than CPUs",
        plain: &["60000000", "100", "100", "100"],
        changes: &[
            ("Reader", &["60000000", "50", "100", "100"], HALF),
            ("Sorter", &["60000000", "100", "50", "100"], HALF),
            ("Writer", &["60000000", "100", "100", "50"], HALF),
        ],
    },
    Subject {
        source: "store.c",
        title: "one lock",
        plain: &["4", "1500", "1", "56000", "100000"],
        changes: &[
            ("parse_row", &["4", "1500", "1", "28000", "100000"], HALF),
            ("digest_row", &["4", "1500", "8", "56000", "100000"], "lock split in 8"),
        ],
    },
    Subject {
        source: "producer_consumer.c",
        title: "a queue of eight",
        plain: &["1000", "80000", "100", "100"],
        changes: &[
            ("Produce", &["1000", "80000", "50", "100"], HALF),
            ("Consume", &["1000", "80000", "100", "50"], HALF),
        ],
    },
    Subject {
        source: "rivals.c",
        title: "the largest function off the way to the end",
        plain: &["0", "8000000"],
        changes: &[
            ("Front", &["0", "8000000", "50"], HALF),
            ("Back", &["0", "8000000", "100", "50"], HALF),
            ("Side", &["0", "8000000", "100", "100", "50"], HALF),
        ],
    },
    Subject {
        source: "rivals.c",
        title: "a start, then two long ways of nearly the same length",
        plain: &["1", "6000000"],
        changes: &[
            ("Prepare", &["1", "6000000", "50"], HALF),
            ("Left", &["1", "6000000", "100", "50"], HALF),
            ("Right", &["1", "6000000", "100", "100", "50"], HALF),
        ],
    },
    Subject {
        source: "rivals.c",
        title: "one long branch and five short ones",
        plain: &["2", "12000000"],
        changes: &[
            ("Long", &["2", "12000000", "50"], HALF),
            ("Short", &["2", "12000000", "100", "50"], HALF),
        ],
    },
];

/// Methods that name a function: the metrics of `compare-metrics`, the first line of `parallelism`, and the largest
/// simulated gain.
const NAMERS: [&str; 8] =
    ["profile", "Quartz", "Quartz's advice", "path", "slack", "zeroing", "benefit", "simulated"];

/// Recordings of each program; each is asked for its metrics.
const RECORDINGS: usize = 3;
/// ± is this many standard errors of a median; gains within it are equal.
const SURE: f64 = 2.0;

/// Measured gain of a change.
struct Gain {
    function: &'static str,
    how: &'static str,
    /// Share of the time, for each turn.
    of_turns: Vec<f64>,
}

impl Gain {
    fn median(&self) -> f64 {
        median(&self.of_turns)
    }

    /// Whether the function gains as much as the best one, as far as can be measured.
    fn is_as_good_as(&self, best: &Gain) -> bool {
        let less: Vec<f64> = best.of_turns.iter().zip(&self.of_turns).map(|(best, own)| best - own).collect();
        median(&less) <= error(&less)
    }

    fn told(&self, is_right: bool) -> String {
        let Gain { function, how, .. } = self;
        let how = if *how == HALF { String::new() } else { format!(" ({how})") };
        let mark = if is_right { "**" } else { "" };
        let error = (error(&self.of_turns) * 100.0).max(1.0);
        // Zero is printed without a minus.
        let percent = (self.median() * 100.0).round() + 0.0;
        format!("{mark}{function}{mark}{how} {percent:.0} ±{error:.0} %")
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sample = Sample::default();
    values.iter().for_each(|value| sample.push(*value));
    sample.median()
}

/// Half-width of the interval that would contain the median of many values, if they had a normal distribution apart
/// from outliers.
fn error(values: &[f64]) -> f64 {
    let middle = median(values);
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    // The standard deviation is 1.483 times the median deviation, and a median's error 1.253 times that of a mean.
    SURE * 1.253 * 1.483 * median(&deviations) / (values.len().max(1) as f64).sqrt()
}

/// Makes the table.
///
/// # Errors
/// A program or longpole fails.
pub fn compare(workspace: &Workspace, longpole: &Path, runs: usize) -> Result<String> {
    let scratch = Scratch::new(workspace, "metrics")?;
    let file = scratch.0.join("metrics.lp");
    let mut text = head(runs);
    let mut right = [0; NAMERS.len()];
    for subject in &SUBJECTS {
        eprintln!("{}: {}", subject.source, subject.title);
        let program = workload::build(subject.source)?;
        let mut gains = gains(subject, &program, runs)?;
        gains.sort_by(|a, b| b.median().total_cmp(&a.median()));
        let best: Vec<&str> = match gains.first() {
            Some(first) => {
                gains.iter().filter(|gain| gain.is_as_good_as(first)).map(|gain| gain.function).collect()
            }
            None => Vec::new(),
        };
        let list: Vec<String> = gains.iter().map(|gain| gain.told(best.contains(&gain.function))).collect();
        write!(text, "| {} ({}) | {} |", subject.title, subject.source, list.join(", "))?;
        let mut names: [Vec<String>; NAMERS.len()] = Default::default();
        for _ in 0..RECORDINGS {
            let named = named(longpole, &program, subject, &file)?;
            for (names, name) in names.iter_mut().zip(named) {
                names.push(name.unwrap_or_else(|| "none".to_owned()));
            }
        }
        for (names, right) in names.iter().zip(&mut right) {
            *right += names.iter().filter(|name| best.contains(&name.as_str())).count();
            write!(text, " {} |", cell(names, &best))?;
        }
        text.push('\n');
    }
    write!(text, "| right of {} | |", SUBJECTS.len() * RECORDINGS)?;
    right.iter().try_for_each(|right| write!(text, " {right} |"))?;
    text.push('\n');
    Ok(text)
}

/// The functions that were named, each with the number of recordings unless all agree.
fn cell(names: &[String], best: &[&str]) -> String {
    let mut different: Vec<&String> = Vec::new();
    for name in names {
        if !different.contains(&name) {
            different.push(name);
        }
    }
    let told = |name: &&String| {
        let mark = if best.contains(&name.as_str()) { "**" } else { "" };
        match names.iter().filter(|other| other == name).count() {
            count if count == names.len() => format!("{mark}{name}{mark}"),
            count => format!("{mark}{name}{mark} {count}x"),
        }
    };
    different.iter().map(told).collect::<Vec<_>>().join(", ")
}

fn head(runs: usize) -> String {
    format!(
        "## Which metric names the right function\n\nPrograms of which each function can be made faster, recorded and run on two \
         CPUs. The change is really made: with half of the\nfunction's work, or as written. Gains are medians of {runs} turns in \
         which the program runs without and with each change. ± is twice\ntheir standard error, from the median \
         deviation: a turn in which the host took a CPU away says nothing. **Right** is the function with the largest \
         gain, and any function with the same gain within ±. Each program\nis recorded {RECORDINGS} times, unchanged: \
         `2x` was named in two of them. Metrics are those of `longpole compare-metrics`, the advice is\nthe first line of \
         `longpole parallelism`.\n\n\
         What this does not show: how often metrics are right on programs in general. The programs of rivals.c were written so that \
         metrics\ndisagree. Half of a function's work is one change of many; a metric may be right about another. Slack, \
         zeroing and benefit are\nby definition of unlimited CPUs, and here judged by gains on two.\n\n\
         - profile: the most CPU time. Quartz: CPU time divided by busy CPUs. path: the most on the extended critical path.\n\
         - slack: the function's time on the critical path, as far as that stays the longest for sure (the slack metric).\n\
         - zeroing: how much shorter the critical path gets if the function takes no time and the order of locks stays \
         (logical zeroing).\n\
         - benefit: the least, over the longest paths, of the function's time on the path and what that is shorter than the \
         critical path\n  (maximum benefit).\n\
         - simulated: the program run again in simulation without the function.\n\n\
         | program | gains |{}\n|---|---|{}\n",
        NAMERS.map(|name| format!(" {name} |")).concat(),
        "---|".repeat(NAMERS.len())
    )
}

/// Measures the gain of each change.
fn gains(subject: &Subject, program: &Path, runs: usize) -> Result<Vec<Gain>> {
    let mut gains: Vec<Gain> = subject
        .changes
        .iter()
        .map(|&(function, _, how)| Gain { function, how, of_turns: Vec::new() })
        .collect();
    let count = 1 + gains.len();
    for turn in 0..runs {
        let mut times = vec![0.0; count];
        for place in 0..count {
            let variant = (place + turn) % count;
            let change = variant.checked_sub(1).and_then(|at| subject.changes.get(at));
            times[variant] = once(program, change.map_or(subject.plain, |(_, arguments, _)| *arguments))?;
        }
        for (gain, time) in gains.iter_mut().zip(&times[1..]) {
            gain.of_turns.push(1.0 - time / times[0]);
        }
    }
    Ok(gains)
}

/// Wall time of one run, seconds.
fn once(program: &Path, arguments: &[&str]) -> Result<f64> {
    command::seconds(Command::new("taskset").args(["-c", CPUS]).arg(program).args(arguments), LIMIT)
}

/// The function that comes first, for each of [`NAMERS`].
fn named(longpole: &Path, program: &Path, subject: &Subject, file: &Path) -> Result<Vec<Option<String>>> {
    let mut record = Command::new(longpole);
    record.args(["record", "--exact", "--cpu-list", CPUS, "--overhead", "none", "-F", "0", "--force", "-o"]);
    command::good(record.arg(file).arg("--").arg(program).args(subject.plain), LIMIT)?;
    let json = |name: &str| command::json(Command::new(longpole).args([name, "--json"]).arg(file), LIMIT);
    let (metrics, parallelism) = (json("compare-metrics")?, json("parallelism")?);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let first = |metric: &str| {
        let firsts = metrics["first"].as_array().map_or(&[][..], Vec::as_slice);
        firsts.iter().find(|first| first["metric"] == metric).and_then(|first| text(&first["function"]))
    };
    let functions = metrics["functions"].as_array().map_or(&[][..], Vec::as_slice);
    let mut own = functions.iter().filter(|row| row["is_foreign"] == false);
    Ok(vec![
        first("profile"),
        first("quartz"),
        text(&parallelism["first"]["name"]).map(|name| of_lock(&name)),
        first("critical_path"),
        first("slack"),
        first("zeroing"),
        first("maximum_benefit"),
        own.find(|row| row["simulated_ns"].is_number()).and_then(|row| text(&row["function"])),
    ])
}

/// Replaces the lock of `store.c` by the function whose change is about the lock.
fn of_lock(name: &str) -> String {
    if name.ends_with("registry.gate") { "digest_row".to_owned() } else { name.to_owned() }
}
