//! Two threads handing a lock to and fro as fast as they can: alone, under longpole, under perf.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use longpole_tests::{run, workload};

use super::Scratch;
use super::sample::{Sample, digits};
use crate::command;
use crate::workspace::Workspace;

const RUNS: usize = 9;
const HANDOVERS: u64 = 200_000;

/// Runs the three in alternation.
///
/// # Errors
/// One of them cannot be run or does not end well.
pub fn measure(workspace: &Workspace, longpole: &Path) -> Result<String> {
    let pingpong = match workload::build("pingpong.c") {
        Ok(program) => program,
        Err(workload::Problem::NoCompiler(why) | workload::Problem::Broken(why)) => bail!("{why}"),
    };
    let scratch = Scratch::new(workspace, "handover")?;
    // perf reads its tracepoints there; longpole needs none of it.
    let _tracefs = Tracefs::mounted();
    let (mut plain, mut ours, mut perf) = (Sample::default(), Sample::default(), Sample::default());
    let mut why_no_perf = String::new();
    for turn in 0..RUNS {
        plain.push(once(&mut Command::new(&pingpong))?);
        let mut record = Command::new(longpole);
        record.args(["record", "--no-uprobes", "--force", "-o"]).arg(scratch.0.join("ours.lp"));
        ours.push(once(record.arg("--").arg(&pingpong))?);
        if turn == 0 || perf.len() > 0 {
            let mut record = Command::new("perf");
            record.args(["sched", "record", "-o"]).arg(scratch.0.join("perf.data"));
            match once(record.arg("--").arg(&pingpong)) {
                Ok(ns) => perf.push(ns),
                Err(error) => why_no_perf = format!("{error:#}"),
            }
        }
    }
    let mut text = format!(
        "## Handing a lock to and fro\n\nTwo threads, one mutex, two condition variables, {HANDOVERS} hand-overs as fast as \
         they can. {RUNS} runs of each in\nalternation. longpole records the whole process (`--no-uprobes`: scheduler and \
         futex events), perf the whole machine's\nscheduler (`perf sched record` knows no other way).\n\n\
         | | µs per hand-over | slow-down | bytes of recording per hand-over |\n|---|---|---|---|\n"
    );
    let handovers = HANDOVERS as f64;
    let mut row = |name: &str, sample: &Sample, file: Option<PathBuf>| -> Result<()> {
        let bytes =
            file.and_then(|path| std::fs::metadata(path).ok()).map(|data| data.len() as f64 / handovers);
        let bytes = bytes.map_or_else(|| "–".into(), digits);
        let slower = digits(sample.median() / plain.median());
        writeln!(text, "| {name} | {} | {slower} | {bytes} |", sample.scaled(1e-3 / handovers))?;
        Ok(())
    };
    row("alone", &plain, None)?;
    row("`longpole record --no-uprobes`", &ours, Some(scratch.0.join("ours.lp")))?;
    if perf.len() > 0 {
        row("`perf sched record`", &perf, Some(scratch.0.join("perf.data")))?;
        let verdict = if ours.median() < perf.median() { "the smaller" } else { "**not the smaller**" };
        write!(text, "\nlongpole's slow-down is {verdict} of the two.")?;
    } else {
        write!(text, "\n`perf sched record` could not be run beside it: {why_no_perf}")?;
    }
    Ok(text)
}

/// Nanoseconds the hand-overs took, as the program itself measured them.
fn once(command: &mut Command) -> Result<f64> {
    command.arg(HANDOVERS.to_string());
    let name = command.get_program().to_string_lossy().into_owned();
    let ended = run(command, Duration::from_secs(300)).with_context(|| name.clone())?;
    if ended.code != Some(0) {
        bail!("{name} ended with {:?}: {}", ended.code.or(ended.signal), ended.stderr.trim());
    }
    let line = ended.stdout.lines().find_map(|line| line.strip_suffix(" ns"));
    line.and_then(|ns| ns.parse().ok()).with_context(|| format!("{name} printed no time: {}", ended.stdout))
}

/// The kernel's tracing folder, unmounted again if it was mounted here.
struct Tracefs;

impl Tracefs {
    const PLACE: &str = "/sys/kernel/tracing";

    fn mounted() -> Option<Self> {
        if Path::new(Self::PLACE).join("events").exists() {
            return None;
        }
        // Without it perf says what it lacks, and the result names that.
        let mut mount = Command::new("mount");
        mount.args(["-t", "tracefs", "nodev", Self::PLACE]);
        command::text(&mut mount).ok().map(|_| Self)
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        if let Err(error) = command::text(Command::new("umount").arg(Self::PLACE)) {
            eprintln!("xtask: {} stays mounted: {error:#}", Self::PLACE);
        }
    }
}
