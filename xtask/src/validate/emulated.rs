//! Predictions for more CPUs than there are, from a recording on this machine, compared with the same program on an emulated
//! machine: there, a computing thread takes one of P tokens and sleeps (real locks, real wake-ups; tests/workloads/common.h).

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use longpole_tests::workload;

use super::{LIMIT, SCALABLE};
use crate::bench::Scratch;
use crate::command;
use crate::sample::{Sample, digits};
use crate::workspace::Workspace;

/// Speed-ups are relative to the first.
const CPUS: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Predictions count for more CPUs than this, which this machine cannot show.
const BEYOND: u32 = 2;

/// Programs with their arguments. Pieces of work take at least a millisecond, so that waking a sleeping thread takes
/// only a small part of the time.
const SUBJECTS: [(&str, &str, &[&str]); 12] = [
    ("barriers, 16 threads", "phases.c", &["16", "40", "4000000"]),
    ("a pool of 16 threads", "pool.c", &["16", "800", "4000000"]),
    ("a pool of 40 threads", "pool.c", &["40", "800", "4000000"]),
    ("readers and writers, 16 threads", "readers.c", &["16", "60", "2000000", "20"]),
    ("a hot lock, 8 threads", "convoy.c", &["30", "8", "6000000"]),
    ("one lock of 16 threads, held a third of the time", "store.c", &["16", "60", "1", "2000000", "1000000"]),
    ("the same with the lock split in 8", "store.c", &["16", "60", "8", "2000000", "1000000"]),
    ("fork and join, 12 branches", "forkjoin.c", &["30", "12", "5000000"]),
    ("a pipeline of three stages", "pipeline.c", &["300", "4", "1000000"]),
    ("a queue of eight", "producer_consumer.c", &["150", "1000000"]),
    ("handing a token on", "handoff.c", &["400", "8", "4000000"]),
    ("work stealing, 16 threads", "stealing.c", &["16", "3000000000", "4000000"]),
];

/// Compares all programs.
///
/// # Errors
/// A program or longpole fails.
pub fn compare(workspace: &Workspace, longpole: &Path, runs: usize) -> Result<String> {
    let scratch = Scratch::new(workspace, "emulated")?;
    let file = scratch.0.join("emulated.lp");
    let (mut rows, mut errors) = (String::new(), Sample::default());
    for (title, source, arguments) in SUBJECTS {
        eprintln!("{title}");
        let program = workload::build_with(source, &SCALABLE)?;
        let mut record = Command::new(longpole);
        record.args(["record", "--force", "-o"]).arg(&file).arg("--").arg(&program).args(arguments);
        command::good(&mut record, LIMIT)?;
        let predicted = predicted(longpole, &file)?;
        let mut measured = CPUS.map(|_| Sample::default());
        for _ in 0..runs {
            for (cpus, sample) in CPUS.iter().zip(&mut measured) {
                let mut command = Command::new(&program);
                command.args(arguments).env("WORKLOAD_CPUS", cpus.to_string());
                sample.push(command::seconds(&mut command, LIMIT)?);
            }
        }
        let one = measured[0].median();
        write!(rows, "| {title} ({source}) |")?;
        for ((cpus, sample), predicted) in CPUS.iter().zip(&measured).zip(predicted).skip(1) {
            let measured = one / sample.median();
            write!(rows, " {} / {} |", digits(measured), digits(predicted))?;
            if *cpus > BEYOND {
                errors.push(100.0 * (predicted / measured - 1.0).abs());
            }
        }
        rows.push('\n');
    }
    let heads: String = CPUS.iter().skip(1).map(|cpus| format!(" {cpus} CPUs |")).collect();
    Ok(format!(
        "## Beyond this machine: emulated CPUs\n\nSpeed-ups relative to one CPU, measured / predicted. Measured on an emulated machine: \
         a thread that computes takes one of P tokens, sleeps as long as it would compute, and returns the token \
         after a slice of 4 ms at the latest. \
         Locks, queues and wake-ups are real\n({runs} runs, medians). Predicted from one recording of the same program that computes, on the CPUs of this machine.\n\
         The emulation has no caches and memory that CPUs share. A thread that wakes up waits for the end of a slice \
         there, whereas Linux runs a short job first: the pool's main thread, which adds up results.\n\n\
         | program |{heads}\n|---|{}\n{rows}\nErrors on more than {BEYOND} CPUs in percent, middle (smallest–largest): {errors}.",
        "---|".repeat(CPUS.len() - 1)
    ))
}

/// Predicted speed-ups relative to one CPU.
fn predicted(longpole: &Path, file: &Path) -> Result<Vec<f64>> {
    let list = CPUS.map(|cpus| cpus.to_string()).join(",");
    let mut command = Command::new(longpole);
    command.args(["predict", "--json", "--cpus", &list]).arg(file);
    let answer = command::json(&mut command, LIMIT)?;
    let time = |at: usize| {
        let time = answer["results"][at]["time_ns"].as_f64();
        time.with_context(|| format!("no time in {}", answer["results"][at]))
    };
    (0..CPUS.len()).map(|at| Ok(time(0)? / time(at)?)).collect()
}
