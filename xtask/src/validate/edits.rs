//! Changes that are really made, compared with the gains that `what-if` predicts. Functions are halved and locks are
//! split, on one CPU and on two. The recordings are of the unchanged program, launched and attached.

use std::path::Path;

use anyhow::{Context, Result};
use longpole_tests::workload;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::attached;
use super::programs::{LIMIT, SCALABLE, launch, seconds_on};
use crate::command;
use crate::measure::{Measurement, Need, Results, Runs, Setting, Side, in_turns};
use crate::sample::Sample;

/// CPU lists with one CPU and with two. Programs are recorded on the second list.
const CPUS: [&str; 2] = ["0", "0,1"];
/// Length of an attached recording, in seconds.
const WINDOW: f64 = 1.2;

struct Subject {
    source: &'static str,
    arguments: &'static str,
    /// The functions whose work is halved.
    halved: &'static str,
    /// A lock, and the arguments with which the program splits it in eight.
    split: Option<(&'static str, &'static str)>,
    /// Whether the program repeats the same work, so that a part of its run is like the whole.
    repeats: bool,
}

const fn halves(source: &'static str, arguments: &'static str, halved: &'static str) -> Subject {
    Subject { source, arguments, halved, split: None, repeats: true }
}

/// A program that runs each of its functions once.
const fn once_through(arguments: &'static str, halved: &'static str) -> Subject {
    Subject { repeats: false, ..halves("rivals.c", arguments, halved) }
}

const SUBJECTS: [Subject; 15] = [
    halves("toy.c", "800", "Slow Fast"),
    halves("handoff.c", "10000 3 60000", "HoldToken"),
    halves("phases.c", "4 150 2000000", "Phase"),
    halves("pool.c", "4 1200 1000000", "Task Combine"),
    halves("readers.c", "4 1200 200000 20", "ReadTable WriteTable Outside"),
    halves("convoy.c", "400 3 800000", "UnderTheLock OnItsOwn"),
    halves("submit.c", "condition 401 600000", "Work Prepare"),
    halves("stealing.c", "4 2000000000 1000000", "Leaf"),
    halves("forkjoin.c", "150 5 1000000", "ShortBranch LongBranch"),
    halves("pipeline.c", "900 4 200000", "StageParse StageTransform StageWrite"),
    halves("producer_consumer.c", "900 100000", "Produce Consume"),
    once_through("0 8000000", "Front Back Side"),
    once_through("1 6000000", "Prepare Left Right"),
    once_through("2 12000000", "Long Short"),
    Subject {
        split: Some(("registry.gate", "4 4000 8 28000 50000")),
        ..halves("store.c", "4 4000 1 28000 50000", "parse_row digest_row")
    },
];

pub const EDITS: Measurement = Measurement {
    name: "edits",
    about: "What changes gain that are really made, and between what `what-if` says that it lies",
    title: "Changes that were made",
    needs: &[Need::Recorder],
    runs: Runs::Inside(7),
    sides: |setting| {
        let side = |subject: &'static Subject| {
            Side::new(subject.source, move |_| subject.compared(setting)).may_fail()
        };
        Ok(SUBJECTS.iter().map(side).collect())
    },
    says: "15 programs. Each was recorded once on two CPUs, launched and attached to for 1.2 s. Then `what-if` \
           predicted the gain of a change on one CPU and on two, with its range. The change was made, and the \
           program was run without and with it, {runs} times in turn (medians). Percent of the time. rivals.c calls \
           each of its functions once. A part of its run is not like the whole, so longpole is not attached to \
           it.\n\nLaunched: {launched}. Attached: {attached}.",
    fills: |results| Ok(vec![("launched", score(results, 0)), ("attached", score(results, 1))]),
    heads: "program | change | CPUs | measured | launched says | attached says",
    rows: Some(|results| {
        let line = |row: Row| {
            let cells: String =
                row.said.iter().map(|said| format!(" | {}", cell(*said, row.measured))).collect();
            format!("{} | {} | {} | {}{cells}", row.source, row.change, row.cpus, percent(row.measured))
        };
        Ok(rows(results).map(line).collect())
    }),
    ends: |results| {
        let all = results.values().flat_map(|(_, value)| value["failed"].as_array()).flatten();
        let failed: Vec<&str> = all.filter_map(Value::as_str).collect();
        let failed = failed.join("; ");
        Ok(if failed.is_empty() { failed } else { format!("Without an answer: {failed}.") })
    },
    ..Measurement::NEW
};

/// The result of a change on one number of CPUs.
#[derive(Serialize, Deserialize)]
struct Row {
    source: String,
    change: String,
    cpus: usize,
    /// Measured gain, as a share of the time.
    measured: f64,
    /// Predictions from the launched and the attached recording.
    said: [Option<Said>; 2],
}

/// longpole's prediction for a change on one number of CPUs: the gain and its range, as shares of the time.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Said {
    gain: f64,
    low: f64,
    high: f64,
}

impl Said {
    fn holds(self, measured: f64) -> bool {
        (self.low..=self.high).contains(&measured)
    }
}

