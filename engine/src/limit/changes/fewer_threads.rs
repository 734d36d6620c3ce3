//! Fewer threads in a group, where more threads than CPUs wait for each other.

use crate::cpus::Cpus;
use crate::experiment::Edit;
use crate::limit::causes::asked_again::AskedAgain;
use crate::limit::search::Search;
use crate::limit::threads::thread_group::Group;
use crate::limit::threads::worker_groups::is_even;
use crate::limit::watched_run::WatchedRun;
use crate::program::{EdgeId, Operation};
use crate::schedule::RunOutcome;
use crate::time::Ticks;
use rustc_hash::FxHashSet;

/// Spinning explains the time that is missing in a prediction if spinning took at least this share of it.
const EXPLAINS: f64 = 0.5;
/// Threads that wake each other more often than this interact during the run, not only at its beginning and end.
const OFTEN: usize = 10;

impl Search {
    /// The edits that keep as many threads as CPUs, or half of the threads, of groups that want CPUs and wait for each other.
    /// Such a wait lasts longer if the other thread has no CPU. For threads that only compute, more threads than CPUs cost
    /// nothing.
    pub(in crate::limit) fn fewer_threads(&self, run: &WatchedRun, worth: u64) -> Vec<(Edit, u64)> {
        let Cpus::Count(count) = run.cpus else { return Vec::new() };
        let (base, cpus) = (&run.base, count.get() as usize);
        if self.hidden || self.counts().first() != Some(&run.cpus) {
            return Vec::new();
        }
        let sum = |part: fn(&crate::schedule::ThreadUse) -> u64| {
            base.threads.iter().fold(0u64, |all, used| all.saturating_add(part(used)))
        };
        let asked = Ticks::from_ns(self.asked_again.waiting_ns).0 / cpus as u64;
        let busy = sum(|used| used.busy) / cpus as u64;
        // All computing on all CPUs takes at least `busy` ticks, except the kernel's work for threads that wait.
        let kernels = (busy as f64 * self.kernel_work_of_waiting()) as u64;
        let most = base.length.0.saturating_sub(busy).saturating_add(asked).saturating_add(kernels);
        let ready = sum(|used| used.ready);
        if most < worth || ready < worth {
            return Vec::new();
        }
        let is_one = |group: &&Group| {
            group.threads.len() > cpus
                && self.may_be_fewer(&group.threads, base)
                && self.wait_for_each_other(group)
        };
        let mut edits = Vec::new();
        for group in self.groups.iter().filter(is_one) {
            let half = group.threads.len() / 2;
            for kept in std::iter::once(cpus).chain((half > cpus && self.is_small()).then_some(half)) {
                // The bound is at least that of more CPUs, since fewer threads are the alternative.
                edits.push((Edit::FewerThreads { threads: group.threads.clone(), kept }, most.max(ready)));
            }
        }
        edits
    }

    /// Whether the threads meet at barriers, or most of them are woken by other threads of the group again and again.
    fn wait_for_each_other(&self, group: &Group) -> bool {
        let is_barrier = |operation: &Operation| matches!(operation, Operation::Barrier(..));
        let threads = || group.threads.iter().filter_map(|thread| self.program().threads.get(*thread));
        let operations = || threads().flat_map(|thread| &thread.operations);
        if group.meets || operations().any(is_barrier) {
            return true;
        }
        let released: FxHashSet<EdgeId> = operations()
            .filter_map(|operation| match operation {
                Operation::Release(edge) => Some(*edge),
                _ => None,
            })
            .collect();
        let is_woken =
            |operation: &&Operation| matches!(operation, Operation::Await(edge) if released.contains(edge));
        let often = threads().filter(|thread| thread.operations.iter().filter(is_woken).nth(OFTEN).is_some());
        2 * often.count() > group.threads.len()
    }

    /// Whether the threads share the work evenly. If they spin, samples divide computing from spinning, so the share of each
    /// thread is not known well and does not count.
    fn may_be_fewer(&self, threads: &[usize], base: &RunOutcome) -> bool {
        let all = threads.iter().filter_map(|thread| self.program().threads.get(*thread));
        let spins = |operation: &Operation| matches!(operation, Operation::Await(edge) if self.program().is_spinning(*edge));
        let computed = base.threads.iter().fold(0u64, |all, used| all.saturating_add(used.busy));
        let mostly_asks = Ticks::from_ns(self.asked_again.waiting_ns).0 >= computed;
        mostly_asks || is_even(threads, base) || all.flat_map(|thread| &thread.operations).any(spins)
    }

    /// The time with fewer threads, nanoseconds: at least that of a second run, since chance may change which threads meet. It
    /// is at most the time as it is, since no simulation has the CPU time that spinning takes.
    pub(in crate::limit) fn time_with_fewer(
        &self,
        cpus: Cpus,
        edit: &Edit,
        base: &RunOutcome,
    ) -> Option<f64> {
        let trial = self.trials.with(vec![edit.clone()]);
        let (ns, base_ns) = (trial.time_ns(cpus, 0)?, base.length.as_ns_f64());
        Some(ns.max((1.0 - trial.gain(cpus, 1)?) * base_ns).min(base_ns))
    }

    /// Predicted times as it is and with only `kept` of these threads, nanoseconds. `None`: the threads do not share
    /// the work evenly, or the program does not come to its end.
    pub fn with_fewer(&self, threads: &[usize], kept: usize, cpus: Cpus) -> Option<(f64, f64)> {
        let base = self.complete_run(cpus).filter(|base| self.may_be_fewer(threads, base))?;
        let edit = Edit::FewerThreads { threads: threads.to_vec(), kept };
        Some((base.length.as_ns_f64(), self.trials.with(vec![edit]).time_ns(cpus, 0)?))
    }

    /// The most that fewer threads gain, as a share of the time. To the simulated `gain` come busy waiting and the kernel's
    /// work for threads that wait, which the simulation lacks or counts as computing.
    pub(in crate::limit) fn most_with_fewer(&self, gain: f64, run: &WatchedRun) -> f64 {
        let cpus = f64::from(run.cpus.or(1).max(1) as u32);
        let AskedAgain { waiting_ns, computing_ns } = self.asked_again;
        let asked = computing_ns as f64 / cpus / run.time_ns();
        let kernels = self.kernel_work_of_waiting() * run.busy() / cpus;
        let left = (1.0 - gain - asked - kernels).max(0.0);
        let missing = self.unexplained(run);
        let explained = self.measured_ns(run).filter(|measured_ns| {
            missing > 0.0 && waiting_ns as f64 / cpus >= EXPLAINS * missing * measured_ns
        });
        let left = explained.map_or(left, |measured_ns| left * run.time_ns() / measured_ns);
        (1.0 - left).max(gain)
    }
}
