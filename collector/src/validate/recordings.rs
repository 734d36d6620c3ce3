//! Makes the recordings for the prediction, and takes the median of their predictions.

use super::compare::Predicted;
use super::forecast::predictions;
use crate::exit::{UserError, say};
use crate::input::Input;
use crate::plan::cpus_in_command::depends_on_cpus;
use crate::plan::{Breakpoints, CapturePlan, InputPlan, TargetPlan, ValidatePlan};
use crate::present::style;
use crate::present::words::finding::sentence;
use capture::interpose::InterposeMode;
use engine::program::Program;
use engine::report::Finding;
use recording::{CreateError, Overwrite, create_file};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Makes recordings.
pub trait Recorder {
    /// Records the command for `setup` CPUs, on `on` CPUs, into this file.
    ///
    /// # Errors
    /// The command cannot be recorded, or fails.
    fn record(&self, capture: &CapturePlan, setup: u32, on: u32, path: &Path) -> Result<(), UserError>;

    /// A folder for recordings that are not kept.
    fn scratch(&self) -> &Path;
}

/// One recording of each command, made one after the other.
struct Take {
    /// Files in the order of the CPU counts; a single file if all share it.
    setups: Vec<PathBuf>,
}

/// All recordings so far.
pub struct Takes<'p> {
    plan: &'p ValidatePlan,
    capture: CapturePlan,
    each: bool,
    all: Vec<Take>,
    again: Option<Finding>,
}

/// The predictions of all recordings together.
#[derive(Default)]
pub struct Outlook {
    /// The predictions of each take.
    pub plain: Vec<Vec<Predicted>>,
    /// Findings about the recordings.
    pub findings: Vec<Finding>,
}

