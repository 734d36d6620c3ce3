//! Measures real programs under their own load, alone and under `longpole record` with default settings, in turns of
//! half a second. Also measures the bytes that their recordings take for each event.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use longpole_tests::{run, shell};

use super::Scratch;
use super::app_files::prepare;
use super::app_list::{APPS, App, Load, STORMS};
use super::app_runs::{LIMIT, Side, Since, commands, servers};
use super::handover::lost_percent;
use super::promise::told_cost;
use crate::sample::{Sample, digits};
use crate::workspace::Workspace;

/// Number of pairs of runs. It depends on how far the pairs differ from each other, never on which side is slower.
#[derive(Clone, Copy)]
struct Pairs {
    least: usize,
    most: usize,
    /// Pairs are enough once the standard error of their mean is this small ([`Sample::standard_error`]).
    good: f64,
}

impl Pairs {
    /// The usual number, or that of `LONGPOLE_BENCH_RUNS`.
    fn wanted() -> Pairs {
        match std::env::var("LONGPOLE_BENCH_RUNS").ok().and_then(|runs| runs.parse().ok()) {
            Some(runs) => Pairs { least: runs, most: runs, good: f64::INFINITY },
            None => Pairs { least: 5, most: 15, good: 0.01 },
        }
    }

    fn are_enough(self, slower: &Sample) -> bool {
        let good = slower.standard_error().is_some_and(|error| error <= self.good);
        slower.len() >= self.most || slower.len() >= self.least && good
    }

    /// Words for a sentence of the table.
    fn told(self) -> String {
        match self {
            Pairs { least, most, .. } if least == most => format!("{least} pairs"),
            Pairs { least, most, good } => format!(
                "{least} to {most} pairs, until their mean is known to {} % (standard error)",
                digits(100.0 * good)
            ),
        }
    }
}

/// Results of the runs of one program.
struct Measured {
    name: &'static str,
    alone: Sample,
    recorded: Sample,
    /// How much slower the recorded copy is, for each pair.
    slower: Sample,
    /// CPU time of the program and of longpole together above that of the program alone, percent.
    more_cpu: Sample,
    /// The cost that longpole itself reports, percent.
    told: Sample,
    /// Seconds that a server is held up once, until probes that cost too much are removed.
    held_up: Option<Sample>,
    events: f64,
    bytes: f64,
    lost: Sample,
}

/// A table of programs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Programs under their own load.
    Apps,
    /// Programs that start processes or threads, or take mutexes, as fast as they can.
    Storms,
}

impl Table {
    fn apps(self) -> &'static [App] {
        match self {
            Table::Apps => &APPS,
            Table::Storms => &STORMS,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Table::Apps => "Real programs under their own load",
            Table::Storms => "Storms of processes, threads and locks",
        }
    }

    fn targets(self) -> &'static str {
        match self {
            Table::Apps => {
                "The targets: median\nslow-down at most 1 %, worst at most 5 %, at most 8 bytes of recording for each event."
            }
            Table::Storms => {
                "The targets: processes at most\n1.1, two mutexes at most 1.05, and what longpole says within a third of what is measured."
            }
        }
    }
}

/// Runs all programs of a table that are installed.
///
/// # Errors
/// None is installed, or none of them runs to its end.
pub fn measure(workspace: &Workspace, longpole: &Path, which: Table, only: &[String]) -> Result<String> {
    let scratch = Scratch::new(workspace, "apps")?;
    prepare(&scratch.0)?;
    let pairs = Pairs::wanted();
    let (mut measured, mut missing) = (Vec::new(), Vec::new());
    for app in which.apps() {
        if !only.is_empty() && !only.iter().any(|name| app.name.starts_with(name.as_str())) {
            continue;
        }
        match app.needs.iter().find(|(program, _)| !is_here(program)) {
            Some((program, package)) => {
                missing.push(format!("{} ({program} is missing: `apt-get install {package}`)", app.name));
                eprintln!("xtask: not measured: {}", missing.last().map_or("", String::as_str));
            }
            None => {
                eprintln!("xtask: {} ...", app.name);
                match app.measure(longpole, &scratch.0, pairs) {
                    Ok(one) => {
                        eprintln!("xtask: {} {}", one.name, one.slower);
                        measured.push(one);
                    }
                    // A program that fails is omitted from the table.
                    Err(error) => {
                        missing.push(format!("{} ({error:#})", app.name));
                        eprintln!("xtask: failed: {}", missing.last().map_or("", String::as_str));
                    }
                }
            }
        }
    }
    if measured.is_empty() {
        bail!("none of the programs was measured: {}", missing.join(", "));
    }
    text(which, &measured, &missing, pairs)
}

