//! Sixteen busy threads: alone, and with samples of their stacks in each way.

use anyhow::Result;
use serde_json::json;

use super::summary::timed;
use crate::command;
use crate::measure::{Measurement, Need, Outcome, Results, Runs, Side, built};
use crate::sample::Sample;

/// Number of rounds of each thread: some seconds of CPU time together.
const ROUNDS: u64 = 4_000;

/// Options that are measured in addition to the program alone.
const WAYS: [(&str, &str); 4] = [
    ("`-F 0`: scheduler events only", "-F 0"),
    ("`--call-graph fp`", "-F 499 --call-graph fp"),
    ("`--call-graph auto`", "-F 499 --call-graph auto"),
    ("`--call-graph dwarf`", "-F 499 --call-graph dwarf"),
];

pub const SAMPLING: Measurement = Measurement {
    name: "sampling",
    about: "Sixteen busy threads with their stacks sampled",
    title: "Sampling",
    needs: &[Need::Recorder],
    runs: Runs::Times(15),
    rotates: true,
    sides: |setting| {
        let busy = built("busy.c")?;
        let mut alone = command::line(&busy, &ROUNDS.to_string());
        let mut sides = vec![Side::new("alone", move |_| timed(&mut alone)).unlisted()];
        for (label, options) in WAYS {
            let file = setting.file("sampled.lp");
            let mut record = setting.call("record --interpose never --force -o");
            record.arg(&file).args(options.split(' ')).arg("--").arg(&busy).arg(ROUNDS.to_string());
            sides.push(Side::new(label, move |_| {
                let mut value = timed(&mut record)?;
                value["bytes"] = json!(std::fs::metadata(&file)?.len());
                Ok(value)
            }));
        }
        Ok(sides)
    },
    says: "16 threads that only compute, 20 calls deep, compiled without frame pointers; stacks 499 times a second \
           on each CPU. CPU time\nof the program ({alone} s alone), in {runs} turns, against its run alone in the \
           same turn; what samples cost is what goes beyond `-F 0`.",
    fills: |results| Ok(vec![("alone", results.at(0)?.spread("ns", 1e-9)?)]),
    heads: "recorded with",
    columns: &[
        ("more CPU time", |side, results| {
            Ok(format!("{:.2} %", (ratios(side, results)?.median() - 1.0) * 100.0))
        }),
        ("times that of the program alone", |side, results| Ok(ratios(side, results)?.to_string())),
        ("bytes of recording", |side, _| {
            Ok(side.last().map_or(String::new(), |last| last["bytes"].to_string()))
        }),
    ],
    ..Measurement::NEW
};

/// The times of one way, each relative to the run alone in the same turn.
fn ratios(side: &Outcome, results: &Results) -> Result<Sample> {
    Ok(side.of("ns")?.with(&results.at(0)?.of("ns")?, |own, alone| own / alone))
}
