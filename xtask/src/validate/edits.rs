//! Changes that are really made, and what `what-if` says of them beforehand: halves of functions, split locks, on one CPU and on two, from
//! a recording of the unchanged program, launched and attached to.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use longpole_tests::Background;
use serde_json::Value;

use super::scalable::{built, must};
use crate::bench::Scratch;
use crate::sample::Sample;
use crate::workspace::Workspace;

/// CPU lists of one CPU and of two; the second is what is recorded.
const CPUS: [&str; 2] = ["0", "0,1"];
/// Between the start of a program and attaching to it, and for how long it is recorded then.
const WARM: Duration = Duration::from_millis(200);
const WINDOW: &str = "1.2s";
struct Subject {
    source: &'static str,
    arguments: &'static [&'static str],
    /// Functions that do half of their work.
    halved: &'static [&'static str],
    /// A lock, and the arguments with which it is split in eight.
    split: Option<(&'static str, &'static [&'static str])>,
}

const fn halves(
    source: &'static str,
    arguments: &'static [&'static str],
    halved: &'static [&'static str],
) -> Subject {
    Subject { source, arguments, halved, split: None }
}

const SUBJECTS: [Subject; 15] = [
    halves("toy.c", &["1500"], &["Slow", "Fast"]),
    halves("handoff.c", &["20000", "3", "60000"], &["HoldToken"]),
    halves("phases.c", &["4", "300", "2000000"], &["Phase"]),
    halves("pool.c", &["4", "2500", "1000000"], &["Task", "Combine"]),
    halves("readers.c", &["4", "2500", "200000", "20"], &["ReadTable", "WriteTable", "Outside"]),
    halves("convoy.c", &["800", "3", "800000"], &["UnderTheLock", "OnItsOwn"]),
    halves("submit.c", &["condition", "401", "600000"], &["Work", "Prepare"]),
    halves("stealing.c", &["4", "3500000000", "1000000"], &["Leaf"]),
    halves("forkjoin.c", &["300", "5", "1000000"], &["ShortBranch", "LongBranch"]),
    halves("pipeline.c", &["1500", "4", "200000"], &["StageParse", "StageTransform", "StageWrite"]),
    halves("producer_consumer.c", &["1500", "100000"], &["Produce", "Consume"]),
    halves("rivals.c", &["0", "8000000"], &["Front", "Back", "Side"]),
    halves("rivals.c", &["1", "6000000"], &["Prepare", "Left", "Right"]),
    halves("rivals.c", &["2", "12000000"], &["Long", "Short"]),
    Subject {
        source: "store.c",
        arguments: &["4", "12000", "1", "28000", "50000"],
        halved: &["parse_row", "digest_row"],
        split: Some(("registry.gate", &["4", "12000", "8", "28000", "50000"])),
    },
];

/// A change: the options of `what-if`, and how it is made.
struct Change {
    told: String,
    options: [String; 2],
    scale: Option<String>,
    arguments: &'static [&'static str],
}

impl Subject {
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

/// What longpole says of a change on one number of CPUs: gain, and between what it lies, shares of the time.
#[derive(Clone, Copy)]
struct Said {
    gain: f64,
    low: f64,
    high: f64,
}

/// How well a kind of recording did.
#[derive(Default)]
struct Score {
    all: usize,
    inside: usize,
    near: usize,
    off: Sample,
}

impl Score {
    /// Within five points is near.
    fn add(&mut self, said: Said, measured: f64) {
        let off = (said.gain - measured).abs();
        self.all += 1;
        self.inside += usize::from((said.low..=said.high).contains(&measured));
        self.near += usize::from(off <= 0.05);
        self.off.push(off * 100.0);
    }

    fn told(&self) -> String {
        let Score { all, inside, near, off } = self;
        format!("inside {inside} of {all}, within five points {near} of {all}, points off {off}")
    }
}

/// Compares.
///
/// # Errors
/// A program or longpole fails.
pub fn compare(workspace: &Workspace, longpole: &Path, runs: usize) -> Result<String> {
    let scratch = Scratch::new(workspace, "edits")?;
    let mut rows = String::new();
    let mut scores = [Score::default(), Score::default()];
    let mut failed = Vec::new();
    for subject in &SUBJECTS {
        eprintln!("{} {}", subject.source, subject.arguments.join(" "));
        let program = built(subject.source)?;
        let changes = subject.changes();
        let files = ["launched", "attached"].map(|name| scratch.0.join(format!("{name}.lp")));
        launch(longpole, &program, subject, &files[0])?;
        attach(longpole, &program, subject, &files[1])?;
        let measured = measured(&program, subject, &changes, runs)?;
        for (change, measured) in changes.iter().zip(measured) {
            let said = files.each_ref().map(|file| said(longpole, change, file));
            for (at, (cpus, measured)) in ["1", "2"].iter().zip(measured).enumerate() {
                let middle = measured.median();
                write!(rows, "| {} | {} | {cpus} | {} |", subject.source, change.told, percent(middle))?;
                for ((said, score), mode) in said.iter().zip(&mut scores).zip(["launched", "attached"]) {
                    match said {
                        Ok(said) => {
                            let said = said[at];
                            score.add(said, middle);
                            let mark =
                                if (said.low..=said.high).contains(&middle) { "" } else { " **outside**" };
                            write!(
                                rows,
                                " {} ({} to {}){mark} |",
                                percent(said.gain),
                                percent(said.low),
                                percent(said.high)
                            )?;
                        }
                        Err(why) => {
                            failed.push(format!("{} {} {mode}: {why:#}", subject.source, change.told));
                            rows.push_str(" – |");
                        }
                    }
                }
                rows.push('\n');
            }
        }
    }
    let [launched, attached] = scores.map(|score| score.told());
    let mut text = format!(
        "## Changes that were made\n\n{} programs. Each was recorded once on two CPUs, launched and attached to for {WINDOW}; then `what-if` said what a change \
         gains on one\nCPU and on two, and between what that lies. The change was made, and the program run without and with it, {runs} times in turn \
         (medians). Percent of the time.\n\nLaunched: {launched}. Attached: {attached}.\n\n\
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
    must(record.arg("--").arg(program).args(subject.arguments)).map(drop)
}

fn attach(longpole: &Path, program: &Path, subject: &Subject, file: &Path) -> Result<()> {
    let mut target = Command::new("taskset");
    let target = Background::start(target.args(["-c", CPUS[1]]).arg(program).args(subject.arguments))?;
    std::thread::sleep(WARM);
    let mut record = Command::new(longpole);
    record.args(["record", "--force", "-d", WINDOW, "-o"]).arg(file);
    must(record.args(["-p", &target.pid().to_string()])).map(drop)
}

/// For each change, on one CPU and on two: the gains of all turns.
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

/// Wall time of one run, in seconds.
fn once(program: &Path, cpus: &str, arguments: &[&str], scale: Option<&str>) -> Result<f64> {
    let mut command = Command::new("taskset");
    command.args(["-c", cpus]).arg(program).args(arguments);
    if let Some(scale) = scale {
        command.env("WORKLOAD_SCALE", scale);
    }
    let began = Instant::now();
    must(&mut command)?;
    Ok(began.elapsed().as_secs_f64())
}

/// What longpole says of a change on one CPU and on two.
fn said(longpole: &Path, change: &Change, file: &Path) -> Result<[Said; 2]> {
    let mut command = Command::new(longpole);
    command.arg("what-if").args(&change.options).args(["--cpus", "1,2", "--json"]).arg(file);
    let answer: Value = serde_json::from_str(&must(&mut command)?)?;
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