fn text(which: Table, measured: &[Measured], missing: &[String], pairs: Pairs) -> Result<String> {
    let mut text = format!(
        "## {}\n\nTime of the work alone and under `longpole record` with default \
         settings: {}. The two of a\npair run in turns of half a second. One is held while the other runs (with \
         longpole), so that changes of the machine's speed affect both. The slow-down is the median of the pairs, \
         with the smallest and the largest. longpole's kernel programs also see the events of the program alone, and \
         ignore them: for nginx, which has most events, that hides up to 1 %. The sampling clock ticks in the program \
         alone, too, which hides the cost of ticks (`./x bench promise`). {}\n\
         CPU time more: the CPU time of the program and longpole together, beyond that of the program alone; longpole \
         says: the same in its summary.\n\n\
         | program | s alone | s recorded | slow-down | pairs | CPU time more, % | longpole says, % | events | bytes per event | lost, % |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
        which.title(),
        pairs.told(),
        which.targets()
    );
    let (mut slower, mut worst, mut events, mut bytes) = (Sample::default(), 0.0_f64, 0.0, 0.0);
    for one in measured {
        if one.held_up.is_none() {
            slower.push(one.slower.median());
            worst = worst.max(one.slower.median());
        }
        events += one.events;
        bytes += one.bytes;
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {:.0} | {} | {} |",
            one.name,
            one.alone,
            one.recorded,
            one.slower,
            one.slower.len(),
            one.more_cpu,
            one.told,
            one.events,
            digits(one.bytes / one.events.max(1.0)),
            one.lost
        )?;
    }
    let percent = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
    write!(
        text,
        "\nMedian of the slow-downs {}, worst {}; {} bytes per event over all of them.",
        percent(slower.median()),
        percent(worst),
        digits(bytes / events.max(1.0))
    )?;
    for one in measured {
        if let Some(held_up) = &one.held_up {
            write!(
                text,
                "\n{}: it is held up once, until probes that cost too much are off, by {held_up} s; that is no part of these.",
                one.name
            )?;
        }
    }
    if !missing.is_empty() {
        write!(text, "\nNot measured: {}.", missing.join(", "))?;
    }
    Ok(text)
}

pub(super) fn is_here(program: &str) -> bool {
    run(&mut shell(&format!("command -v {program} || test -x /usr/sbin/{program}")), LIMIT)
        .is_ok_and(|ended| ended.code == Some(0))
}

impl App {
    fn measure(&self, longpole: &Path, work: &Path, pairs: Pairs) -> Result<Measured> {
        let mut measured = Measured {
            name: self.name,
            alone: Sample::default(),
            recorded: Sample::default(),
            slower: Sample::default(),
            more_cpu: Sample::default(),
            told: Sample::default(),
            held_up: matches!(self.load, Load::Server(_, _, Since::Attach)).then(Sample::default),
            events: 0.0,
            bytes: 0.0,
            lost: Sample::default(),
        };
        let file = work.join("app.lp");
        // The first pair does not count: it brings files into memory.
        let mut warm = false;
        while !pairs.are_enough(&measured.slower) {
            let (alone, recorded) = (Side::new(work, "alone", 18_745)?, Side::new(work, "recorded", 18_746)?);
            let ([alone, recorded], said) = match &self.load {
                Load::Command(before, line) => {
                    commands((before, "", line), work, [&alone, &recorded], longpole, &file)?
                }
                Load::Commands(before, line) => {
                    commands((before, "--children", line), work, [&alone, &recorded], longpole, &file)?
                }
                Load::Server(line, drive, since) => {
                    servers((line, *drive, *since), work, [&alone, &recorded], longpole, &file)?
                }
            };
            if std::mem::replace(&mut warm, true) {
                measured.slower.push(recorded.wall_s / alone.wall_s);
                if let Some(held_up) = &mut measured.held_up {
                    held_up.push(recorded.wall_s - alone.wall_s);
                }
                measured.alone.push(alone.wall_s);
                measured.recorded.push(recorded.wall_s);
                measured.more_cpu.push(100.0 * (recorded.cpu_s / alone.cpu_s - 1.0));
                measured.take_summary(&said, &file)?;
            }
        }
        Ok(measured)
    }
}

impl Measured {
    fn take_summary(&mut self, said: &str, file: &Path) -> Result<()> {
        let line = |label: &str| said.lines().find_map(|line| line.strip_prefix(label)).map(str::trim);
        let events = line("events ").map(leading_number);
        self.events = events.with_context(|| format!("no number of events in: {said}"))?;
        self.bytes = std::fs::metadata(file).context("no recording")?.len() as f64;
        self.lost.push(lost_percent(said)?);
        self.told.push(told_cost(said).context("no cost")?);
        Ok(())
    }
}

/// The number before the first `, `: 1234567 of `1,234,567, 89 a second`.
pub(super) fn leading_number(text: &str) -> f64 {
    let number = text.split(", ").next().unwrap_or_default();
    number.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::{Pairs, leading_number};
    use crate::sample::Sample;

    #[test]
    fn more_pairs_are_run_when_they_differ_more() {
        let pairs = Pairs { least: 3, most: 6, good: 0.01 };
        let count = |spread: f64| {
            let mut slower = Sample::default();
            while !pairs.are_enough(&slower) {
                slower.push(1.5 + spread * if slower.len().is_multiple_of(2) { 1.0 } else { -1.0 });
            }
            slower.len()
        };
        assert_eq!([count(0.0), count(0.02), count(0.5)], [3, 5, 6]);
    }

    #[test]
    fn the_number_of_events_is_read_from_the_summary() {
        assert_eq!(leading_number("1,234,567, 89 a second"), 1_234_567.0);
        assert_eq!(leading_number("0"), 0.0);
    }
}
