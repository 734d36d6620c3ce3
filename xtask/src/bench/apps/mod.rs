//! Real programs under their own load, alone and under `longpole record` with default settings, in turns of half a
//! second. Also measures the bytes that their recordings take for each event.

mod files;
mod in_turns;
mod list;
mod runs;

use anyhow::Result;
use serde_json::{Value, json};

use super::summary::{events, lost_percent, told_cost};
use crate::measure::{Cell, Fills, Measurement, Need, Outcome, Results, Runs, Setting, Side, is_here};
use crate::sample::{Sample, digits};

pub use files::prepare;
pub use list::{APPS as PROGRAMS, App, Load};
use runs::Since;
pub use runs::{Recorded, recorded};

/// Smallest number of pairs of runs. More pairs run if the pairs differ much, and never depending on which side is
/// slower.
const LEAST: usize = 5;
const MOST: usize = 15;
/// If the standard error of the pairs' mean is this small, no more pairs run ([`Sample::standard_error`]).
const GOOD: f64 = 0.01;

const APPS_TARGETS: &str = "The targets: median\nslow-down at most 1 %, worst at most 5 %, at most 8 bytes of recording for each event.";
const STORMS_TARGETS: &str = "The targets: processes at most\n1.1, two mutexes at most 1.05, and what longpole says within \
                              a third of what is measured.";

pub const APPS: Measurement = Measurement {
    name: "apps",
    about: "Real programs under their own load, and the size of their recordings",
    title: "Real programs under their own load",
    sides: |setting| sides(setting, &list::APPS),
    fills: |results| fills(results, APPS_TARGETS),
    ..BOTH
};

pub const STORMS: Measurement = Measurement {
    name: "storms",
    about: "Programs that start others, or threads, or take mutexes, as fast as they can",
    title: "Storms of processes, threads and locks",
    sides: |setting| sides(setting, &list::STORMS),
    fills: |results| fills(results, STORMS_TARGETS),
    ..BOTH
};

/// The settings that both tables share.
const BOTH: Measurement = Measurement {
    needs: &[Need::Recorder],
    runs: Runs::Times(MOST),
    chooses: true,
    says: "Time of the work alone and under `longpole record` with default settings: {pairs}. The two of a\npair run \
           in turns of half a second. One is held while the other runs (with longpole), so that changes of the \
           machine's speed affect both. The slow-down is the median of the pairs, with the smallest and the largest. \
           longpole's kernel programs also see the events of the program alone, and ignore them: for nginx, which \
           has most events, that hides up to 1 %. The sampling clock ticks in the program alone, too, which hides \
           the cost of ticks (`./x bench promise`). {targets}\nCPU time more: the CPU time of the program and \
           longpole together, beyond that of the program alone; longpole says: the same in its summary.",
    heads: "program",
    columns: &COLUMNS,
    ends,
    ..Measurement::NEW
};

const COLUMNS: [(&str, Cell); 9] = [
    ("s alone", |side, _| side.spread("alone", 1.0)),
    ("s recorded", |side, _| side.spread("recorded", 1.0)),
    ("slow-down", |side, _| side.spread("slower", 1.0)),
    ("pairs", |side, _| Ok(side.len().to_string())),
    ("CPU time more, %", |side, _| side.spread("more_cpu", 1.0)),
    ("longpole says, %", |side, _| side.spread("told", 1.0)),
    ("events", |side, _| Ok(format!("{:.0}", last(side, "events")))),
    ("bytes per event", |side, _| Ok(digits(last(side, "bytes") / last(side, "events").max(1.0)))),
    ("lost, %", |side, _| side.spread("lost", 1.0)),
];

