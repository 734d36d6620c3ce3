//! What requests at sockets spend their time on, on average.

use super::calls::Request;
use super::cause::Cause;
use super::groups::{GROUPS, Groups};
use super::names::Namer;
use super::paths::Paths;
use super::shares::Shares;
use super::sockets::{Sockets, at_sockets};
use super::sums::{Key, Sums};
use crate::event::UNIX;
use crate::program::{CauseKind, Occurrences, Program, TimePart, socket_name};
use crate::timeline::Timeline;
use rustc_hash::FxHashMap;

/// Fewer requests show nothing.
const FEWEST: usize = 10;
/// Of more requests, this number is walked, in equal steps of time order.
const MOST: usize = 4_000;
/// Smaller parts are not listed.
const LEAST: f64 = 0.01;

/// Name of the endpoint where requests were open longest in all, and what these requests spend their time on, the largest part
/// first; `None`: fewer than ten requests were recorded one by one. `program` must be made from `timeline`.
pub fn time_of_requests(timeline: &Timeline, program: &Program) -> Option<(String, Vec<TimePart>)> {
    let mut open: FxHashMap<(u16, u16), (usize, u64)> = FxHashMap::default();
    for request in &timeline.socket_requests {
        let Some((_, end)) = request.answered else { continue };
        let (count, ns) = open.entry((request.family, request.port)).or_default();
        *count += 1;
        *ns = ns.saturating_add(end.0.saturating_sub(request.arrived.0));
    }
    let most = open.into_iter().filter(|(_, (count, _))| *count >= FEWEST);
    let ((family, port), _) = most.max_by_key(|(socket, (_, ns))| (*ns, *socket))?;
    let sockets = if family == UNIX { Sockets::Unix } else { Sockets::Port(port) };
    let all = at_sockets(timeline, sockets).requests;
    let finished: Vec<Request> =
        all.iter().filter(|request| request.latency_ns().is_some()).copied().collect();
    let walked: Vec<Request> = finished.iter().step_by(finished.len() / MOST + 1).copied().collect();
    let groups = Groups::of(walked.iter().filter_map(Request::latency_ns).collect());
    let occurrences = Occurrences::of(timeline, program);
    let mut paths = Paths::new(timeline, program, &occurrences, &all);
    let sums = Sums::of(timeline, &mut paths, &walked, &groups);
    let total: f64 = walked.iter().filter_map(Request::latency_ns).map(|ns| ns as f64).sum();
    if walked.len() < FEWEST || total <= 0.0 {
        return None;
    }
    let namer = Namer::of(timeline, program, &sums);
    let shares = Shares::of(&namer, &sums);
    Some((socket_name(family, port), parts(&namer, &sums, &shares, total)))
}

#[derive(Default)]
struct Part {
    ns: f64,
    under: FxHashMap<(CauseKind, String), f64>,
}

fn parts(namer: &Namer<'_>, sums: &Sums, shares: &Shares, total: f64) -> Vec<TimePart> {
    let mut parts: FxHashMap<(CauseKind, String), Part> = FxHashMap::default();
    for (number, key, ns) in sums.all() {
        let all: f64 = ns.iter().map(|ns| *ns as f64).sum();
        match key.lock {
            Some(lock) => {
                let part = parts.entry((lock.kind(), namer.lock(lock))).or_default();
                part.ns += all;
                for (cause, ns) in causes(namer, shares, number, &key, ns) {
                    *part.under.entry(cause).or_insert(0.0) += ns;
                }
            }
            None => {
                for (cause, ns) in causes(namer, shares, number, &key, ns) {
                    parts.entry(cause).or_default().ns += ns;
                }
            }
        }
    }
    let part = |((kind, name), Part { ns, under }): ((CauseKind, String), Part)| {
        let of = |((kind, name), ns): ((CauseKind, String), f64)| TimePart {
            kind,
            name,
            share: ns / total,
            under: Vec::new(),
        };
        TimePart { kind, name, share: ns / total, under: listed(under.into_iter().map(of)) }
    };
    listed(parts.into_iter().map(part))
}

/// A key's time by cause, without regard to a lock around it.
fn causes(
    namer: &Namer<'_>,
    shares: &Shares,
    number: u32,
    key: &Key,
    ns: [u64; GROUPS],
) -> Vec<((CauseKind, String), f64)> {
    let Cause::Computing(_) = key.cause else {
        return vec![(namer.cause(key), ns.iter().map(|ns| *ns as f64).sum())];
    };
    let of_group = |(group, ns): (usize, u64)| {
        let shares = shares.at(group, number).iter();
        shares.map(move |share| ((CauseKind::Computing, namer.work(share.work)), share.part * ns as f64))
    };
    ns.into_iter().enumerate().flat_map(of_group).collect()
}

fn listed(parts: impl Iterator<Item = TimePart>) -> Vec<TimePart> {
    let mut parts: Vec<TimePart> = parts.filter(|part| part.share >= LEAST).collect();
    parts.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| (a.kind, &a.name).cmp(&(b.kind, &b.name))));
    parts
}
