//! Sixteen busy threads: alone, and with their stacks sampled in each way.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use longpole_tests::workload;

use super::Scratch;
use super::handover::once;
use super::sample::Sample;
use crate::workspace::Workspace;

const RUNS: usize = 15;
/// Rounds of each thread: some seconds of CPU time in all.
const ROUNDS: u64 = 4_000;

/// Options that are measured in addition to the program alone.
const WAYS: [(&str, &[&str]); 4] = [
    ("`-F 0`: scheduler events only", &["-F", "0"]),
    ("`--call-graph fp`", &["-F", "499", "--call-graph", "fp"]),
    ("`--call-graph auto`", &["-F", "499", "--call-graph", "auto"]),
    ("`--call-graph dwarf`", &["-F", "499", "--call-graph", "dwarf"]),
];

/// Runs all ways in alternation.
///
/// # Errors
/// One of them cannot be run or does not end well.
pub fn measure(workspace: &Workspace, longpole: &Path) -> Result<String> {
    let busy = workload::build("busy.c")?;
    let scratch = Scratch::new(workspace, "sampling")?;
    let session = scratch.0.join("sampled.lp");
    let mut plain = Sample::default();
    let mut ratios: Vec<Sample> = WAYS.iter().map(|_| Sample::default()).collect();
    let mut bytes = [0u64; WAYS.len()];
    for turn in 0..RUNS {
        let mut alone = None;
        let mut others = [0.0; WAYS.len()];
        // Each way is first, second, … and last in turn.
        for place in 0..=WAYS.len() {
            match ((turn + place) % (WAYS.len() + 1)).checked_sub(1) {
                None => alone = Some(once(&mut Command::new(&busy), ROUNDS)?.ns),
                Some(way) => {
                    let mut record = Command::new(longpole);
                    record.args(["record", "--interpose", "never", "--force", "-o"]).arg(&session);
                    record.args(WAYS[way].1).arg("--").arg(&busy);
                    others[way] = once(&mut record, ROUNDS)?.ns;
                    bytes[way] = std::fs::metadata(&session)?.len();
                }
            }
        }
        let alone = alone.context("not run alone")?;
        plain.push(alone);
        for (ratio, other) in ratios.iter_mut().zip(others) {
            ratio.push(other / alone);
        }
    }
    let mut text = format!(
        "## Sampling\n\n16 threads that only compute, 20 calls deep, compiled without frame pointers; stacks 499 times a \
         second on each CPU. CPU time\nof the program ({} s alone), in {RUNS} turns, against its run alone in the same \
         turn; what samples cost is what goes beyond `-F 0`.\n\n| recorded with | more CPU time | times that of the program \
         alone | bytes of recording |\n|---|---|---|---|\n",
        plain.scaled(1e-9)
    );
    for (((name, _), ratio), bytes) in WAYS.iter().zip(&ratios).zip(bytes) {
        writeln!(text, "| {name} | {:.2} % | {ratio} | {bytes} |", (ratio.median() - 1.0) * 100.0)?;
    }
    Ok(text)
}
