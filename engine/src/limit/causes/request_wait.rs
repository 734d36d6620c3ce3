//! Requests that wait for other requests of the same server, as their own paths show ([`crate::requests`]): they share a lock
//! that the program makes itself, of semaphores, signals or pipes. (A method of longpole's own.)

use super::connections::place;
use super::loaded::loaded;
use crate::limit::LimitKind;
use crate::limit::Meanwhile;
use crate::limit::ledger::{Cause, Claim};
use crate::limit::row::Evidence;
use crate::limit::search::Search;
use crate::limit::watched_run::WatchedRun;
use crate::program::{CauseKind, Endpoint, TimePart};

/// Other requests are the limit if they take at least this share of the requests' time.
const LEAST: f64 = 0.25;
/// Number of things listed that the others did meanwhile, and the least share of the wait for each.
const LISTED: usize = 3;
const LISTED_SHARE: f64 = 0.1;

impl Search {
    /// Adds a row for a server whose requests wait for each other.
    pub(in crate::limit) fn claim_request_wait(&self, claims: &mut Vec<Claim>, run: &WatchedRun) {
        let (_, has_free_cpus) = self.busy_cpus(run);
        if let Some((_, part)) = self.other_requests().filter(|_| has_free_cpus) {
            // A request then takes as long as it takes alone, at best.
            place(claims, Claim::at_most(Cause::RequestWait, part.share, Evidence::Bounded));
        }
    }

    /// The part of the requests' time in which they wait for other requests.
    fn other_requests(&self) -> Option<(&Endpoint, &TimePart)> {
        let served = loaded(&self.recorded)?;
        let part = served.spent.iter().find(|part| part.kind == CauseKind::OtherRequest)?;
        (part.share >= LEAST).then_some((served, part))
    }

    /// The limit in words.
    pub(in crate::limit) fn of_request_wait(&self) -> LimitKind {
        self.other_requests().map_or(LimitKind::Nothing, |(served, part)| LimitKind::OtherRequests {
            port: served.name.clone(),
            wait: part.name.clone(),
            waits: part.share,
            meanwhile: part
                .under
                .iter()
                .filter(|under| under.kind != CauseKind::Unknown && under.share >= LISTED_SHARE * part.share)
                .take(LISTED)
                .map(|under| Meanwhile {
                    kind: under.kind,
                    name: under.name.clone(),
                    share: under.share / part.share,
                })
                .collect(),
        })
    }
}
