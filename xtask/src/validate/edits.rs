//! Changes that are really made, compared with the gain that `what-if` predicts: halved functions and split locks, on one CPU
//! and on two, from recordings of the unchanged program, launched and attached.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use longpole_tests::workload;
use serde_json::Value;

use super::{LIMIT, SCALABLE, attached};
use crate::bench::Scratch;
use crate::command;
use crate::sample::Sample;
use crate::workspace::Workspace;

/// CPU lists with one CPU and with two CPUs; programs are recorded on the second list.
const CPUS: [&str; 2] = ["0", "0,1"];
/// Seconds for which longpole is attached to a program.
const WINDOW: f64 = 1.2;

struct Subject {
    source: &'static str,
    arguments: &'static [&'static str],
    /// Functions whose work is halved.
    halved: &'static [&'static str],
    /// A lock, and the arguments with which the program splits it into eight.
    split: Option<(&'static str, &'static [&'static str])>,
    /// Whether the program does the same again and again, so that a part of its run is like all of it.
    repeats: bool,
}

const fn halves(
    source: &'static str,
    arguments: &'static [&'static str],
    halved: &'static [&'static str],
) -> Subject {
    Subject { source, arguments, halved, split: None, repeats: true }
}

/// A subject that runs each of its functions once.
const fn once_through(arguments: &'static [&'static str], halved: &'static [&'static str]) -> Subject {
    Subject { repeats: false, ..halves("rivals.c", arguments, halved) }
}

const SUBJECTS: [Subject; 15] = [
    halves("toy.c", &["800"], &["Slow", "Fast"]),
    halves("handoff.c", &["10000", "3", "60000"], &["HoldToken"]),
    halves("phases.c", &["4", "150", "2000000"], &["Phase"]),
    halves("pool.c", &["4", "1200", "1000000"], &["Task", "Combine"]),
    halves("readers.c", &["4", "1200", "200000", "20"], &["ReadTable", "WriteTable", "Outside"]),
    halves("convoy.c", &["400", "3", "800000"], &["UnderTheLock", "OnItsOwn"]),
    halves("submit.c", &["condition", "401", "600000"], &["Work", "Prepare"]),
    halves("stealing.c", &["4", "2000000000", "1000000"], &["Leaf"]),
    halves("forkjoin.c", &["150", "5", "1000000"], &["ShortBranch", "LongBranch"]),
    halves("pipeline.c", &["900", "4", "200000"], &["StageParse", "StageTransform", "StageWrite"]),
    halves("producer_consumer.c", &["900", "100000"], &["Produce", "Consume"]),
    once_through(&["0", "8000000"], &["Front", "Back", "Side"]),
    once_through(&["1", "6000000"], &["Prepare", "Left", "Right"]),
    once_through(&["2", "12000000"], &["Long", "Short"]),
    Subject {
        source: "store.c",
        arguments: &["4", "4000", "1", "28000", "50000"],
        halved: &["parse_row", "digest_row"],
        split: Some(("registry.gate", &["4", "4000", "8", "28000", "50000"])),
        repeats: true,
    },
];

/// A change: its name, the options of `what-if`, and how the program makes it.
struct Change {
    told: String,
    options: [String; 2],
    scale: Option<String>,
    arguments: &'static [&'static str],
}

impl Subject {
    /// Adds the subject's rows to the table.
    fn compare(&self, longpole: &Path, folder: &Path, runs: usize, table: &mut Table) -> Result<()> {
        let program = workload::build_with(self.source, &SCALABLE)?;
        let changes = self.changes();
        let mut files = vec![folder.join("launched.lp")];
        launch(longpole, &program, self, &files[0])?;
        if self.repeats {
            files.push(folder.join("attached.lp"));
            let mut command = vec![program.as_os_str()];
            command.extend(self.arguments.iter().map(OsStr::new));
            attached::record(longpole, &command, &[], CPUS[1], WINDOW, &files[1])?;
        }
        let measured = measured(&program, self, &changes, runs)?;
        for (change, measured) in changes.iter().zip(measured) {
            let said = files.iter().map(|file| said(longpole, change, file));
            let said: Vec<Option<[Said; 2]>> = said
                .map(|said| {
                    let why = |why| table.failed.push(format!("{} {}: {why:#}", self.source, change.told));
                    said.map_err(why).ok()
                })
                .collect();
            for (at, measured) in measured.iter().map(Sample::median).enumerate() {
                let (source, cpus) = (self.source, at + 1);
                write!(table.rows, "| {source} | {} | {cpus} | {} |", change.told, percent(measured))?;
                for mode in 0..2 {
                    let said = said.get(mode).copied().flatten().map(|said| said[at]);
                    table.rows.push_str(&said.map_or(" – |".to_owned(), |said| said.cell(measured)));
                    said.iter().for_each(|said| table.scores[mode].add(*said, measured));
                }
                table.rows.push('\n');
            }
        }
        Ok(())
    }

