//! What all CPU counts have in common: the schedule on unlimited CPUs, its time by number of executing threads, and the
//! terms of the weights.

use super::clusters::{Term, sweep};
use super::lanes::{LANES, Scaled, scale};
use super::weights::Weights;
use crate::cpus::Cpus;
use crate::finding::Finding;
use crate::program::{Program, ProgramError};
use crate::schedule::{Schedule, Simulation};

/// A scheduled program, from which weights for any CPU count follow.
#[derive(Debug)]
pub struct CriticalPath<'a> {
    pub(super) program: &'a Program,
    pub(super) schedule: Schedule,
    pub(super) terms: Vec<Term>,
    /// Ticks by the number of threads that execute.
    executing: Vec<u64>,
    /// Number of threads that still execute at the end: those that spin on a lock forever.
    pub(super) left: u32,
}

impl<'a> CriticalPath<'a> {
    /// Schedules the program. O(V log n) for V vertices and n threads, plus O(m log² V) for m clusters at one instant.
    ///
    /// # Errors
    /// The program fails [`Program::check`]. A deadlock is a finding, not an error.
    pub fn of(program: &'a Program) -> Result<CriticalPath<'a>, ProgramError> {
        let mut simulation = Simulation::new(program)?;
        let (terms, executing, left) = sweep(&mut simulation);
        Ok(CriticalPath { program, schedule: simulation.finish(), terms, executing, left })
    }

    /// T_P: the predicted time on this many processors, exact.
    pub fn time(&self, cpus: Cpus) -> Scaled {
        let scale = self.scale(cpus);
        let parts = self.executing.iter().enumerate().map(|(count, ticks)| {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            i128::from(count.max(scale)) * i128::from(*ticks)
        });
        Scaled { value: parts.sum(), scale }
    }

    /// The weights of all operations, for a few CPU counts at a time.
    pub fn weights<'s>(&'s self, cpus: &'s [Cpus]) -> impl Iterator<Item = Weights<'s>> {
        cpus.chunks(LANES).map(|few| Weights::of(self, few))
    }

    /// Ticks summed over all executing threads; spinning counts as executing.
    pub(super) fn executed(&self) -> u64 {
        let parts = self.executing.iter().zip(0_u64..).map(|(ticks, threads)| ticks.saturating_mul(threads));
        parts.fold(0, u64::saturating_add)
    }

    /// P as the factor of scaled numbers.
    pub(super) fn scale(&self, cpus: Cpus) -> i64 {
        scale(cpus, self.program.threads.len())
    }

    /// Ticks by the number of threads that execute on unlimited processors; spinning counts as executing.
    pub fn executing(&self) -> &[u64] {
        &self.executing
    }

    /// Deadlocks and contradictions in the program.
    pub fn findings(&self) -> &[Finding] {
        &self.schedule.findings
    }
}
