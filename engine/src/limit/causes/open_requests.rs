//! Requests that wait in a server which seems to have nothing to do (a method of longpole's own).
//!
//! A server whose threads sleep waits for work, unless requests are open: then each open request waits for something in the
//! server. Threads that run goroutines, or other work that is not their own, do not show what for.

use super::loaded::loaded;
use crate::cpus::Cpus;
use crate::limit::Meanwhile;
use crate::limit::ledger::{Cause, Claim};
use crate::limit::row::Evidence;
use crate::limit::search::Search;
use crate::limit::watched_run::WatchedRun;
use crate::limit::{LimitKind, WORTH};
use crate::program::{CauseKind, Endpoint, TimePart};

/// If at least this many times as many requests are open as CPUs are busy, most requests wait.
const WAITING: f64 = 2.0;
/// If the program has at least this multiple of its own open requests open at another server, its requests wait for
/// that server.
const ASKED: f64 = 0.5;
/// A part of the requests' time is worth naming from this share on.
const TOLD: f64 = 0.25;
/// If a larger part of the CPUs is busy, requests may wait for CPUs.
pub(super) const FULL: f64 = 0.8;

impl Search {
    /// Removes waiting for work while requests are open: another cause limits, or one that is not visible.
    pub(in crate::limit) fn claim_open_requests(&self, claims: &mut Vec<Claim>, run: &WatchedRun) {
        let Some(requests) = loaded(&self.recorded) else { return };
        let is_idle = |claim: &Claim| claim.cause == Cause::Idle;
        if !claims.iter().any(is_idle) && !claims.iter().all(|claim| claim.cause == Cause::Work) {
            return;
        }
        let others =
            claims.iter().any(|claim| !is_idle(claim) && claim.most >= WORTH && claim.cause != Cause::Work);
        let (busy, has_free_cpus) = self.busy_cpus(run);
        let waits = requests.open >= WAITING * busy && has_free_cpus;
        if !others && waits {
            let most = 1.0 - busy / requests.open;
            claims.clear();
            claims.push(Claim { cause: Cause::OpenRequests, least: 0.0, most, evidence: Evidence::Unknown });
        } else if others {
            claims.retain(|claim| !is_idle(claim));
        }
    }

    /// CPUs in use on average, and whether so few are in use that requests do not wait for CPUs.
    pub(super) fn busy_cpus(&self, run: &WatchedRun) -> (f64, bool) {
        let busy = self.rest.map_or_else(|| run.busy(), |rest| rest.busy);
        let cpus = match run.cpus {
            Cpus::Count(count) => f64::from(count.get()),
            Cpus::Infinite => f64::INFINITY,
        };
        (busy, busy < FULL * cpus)
    }

    /// The server at which most of the program's requests are open, if these explain the requests open at the program.
    pub(super) fn most_asked(&self) -> Option<&Endpoint> {
        let served = loaded(&self.recorded)?;
        let asked = self.recorded.traffic.iter().filter(|end| !end.served && end.open >= ASKED * served.open);
        asked.max_by(|a, b| a.open.total_cmp(&b.open))
    }

    /// The limit "open requests", with the program's names.
    pub(in crate::limit) fn of_open_requests(&self, busy: f64) -> LimitKind {
        let Some(served) = loaded(&self.recorded) else { return LimitKind::Nothing };
        let asked = self.most_asked();
        LimitKind::OpenRequests {
            port: served.name.clone(),
            open: served.open,
            mean_ns: served.mean_ns,
            queued: served.queued,
            busy,
            hidden: self.hidden,
            asked: asked.map(|end| (end.name.clone(), end.open)),
            // A thread that runs goroutines sleeps when none of them can run: that says nothing about a request.
            spent: most_spent(served).filter(|_| !self.hidden),
        }
    }
}

/// The largest part of the requests' time that says what they wait for. A queue says that only if nothing else does.
fn most_spent(served: &Endpoint) -> Option<Meanwhile> {
    let is_told = |part: &&TimePart| {
        let kind = part.kind;
        !matches!(
            kind,
            CauseKind::Computing
                | CauseKind::NoCpu
                | CauseKind::NoCpuOthers
                | CauseKind::Unknown
                | CauseKind::NotFollowed
        ) && part.share >= TOLD
    };
    let order = |part: &&TimePart| (part.kind != CauseKind::Queue, part.share);
    let most = served.spent.iter().filter(is_told).max_by(|a, b| {
        let ((a, share), (b, other)) = (order(a), order(b));
        a.cmp(&b).then(share.total_cmp(&other))
    })?;
    Some(Meanwhile { kind: most.kind, name: most.name.clone(), share: most.share })
}
