//! Runs `longpole validate` on a command, and makes table cells of its answer.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::command;
use crate::measure::{Results, Setting};
use crate::sample::Sample;

/// A `longpole validate` fails if it takes longer than this.
pub const LIMIT: Duration = Duration::from_secs(1800);

/// The recordings from which predictions come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// For all rows, recordings on this number of CPUs.
    On(usize),
    /// For each number of CPUs, separate recordings with as many OpenMP threads.
    Each,
}

/// Runs `longpole validate --json` on a command. If one recording is used for all numbers of CPUs, the first one is
/// stored at `kept`.
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

/// The rows of such an answer, without the row for one CPU.
pub fn rows(document: &Value) -> impl Iterator<Item = &Value> {
    document["results"].as_array().into_iter().flatten().skip(1)
}

/// The cells of a row: CPUs, measured, predicted, error, CPU time, and the error of the simulation.
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

/// The errors of all documents, as a sentence.
pub fn told_errors(results: &Results) -> String {
    let all = || results.values().flat_map(|(_, document)| rows(document));
    let percent = |name: &'static str| all().map(|row| number(row, name) * 100.0).collect::<Sample>();
    let (errors, own) = (percent("error"), percent("scheduling_error"));
    format!(
        "Errors in percent, middle (smallest–largest) of the {} rows: {errors}; the simulation's own: {own}.",
        errors.len()
    )
}

/// Replaces the predicted speed-ups in a row. The measured ones stay.
pub fn predict(row: &mut Value, predicted: f64) {
    let measured = number(row, "measured_speedup");
    row["predicted_speedup"] = json!(predicted);
    row["error"] = json!((predicted - measured).abs() / measured);
    row["scheduling_error"] = Value::Null;
}
