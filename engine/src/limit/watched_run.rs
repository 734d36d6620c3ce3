//! The predicted run on one CPU count, with facts that its intervals and its path show.

use super::causes::rounds::{Rounds, uneven};
use super::causes::stretch::{Again, Computing, Stretch, Turns};
use super::path_causes::PathCauses;
use super::threads::uses::States;
use crate::cpus::Cpus;
use crate::experiment::timers;
use crate::predict::Timing;
use crate::schedule::RunOutcome;

/// A predicted run with the facts that its intervals and its path show.
#[derive(Debug)]
pub(super) struct WatchedRun {
    pub(super) cpus: Cpus,
    pub(super) base: RunOutcome,
    /// Every thread that others wait for ended.
    pub(super) is_complete: bool,
    /// The longest stretch that one thread computes alone.
    pub(super) stretch: Option<Stretch>,
    pub(super) turns: Option<Turns>,
    /// The thread that computes alone again and again.
    pub(super) again: Option<Again>,
    /// Rounds of work that end unevenly.
    pub(super) rounds: Option<Rounds>,
    /// What threads compute while another one spins: thread, and the part of its computing, ticks.
    pub(super) spun_meanwhile: Vec<(usize, (u64, u64))>,
    /// States of the threads, summed.
    pub(super) states: States,
    /// The causes of the run's critical path; `None` for a program that runs ideally.
    pub(super) causes: Option<PathCauses>,
}

impl WatchedRun {
    /// Runs the program on `cpus` and notes what its threads do. `pause`: a stop shorter than this, ticks, does not end
    /// a thread's stretch. `crews`: threads that do the same.
    pub(super) fn of(timing: &Timing<'_>, cpus: Cpus, pause: u64, crews: &[Vec<usize>]) -> WatchedRun {
        let program = timing.program();
        let mut computing = Computing::new(program.threads.len(), pause);
        let mut states = States::new(program);
        let watcher = Box::new(|interval| {
            computing.tell(interval);
            states.tell(interval);
        });
        let (base, path) = timing.run_with_path(cpus, watcher);
        let spun_meanwhile = computing.meanwhile();
        let rounds = uneven(&computing, program, crews, (cpus.or(usize::MAX), base.length.0));
        let (stretch, turns, again) = computing.found(base.length.0);
        WatchedRun {
            cpus,
            is_complete: base.is_complete(program),
            stretch,
            rounds,
            spun_meanwhile,
            again,
            // On one CPU threads always take turns, so that is no finding.
            turns: turns.filter(|_| cpus != Cpus::ONE),
            states,
            causes: path.map(|path| PathCauses::of(&path, &timers(program))),
            base,
        }
    }

    /// The run's length, nanoseconds.
    pub(super) fn time_ns(&self) -> f64 {
        self.base.length.as_ns_f64()
    }

    /// These ticks as a share of the run's length.
    pub(super) fn share(&self, ticks: u64) -> f64 {
        ticks as f64 / self.base.length.0.max(1) as f64
    }

    /// CPUs that compute, on average.
    pub(super) fn busy(&self) -> f64 {
        self.base.busy.iter().zip(0u64..).map(|(ticks, cpus)| self.share(*ticks) * cpus as f64).sum()
    }
}
