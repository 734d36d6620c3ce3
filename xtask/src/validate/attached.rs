//! Validates predictions from attaching to programs while they run.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use longpole_tests::Background;

use crate::command;
use crate::sample::Sample;

/// Time between the start of a program and attaching to it.
const WARM: Duration = Duration::from_millis(200);
/// Longest time of a recording, or of an answer about it; a longer one is a failure.
const LIMIT: Duration = Duration::from_secs(120);
/// Recordings for each speed-up; their median counts.
const RECORDINGS: usize = 3;

/// Starts the command on these CPUs, records it for this number of seconds while it runs, and ends it.
///
/// # Errors
///
/// The command does not start, or longpole fails.
pub fn record<S: AsRef<OsStr>>(
    longpole: &Path,
    program: &[S],
    environment: &[(&str, String)],
    cpus: &str,
    seconds: f64,
    file: &Path,
) -> Result<()> {
    let mut target = Command::new("taskset");
    target.args(["-c", cpus]).args(program).envs(environment.iter().map(|(name, value)| (name, value)));
    let target = Background::start(&mut target)?;
    std::thread::sleep(WARM);
    let mut record = Command::new(longpole);
    record.args(["record", "--force", "-d", &format!("{seconds}s"), "-o"]).arg(file);
    command::good(record.args(["-p", &target.pid().to_string()]), LIMIT).map(drop)
}

/// Speed-ups on `cpus` CPUs relative to one, predicted from recordings of a program that runs on one CPU.
///
/// # Errors
/// As [`record`], or longpole predicts nothing.
pub fn speedups(
    longpole: &Path,
    program: &[String],
    environment: &[(&str, String)],
    cpus: u64,
    seconds: f64,
    file: &Path,
) -> Result<Sample> {
    let mut speedups = Sample::default();
    for _ in 0..RECORDINGS {
        record(longpole, program, environment, "0", seconds, file)?;
        let mut predict = Command::new(longpole);
        let answer = command::json(
            predict.args(["predict", "--json", "--cpus", &format!("1,{cpus}")]).arg(file),
            LIMIT,
        )?;
        let time = |at: usize| answer["results"][at]["time_ns"].as_f64().context("no predicted time");
        speedups.push(time(0)? / time(1)?);
    }
    Ok(speedups)
}
