//! Requests over sockets, by the port that they came to, or were sent to (ours).
//!
//! How many are open on average is how long all of them took, divided by the time in which they were counted (Little's law). The part of
//! its connections' time in which a request is open says how much more could come over them: near 1, everybody who asks waits
//! for an answer all the time, so that the server's own speed sets the rate; near 0 the load does.

use crate::event::{RequestSums, Requests};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `AF_UNIX`
const UNIX: u16 = 1;
/// Fewer requests on connections that had one before say nothing about these.
const ENOUGH: u64 = 10;

/// Requests that were answered at one port, or sent to one, by all recorded processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Endpoint {
    /// The program answers them; otherwise it sends them.
    pub served: bool,
    /// `port 80`, `Unix sockets` or, of what is sent, `10.0.0.7:5432`.
    pub name: String,
    /// Processes that do.
    pub processes: usize,
    /// Requests whose answer has begun while they were counted. Several that were sent together count as one.
    pub count: u64,
    /// The same for each second.
    pub per_second: f64,
    /// Open at a time, on average: not answered yet.
    pub open: f64,
    /// How long one takes until its answer begins, on average, nanoseconds.
    pub mean_ns: f64,
    /// Half of them take at most this, nanoseconds, and a quarter of it less at most.
    pub median_ns: u64,
    /// The same of 99 of a hundred.
    pub p99_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// The part of their time in which they lay in the socket, unread.
    pub queued: f64,
    /// The part of their connections' time in which one was open; `None`: too few came after another one on their connection.
    pub load: Option<f64>,
    /// Requests that take longer than a second may be missing: they were counted in stretches.
    pub in_stretches: bool,
}

/// By port, what is served first, that with most requests first.
pub fn endpoints(requests: Option<&Requests>) -> Vec<Endpoint> {
    let counted_ns = requests.map_or(0, |requests| requests.counted_ns).max(1) as f64;
    let in_stretches = requests.is_some_and(|requests| requests.pauses > 0);
    let mut ends: BTreeMap<(bool, String), (RequestSums, Vec<u32>)> = BTreeMap::new();
    for sums in requests.iter().flat_map(|requests| &requests.sums) {
        let (all, pids) = ends.entry((sums.served, name(sums))).or_default();
        all.add(sums);
        pids.push(sums.pid);
    }
    let mut ends: Vec<Endpoint> = ends
        .into_iter()
        .map(|((served, name), (sums, mut pids))| {
            pids.sort_unstable();
            pids.dedup();
            Endpoint { in_stretches, ..endpoint(served, name, &sums, pids.len(), counted_ns) }
        })
        .collect();
    ends.sort_by_key(|end| (!end.served, std::cmp::Reverse(end.count)));
    ends
}

fn endpoint(served: bool, name: String, sums: &RequestSums, processes: usize, counted_ns: f64) -> Endpoint {
    let (open_ns, again_ns) = (sums.all_ns() as f64, sums.again_ns as f64);
    let share = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
    Endpoint {
        served,
        name,
        processes,
        count: sums.count,
        per_second: sums.count as f64 * 1e9 / counted_ns,
        open: open_ns / counted_ns,
        mean_ns: sums.mean_ns(),
        median_ns: sums.quantile_ns(0.5),
        p99_ns: sums.quantile_ns(0.99),
        longest_ns: sums.longest_ns,
        queued: share(sums.queued_ns as f64, open_ns),
        load: (sums.again >= ENOUGH).then(|| share(again_ns, again_ns + sums.between_ns as f64)),
        in_stretches: false,
    }
}

fn name(sums: &RequestSums) -> String {
    let [a, b, c, d] = sums.address;
    match (sums.family, sums.served) {
        (UNIX, _) => "Unix sockets".to_owned(),
        (_, true) => format!("port {}", sums.port),
        (_, false) if sums.address == [0; 4] => format!("port {} of others", sums.port),
        (_, false) => format!("{a}.{b}.{c}.{d}:{}", sums.port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_serve_one_port_are_one_server() {
        let of = |pid, served, port, count| RequestSums {
            pid,
            served,
            port,
            family: 2,
            count,
            queued_ns: 300 * count,
            answered_ns: 100 * count,
            between_ns: 400 * count,
            again: count / 2,
            again_ns: 200 * count,
            ..RequestSums::default()
        };
        let asked = RequestSums { address: [10, 0, 0, 7], ..of(1, false, 5432, 9) };
        let sums = vec![asked, of(1, true, 80, 100), of(2, true, 80, 300)];
        let ends = endpoints(Some(&Requests { sums, counted_ns: 1_000_000, ..Requests::default() }));
        let names: Vec<_> = ends.iter().map(|end| (end.name.as_str(), end.processes, end.count)).collect();
        assert_eq!(names, [("port 80", 2, 400), ("10.0.0.7:5432", 1, 9)]);
        assert_eq!((ends[0].per_second, ends[0].open, ends[0].mean_ns), (400_000.0, 0.16, 400.0));
        assert_eq!((ends[0].queued, ends[0].load, ends[1].load), (0.75, Some(1.0 / 3.0), None));
        assert!(endpoints(None).is_empty());
    }
}
