//! Which metric names the right function first: for programs of which each function can really be made faster, that is done, and
//! the function with which most is gained is the right one.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use longpole_tests::{run, workload};
use serde_json::Value;

use crate::bench::Scratch;
use crate::sample::Sample;
use crate::workspace::Workspace;

/// The CPUs that programs are recorded and run on.
const CPUS: &str = "0-1";
const LIMIT: Duration = Duration::from_secs(300);

struct Subject {
    source: &'static str,
    title: &'static str,
    /// Arguments of the program as it is recorded.
    plain: &'static [&'static str],
    /// Each function, and the arguments with which its change is made: half of its work, or what is written.
    changes: &'static [(&'static str, &'static [&'static str], &'static str)],
}

const HALF: &str = "half";

const SUBJECTS: [Subject; 8] = [
    Subject {
        source: "nlargest.c",
        title: "parallel search, then a serial end",
        plain: &["8", "900", "24", "100"],
        changes: &[("f", &["8", "900", "12", "100"], HALF), ("g", &["8", "900", "24", "50"], HALF)],
    },
    Subject {
        source: "nlargest.c",
        title: "the same with more to search",
        plain: &["8", "450", "150", "100"],
        changes: &[("f", &["8", "450", "75", "100"], HALF), ("g", &["8", "450", "150", "50"], HALF)],
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
        title: "the largest function beside the way to the end",
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
        title: "one long branch beside five short ones",
        plain: &["2", "12000000"],
        changes: &[
            ("Long", &["2", "12000000", "50"], HALF),
            ("Short", &["2", "12000000", "100", "50"], HALF),
        ],
    },
];

/// Who names a function: the metrics of `compare-metrics`, `parallelism`'s first line, and the largest gain in simulation.
const NAMERS: [&str; 8] =
    ["profile", "Quartz", "Quartz's advice", "path", "slack", "zeroing", "benefit", "simulated"];

/// The table.
///
/// # Errors
/// A program or longpole fails.
pub fn compare(workspace: &Workspace, longpole: &Path, runs: usize) -> Result<String> {
    let scratch = Scratch::new(workspace, "metrics")?;
    let file = scratch.0.join("metrics.lp");
    let mut text = format!(
        "## Which metric names the right function\n\nPrograms of which each function can be made faster, recorded and run on two \
         CPUs. The change is really made: with half of the\nfunction's work, or as written; {runs} runs with and without each, \
         in alternation, gains of the medians. **Right** is the function\nwith which most is gained. Metrics are those of `longpole \
         compare-metrics` on one recording of the unchanged program; advice is\nthe first line of `longpole parallelism`.\n\n\
         | program | gains |{}\n|---|---|{}\n",
        NAMERS.map(|name| format!(" {name} |")).concat(),
        "---|".repeat(NAMERS.len())
    );
    let mut right = [0; NAMERS.len()];
    for subject in &SUBJECTS {
        eprintln!("{}: {}", subject.source, subject.title);
        let program = match workload::build(subject.source) {
            Ok(program) => program,
            Err(workload::Problem::NoCompiler(why) | workload::Problem::Broken(why)) => bail!("{why}"),
        };
        let mut gains = gains(subject, &program, runs)?;
        gains.sort_by(|a, b| b.1.total_cmp(&a.1));
        let best = gains.first().map_or("", |(function, ..)| *function);
        let list: Vec<String> = gains
            .iter()
            .map(|(function, gain, how)| {
                let how = if *how == HALF { String::new() } else { format!(" ({how})") };
                let mark = if *function == best { "**" } else { "" };
                // No minus before nothing.
                format!("{mark}{function}{mark}{how} {:.0} %", (gain * 100.0).round() + 0.0)
            })
            .collect();
        write!(text, "| {} ({}) | {} |", subject.title, subject.source, list.join(", "))?;
        for (named, right) in named(longpole, &program, subject, &file)?.into_iter().zip(&mut right) {
            let is_right = named.as_deref() == Some(best);
            *right += usize::from(is_right);
            let mark = if is_right { "**" } else { "" };
            write!(text, " {mark}{}{mark} |", named.as_deref().unwrap_or("none"))?;
        }
        text.push('\n');
    }
    write!(text, "| right of {} | |", SUBJECTS.len())?;
    right.iter().try_for_each(|right| write!(text, " {right} |"))?;
    text.push('\n');
    Ok(text)
}

/// What each change gains, as a share of the time.
fn gains<'s>(subject: &'s Subject, program: &Path, runs: usize) -> Result<Vec<(&'static str, f64, &'s str)>> {
    let mut times = vec![Sample::default(); 1 + subject.changes.len()];
    for turn in 0..runs {
        let count = times.len();
        for place in 0..count {
            let variant = (place + turn) % count;
            let change = variant.checked_sub(1).and_then(|at| subject.changes.get(at));
            times[variant].push(once(program, change.map_or(subject.plain, |(_, arguments, _)| *arguments))?);
        }
    }
    let plain = times[0].median();
    let gain = |((function, _, how), time): (&(&'static str, _, &'s str), &Sample)| {
        (*function, 1.0 - time.median() / plain, *how)
    };
    Ok(subject.changes.iter().zip(&times[1..]).map(gain).collect())
}

/// Wall time of one run, in seconds.
fn once(program: &Path, arguments: &[&str]) -> Result<f64> {
    let mut command = Command::new("taskset");
    command.args(["-c", CPUS]).arg(program).args(arguments);
    let began = Instant::now();
    let ended = run(&mut command, LIMIT).context("taskset")?;
    if ended.code != Some(0) {
        bail!("{} failed: {}", program.display(), ended.stderr.trim());
    }
    Ok(began.elapsed().as_secs_f64())
}

/// The functions that come first, in the order of [`NAMERS`].
fn named(longpole: &Path, program: &Path, subject: &Subject, file: &Path) -> Result<Vec<Option<String>>> {
    let mut record = Command::new(longpole);
    record.args(["record", "--cpu-list", CPUS, "--overhead", "none", "-F", "0", "--force", "-o"]);
    said(record.arg(file).arg("--").arg(program).args(subject.plain))?;
    let json = |command: &str| -> Result<Value> {
        let text = said(Command::new(longpole).args([command, "--json"]).arg(file))?;
        serde_json::from_str(&text).with_context(|| format!("longpole {command} says no JSON"))
    };
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

/// Of the lock of `store.c`, the function whose change is about it.
fn of_lock(name: &str) -> String {
    if name.ends_with("registry.gate") { "digest_row".to_owned() } else { name.to_owned() }
}

fn said(command: &mut Command) -> Result<String> {
    let ended = run(command, LIMIT)?;
    if ended.code != Some(0) {
        bail!("{command:?} failed: {}", ended.stderr.trim());
    }
    Ok(ended.stdout)
}
