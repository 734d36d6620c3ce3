//! The time with more threads in a pool, or in a pipeline's stage.

use crate::cpus::Cpus;
use crate::experiment::Edit;
use crate::limit::WORTH;
use crate::limit::search::Search;
use crate::limit::threads::worker_groups::is_even;
use crate::predict::Timing;
use crate::program::Program;
use crate::schedule::{Interval, RunOutcome, SimulatedState};
use crate::time::Ticks;

impl Search {
    /// The edit that adds `more` threads. If there are several `threads`, only work under locks that they wait for stays
    /// undivided: the release of a replayed lock may be unknown.
    pub(in crate::limit) fn more_of(&self, threads: &[usize], more: usize, base: &RunOutcome) -> Edit {
        let waited = || {
            let locks = self.locks(base, base.length.0 / 100).into_iter();
            locks.flat_map(|(edit, _)| if let Edit::FreeLocks(locks) = edit { locks } else { Vec::new() })
        };
        let under = (threads.len() > 1).then(|| waited().collect());
        Edit::MoreThreads { threads: threads.to_vec(), more, under }
    }

    /// Predicted times of the program as it is and with `more` additional threads, nanoseconds. `None`: the threads do
    /// not share the work evenly, or the program does not come to its end.
    pub fn with_workers(&self, threads: &[usize], more: usize, cpus: Cpus) -> Option<(f64, f64)> {
        let shares = |base: &RunOutcome| is_even(threads, base) || self.sleeps_at_work(threads, base);
        let base = self.complete_run(cpus).filter(shares)?;
        let before = base.length.as_ns_f64();
        let after = match self.more_alike(threads, more, &base) {
            edit @ Edit::MoreSleepers { .. } => self.trials.with(vec![edit]).time_ns(cpus, 0)?,
            edit => self.time_with_more(cpus, &edit, &base)?,
        };
        Some((before, after.min(before)))
    }

    /// Whether the simulated gain of more threads is only an upper bound. They may wait for unrecorded locks or for their
    /// turns, which are replayed; for each other in the kernel; or, asleep, for a resource that cannot serve more threads at
    /// once.
    pub fn is_bound(&self, threads: &[usize], cpus: Cpus) -> bool {
        let turns = || self.watched(&Timing::new(self.program(), self.trials.model()).ok()?, cpus).turns;
        let sleep = || {
            let base = self.complete_run(cpus)?;
            Some(matches!(self.more_alike(threads, 1, &base), Edit::MoreSleepers { .. }))
        };
        let meets = self.kernel_work_in_the_way() >= WORTH;
        self.unrecorded.is_some() || meets || turns().is_some() || sleep() == Some(true)
    }

    /// The time with more threads, nanoseconds: at least the time of a second run, since chance may change which threads meet,
    /// and at least the time that the CPUs need.
    pub(in crate::limit) fn time_with_more(&self, cpus: Cpus, edit: &Edit, base: &RunOutcome) -> Option<f64> {
        let Edit::MoreThreads { threads, .. } = edit else { return None };
        let trial = self.trials.with(vec![edit.clone()]);
        let ns = trial.time_ns(cpus, 0)?;
        let base_ns = base.length.as_ns_f64();
        if ns >= base_ns {
            return Some(ns);
        }
        let certain = ns.max((1.0 - trial.gain(cpus, 1)?) * base_ns);
        Some(certain.max(self.least_with_more(cpus, threads, base)?).min(base_ns))
    }

    /// The least time that more threads can lead to, nanoseconds (a method of longpole's own). The time in which none
    /// of these threads computes, or only one of them lives, stays. All computing in the remaining time is spread over
    /// all CPUs. CPUs that are idle outside of it do not help.
    fn least_with_more(&self, cpus: Cpus, threads: &[usize], base: &RunOutcome) -> Option<f64> {
        let Some(most_busy) = self.most_busy(cpus) else { return Some(0.0) };
        let mut work = AtWork::of(self.program(), threads);
        let timing = Timing::new(self.program(), self.trials.model()).ok()?;
        timing.run_watched(cpus, 0, Box::new(|interval| work.tell(interval)));
        let (time, computed) = work.sums(cpus);
        let rest = base.length.0.saturating_sub(time);
        Some(Ticks(rest).as_ns_f64() + Ticks(computed).as_ns_f64() / most_busy)
    }
}

/// Times at which threads start and stop computing, and at which threads of the group start and stop living.
struct AtWork {
    is_of_group: Vec<bool>,
    /// The number of living threads of the group from which on another thread would find work: what the first thread does
    /// before it starts the others, and the last one after they end, is not divided.
    at_least: u64,
    changes: Vec<Change>,
}

/// Sorted by time; at the same instant ends come before beginnings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    at: Ticks,
    begins: bool,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A thread of the group lives: it computes or waits.
    Lives,
    /// A thread computes; `true`: it belongs to the group.
    Computes(bool),
}

impl AtWork {
    fn of(program: &Program, threads: &[usize]) -> AtWork {
        let mut is_of_group = vec![false; program.threads.len()];
        for thread in threads {
            if let Some(is_of_group) = is_of_group.get_mut(*thread) {
                *is_of_group = true;
            }
        }
        AtWork { is_of_group, at_least: threads.len().min(2) as u64, changes: Vec::new() }
    }

    fn tell(&mut self, interval: Interval) {
        if interval.end <= interval.start {
            return;
        }
        let of_group = self.is_of_group.get(interval.thread.0 as usize) == Some(&true);
        let lives = (of_group && interval.doing != SimulatedState::Nothing).then_some(What::Lives);
        let computes = (interval.doing == SimulatedState::Busy).then_some(What::Computes(of_group));
        for what in lives.into_iter().chain(computes) {
            self.changes.push(Change { at: interval.start, begins: true, what });
            self.changes.push(Change { at: interval.end, begins: false, what });
        }
    }

    /// Two sums in ticks: the time in which threads of the group compute and another thread could, and all threads'
    /// computing in that time. With ideal sharing, more threads than CPUs can compute at a time.
    fn sums(mut self, cpus: Cpus) -> (u64, u64) {
        let at_most = match cpus {
            Cpus::Count(count) => u64::from(count.get()),
            Cpus::Infinite => u64::MAX,
        };
        self.changes.sort_unstable();
        let (mut all, mut group, mut live, mut since) = (0u64, 0u64, 0u64, Ticks(0));
        let (mut time, mut computed) = (0u64, 0u64);
        for Change { at, begins, what } in self.changes {
            if group > 0 && live >= self.at_least {
                let passed = at.0 - since.0;
                time = time.saturating_add(passed);
                computed = computed.saturating_add(passed.saturating_mul(all.min(at_most)));
            }
            let count = |sum: &mut u64| *sum = if begins { *sum + 1 } else { sum.saturating_sub(1) };
            match what {
                What::Lives => count(&mut live),
                What::Computes(of_group) => {
                    count(&mut all);
                    if of_group {
                        count(&mut group);
                    }
                }
            }
            since = at;
        }
        (time, computed)
    }
}
