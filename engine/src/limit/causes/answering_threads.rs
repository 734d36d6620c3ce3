//! A server whose threads each answer one request at a time, and sleep while they do, has too few of them if requests lie unread
//! although all these threads have one (a method of longpole's own). A thread that answers many requests at a time, or
//! computes all the time, is another limit.

use super::connections::place;
use super::loaded::loaded;
use crate::limit::LimitKind;
use crate::limit::ledger::{Cause, Claim};
use crate::limit::row::Evidence;
use crate::limit::search::Search;
use crate::limit::watched_run::WatchedRun;
use crate::program::Endpoint;

/// The threads always have a request if, on average, this share of their number is read and not answered.
const ALWAYS: f64 = 0.8;
/// A thread that has more requests at a time does not wait for each of them.
const ONE_AT_A_TIME: f64 = 1.2;
/// At least this many requests lie unread, on average.
const UNREAD: f64 = 1.0;
/// If the threads compute for a larger share of the time, more of them would wait for CPUs.
const COMPUTES: f64 = 0.5;

impl Search {
    /// Adds a row for a server with too few threads that answer.
    pub(in crate::limit) fn claim_answering_threads(&self, claims: &mut Vec<Claim>, run: &WatchedRun) {
        let (busy, has_free_cpus) = self.busy_cpus(run);
        if let Some((served, threads)) = self.answering_threads(busy).filter(|_| has_free_cpus) {
            // Each request then takes as long as it did from its reading on, at best.
            let most = served.queued.min(1.0 - busy / f64::from(threads));
            place(claims, Claim::at_most(Cause::AnsweringThreads, most, Evidence::Bounded));
        }
    }

    /// The requests that lie unread although all threads that answer have one, and the number of these threads.
    fn answering_threads(&self, busy: f64) -> Option<(&Endpoint, u32)> {
        let served = loaded(&self.recorded)?;
        let threads = served.threads?;
        let (unread, read) = (served.open * served.queued, served.open * (1.0 - served.queued));
        let share = read / f64::from(threads);
        let is_one_each = (ALWAYS..=ONE_AT_A_TIME).contains(&share);
        (is_one_each && unread >= UNREAD && busy <= COMPUTES * read).then_some((served, threads))
    }

    /// The limit in words.
    pub(in crate::limit) fn of_answering_threads(&self, busy: f64) -> LimitKind {
        self.answering_threads(busy).map_or(LimitKind::Nothing, |(served, threads)| {
            LimitKind::AnsweringThreads {
                threads,
                port: served.name.clone(),
                unread: served.open * served.queued,
            }
        })
    }
}
