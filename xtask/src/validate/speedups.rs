//! Runs `longpole validate` on a command, and prints rows of a table from its answer.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use crate::command;
use crate::sample::Sample;

/// A `longpole validate` that takes longer fails.
pub const LIMIT: Duration = Duration::from_secs(1800);

/// The recordings that predictions come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// Recordings on this number of CPUs, for all rows.
    On(usize),
    /// Each number of CPUs has recordings of its own, with the same number of OpenMP threads.
    Each,
}

/// `longpole validate --json` of a command. If one recording serves all numbers of CPUs, the first is kept in `kept`.
///
/// # Errors
/// longpole fails.
pub fn validation(
    longpole: &Path,
    program: &[String],
    runs: usize,
    recorded: Recorded,
    kept: Option<&Path>,
) -> Result<Value> {
    let mut command = Command::new(longpole);
    command.args(["validate", "--json", "--runs", &runs.to_string()]);
    if let (Some(file), Recorded::On(_)) = (kept, recorded) {
        command.arg("--force").arg("-o").arg(file);
    }
    match recorded {
        Recorded::On(cpus) => command.args(["--record-on", &cpus.to_string(), "--"]),
        Recorded::Each => command.args(["--", "env", "OMP_NUM_THREADS={cpus}"]),
    };
    command.args(program);
    command::json(&mut command, LIMIT)
}

/// Errors of predictions, percent.
#[derive(Default)]
pub struct Errors {
    all: Sample,
    /// Errors of the simulation alone.
    own: Sample,
}

impl Errors {
    /// Cells of a row of `longpole validate --json`: CPUs, measured, predicted, error, CPU time, and the simulation's error.
    pub fn cells(&mut self, row: &Value) -> String {
        let number = |name: &str| row[name].as_f64().unwrap_or(f64::NAN);
        let [error, own] = ["error", "scheduling_error"].map(|name| number(name) * 100.0);
        self.all.push(error);
        self.own.push(own);
        let [measured, predicted] = ["measured_speedup", "predicted_speedup"].map(|name| range(row, name));
        let (cpus, inflation) = (&row["cpus"], number("inflation"));
        format!("{cpus} | {measured} | {predicted} | {error:.1} % | {inflation:.2}× | {own:.1} %")
    }

    /// All errors, in a sentence.
    pub fn told(&self) -> String {
        let Errors { all, own } = self;
        format!(
            "Errors in percent, middle (smallest–largest) of the {} rows: {all}; the simulation's own: {own}.",
            all.len()
        )
    }
}

/// A speed-up in a row of the answer, with its smallest and largest value.
fn range(row: &Value, name: &str) -> String {
    let of = |name: &str| row[name].as_f64().unwrap_or(f64::NAN);
    let (low, high) = (of(&format!("{name}_low")), of(&format!("{name}_high")));
    format!("{:.2} ({low:.2}–{high:.2})", of(name))
}
