//! Records and measures in turn, then predicts.

use super::compare::{Comparison, compare, inflation, taken_by_others};
use super::leftover_processes::LeftoverProcesses;
use super::measure::{Measurement, run_once};
use super::recordings::{Recorder, Takes, overwrite};
use super::text;
use crate::exit::{Code, Outcome, UserError, say};
use crate::live::{on_cpus, pool, record_silently};
use crate::plan::cpus_in_command::{command_for, depends_on_cpus};
use crate::plan::keep::Keep;
use crate::plan::{CapturePlan, RecordPlan, TargetPlan, ValidatePlan};
use crate::present::style::{self, Paint, Style};
use capture::target::CpuList;
use engine::report::Finding;
use recording::check_file;
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The result of a validation.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// The command, for people.
    pub command: String,
    /// Number of CPUs of the recording.
    pub recorded_on: u32,
    /// Number of recordings of each command; the median of their predictions counts.
    pub recordings: usize,
    /// Number of measurements on each number of CPUs.
    pub runs: usize,
    /// The comparison.
    pub comparison: Comparison,
    /// Findings about the recordings.
    pub findings: Vec<Finding>,
}

/// Validates and prints the result. Exit code 3 if an error is larger than allowed.
pub fn validate(plan: &ValidatePlan) -> Result<Outcome, UserError> {
    let validation = Work::new(plan)?.validation()?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = if plan.json {
        text::json(&validation, &mut out)
    } else {
        text::text(&validation, plan.max_error, &style::for_stdout(), &mut out)
    };
    if let Err(error) = written.and_then(|()| out.flush())
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        return Err(UserError::runtime(
            format!("standard output cannot be written: {error}"),
            "check where the output goes",
        ));
    }
    let too_large = plan.max_error.is_some_and(|most| validation.comparison.worst_error > most);
    Ok(if too_large { Outcome::Code(Code::Threshold as u8) } else { Outcome::Done })
}

struct Work<'a> {
    plan: &'a ValidatePlan,
    command: &'a [OsString],
    keep_root: bool,
    pool: CpuList,
    folder: tempfile::TempDir,
    style: Style,
    left: RefCell<LeftoverProcesses>,
}

