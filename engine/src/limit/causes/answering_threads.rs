//! A server whose threads each answer one request at a time, and sleep while they do, has too few of them if requests lie unread
//! although all these threads have one (a method of longpole's own). A thread that computes all the time is another limit. So
//! is a thread that answers many requests at a time, unless it mostly waits for one answer of another server at a time: a
//! call that blocks an event loop.

use super::connections::place;
use super::loaded::loaded;
use crate::limit::LimitKind;
use crate::limit::ledger::{Cause, Claim};
use crate::limit::row::Evidence;
use crate::limit::search::Search;
use crate::limit::watched_run::WatchedRun;
use crate::program::{ANSWERS, Endpoint, RecordedWait};

/// The threads always have a request if, on average, this share of their number is read and not answered.
const ALWAYS: f64 = 0.8;
/// A thread that has more requests at a time does not wait for each of them.
const ONE_AT_A_TIME: f64 = 1.2;
/// At least this many requests lie unread, on average.
const UNREAD: f64 = 1.0;
/// If the threads compute for a larger share of the time, more of them would wait for CPUs.
const COMPUTES: f64 = 0.5;
/// Threads that wait for answers of other servers for this share of the time do little else.
const BLOCKED: f64 = 0.6;

/// Threads that answer, and the requests that they keep waiting.
struct Few<'a> {
    served: &'a Endpoint,
    threads: u32,
    /// Requests that wait for one of the threads, on average.
    waiting: f64,
    /// The share of a request's time that more threads would save, at best.
    most: f64,
    /// What the threads wait for, if they block their event loops by that.
    blocked_by: Option<String>,
}

impl Search {
    /// Adds a row for a server with too few threads that answer.
    pub(in crate::limit) fn claim_answering_threads(&self, claims: &mut Vec<Claim>, run: &WatchedRun) {
        let (busy, has_free_cpus) = self.busy_cpus(run);
        if let Some(few) = self.answering_threads(busy).filter(|_| has_free_cpus) {
            place(claims, Claim::at_most(Cause::AnsweringThreads, few.most, Evidence::Bounded));
        }
    }

    /// The threads that answer, if requests wait for them.
    fn answering_threads(&self, busy: f64) -> Option<Few<'_>> {
        let served = loaded(&self.recorded)?;
        let threads = served.threads?;
        let count = f64::from(threads);
        let (unread, read) = (served.open * served.queued, served.open * (1.0 - served.queued));
        let share = read / count;
        if (ALWAYS..=ONE_AT_A_TIME).contains(&share) {
            // Each request then takes as long as it did from its reading on, at best.
            let most = served.queued.min(1.0 - busy / count);
            let is_few = unread >= UNREAD && busy <= COMPUTES * read;
            return is_few.then_some(Few { served, threads, waiting: unread, most, blocked_by: None });
        }
        let waiting = served.open - count;
        let blocked_by = self.blocked_by(count).filter(|_| share > ONE_AT_A_TIME && waiting >= UNREAD)?;
        let most = 1.0 - count / served.open;
        Some(Few { served, threads, waiting, most, blocked_by: Some(blocked_by) })
    }

    /// The answers of another server for which this number of threads mostly wait, one at a time each.
    fn blocked_by(&self, threads: f64) -> Option<String> {
        let one_each = threads * BLOCKED..=threads * ONE_AT_A_TIME;
        let asked = self.recorded.traffic.iter().filter(|end| !end.served).map(|end| end.open);
        let wall_ns = self.program().overhead.map_or(0, |cost| cost.wall_ns) as f64;
        let is_it = |wait: &&RecordedWait| {
            wait.name.as_str().starts_with(ANSWERS) && one_each.contains(&(wait.wait_ns as f64 / wall_ns))
        };
        let wait = self.recorded.waits.iter().find(is_it).filter(|_| one_each.contains(&asked.sum()))?;
        Some(wait.name.as_str().to_owned())
    }

    /// The limit in words.
    pub(in crate::limit) fn of_answering_threads(&self, busy: f64) -> LimitKind {
        self.answering_threads(busy).map_or(LimitKind::Nothing, |few| LimitKind::AnsweringThreads {
            threads: few.threads,
            port: few.served.name.clone(),
            unread: few.waiting,
            blocked_by: few.blocked_by,
        })
    }
}
