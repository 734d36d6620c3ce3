//! Goroutines that wait for each other (ours), as samples of Go's slow paths show; CPUs are idle, and the waits are not
//! visible.

use super::Kind;
use super::ledger::{Cause, Claim};
use super::open_requests::FULL;
use super::row::Evidence;
use super::search::Search;
use super::watched_run::WatchedRun;
use crate::program::GoroutineWaits;

/// Fewer samples may be of rare waits. A wait costs only some microseconds of CPU time, so there are few samples.
const FEWEST: u64 = 2;
/// An object with at least this part of the samples is what goroutines wait for most.
const MOST: f64 = 0.5;

impl Search {
    /// Puts goroutines' waits in place of a first row that says that the waits are not visible, if samples agree.
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

    /// The kind of object that goroutines wait for in most samples, with its number of samples.
    fn most_waited_for(&self) -> Option<(&GoroutineWaits, u64)> {
        let waits = &self.recorded.goroutines;
        let all: u64 = waits.iter().map(|of| of.count).sum();
        let of = |what: &str| waits.iter().filter(|of| of.what == what).map(|of| of.count).sum::<u64>();
        let first = waits.iter().max_by_key(|first| of(&first.what))?;
        // The first entry of that kind has the function with most samples.
        let first = waits.iter().find(|other| other.what == first.what)?;
        let count = of(&first.what);
        (all >= FEWEST && count as f64 >= MOST * all as f64).then_some((first, count))
    }

    /// The kind of limit, in the program's words.
    pub(super) fn of_goroutines(&self, busy: f64) -> Kind {
        let Some((first, samples)) = self.most_waited_for() else { return Kind::Nothing };
        Kind::Goroutines { what: first.what.clone(), function: first.function.clone(), samples, busy }
    }
}
