//! Goroutines that wait for each other (ours): what samples of Go's slow paths show, where CPUs are idle and it is not visible what for.

use super::Kind;
use super::ledger::{Cause, Claim};
use super::open_requests::FULL;
use super::row::Evidence;
use super::search::Search;
use super::watched_run::WatchedRun;
use crate::program::GoroutineWaits;

/// Fewer samples may be of rare waits. A wait costs some microseconds of CPU time, so that there are few.
const FEWEST: u64 = 2;
/// What has this part of them is waited for most.
const MOST: f64 = 0.5;

impl Search {
    /// Puts what most samples show in place of a row that says that it is not visible.
    pub(super) fn claim_goroutines(&self, claims: &mut [Claim], run: &WatchedRun) {
        let cpus = run.cpus.or(usize::MAX) as f64;
        let busy = self.rest.map_or_else(|| run.busy(), |rest| rest.busy);
        if !self.hidden || busy >= FULL * cpus || self.most_waited_for().is_none() {
            return;
        }
        if let Some(first) = claims.first_mut()
            && matches!(first.cause, Cause::Work | Cause::OpenRequests)
        {
            let most = 1.0 - busy / cpus;
            *first = Claim { cause: Cause::Goroutines, least: 0.0, most, evidence: Evidence::Unknown };
        }
    }

    /// What goroutines wait for in most samples, and in how many.
    fn most_waited_for(&self) -> Option<(&GoroutineWaits, u64)> {
        let waits = &self.recorded.goroutines;
        let all: u64 = waits.iter().map(|of| of.count).sum();
        let of = |what: &str| waits.iter().filter(|of| of.what == what).map(|of| of.count).sum::<u64>();
        let first = waits.iter().max_by_key(|first| of(&first.what))?;
        // Of its kind the function with most samples.
        let first = waits.iter().find(|other| other.what == first.what)?;
        let count = of(&first.what);
        (all >= FEWEST && count as f64 >= MOST * all as f64).then_some((first, count))
    }

    /// In the program's words.
    pub(super) fn of_goroutines(&self, busy: f64) -> Kind {
        let Some((first, samples)) = self.most_waited_for() else { return Kind::Nothing };
        Kind::Goroutines { what: first.what.clone(), function: first.function.clone(), samples, busy }
    }
}