/// The programs of a list. Programs that are missing or fail have no row in the table.
fn sides<'a>(setting: &'a Setting, apps: &'static [App]) -> Result<Vec<Side<'a>>> {
    prepare(&setting.folder)?;
    let mut sides = Vec::new();
    for (stage, app) in apps.iter().enumerate().filter(|(_, app)| setting.wants(app.name)) {
        let side = match app.missing() {
            Some(why) => Side::absent(app.name, why),
            // The first pair does not count, because it reads the files into memory.
            None => Side::new(app.name, |_| pair(app, setting)).may_fail().warming(),
        };
        let side = if setting.wishes.runs.is_none() { side.enough(are_enough) } else { side };
        sides.push(side.stage(stage));
    }
    Ok(sides)
}

impl App {
    /// Why the program cannot run on this machine.
    pub fn missing(&self) -> Option<String> {
        let (program, package) = self.needs.iter().find(|(program, _)| !is_here(program))?;
        Some(format!("{program} is missing: `apt-get install {package}`"))
    }
}

fn are_enough(pairs: &Outcome) -> bool {
    pairs.of("slower").is_ok_and(|slower| is_known(&slower))
}

fn is_known(slower: &Sample) -> bool {
    slower.len() >= LEAST && slower.standard_error().is_some_and(|error| error <= GOOD)
}

/// One pair of runs.
fn pair(app: &App, setting: &Setting) -> Result<Value> {
    let file = setting.file("app.lp");
    let ([alone, recorded], said) = runs::pair(&app.load, setting, &file)?;
    let is_from_attach = matches!(app.load, Load::Server(_, _, Since::Attach));
    Ok(json!({
        "alone": alone.wall_s,
        "recorded": recorded.wall_s,
        "slower": recorded.wall_s / alone.wall_s,
        // After attaching, a server is slower once, until probes that cost too much are removed.
        "held_up": is_from_attach.then_some(recorded.wall_s - alone.wall_s),
        // CPU time of the program and longpole together, compared with that of the program alone. `told` is the cost
        // that longpole reports.
        "more_cpu": 100.0 * (recorded.cpu_s / alone.cpu_s - 1.0),
        "told": told_cost(&said)?,
        "events": events(&said)?,
        "bytes": std::fs::metadata(&file)?.len(),
        "lost": lost_percent(&said)?,
    }))
}

fn last(side: &Outcome, name: &str) -> f64 {
    side.last().and_then(|last| last[name].as_f64()).unwrap_or_default()
}

fn fills(results: &Results, targets: &str) -> Result<Fills> {
    let pairs = match results.runs {
        MOST => format!("{LEAST} to {MOST} pairs, until their mean is known to 1.00 % (standard error)"),
        runs => format!("{runs} pairs"),
    };
    Ok(vec![("pairs", pairs), ("targets", targets.to_owned())])
}

fn ends(results: &Results) -> Result<String> {
    let (mut slower, mut held_up, mut events, mut bytes) = (Sample::default(), String::new(), 0.0, 0.0);
    for side in results.listed() {
        match side.spread("held_up", 1.0) {
            Ok(seconds) => held_up.push_str(&format!(
                "\n{}: it is held up once, until probes that cost too much are off, by {seconds} s; that is no part of these.",
                side.label
            )),
            Err(_) => slower.push(side.median("slower")?),
        }
        events += last(side, "events");
        bytes += last(side, "bytes");
    }
    let percent = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
    let worst = slower.values().iter().fold(0.0, |a, b| f64::max(a, *b));
    Ok(format!(
        "Median of the slow-downs {}, worst {}; {} bytes per event over all of them.{held_up}",
        percent(slower.median()),
        percent(worst),
        digits(bytes / events.max(1.0))
    ))
}

#[cfg(test)]
mod tests {
    use super::{MOST, is_known};
    use crate::sample::Sample;

    #[test]
    fn more_pairs_are_run_when_they_differ_more() {
        let count = |spread: f64| {
            let mut slower = Sample::default();
            while slower.len() < MOST && !is_known(&slower) {
                slower.push(1.5 + spread * if slower.len().is_multiple_of(2) { 1.0 } else { -1.0 });
            }
            slower.len()
        };
        assert_eq!([count(0.0), count(0.025), count(0.5)], [5, 8, 15]);
    }
}
