//! Runs `longpole validate` on a command, and makes cells of its answer.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::command;
use crate::measure::{Results, Setting};
use crate::sample::Sample;

/// A `longpole validate` that takes longer fails.
pub const LIMIT: Duration = Duration::from_secs(1800);

/// The recordings that predictions come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// Recordings on this number of CPUs, for all rows.
    On(usize),
    /// Each number of CPUs has recordings of its own, with as many OpenMP threads.
    Each,
}

/// `longpole validate --json` of a command. If one recording serves all numbers of CPUs, the first is kept in `kept`.
pub fn validation(
    setting: &Setting,
    program: &[String],
    recorded: Recorded,
    kept: Option<&std::path::Path>,
) -> Result<Value> {
    let mut command = setting.call("validate --json --runs");
    command.arg(setting.runs.to_string());
    if let (Some(file), Recorded::On(_)) = (kept, recorded) {
        command.arg("--force").arg("-o").arg(file);
    }
    match recorded {
        Recorded::On(cpus) => command.args(["--record-on", &cpus.to_string(), "--"]),
        Recorded::Each => command.args(["--", "env", "OMP_NUM_THREADS={cpus}"]),
    };
    command::json(command.args(program), LIMIT)
}

/// Rows of such an answer, without that for one CPU.
pub fn rows(document: &Value) -> impl Iterator<Item = &Value> {
    document["results"].as_array().into_iter().flatten().skip(1)
}

/// Cells of a row: CPUs, measured, predicted, error, CPU time, and the simulation's error.
pub fn cells(row: &Value) -> String {
    let [measured, predicted] = ["measured_speedup", "predicted_speedup"].map(|name| range(row, name));
    let [error, own] = ["error", "scheduling_error"].map(|name| number(row, name) * 100.0);
    let (cpus, inflation) = (&row["cpus"], number(row, "inflation"));
    format!("{cpus} | {measured} | {predicted} | {error:.1} % | {inflation:.2}× | {own:.1} %")
}

/// A speed-up in such a row, with its smallest and largest value.
fn range(row: &Value, name: &str) -> String {
    let [low, high] = ["low", "high"].map(|end| number(row, &format!("{name}_{end}")));
    format!("{:.2} ({low:.2}–{high:.2})", number(row, name))
}

/// A number in such a row.
pub fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or(f64::NAN)
}

/// The errors of all documents, in a sentence.
pub fn told_errors(results: &Results) -> String {
    let all = || results.values().flat_map(|(_, document)| rows(document));
    let percent = |name: &'static str| all().map(|row| number(row, name) * 100.0).collect::<Sample>();
    let (errors, own) = (percent("error"), percent("scheduling_error"));
    format!(
        "Errors in percent, middle (smallest–largest) of the {} rows: {errors}; the simulation's own: {own}.",
        errors.len()
    )
}

/// Puts predicted speed-ups in place of those of a row; what was measured stays.
pub fn predict(row: &mut Value, predicted: f64) {
    let measured = number(row, "measured_speedup");
    row["predicted_speedup"] = json!(predicted);
    row["error"] = json!((predicted - measured).abs() / measured);
    row["scheduling_error"] = Value::Null;
}