    fn changes(&self) -> Vec<Change> {
        let halved = self.halved.iter().map(|function| Change {
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
}

/// longpole's prediction for a change on one number of CPUs: the gain and its range, as shares of the time.
#[derive(Clone, Copy)]
struct Said {
    gain: f64,
    low: f64,
    high: f64,
}

impl Said {
    fn holds(self, measured: f64) -> bool {
        (self.low..=self.high).contains(&measured)
    }

    fn cell(self, measured: f64) -> String {
        let mark = if self.holds(measured) { "" } else { " **outside**" };
        let [gain, low, high] = [self.gain, self.low, self.high].map(percent);
        format!(" {gain} ({low} to {high}){mark} |")
    }
}

/// The table's text, and the scores of launched and attached recordings.
#[derive(Default)]
struct Table {
    rows: String,
    scores: [Score; 2],
    failed: Vec<String>,
}

/// Number of correct predictions for one kind of recording.
#[derive(Default)]
struct Score {
    all: usize,
    inside: usize,
    near: usize,
    off: Sample,
}

impl Score {
    /// Adds a prediction; it is near if it is within five points.
    fn add(&mut self, said: Said, measured: f64) {
        let off = (said.gain - measured).abs();
        self.all += 1;
        self.inside += usize::from(said.holds(measured));
        self.near += usize::from(off <= 0.05);
        self.off.push(off * 100.0);
    }

    fn told(&self) -> String {
        let Score { all, inside, near, off } = self;
        format!("inside {inside} of {all}, within five points {near} of {all}, points off {off}")
    }
}

/// Compares all subjects.
///
/// # Errors
/// A program or longpole fails.
pub fn compare(workspace: &Workspace, longpole: &Path, runs: usize) -> Result<String> {
    let scratch = Scratch::new(workspace, "edits")?;
    let mut table = Table::default();
    for subject in &SUBJECTS {
        eprintln!("{} {}", subject.source, subject.arguments.join(" "));
        // A subject that fails is omitted from the table, and named.
        if let Err(why) = subject.compare(longpole, &scratch.0, runs, &mut table) {
            eprintln!("failed: {why:#}");
            table.failed.push(format!("{}: {why:#}", subject.source));
        }
    }
    let Table { rows, scores, mut failed } = table;
    let [launched, attached] = scores.map(|score| score.told());
    let mut text = format!(
        "## Changes that were made\n\n{} programs. Each was recorded once on two CPUs, launched and attached to for \
         {WINDOW} s. Then `what-if` predicted the gain of a change on one CPU and on two, with its range. The change \
         was made, and the program was run without and with it, {runs} times in turn \
         (medians). Percent of the time. rivals.c calls each of its functions once. A part of its run is not like the \
         whole, so longpole is not attached to it.\n\nLaunched: {launched}. Attached: {attached}.\n\n\
         | program | change | CPUs | measured | launched says | attached says |\n|---|---|---|---|---|---|\n{rows}",
        SUBJECTS.len()
    );
    failed.dedup();
    if !failed.is_empty() {
        write!(text, "\nWithout an answer: {}.", failed.join("; "))?;
    }
    Ok(text)
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0 + 0.0)
}

fn launch(longpole: &Path, program: &Path, subject: &Subject, file: &Path) -> Result<()> {
    let mut record = Command::new(longpole);
    record.args(["record", "--cpu-list", CPUS[1], "--force", "-o"]).arg(file);
    command::good(record.arg("--").arg(program).args(subject.arguments), LIMIT).map(drop)
}

/// For each change: the gains of all turns on one CPU and on two.
fn measured(program: &Path, subject: &Subject, changes: &[Change], runs: usize) -> Result<Vec<[Sample; 2]>> {
    let mut gains: Vec<[Sample; 2]> = changes.iter().map(|_| Default::default()).collect();
    for _ in 0..runs {
        for (at, cpus) in CPUS.into_iter().enumerate() {
            let before = once(program, cpus, subject.arguments, None)?;
            for (change, gains) in changes.iter().zip(&mut gains) {
                let after = once(program, cpus, change.arguments, change.scale.as_deref())?;
                gains[at].push(1.0 - after / before);
            }
        }
    }
    Ok(gains)
}

/// Wall time of one run, seconds.
fn once(program: &Path, cpus: &str, arguments: &[&str], scale: Option<&str>) -> Result<f64> {
    let mut command = Command::new("taskset");
    command.args(["-c", cpus]).arg(program).args(arguments);
    if let Some(scale) = scale {
        command.env("WORKLOAD_SCALE", scale);
    }
    command::seconds(&mut command, LIMIT)
}

/// longpole's predictions for a change, on one CPU and on two.
fn said(longpole: &Path, change: &Change, file: &Path) -> Result<[Said; 2]> {
    let mut command = Command::new(longpole);
    command.arg("what-if").args(&change.options).args(["--cpus", "1,2", "--json"]).arg(file);
    let answer = command::json(&mut command, LIMIT)?;
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
