//! The recordings that the prediction is made from, and what they say in their middle.

use super::compare::Predicted;
use super::forecast::predictions;
use crate::exit::{UserError, say};
use crate::input::Input;
use crate::plan::cpus_in_command::depends_on_cpus;
use crate::plan::{Breakpoints, CapturePlan, InputPlan, TargetPlan, ValidatePlan};
use crate::present::finding::sentence;
use crate::present::style;
use capture::interpose::InterposeMode;
use engine::program::Program;
use engine::report::Finding;
use recording::{CreateError, Overwrite, create_file};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// How to record, and where to.
pub trait Recorder {
    /// Records the command that belongs to `setup` CPUs on `on` of them into this file.
    ///
    /// # Errors
    /// It cannot be recorded, or fails.
    fn record(&self, capture: &CapturePlan, setup: u32, on: u32, path: &Path) -> Result<(), UserError>;

    /// A folder for recordings that are not kept.
    fn scratch(&self) -> &Path;
}

/// One recording of each command there is, made one after the other.
struct Take {
    /// For the numbers of CPUs in their order; a single one where all share it.
    setups: Vec<PathBuf>,
}

/// All that were made so far.
pub struct Takes<'p> {
    plan: &'p ValidatePlan,
    capture: CapturePlan,
    each: bool,
    all: Vec<Take>,
    again: Option<Finding>,
}

/// What the recordings say together.
#[derive(Default)]
pub struct Outlook {
    /// For each take what it predicts.
    pub plain: Vec<Vec<Predicted>>,
    /// What the recordings say about themselves.
    pub findings: Vec<Finding>,
}

impl<'p> Takes<'p> {
    /// None yet.
    pub fn new(plan: &'p ValidatePlan) -> Takes<'p> {
        let by_count =
            matches!(&plan.capture.target, TargetPlan::Launch { command, .. } if depends_on_cpus(command));
        let each = by_count || plan.record_on.is_none();
        Takes { plan, capture: plan.capture.clone(), each, all: Vec::new(), again: None }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Records everything once more. Where too much is lost to decide locks again, this and all later ones are made without
    /// lock operations.
    ///
    /// # Errors
    /// The command fails, or cannot be recorded.
    pub fn another(&mut self, recorder: &impl Recorder) -> Result<(), UserError> {
        let take = self.record(recorder)?;
        // Without lock operations there is nothing to leave out.
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

    /// Copies the first one to where it should be kept.
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
        // Lock operations may be left out at the second try.
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

    /// Their predictions, where the same work takes a different multiple of the CPU time on each number of
    /// CPUs.
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
    /// The largest share of records lost.
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

/// What the kept file may replace.
pub fn overwrite(plan: &ValidatePlan) -> Overwrite {
    if plan.force { Overwrite::AnyFile } else { Overwrite::Nothing }
}

/// Of several recordings of the same command, the first that has something of a kind to say says it: the numbers in the
/// others' sentences differ a little.
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

/// Of all records, how many a recording may have lost and still be used for a prediction.
const MOST_LOST: f64 = 0.01;

fn lost_share(program: &Program) -> f64 {
    // A recording that was just made has its end.
    let lost = program.trust.lost.unwrap_or(0) as f64;
    lost / (lost + program.trust.events as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Radiosity of SPLASH takes locks eight million times a second: two thirds of its operations were lost, and it was
    /// predicted from the rest, wrongly by a third.
    #[test]
    fn a_recording_with_holes_is_not_predicted_from() {
        let of = |events: u64, lost: u64| {
            let lost = Some(lost);
            let trust = engine::report::Trust { events, lost, ..engine::report::Trust::default() };
            lost_share(&Program { trust, ..Program::default() })
        };
        assert_eq!((of(0, 0), of(100, 0)), (0.0, 0.0));
        assert!(of(1_000_000, 100) <= MOST_LOST && of(8_000_000, 15_000_000) > MOST_LOST);
    }

    #[test]
    fn what_several_recordings_say_alike_is_said_once() {
        let saying = |finding: Finding| Program { findings: vec![finding], ..Program::default() };
        let late = |missing_ns| saying(Finding::ProbesLate { missing_ns });
        let mut findings = Vec::new();
        add_findings(&mut findings, &[late(12), late(15)]);
        add_findings(&mut findings, &[late(13), saying(Finding::Loss { records: 7 })]);
        let late = |missing_ns| Finding::ProbesLate { missing_ns };
        assert_eq!(findings, [late(12), late(15), Finding::Loss { records: 7 }]);
    }
}
