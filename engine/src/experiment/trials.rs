//! Runs of a program, unchanged and with changes, each made once.

use super::apply::{Changed, apply};
use super::edit::{Edit, EditError};
use super::hosts_cpus;
use crate::attribution::Owners;
use crate::cpus::Cpus;
use crate::predict::{Model, Timing};
use crate::program::Program;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A program, a machine, and the times of all runs asked for. Threads may ask at once: of two that ask for the same run, one
/// makes it and the other waits.
#[derive(Debug)]
pub struct Trials<'p> {
    program: Cow<'p, Program>,
    owners: Owners,
    model: Model,
    /// A copy of the model that makes only one run for each predicted time.
    single: Model,
    operations: usize,
    known: Mutex<Vec<Known>>,
}

/// A run: its time in nanoseconds, `None` if it stops before its end.
#[derive(Debug)]
struct Known {
    edits: Vec<Edit>,
    cpus: Cpus,
    number: u32,
    time_ns: Arc<OnceLock<Option<f64>>>,
}

impl<'p> Trials<'p> {
    /// An empty store. `owners` are those of the program with its samples.
    pub fn new(program: Cow<'p, Program>, owners: Owners, model: &Model) -> Trials<'p> {
        let operations = program.threads.iter().map(|thread| thread.operations.len()).sum();
        let single = Model { runs: 1, ..model.clone() };
        Trials { program, owners, model: model.clone(), single, operations, known: Mutex::default() }
    }

    /// An empty store for a program that has all its samples, or never had any.
    pub fn of(program: &'p Program, model: &Model) -> Trials<'p> {
        Trials::new(Cow::Borrowed(program), Owners::of(program), model)
    }

    /// The unchanged program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The function that each function counts for.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// The machine.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Number of the program's operations.
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// Number of different runs asked for.
    pub fn runs(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The program with these changes. The changes are made when the trial first runs.
    pub fn with(&self, edits: Vec<Edit>) -> Trial<'_> {
        let of = |edit: &Edit| match edit {
            Edit::Cpus(cpus) => Some(*cpus),
            _ => None,
        };
        let cpus = edits.iter().rev().find_map(of);
        // A change of the CPU count leaves the program the same, if all CPUs are of one host.
        let several = hosts_cpus::are_several(&self.program);
        let edits = edits.into_iter().filter(|edit| several || of(edit).is_none()).collect();
        Trial { trials: self, edits, cpus, changed: OnceCell::new() }
    }

    /// The time of a run of the unchanged program, nanoseconds; `None`: it stops before its end.
    pub fn time_ns(&self, cpus: Cpus, number: u32) -> Option<f64> {
        self.with(Vec::new()).time_ns(cpus, number)
    }

    /// Stores a run of the unchanged program that was made elsewhere.
    pub(crate) fn know(&self, cpus: Cpus, number: u32, time_ns: Option<f64>) {
        self.slot(&[], cpus, number).get_or_init(|| time_ns);
    }

    fn slot(&self, edits: &[Edit], cpus: Cpus, number: u32) -> Arc<OnceLock<Option<f64>>> {
        // The list is always consistent, even if a thread panicked with the lock held.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |known: &&Known| known.cpus == cpus && known.number == number && known.edits == edits;
        if let Some(known) = known.iter().find(is_same) {
            return Arc::clone(&known.time_ns);
        }
        let time_ns = Arc::default();
        known.push(Known { edits: edits.to_vec(), cpus, number, time_ns: Arc::clone(&time_ns) });
        time_ns
    }
}

/// The program with changes.
#[derive(Debug)]
pub struct Trial<'t> {
    pub(super) trials: &'t Trials<'t>,
    edits: Vec<Edit>,
    cpus: Option<Cpus>,
    /// Computed at the first run.
    changed: OnceCell<Result<Changed<'t>, EditError>>,
}

impl<'t> Trial<'t> {
    /// The changed program and machine.
    ///
    /// # Errors
    /// The first change that cannot be made.
    pub fn changed(&self) -> Result<&Changed<'t>, EditError> {
        let trials = self.trials;
        let changed = || apply(&trials.program, &trials.owners, &trials.single, &self.edits);
        self.changed.get_or_init(changed).as_ref().map_err(EditError::clone)
    }

    /// The unchanged program.
    pub fn program(&self) -> &Program {
        &self.trials.program
    }

    /// The machine before the changes.
    pub fn model(&self) -> &Model {
        &self.trials.model
    }

    /// The CPU count of the run if `cpus` is asked for: a change may set another one.
    pub fn on(&self, cpus: Cpus) -> Cpus {
        self.cpus.unwrap_or(cpus)
    }

    /// The time of a run, nanoseconds. Run 0 has no random choices; each other run draws its own for what the model leaves
    /// open. `None`: a change cannot be made, or the run stops before its end.
    pub fn time_ns(&self, cpus: Cpus, number: u32) -> Option<f64> {
        let cpus = self.on(cpus);
        *self.trials.slot(&self.edits, cpus, number).get_or_init(|| {
            let changed = self.changed().ok()?;
            let timing = Timing::new(&changed.program, &changed.model).ok()?;
            timing.finished_ns(cpus, number)
        })
    }

    /// Gain of the changes in this run, as a share of the same run without the changes; `None`: one of the two runs
    /// stops before its end.
    pub fn gain(&self, cpus: Cpus, number: u32) -> Option<f64> {
        let (before, after) = (self.trials.time_ns(cpus, number)?, self.time_ns(cpus, number)?);
        (before > 0.0).then(|| 1.0 - after / before)
    }
}
