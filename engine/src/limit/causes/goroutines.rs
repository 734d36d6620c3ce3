//! Goroutines that wait for a lock (a method of longpole's own): what samples of slow paths show, where CPUs are idle
//! and it is not visible what for.

use super::open_requests::FULL;
use crate::limit::LimitKind;
use crate::limit::ledger::{Cause, Claim};
use crate::limit::row::Evidence;
use crate::limit::search::Search;
use crate::limit::watched_run::WatchedRun;
use crate::program::GoroutineWaits;

/// Fewer samples may be of rare waits. A wait costs some microseconds of CPU time, so that there are few.
const FEWEST: u64 = 3;

impl Search {
    /// Replaces a row that says that waits are not visible by the lock that samples show.
    pub(in crate::limit) fn claim_goroutines(&self, claims: &mut [Claim], run: &WatchedRun) {
        let cpus = run.cpus.or(usize::MAX) as f64;
        let busy = self.rest.map_or_else(|| run.busy(), |rest| rest.busy);
        if !self.hidden || self.most_asked().is_some() || self.most_waited_for().is_none() {
            return;
        }
        let Some(first) = claims.first_mut() else { return };
        let idle = 1.0 - busy / cpus;
        let most = match first.cause {
            // Open requests wait, regardless of who has the CPUs.
            Cause::OpenRequests => first.most.min(idle),
            Cause::Work if busy + self.cpus_of_others() < FULL * cpus => idle,
            _ => return,
        };
        *first = Claim { cause: Cause::Goroutines, least: 0.0, most, evidence: Evidence::Unknown };
    }

    /// The function whose goroutines wait for a lock in most samples, and the samples of all.
    fn most_waited_for(&self) -> Option<(&GoroutineWaits, u64)> {
        let waits = &self.recorded.goroutines;
        let all = waits.iter().fold(0u64, |all, of| all.saturating_add(of.count));
        let first = waits.iter().max_by_key(|of| of.count)?;
        (all >= FEWEST).then_some((first, all))
    }

    /// Whether threads sleep in Go's runtime, which looks after goroutines now and then. A goroutine that sleeps has no thread.
    pub(in crate::limit) fn is_sleep_of_go(&self) -> bool {
        self.hidden && self.sleeps_in().is_some_and(|function| function.starts_with("runtime."))
    }

    /// The limit "goroutines wait for a lock", with the program's names.
    pub(in crate::limit) fn of_goroutines(&self, busy: f64) -> LimitKind {
        let Some((first, samples)) = self.most_waited_for() else { return LimitKind::Nothing };
        LimitKind::Goroutines { lock: first.lock.clone(), function: first.function.clone(), samples, busy }
    }
}
