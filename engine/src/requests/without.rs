//! The 99th percentile of the latencies without a cause.

use super::groups::{GROUPS, Group};
use super::model::{CauseRow, WithoutRow};
use super::names::Namer;
use super::shares::Shares;
use super::sums::Sums;
use crate::percentile::rank;

/// Number of causes tried: those with the most time in slow requests.
const TRIED: usize = 16;

/// The 99th percentile of the latencies without each cause's parts. Queues and locks stay as long, although they may get
/// shorter without the cause. `p99_ns`: with all causes. Causes whose removal gains nothing are omitted.
pub(super) fn without(
    namer: &Namer<'_>,
    sums: &Sums,
    shares: &Shares,
    rows: &[CauseRow],
    p99_ns: u64,
) -> Vec<WithoutRow> {
    let mut tried: Vec<&CauseRow> = rows.iter().filter(|row| row.slow_ns > 0.0).collect();
    tried.sort_by(|a, b| b.slow_ns.total_cmp(&a.slow_ns));
    let mut all: Vec<WithoutRow> = tried
        .into_iter()
        .take(TRIED)
        .map(|row| {
            let belongs: Vec<[f64; GROUPS]> =
                sums.all().map(|(number, key, _)| namer.belongs(number, &key, row, shares)).collect();
            let left = sums.each().map(|(group, latency, causes)| {
                // A request that is about as long as the slow ones is assumed to compute the same functions as they do.
                let group = if latency.saturating_mul(2) >= p99_ns { Group::Slow } else { group };
                let of = |number: u32| belongs.get(number as usize).map_or(0.0, |of| of[group as usize]);
                let gone: f64 = causes.iter().map(|(number, ns)| of(*number) * *ns as f64).sum();
                latency.saturating_sub(gone.round() as u64)
            });
            WithoutRow { kind: row.kind, name: row.name.clone(), p99_ns: percentile(left.collect()) }
        })
        .filter(|row| row.p99_ns < p99_ns)
        .collect();
    all.sort_by_key(|row| row.p99_ns);
    all
}

fn percentile(mut latencies: Vec<u64>) -> u64 {
    let Some(place) = rank(latencies.len(), 99) else { return 0 };
    let (_, found, _) = latencies.select_nth_unstable(place);
    *found
}