impl<'p> Takes<'p> {
    /// No recordings yet.
    pub fn new(plan: &'p ValidatePlan) -> Takes<'p> {
        let by_count =
            matches!(&plan.capture.target, TargetPlan::Launch { command, .. } if depends_on_cpus(command));
        let each = by_count || plan.record_on.is_none();
        Takes { plan, capture: plan.capture.clone(), each, all: Vec::new(), again: None }
    }

    /// Number of takes.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Records each command once more. If too many records are lost to simulate locks, this take and all later ones are made
    /// without lock operations.
    ///
    /// # Errors
    /// The command fails, or cannot be recorded.
    pub fn another(&mut self, recorder: &impl Recorder) -> Result<(), UserError> {
        let take = self.record(recorder)?;
        // Without lock operations there is nothing that could be recorded less.
        let is_without =
            self.capture.breakpoints == Breakpoints::None && self.capture.interpose == InterposeMode::Never;
        let is_whole = self.again.is_some() || is_without;
        let lost = if is_whole { 0.0 } else { take.lost()? };
        if lost <= MOST_LOST {
            return self.add(take);
        }
        let again = Finding::RecordedAgain { lost_share: lost };
        say(style::for_stderr().text(&sentence(&again)));
        self.again = Some(again);
        self.capture = CapturePlan {
            breakpoints: Breakpoints::None,
            interpose: InterposeMode::Never,
            ..self.plan.capture.clone()
        };
        let take = self.record(recorder)?;
        self.add(take)
    }

    /// Adds a take. The first recording is copied to the file in which the user wants to keep it.
    fn add(&mut self, take: Take) -> Result<(), UserError> {
        if let (Some(kept), [], Some(first)) = (&self.plan.output, self.all.as_slice(), take.setups.first()) {
            let failed = |error| CreateError::io(kept, error);
            let mut from = File::open(first).map_err(failed)?;
            io::copy(&mut from, &mut create_file(kept, overwrite(self.plan))?).map_err(failed)?;
        }
        self.all.push(take);
        Ok(())
    }

    fn record(&self, recorder: &impl Recorder) -> Result<Take, UserError> {
        let counts = self.plan.cpus.as_slice();
        let number = self.all.len();
        // A second try leaves lock operations out and needs another name.
        let locks = if self.again.is_some() { "-without-locks" } else { "" };
        let path =
            |setup: u32, on: u32| recorder.scratch().join(format!("{setup}-on-{on}-{number}{locks}.lp"));
        let record = |setup: u32, on: u32| {
            let path = path(setup, on);
            recorder.record(&self.capture, setup, on, &path).map(|()| path)
        };
        let own = if self.each { counts } else { counts.get(..1).unwrap_or_default() };
        let mut setups = Vec::new();
        for &setup in own {
            setups.push(record(setup, self.plan.record_on.unwrap_or(setup))?);
        }
        Ok(Take { setups })
    }

    /// Predictions of all takes; `grown`: CPU time on each number of CPUs, as a multiple of that on one CPU.
    ///
    /// # Errors
    /// A recording cannot be read.
    pub fn outlook(&self, grown: &[f64]) -> Result<Outlook, UserError> {
        let counts = self.plan.cpus.as_slice();
        let mut outlook = Outlook { findings: self.again.iter().cloned().collect(), ..Outlook::default() };
        for take in &self.all {
            let programs: Vec<Program> = take.setups.iter().map(open).collect::<Result<_, _>>()?;
            let Some(first) = programs.first() else { continue };
            outlook.plain.push(predictions(counts, grown, |place| programs.get(place).unwrap_or(first)));
            add_findings(&mut outlook.findings, &programs);
        }
        Ok(outlook)
    }
}

impl Take {
    /// The largest share of lost records among the recordings.
    fn lost(&self) -> Result<f64, UserError> {
        let mut most = 0.0_f64;
        for path in &self.setups {
            most = most.max(lost_share(&open(path)?));
        }
        Ok(most)
    }
}

fn open(path: impl AsRef<Path>) -> Result<Program, UserError> {
    Ok(Input::open(&InputPlan::whole(path.as_ref().to_owned()))?.into_program())
}

/// Whether the file that the user asked for may replace an existing one.
pub fn overwrite(plan: &ValidatePlan) -> Overwrite {
    if plan.force { Overwrite::AnyFile } else { Overwrite::Nothing }
}

/// Adds findings. Of several recordings of one command, only the first with a kind of finding adds it: its numbers in
/// the other recordings differ a little.
fn add_findings(findings: &mut Vec<Finding>, programs: &[Program]) {
    let mut new: Vec<Finding> = Vec::new();
    for finding in programs.iter().flat_map(|program| &program.findings) {
        let is_said = findings.iter().any(|said| said.is_like(finding));
        if !is_said && !new.contains(finding) {
            new.push(finding.clone());
        }
    }
    findings.append(&mut new);
}

/// Largest share of lost records with which a recording is used for a prediction.
const MOST_LOST: f64 = 0.01;

fn lost_share(program: &Program) -> f64 {
    // The number of lost records is known, since a recording that was just made has its end.
    let lost = program.trust.lost.unwrap_or(0) as f64;
    lost / (lost + program.trust.events as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program may take locks eight million times a second (Radiosity of SPLASH): two thirds of its operations are
    /// lost, and a prediction from the other operations is wrong by a third.
    #[test]
    fn a_recording_that_lost_many_records_exceeds_the_limit_for_predictions() {
        let of = |events: u64, lost: u64| {
            let lost = Some(lost);
            let trust = engine::report::Trust { events, lost, ..engine::report::Trust::default() };
            lost_share(&Program { trust, ..Program::default() })
        };
        assert_eq!((of(0, 0), of(100, 0)), (0.0, 0.0));
        assert!(of(1_000_000, 100) <= MOST_LOST && of(8_000_000, 15_000_000) > MOST_LOST);
    }

    #[test]
    fn the_same_note_of_several_recordings_is_added_once() {
        let saying = |finding: Finding| Program { findings: vec![finding], ..Program::default() };
        let late = |missing_ns| saying(Finding::ProbesLate { missing_ns });
        let mut findings = Vec::new();
        add_findings(&mut findings, &[late(12), late(15)]);
        add_findings(&mut findings, &[late(13), saying(Finding::Loss { records: 7 })]);
        let late = |missing_ns| Finding::ProbesLate { missing_ns };
        assert_eq!(findings, [late(12), late(15), Finding::Loss { records: 7 }]);
    }
}