impl<'a> Work<'a> {
    fn new(plan: &'a ValidatePlan) -> Result<Work<'a>, UserError> {
        let TargetPlan::Launch { command, keep_root, .. } = &plan.capture.target else {
            return Err(UserError::usage(
                "a running process cannot be validated, since longpole cannot run it again",
                "give its command: `longpole validate -- COMMAND`",
            ));
        };
        // Checked now: the runs take minutes.
        if let Some(kept) = &plan.output {
            check_file(kept, overwrite(plan))?;
        }
        let pool = pool(&plan.capture.target)?;
        if let Some(&most) = plan.cpus.iter().find(|&&count| count as usize > pool.len()) {
            return Err(UserError::usage(
                format!("{most} CPUs cannot be measured: there are {}", pool.len()),
                "give --cpus numbers up to that; `longpole predict` goes further",
            ));
        }
        let folder = tempfile::tempdir().map_err(|error| {
            UserError::runtime(format!("cannot make a folder for the recording: {error}"), "set TMPDIR")
        })?;
        let (style, left) = (style::for_stderr(), RefCell::new(LeftoverProcesses::watch()));
        Ok(Work { plan, command, keep_root: *keep_root, pool, folder, style, left })
    }

    /// Reports, once, processes that a run has left running: later runs share the machine with them.
    fn look_for_left(&self) {
        let mut left = self.left.borrow_mut();
        if left.look()
            && let Some(sentence) = left.sentence()
        {
            say(self.style.paint(Paint::Warning, &self.style.text(&format!("! {sentence}"))));
        }
    }

    fn validation(&self) -> Result<Validation, UserError> {
        let counts = self.plan.cpus.as_slice();
        self.warm_up()?;
        say(self.style.text(&self.intent()));
        let mut measured: Vec<Measurement> =
            counts.iter().map(|&cpus| Measurement { cpus, runs: Vec::new() }).collect();
        let mut takes = Takes::new(self.plan);
        for round in 0..self.plan.runs {
            for _ in 0..due(self.plan.recordings, self.plan.runs, round) {
                takes.another(self)?;
            }
            self.measure_round(round, &mut measured)?;
        }
        let outlook = takes.outlook(&inflation(&measured))?;
        Ok(Validation {
            command: self.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "),
            recorded_on: self.plan.record_on.unwrap_or(1),
            recordings: takes.len(),
            runs: self.plan.runs,
            comparison: compare(&measured, &outlook.plain),
            findings: self
                .left
                .borrow()
                .finding()
                .into_iter()
                .chain(busy_machine(&measured))
                .chain(outlook.findings)
                .collect(),
        })
    }

    /// Says what will be done, since it takes minutes.
    fn intent(&self) -> String {
        let counts = self.plan.cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let recorded = match (self.plan.record_on, self.plan.recordings) {
            (None, times) => format!("recording on {counts} CPUs ({times} times each)"),
            (Some(1), times) => format!("recording on 1 CPU ({times} times)"),
            (Some(on), times) => format!("recording on {on} CPUs ({times} times)"),
        };
        format!("{recorded} in turn with measuring on {counts} CPUs ({} times each)", self.plan.runs)
    }

    /// Runs each command once, on all CPUs that are measured. Files and memory that are used for the first time are slow: the
    /// first recording would take up to twice as long.
    fn warm_up(&self) -> Result<(), UserError> {
        let most = self.plan.cpus.last().copied().unwrap_or(1);
        let setups = if depends_on_cpus(self.command) { self.plan.cpus.as_slice() } else { &[most] };
        for &setup in setups {
            let cpus = self.pool.spread(most as usize);
            run_once(&command_for(self.command, setup), &cpus, self.keep_root)?;
            self.look_for_left();
        }
        Ok(())
    }

    /// Measures each number of CPUs once. Every second round is reversed: slow changes of the machine then affect all alike.
    fn measure_round(&self, round: usize, measured: &mut [Measurement]) -> Result<(), UserError> {
        let mut order: Vec<usize> = (0..measured.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for place in order {
            let Some(here) = measured.get_mut(place) else { continue };
            let command = command_for(self.command, here.cpus);
            here.runs.push(run_once(&command, &self.pool.spread(here.cpus as usize), self.keep_root)?);
            self.look_for_left();
        }
        Ok(())
    }
}

impl Recorder for Work<'_> {
    fn record(&self, capture: &CapturePlan, setup: u32, on: u32, path: &Path) -> Result<(), UserError> {
        let capture = on_cpus(capture, &self.pool, setup, on);
        let plan = RecordPlan {
            capture,
            output: Some(path.to_owned()),
            force: false,
            duration: None,
            cpu_runs: None,
            keep: Keep::All,
            per: None,
        };
        let recorded = record_silently(&plan)?;
        self.look_for_left();
        match recorded {
            Outcome::Done => Ok(()),
            _ => Err(UserError::runtime(
                "the command failed while it was recorded",
                "give a command that ends with exit code 0",
            )),
        }
    }

    fn scratch(&self) -> &Path {
        self.folder.path()
    }
}

/// Number of recordings in this round: they are spread evenly over all rounds, beginning with the first.
fn due(recordings: usize, rounds: usize, round: usize) -> usize {
    let until = |round: usize| (recordings * round).div_ceil(rounds.max(1));
    until(round + 1) - until(round)
}

/// If other programs used more than this share of the CPUs' time, a note says so.
const MOST_BY_OTHERS: f64 = 0.03;

fn busy_machine(measured: &[Measurement]) -> Option<Finding> {
    let others = taken_by_others(measured);
    (others > MOST_BY_OTHERS).then_some(Finding::BusyMachine { share: others })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_spread_over_the_rounds_starting_with_the_first() {
        let all = |recordings: usize, rounds: usize| {
            (0..rounds).map(|round| due(recordings, rounds, round)).collect::<Vec<_>>()
        };
        assert_eq!(all(3, 7), [1, 0, 1, 0, 1, 0, 0]);
        assert_eq!(all(1, 7), [1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(all(3, 2), [2, 1]);
        assert_eq!(all(3, 1), [3]);
        assert_eq!(all(7, 7), [1; 7]);
    }
}
