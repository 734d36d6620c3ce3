//! Latencies of requests, and the causes of slow requests compared with fast ones.

use super::calls::{Calls, Request};
use super::cause::Cause;
use super::groups::{GROUPS, Group, Groups};
use super::model::{CauseKind, CauseRow, HolderDetail, Latencies, RequestSummary};
use super::names::Namer;
use super::paths::Paths;
use super::shares::Shares;
use super::sums::Sums;
use super::without::without;
use crate::program::{Occurrences, Program};
use crate::timeline::Timeline;
use rustc_hash::FxHashMap;

/// Groups the requests by latency, walks through all of them, and sums the parts of their paths.
pub(super) fn follow(timeline: &Timeline, program: &Program, calls: &Calls) -> (Groups, Sums) {
    let requests = &calls.requests;
    let groups = Groups::of(requests.iter().filter_map(Request::latency_ns).collect());
    let occurrences = Occurrences::of(timeline, program);
    let mut paths = Paths::of(timeline, program, &occurrences, calls);
    let sums = Sums::of(timeline, &mut paths, requests, &groups);
    (groups, sums)
}

/// Walks through all requests and summarizes them. `program` must be made from `timeline`.
pub fn summarize(timeline: &Timeline, program: &Program, calls: &Calls) -> RequestSummary {
    let requests = &calls.requests;
    let (groups, sums) = follow(timeline, program, calls);
    let namer = Namer::of(timeline, program, &sums);
    let shares = Shares::of(&namer, &sums);
    let mut rows = rows(&namer, &sums, &shares);
    rows.retain(|row| row.fast_ns > 0.0 || row.slow_ns > 0.0);
    rows.sort_by(|a, b| {
        b.difference_ns()
            .total_cmp(&a.difference_ns())
            .then_with(|| (a.kind, &a.name).cmp(&(b.kind, &b.name)))
    });
    let open = requests.iter().filter(|request| request.latency_ns().is_none());
    let so_far =
        open.clone().map(|request| request.end.unwrap_or(timeline.end).0.saturating_sub(request.begin.0));
    RequestSummary {
        count: groups.count(),
        unfinished: open.count(),
        unfinished_ns: so_far.max().unwrap_or(0),
        span_ns: span_ns(requests),
        latencies: latencies(&groups, &sums),
        fast: groups.fast,
        slow: groups.slow,
        slow_group: groups.slow_group,
        without: without(&namer, &sums, &shares, &rows, groups.percentile_ns(99)),
        rows,
        not_followed: sums.not_followed,
        entries_only: calls.entries_only,
        partly: calls.partly,
    }
}

fn span_ns(requests: &[Request]) -> u64 {
    let finished = || requests.iter().filter(|request| request.latency_ns().is_some());
    let begin = finished().map(|request| request.begin.0).min().unwrap_or(0);
    let end = finished().filter_map(|request| request.end).map(|end| end.0).max().unwrap_or(0);
    end.saturating_sub(begin)
}

fn latencies(groups: &Groups, sums: &Sums) -> Latencies {
    let mean = |group: Group| {
        let of_group = sums.requests.iter().filter(|(other, ..)| *other == group);
        let sum: u128 = of_group.map(|(_, latency, _)| u128::from(*latency)).sum();
        mean_ns(sum as f64, sums, group)
    };
    Latencies {
        p50_ns: groups.percentile_ns(50),
        p90_ns: groups.percentile_ns(90),
        p99_ns: groups.percentile_ns(99),
        longest_ns: groups.longest_ns(),
        fast_mean_ns: mean(Group::Fast),
        slow_mean_ns: mean(Group::Slow),
    }
}

fn mean_ns(sum: f64, sums: &Sums, group: Group) -> f64 {
    match sums.counts[group as usize] {
        0 => 0.0,
        count => sum / count as f64,
    }
}

#[derive(Default)]
struct Building {
    ns: [f64; GROUPS],
    variance: [f64; GROUPS],
    details: FxHashMap<(String, CauseKind, String), f64>,
}

fn rows(namer: &Namer<'_>, sums: &Sums, shares: &Shares) -> Vec<CauseRow> {
    let mut rows: FxHashMap<(CauseKind, String), Building> = FxHashMap::default();
    for (number, key, ns) in sums.all() {
        if let Some(lock) = key.lock {
            let row = rows.entry((lock.kind(), namer.lock(lock))).or_default();
            (0..GROUPS).for_each(|group| row.ns[group] += ns[group] as f64);
            let slow = Group::Slow as usize;
            let by = namer.thread(key.thread);
            match key.cause {
                Cause::Computing(_) => {
                    for share in shares.at(slow, number) {
                        let name = namer.work(share.work);
                        *row.details.entry((by.clone(), CauseKind::Computing, name)).or_insert(0.0) +=
                            share.part * ns[slow] as f64;
                    }
                }
                _ => {
                    let (kind, name) = namer.cause(&key);
                    *row.details.entry((by, kind, name)).or_insert(0.0) += ns[slow] as f64;
                }
            }
            continue;
        }
        let Cause::Computing(_) = key.cause else {
            let row = rows.entry(namer.cause(&key)).or_default();
            (0..GROUPS).for_each(|group| row.ns[group] += ns[group] as f64);
            if let Some(meanwhile) = sums.meanwhile.get(&number) {
                let computed = shares.at(Group::Slow as usize, number).iter().map(|share| {
                    ((CauseKind::Computing, namer.work(share.work)), share.part * meanwhile.ran_ns as f64)
                });
                let slept = meanwhile.asleep.iter().map(|(asleep, ns)| (namer.asleep(asleep), *ns as f64));
                for ((kind, name), ns) in computed.chain(slept) {
                    *row.details.entry((namer.thread(key.thread), kind, name)).or_insert(0.0) += ns;
                }
            }
            continue;
        };
        for (group, ns) in ns.into_iter().enumerate() {
            let ns = ns as f64;
            for share in shares.at(group, number) {
                let row = rows.entry((CauseKind::Computing, namer.work(share.work))).or_default();
                row.ns[group] += share.part * ns;
                row.variance[group] += share.variance * ns * ns;
            }
        }
    }
    rows.into_iter().map(|((kind, name), row)| finished(kind, name, row, sums)).collect()
}

/// Half of the 95 % interval, in standard errors.
const HALF_WIDTH: f64 = 1.96;

fn finished(kind: CauseKind, name: String, row: Building, sums: &Sums) -> CauseRow {
    let mean = |group: Group| mean_ns(row.ns[group as usize], sums, group);
    let error = |group: Group| HALF_WIDTH * mean_ns(row.variance[group as usize].sqrt(), sums, group);
    let mut details: Vec<HolderDetail> = row
        .details
        .iter()
        .filter(|(_, ns)| **ns > 0.0)
        .map(|((by, kind, name), ns)| HolderDetail {
            by: by.clone(),
            kind: *kind,
            name: name.clone(),
            slow_ns: mean_ns(*ns, sums, Group::Slow),
        })
        .collect();
    details.sort_by(|a, b| {
        b.slow_ns.total_cmp(&a.slow_ns).then_with(|| (&a.by, a.kind, &a.name).cmp(&(&b.by, b.kind, &b.name)))
    });
    CauseRow {
        kind,
        name,
        fast_ns: mean(Group::Fast),
        fast_error_ns: error(Group::Fast),
        slow_ns: mean(Group::Slow),
        slow_error_ns: error(Group::Slow),
        details,
    }
}
