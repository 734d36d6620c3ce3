//! Runs and records the programs of validations.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::command;
use crate::measure::Setting;

/// Compiler flags for workloads whose functions a variable can make faster, and that can run on an emulated machine
/// (common.h).
pub const SCALABLE: [&str; 1] = ["-DSCALABLE"];
/// A run of a workload, or an answer about it, fails if it takes longer than this.
pub const LIMIT: Duration = Duration::from_secs(600);

/// Records a program with these arguments, from its start to its end.
pub fn launch(setting: &Setting, options: &str, program: &Path, words: &str, file: &Path) -> Result<()> {
    let mut record = setting.call("record --force");
    record.args(options.split_whitespace()).arg("-o").arg(file).arg("--").arg(program);
    command::good(record.args(words.split_whitespace()), LIMIT).map(drop)
}

/// Elapsed seconds of one run of a program on these CPUs, which are a list as for `taskset`. `scale` says which
/// function takes what part of its time.
pub fn seconds_on(cpus: &str, program: &Path, words: &str, scale: Option<&String>) -> Result<f64> {
    let mut run = command::line("taskset", "-c");
    run.arg(cpus).arg(program).args(words.split_whitespace());
    run.envs(scale.map(|scale| ("WORKLOAD_SCALE", scale)));
    command::seconds(&mut run, LIMIT)
}
