//! Predictions from recordings of running programs, to which longpole attaches.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use longpole_tests::Background;

use super::programs::LIMIT;
use crate::command;
use crate::measure::Setting;

/// Time between the start of a program and attaching to it.
const WARM: Duration = Duration::from_millis(200);

/// Starts the command on these CPUs, records it for these seconds while it runs, and ends it. `threads` is the number
/// of threads for OpenMP.
pub fn record(
    setting: &Setting,
    program: &[String],
    threads: Option<u64>,
    (cpus, seconds): (&str, f64),
    file: &Path,
) -> Result<()> {
    let mut target = command::line("taskset", "-c");
    target.arg(cpus).args(program).envs(threads.map(|threads| ("OMP_NUM_THREADS", threads.to_string())));
    let target = Background::start(&mut target)?;
    std::thread::sleep(WARM);
    let mut record = setting.call(&format!("record --force -d {seconds}s -p {} -o", target.pid()));
    command::good(record.arg(file), LIMIT).map(drop)
}

/// Predicted speed-ups on these numbers of CPUs, relative to one CPU.
pub fn predicted(setting: &Setting, cpus: &[u64], file: &Path) -> Result<Vec<f64>> {
    let list: String = cpus.iter().map(|cpus| format!(",{cpus}")).collect();
    let mut predict = setting.call(&format!("predict --json --cpus 1{list}"));
    let answer = command::json(predict.arg(file), LIMIT)?;
    let rows = answer["results"].as_array().context("no results")?;
    let time = |cpus: u64| {
        let row = rows.iter().find(|row| row["cpus"].as_u64() == Some(cpus));
        row.and_then(|row| row["time_ns"].as_f64())
            .with_context(|| format!("no predicted time on {cpus} CPUs"))
    };
    cpus.iter().map(|cpus| Ok(time(1)? / time(*cpus)?)).collect()
}
