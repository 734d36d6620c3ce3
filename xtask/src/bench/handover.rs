//! Measures two threads that pass a lock back and forth as fast as they can: alone, under longpole, under perf.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use longpole_tests::workload;

use super::Scratch;
use super::sample::{Sample, digits};
use crate::command;
use crate::workspace::Workspace;

const RUNS: usize = 24;
const HANDOVERS: u64 = 200_000;

/// Runs the three in alternation.
///
/// # Errors
/// One of them cannot be run or does not end well.
pub fn measure(workspace: &Workspace, longpole: &Path) -> Result<String> {
    let pingpong = workload::build("pingpong.c")?;
    let scratch = Scratch::new(workspace, "handover")?;
    // perf reads its tracepoints in that folder; longpole does not need it.
    let _tracefs = Tracefs::mounted();
    let (mut plain, mut ours, mut perf) = (Sample::default(), Sample::default(), Sample::default());
    let (mut why_no_perf, mut ours_smaller, mut lost) = (String::new(), 0, Sample::default());
    for turn in 0..RUNS {
        let (mut own, mut other) = (None, None);
        // Each of the three is first, second and last equally often.
        for place in 0..3 {
            match (turn + place) % 3 {
                0 => plain.push(once(&mut Command::new(&pingpong), HANDOVERS)?.ns),
                1 => {
                    let mut record = Command::new(longpole);
                    record
                        .args(["record", "--interpose", "never", "--force", "-o"])
                        .arg(scratch.0.join("ours.lp"));
                    let run = once(record.arg("--").arg(&pingpong), HANDOVERS)?;
                    lost.push(lost_percent(&run.stderr)?);
                    own = Some(run.ns);
                }
                _ if why_no_perf.is_empty() => {
                    let mut record = Command::new("perf");
                    record.args(["sched", "record", "-o"]).arg(scratch.0.join("perf.data"));
                    match once(record.arg("--").arg(&pingpong), HANDOVERS) {
                        Ok(run) => other = Some(run.ns),
                        Err(error) => why_no_perf = format!("{error:#}"),
                    }
                }
                _ => {}
            }
        }
        own.into_iter().for_each(|ns| ours.push(ns));
        other.into_iter().for_each(|ns| perf.push(ns));
        ours_smaller += usize::from(own.zip(other).is_some_and(|(own, other)| own < other));
    }
    let mut text = format!(
        "## Handing a lock to and fro\n\nTwo threads, one mutex, two condition variables, {HANDOVERS} hand-overs as fast as \
         they can. {RUNS} runs of each in\nalternation. longpole records the whole process (`--interpose never`: scheduler and \
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
    row("`longpole record --interpose never`", &ours, Some(scratch.0.join("ours.lp")))?;
    if perf.len() > 0 {
        row("`perf sched record`", &perf, Some(scratch.0.join("perf.data")))?;
        let verdict = verdict(ours_smaller, perf.len());
        write!(
            text,
            "\nlongpole was the faster of the two in {ours_smaller} of {} turns: {verdict}",
            perf.len()
        )?;
    } else {
        write!(text, "\n`perf sched record` could not be run with it: {why_no_perf}")?;
    }
    write!(text, "\n\nEvents longpole lost, in percent: {lost}.")?;
    Ok(text)
}

/// Compares the slow-downs. Of that many coin flips, one side has three quarters or more in one of a hundred tries or less:
/// any count nearer to a half is no difference.
fn verdict(ours_smaller: usize, turns: usize) -> &'static str {
    match () {
        () if ours_smaller * 4 >= turns * 3 => "its slow-down is the smaller.",
        () if ours_smaller * 4 <= turns => "its slow-down is **not** the smaller.",
        () => "no clear difference on this machine.",
    }
}

/// One run of a program that measures its own time.
pub(super) struct Run {
    /// Nanoseconds that the program printed.
    pub(super) ns: f64,
    stderr: String,
}

/// Percent of events that were lost, from longpole's summary: a recorder that loses events is cheap and worthless.
pub fn lost_percent(summary: &str) -> Result<f64> {
    let line = summary.lines().find_map(|line| line.strip_prefix("lost ")).context("no summary of losses")?;
    let Some((_, percent)) = line.split_once('(') else { return Ok(0.0) };
    let number = percent.split(' ').next().unwrap_or_default();
    number.parse().with_context(|| format!("no percentage in: {line}"))
}

/// Runs a program that does its work this number of times.
pub(super) fn once(command: &mut Command, times: u64) -> Result<Run> {
    let ended = command::good(command.arg(times.to_string()), Duration::from_secs(300))?;
    let line = ended.stdout.lines().find_map(|line| line.strip_suffix(" ns"));
    let ns = line.and_then(|ns| ns.parse().ok());
    let no_time = || format!("{} printed no time: {}", command.get_program().display(), ended.stdout);
    Ok(Run { ns: ns.with_context(no_time)?, stderr: ended.stderr })
}

/// The kernel's tracing folder. It is unmounted again if it was mounted here.
pub(super) struct Tracefs;

impl Tracefs {
    const PLACE: &str = "/sys/kernel/tracing";

    pub(super) fn mounted() -> Option<Self> {
        if Path::new(Self::PLACE).join("events").exists() {
            return None;
        }
        // If the folder cannot be mounted, perf says what it lacks, and so does the result.
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

#[cfg(test)]
mod tests {
    use super::{lost_percent, verdict};

    #[test]
    fn the_lost_percentage_is_read_from_the_summary() {
        assert_eq!(lost_percent("events    5\nlost      0\n").unwrap(), 0.0);
        assert_eq!(lost_percent("lost      1,135,025 (32.10 %): did not fit\n").unwrap(), 32.1);
        assert!(lost_percent("nothing of the kind").is_err());
    }

    #[test]
    fn a_tie_of_two_slow_downs_is_not_called_a_win() {
        assert_eq!(verdict(24, 24), "its slow-down is the smaller.");
        assert_eq!(verdict(18, 24), "its slow-down is the smaller.");
        assert_eq!(verdict(13, 24), "no clear difference on this machine.");
        assert_eq!(verdict(6, 24), "its slow-down is **not** the smaller.");
    }
}