/// A change: its name, the options of `what-if`, and the program's arguments for it.
struct Change {
    told: String,
    options: [String; 2],
    scale: Option<String>,
    arguments: &'static str,
}

impl Subject {
    fn changes(&self) -> Vec<Change> {
        let halved = self.halved.split(' ').map(|function| Change {
            told: format!("{function} halved"),
            options: ["--scale".into(), format!("{function}=0.5")],
            scale: Some(format!("{function}=50")),
            arguments: self.arguments,
        });
        let split = self.split.iter().map(|(lock, arguments)| Change {
            told: format!("{lock} split in 8"),
            options: ["--split-lock".into(), format!("{lock}=8")],
            scale: None,
            arguments,
        });
        halved.chain(split).collect()
    }

    /// The rows of the program, and the questions that had no answer.
    fn compared(&self, setting: &Setting) -> Result<Value> {
        let program = workload::build_with(self.source, &SCALABLE)?;
        let mut files = vec![setting.file("launched.lp")];
        launch(setting, &format!("--cpu-list {}", CPUS[1]), &program, self.arguments, &files[0])?;
        if self.repeats {
            files.push(setting.file("attached.lp"));
            let mut command = vec![program.display().to_string()];
            command.extend(self.arguments.split(' ').map(str::to_owned));
            attached::record(setting, &command, None, (CPUS[1], WINDOW), &files[1])?;
        }
        let changes = self.changes();
        let gains = self.measured(&program, &changes, setting.runs)?;
        let (mut rows, mut failed) = (Vec::new(), Vec::new());
        for (change, gains) in changes.iter().zip(gains) {
            let mut said = [None, None];
            for (said, file) in said.iter_mut().zip(&files) {
                match answer(setting, change, file) {
                    Ok(answer) => *said = Some(answer),
                    Err(why) => failed.push(format!("{} {}: {why:#}", self.source, change.told)),
                }
            }
            for (at, gains) in gains.iter().enumerate() {
                rows.push(Row {
                    source: self.source.into(),
                    change: change.told.clone(),
                    cpus: at + 1,
                    measured: gains.median(),
                    said: said.map(|said| said.map(|said| said[at])),
                });
            }
        }
        Ok(json!({ "rows": rows, "failed": failed }))
    }

    /// For each change, the gains in all turns, on one CPU and on two.
    fn measured(&self, program: &Path, changes: &[Change], runs: usize) -> Result<Vec<[Sample; 2]>> {
        // In each turn, the program runs on one CPU and then on two: without a change, and with each change.
        let count = 1 + changes.len();
        let times = in_turns(runs, 2 * count, false, |variant| {
            let change = (variant % count).checked_sub(1).and_then(|at| changes.get(at));
            let arguments = change.map_or(self.arguments, |change| change.arguments);
            let scale = change.and_then(|change| change.scale.as_ref());
            seconds_on(CPUS[variant / count], program, arguments, scale)
        })?;
        let gains = |on: usize, change: usize| {
            times[on * count + change].with(&times[on * count], |after, before| 1.0 - after / before)
        };
        Ok((1..count).map(|change| [gains(0, change), gains(1, change)]).collect())
    }
}

/// longpole's predictions for a change, on one CPU and on two.
fn answer(setting: &Setting, change: &Change, file: &Path) -> Result<[Said; 2]> {
    let mut command = setting.call("what-if --cpus 1,2 --json");
    let answer = command::json(command.args(&change.options).arg(file), LIMIT)?;
    let row = |at: usize| {
        let row = &answer["results"][at];
        let number = |value: &Value| value.as_f64().with_context(|| format!("no number in {row}"));
        anyhow::Ok(Said {
            gain: 1.0 - number(&row["after_ns"])? / number(&row["before_ns"])?,
            low: number(&row["gain_between"][0])?,
            high: number(&row["gain_between"][1])?,
        })
    };
    Ok([row(0)?, row(1)?])
}

fn rows(results: &Results) -> impl Iterator<Item = Row> {
    let rows = results.values().flat_map(|(_, value)| value["rows"].as_array()).flatten();
    rows.filter_map(|row| Row::deserialize(row).ok())
}

/// How many predictions of a kind of recording are right, and how many are within five points.
fn score(results: &Results, kind: usize) -> String {
    let (mut all, mut inside, mut near, mut off) = (0, 0, 0, Sample::default());
    for row in rows(results) {
        let Some(said) = row.said[kind] else { continue };
        let distance = (said.gain - row.measured).abs();
        all += 1;
        inside += usize::from(said.holds(row.measured));
        near += usize::from(distance <= 0.05);
        off.push(distance * 100.0);
    }
    format!("inside {inside} of {all}, within five points {near} of {all}, points off {off}")
}

fn cell(said: Option<Said>, measured: f64) -> String {
    let Some(said) = said else { return "–".to_owned() };
    let mark = if said.holds(measured) { "" } else { " **outside**" };
    let [gain, low, high] = [said.gain, said.low, said.high].map(percent);
    format!("{gain} ({low} to {high}){mark}")
}

/// A share in percent. Zero is printed without a minus sign.
fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0 + 0.0)
}
