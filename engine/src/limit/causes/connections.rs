//! Connections: those to another server that are always in use (a pool), and those of clients that the kernel drops (ours).

use super::loaded::loaded;
use crate::experiment::Edit;
use crate::limit::ledger::{Cause, Claim};
use crate::limit::row::Evidence;
use crate::limit::search::Search;
use crate::limit::watched_run::WatchedRun;
use crate::limit::{LimitKind, WORTH};
use crate::program::{CauseKind, Endpoint, TimePart, is_for_socket};

/// From this part of the connections' time with an open request on, the next request has to wait for a connection.
const IN_USE: f64 = 0.9;
/// One connection may carry many requests at a time (pipelining, streams), so a single one shows no pool, unless it answers one
/// request for each that the program answers.
const FEWEST: f64 = 1.5;
/// A single connection answers at least this many requests for each that the program answers.
const ONE_EACH: f64 = 0.9;
/// If connections are free now and then, requests are held back if at least this many times as many wait as are open.
const HELD_BACK: f64 = 5.0;
/// Threads that compute for a larger share of the time hold requests back by that.
const COMPUTES: f64 = 0.5;
/// How long a client waits before it tries again (Linux `TCP_TIMEOUT_INIT`), seconds.
const AGAIN_S: f64 = 1.0;
/// At least this many requests wait in the program, on average.
const WAITING: f64 = 1.0;

/// Connections to a server that all have a request open.
pub(super) struct Pool<'a> {
    /// The server.
    server: &'a Endpoint,
    /// How many connections there are.
    connections: f64,
    /// The requests that the program serves, if it serves any.
    served: Option<&'a Endpoint>,
    /// The connections have times without a request.
    is_guess: bool,
    /// Requests that a thread has read and that are not open at the server, on average; without served requests, threads that
    /// neither have a request open at the server nor compute.
    waiting: f64,
}

impl Search {
    /// Adds a row for a pool of connections or a full queue of new connections. The row is the first one unless CPUs, locks or
    /// permits limit more.
    pub(in crate::limit) fn claim_connections(&self, claims: &mut Vec<Claim>, run: &WatchedRun) {
        let idle = 1.0 - run.busy() / run.cpus.or(usize::MAX) as f64;
        place(claims, Claim::at_most(Cause::Backlog, self.clients_lost().min(idle), Evidence::Unknown));
        let (busy, has_free_cpus) = self.busy_cpus(run);
        if let Some(pool) = self.connection_pool(busy).filter(|_| has_free_cpus) {
            // Each request then waits only for its answer.
            let most = pool.waiting / (pool.waiting + pool.server.open);
            let evidence = if pool.is_guess { Evidence::Unknown } else { Evidence::Bounded };
            place(claims, Claim::at_most(Cause::Connections, most, evidence));
        }
    }

    /// The pool of connections for which requests or threads wait. `busy`: CPUs in use on average.
    fn connection_pool(&self, busy: f64) -> Option<Pool<'_>> {
        let traffic = &self.recorded.traffic;
        let served = loaded(&self.recorded);
        let users = match served {
            Some(served) => served.open * (1.0 - served.queued),
            // Threads of a server wait for their clients at sockets, too.
            None if traffic.iter().any(|end| end.served) => return None,
            None => {
                let at_sockets = self.recorded.waits.iter().filter(|wait| is_for_socket(wait));
                at_sockets.map(|wait| wait.threads).max().unwrap_or(0) as f64 - busy
            }
        };
        let pools = traffic.iter().filter(|end| !end.served).filter_map(|server| {
            let load = server.load.filter(|load| *load > 0.0)?;
            let one_each = served.is_some_and(|of| server.per_second >= ONE_EACH * of.per_second);
            let waiting = users - server.open;
            let is_guess = load < IN_USE;
            if is_guess {
                let is_held_back =
                    one_each && waiting >= HELD_BACK * server.open && !self.holds_back_otherwise(busy);
                let connections = server.open;
                return is_held_back.then_some(Pool { server, connections, served, is_guess, waiting });
            }
            let connections = server.open / load;
            let is_shared = (connections >= FEWEST || one_each) && waiting >= WAITING;
            is_shared.then_some(Pool { server, connections, served, is_guess, waiting })
        });
        pools.max_by(|a, b| a.server.open.total_cmp(&b.server.open))
    }

    /// Whether the threads that answer compute for most of the time, or something else is known that requests wait for.
    fn holds_back_otherwise(&self, busy: f64) -> bool {
        let Some(served) = loaded(&self.recorded) else { return true };
        let threads = served.threads.map_or(1.0, f64::from);
        let is_known = |part: &&TimePart| {
            let kind = part.kind;
            matches!(kind, CauseKind::Timer | CauseKind::Lock | CauseKind::OtherRequest | CauseKind::Disk)
        };
        let known: f64 = served.spent.iter().filter(is_known).map(|part| part.share).sum();
        busy > COMPUTES * threads || known > COMPUTES
    }

    /// The pool in words.
    pub(in crate::limit) fn of_connections(&self, busy: f64) -> LimitKind {
        self.connection_pool(busy).map_or(LimitKind::Nothing, |pool| LimitKind::Connections {
            server: pool.server.name.clone(),
            connections: pool.connections.round() as u32,
            waiting: pool.waiting,
            port: pool.served.map(|served| served.name.clone()),
            probably: pool.is_guess,
        })
    }

    /// The share of the clients' time that they lose by dropped connections: each of these clients tries again after a second.
    fn clients_lost(&self) -> f64 {
        let served = || self.recorded.traffic.iter().filter(|end| end.served && end.per_second > 0.0);
        let open_s: f64 = served().map(|end| end.open * end.count as f64 / end.per_second).sum();
        let lost_s = self.recorded.dropped_connections as f64 * AGAIN_S;
        if served().next().is_some() && lost_s > 0.0 { lost_s / (lost_s + open_s) } else { 0.0 }
    }

    /// The full queue in words.
    pub(in crate::limit) fn of_backlog(&self) -> LimitKind {
        LimitKind::Backlog { dropped: self.recorded.dropped_connections }
    }
}

/// Puts the claim before the first row that only shows where threads wait or that is expected to gain less, else behind all.
pub(super) fn place(claims: &mut Vec<Claim>, claim: Claim) {
    if claim.most < WORTH {
        return;
    }
    let shows_waits = |other: &Claim| {
        matches!(
            other.cause,
            Cause::Idle
                | Cause::OpenRequests
                | Cause::Work
                | Cause::Goroutines
                | Cause::LocksNotRecorded
                | Cause::OnPath(_)
                | Cause::Edit(
                    Edit::FreeDevices(_)
                        | Edit::NoSleeps
                        | Edit::NoPolling(_)
                        | Edit::NoTurns
                        | Edit::FreeHandOver
                        | Edit::MoreSleepers { .. }
                )
        )
    };
    let is_less = |other: &Claim| shows_waits(other) || other.middle() < claim.middle();
    let at = claims.iter().position(is_less).unwrap_or(claims.len());
    claims.insert(at, claim);
    claims.retain(|other| !matches!(other.cause, Cause::Idle | Cause::OpenRequests));
}
