//! Two threads pass a lock back and forth as fast as they can: alone, under longpole, and under perf.

use std::process::Command;

use serde_json::json;

use super::summary::timed;
use crate::command;
use crate::measure::{Measurement, Need, Runs, Side, built};
use crate::sample::digits;

const HANDOVERS: u64 = 200_000;

pub const HANDOVER: Measurement = Measurement {
    name: "handover",
    about: "Two threads handing a lock to and fro",
    title: "Handing a lock to and fro",
    needs: &[Need::Recorder, Need::Tracefs],
    runs: Runs::Times(24),
    rotates: true,
    sides: |setting| {
        let pingpong = built("pingpong.c")?;
        let recorded = |label, mut record: Command, file: &str| {
            let file = setting.file(file);
            record.arg(&file).arg("--").arg(&pingpong).arg(HANDOVERS.to_string());
            Side::new(label, move |_| {
                let mut value = timed(&mut record)?;
                value["bytes"] = json!(std::fs::metadata(&file)?.len());
                Ok(value)
            })
        };
        let mut alone = command::line(&pingpong, &HANDOVERS.to_string());
        let ours = setting.call("record --interpose never --force -o");
        let perf = command::line("perf", "sched record -o");
        Ok(vec![
            Side::new("alone", move |_| timed(&mut alone)),
            recorded("`longpole record --interpose never`", ours, "ours.lp"),
            recorded("`perf sched record`", perf, "perf.data").may_fail(),
        ])
    },
    says: "Two threads, one mutex, two condition variables, 200000 hand-overs as fast as they can. {runs} runs of \
           each in\nalternation. longpole records the whole process (`--interpose never`: scheduler and futex \
           events), perf the whole machine's\nscheduler (`perf sched record` knows no other way).",
    heads: " ",
    columns: &[
        ("µs per hand-over", |side, _| side.spread("ns", 1e-3 / HANDOVERS as f64)),
        ("slow-down", |side, results| Ok(digits(side.median("ns")? / results.at(0)?.median("ns")?))),
        ("bytes of recording per hand-over", |side, _| {
            let bytes = side.last().and_then(|last| last["bytes"].as_f64());
            Ok(bytes.map_or_else(|| "–".into(), |bytes| digits(bytes / HANDOVERS as f64)))
        }),
    ],
    ends: |results| {
        let (ours, perf) = (results.at(1)?, results.at(2)?);
        let lost = format!("Events longpole lost, in percent: {}.", ours.spread("lost", 1.0)?);
        if perf.last().is_none() {
            return Ok(lost);
        }
        let smaller = ours.of("ns")?.with(&perf.of("ns")?, |own, other| f64::from(u8::from(own < other)));
        let (turns, smaller) = (smaller.len(), smaller.values().iter().filter(|is| **is > 0.0).count());
        let verdict = verdict(smaller, turns);
        Ok(format!("longpole was the faster of the two in {smaller} of {turns} turns: {verdict}\n\n{lost}"))
    },
    ..Measurement::NEW
};

/// Says which slow-down is smaller. If both were equal, each turn would be a coin flip. In only one of a hundred such
/// experiments, one side would have three quarters or more of the turns. So counts nearer to a half count as no
/// difference.
fn verdict(ours_smaller: usize, turns: usize) -> &'static str {
    match () {
        () if ours_smaller * 4 >= turns * 3 => "its slow-down is the smaller.",
        () if ours_smaller * 4 <= turns => "its slow-down is **not** the smaller.",
        () => "no clear difference on this machine.",
    }
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn a_tie_of_two_slow_downs_is_not_called_a_win() {
        assert_eq!(verdict(24, 24), "its slow-down is the smaller.");
        assert_eq!(verdict(18, 24), "its slow-down is the smaller.");
        assert_eq!(verdict(13, 24), "no clear difference on this machine.");
        assert_eq!(verdict(6, 24), "its slow-down is **not** the smaller.");
    }
}
