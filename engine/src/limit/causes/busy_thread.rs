//! One thread computes most of the time while others compute little: that thread sets the pace.

use super::stretch::Stretch;
use crate::cpus::Cpus;
use crate::experiment::Edit;
use crate::limit::search::Search;
use crate::limit::threads::holders::{self, Sums};
use crate::limit::watched_run::WatchedRun;
use crate::program::FunctionRef;
use crate::schedule::ThreadUse;
use crate::time::Ticks;

/// The busy thread computes for at least this share of the run.
const MOST_OF_RUN: f64 = 0.75;
/// The next busiest thread computes for at most this part of the busy thread's time.
const OTHERS: f64 = 0.5;
/// All other threads together compute for at least this share of the busy thread's time; otherwise the program has in
/// effect one thread.
const MEANWHILE: f64 = 0.02;
/// If a stretch that the thread computes alone is at least this share of its computing, that stretch is reported
/// instead.
const ALONE: f64 = 0.5;

impl Search {
    /// All computing of the busy thread, as a stretch; `None`: there is no such thread.
    pub(in crate::limit) fn busy_thread(&self, run: &WatchedRun) -> Option<Stretch> {
        if self.hidden || run.cpus == Cpus::ONE {
            return None;
        }
        let busy = |used: &ThreadUse| used.busy as f64;
        let threads = &run.base.threads;
        let (thread, used) = threads.iter().enumerate().max_by_key(|(_, used)| used.busy)?;
        let others =
            || threads.iter().enumerate().filter(|(other, _)| *other != thread).map(|(_, used)| busy(used));
        let is_busy = busy(used) >= MOST_OF_RUN * run.base.length.0 as f64
            && others().fold(0.0, f64::max) <= OTHERS * busy(used)
            && others().sum::<f64>() >= MEANWHILE * busy(used);
        let is_alone = run
            .stretch
            .is_some_and(|stretch| stretch.thread == thread && stretch.length as f64 >= ALONE * busy(used));
        // If several threads do the same, and one of them has more work, the limit is an imbalance.
        let has_peers =
            self.groups.iter().any(|group| group.threads.len() > 1 && group.threads.contains(&thread));
        if !is_busy || is_alone || has_peers {
            return None;
        }
        let sums = |thread: usize| {
            let mut sums = Sums::default();
            holders::of_thread(self.program(), self.owners(), thread, None, &mut sums);
            sums
        };
        let own = sums(thread);
        let next = threads.iter().enumerate().filter(|(other, _)| *other != thread);
        let next = next.max_by_key(|(_, used)| used.busy).map(|(other, _)| sums(other).sorted());
        let most = |sorted: &[(FunctionRef, u64)]| sorted.first().map(|(function, _)| *function);
        let do_the_same = next.is_some_and(|next| most(&next) == most(&own.sorted()));
        (!do_the_same).then_some(Stretch { thread, length: own.all(), before: 0 })
    }

    /// The least time, nanoseconds, with the thread's computing divided among all CPUs. `without`: times of other changes.
    pub(in crate::limit) fn without_busy_thread(
        &self,
        run: &WatchedRun,
        without: &[(Edit, f64)],
    ) -> Option<(Edit, f64)> {
        let found = self.busy_thread(run)?;
        // A second thread for a stage is the same change, but simulated.
        let is_stage =
            |edit: &Edit| matches!(edit, Edit::MoreThreads { threads, .. } if threads[..] == [found.thread]);
        if without.iter().any(|(edit, ns)| is_stage(edit) && *ns < run.time_ns()) {
            return None;
        }
        let among = run.cpus.or(usize::MAX);
        let gone = found.length as f64 * (1.0 - 1.0 / among as f64);
        let least = run.busy() * run.time_ns() / among as f64;
        let ns = (run.time_ns() - Ticks(gone as u64).as_ns_f64()).max(least);
        Some((Edit::Divide(found.part(None), among), ns))
    }
}
