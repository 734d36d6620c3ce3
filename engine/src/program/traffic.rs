//! Requests over sockets, by the port that received them or the address to which they were sent. (This summary is
//! longpole's own.)
//!
//! The average number of open requests is the sum of their durations divided by the time of counting (Little's law).
//! The *load* is the share of the connections' time with an open request. It shows what sets the rate of requests. Near
//! 1, all clients always wait for an answer, so the server's own speed sets the rate; near 0, the clients set the rate.

use super::request_time::TimePart;
use crate::event::{RequestSums, Requests, UNIX};
use crate::percentile::rank;
use crate::program::Program;
use crate::timeline::{SocketRequest, Timeline};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Least number of requests that follow another one on their connection for the load to be known.
const ENOUGH: u64 = 10;
/// If connections have an open request for at least this share of their time, the server's speed sets the rate, not its
/// clients.
const LOADED: f64 = 0.5;
/// Requests on connections of their own show it if they lie unread for at least this share of their time.
const QUEUED: f64 = 0.5;
/// Requests with a longer mean mostly wait for news (long polling), or are no requests, nanoseconds.
const NEWS_NS: f64 = 1e9;
/// With at least this share of the requests recorded one by one, these show percentiles.
const NEARLY_ALL: f64 = 0.95;

/// Requests that all recorded processes together answered at one port, or sent to one address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Endpoint {
    /// The program answers the requests; otherwise it sends them.
    pub served: bool,
    /// What the packets or requests went through: `port 80`, `Unix sockets`, or for sent requests `10.0.0.7:5432`.
    pub name: String,
    /// Number of processes that answer or send the requests.
    pub processes: usize,
    /// Number of requests whose answer began while requests were counted. Several requests that were sent together
    /// count as one.
    pub count: u64,
    /// `count` per second of the counted time.
    pub per_second: f64,
    /// Requests that are open (not answered yet) at a time, on average.
    pub open: f64,
    /// Mean time from a request until its answer begins, nanoseconds.
    pub mean_ns: f64,
    /// Median of the durations, nanoseconds. Of requests that the program sends, and of those that were recorded in stretches, it
    /// is the end of a histogram's bucket, at most a quarter too long.
    pub median_ns: u64,
    /// 99th percentile of the durations, nanoseconds, with the same error.
    pub p99_ns: u64,
    /// The longest duration, nanoseconds.
    pub longest_ns: u64,
    /// Share of the requests' time in which they were in the socket, unread.
    pub queued: f64,
    /// Share of the requests that were the first on their connection, or the first on it that was recorded.
    pub first: f64,
    /// The part of the connections' time in which a request was open; `None`: too few requests followed another on a
    /// connection.
    pub load: Option<f64>,
    /// Number of threads that answered the requests; `None`: not known, or the program sends them.
    pub threads: Option<u32>,
    /// Requests were counted in stretches, so requests that take longer than a second may be missing.
    pub in_stretches: bool,
    /// What the requests that the program answers spend their time on, the largest part first. Parts below 1 % are not listed;
    /// empty if too few requests were recorded one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spent: Vec<TimePart>,
}

impl Endpoint {
    /// Fewest requests of an endpoint that a recording tells something about.
    pub const FEWEST: u64 = 10;

    /// The endpoint with most requests that the program serves; `None`: it serves too few.
    pub fn most_served(ends: &[Endpoint]) -> Option<&Endpoint> {
        ends.iter().find(|end| end.served && end.count >= Endpoint::FEWEST)
    }

    /// The endpoint with most requests that two programs serve. Without a common one it is each program's own.
    pub fn served_by_both<'e>(before: &'e [Endpoint], after: &'e [Endpoint]) -> [Option<&'e Endpoint>; 2] {
        let served =
            |ends: &'e [Endpoint]| ends.iter().filter(|end| end.served && end.count >= Endpoint::FEWEST);
        let both = served(before).flat_map(|end| {
            served(after).filter(|other| other.name == end.name).map(move |other| [end, other])
        });
        match both.max_by_key(|[end, other]| end.count.saturating_add(other.count)) {
            Some(both) => both.map(Some),
            None => [before, after].map(Endpoint::most_served),
        }
    }

    /// Whether the rate of the requests is set by the server's own speed and not by its clients: then its connections have a
    /// request open most of the time. Where each request has a connection of its own, requests lie unread most of their time.
    /// (These criteria are longpole's own.)
    pub fn is_loaded(&self) -> bool {
        let waits = match self.load {
            Some(load) => load >= LOADED && self.mean_ns <= NEWS_NS,
            None => self.queued >= QUEUED,
        };
        waits && self.served && self.count >= Endpoint::FEWEST && self.open >= 1.0
    }
}

/// Whether a request is one of those that the program serves at this endpoint.
pub(crate) fn is_answered_at(request: &SocketRequest, end: &Endpoint) -> bool {
    end.served && socket_name(request.family, request.port) == end.name
}

/// Adds the program's endpoints, without what these processes answer.
pub(super) fn add(program: &mut Program, timeline: &Timeline, servers: &[u32]) {
    let recorded = &mut program.recorded;
    recorded.traffic = endpoints_without(timeline, servers);
    add_single_requests(&mut recorded.traffic, timeline);
    recorded.dropped_connections =
        timeline.requests.as_ref().map_or(0, |requests| requests.dropped_connections);
}

/// [`endpoints`] without what these processes answer, and without what is sent to their ports on the same machine.
fn endpoints_without(timeline: &Timeline, servers: &[u32]) -> Vec<Endpoint> {
    let requests = timeline.requests.as_ref();
    let Some(requests) = requests.filter(|_| !servers.is_empty()) else { return endpoints(requests) };
    let is_theirs = |sums: &RequestSums| sums.served && servers.contains(&sums.pid);
    let ports: BTreeSet<(u16, u16)> =
        requests.sums.iter().filter(|sums| is_theirs(sums)).map(|sums| (sums.family, sums.port)).collect();
    let is_to_them = |sums: &RequestSums| {
        !sums.served
            && matches!(sums.address, [127, ..] | [0, 0, 0, 0])
            && ports.contains(&(sums.family, sums.port))
    };
    let mut others = requests.clone();
    others.sums.retain(|sums| !is_theirs(sums) && !is_to_them(sums));
    endpoints(Some(&others))
}

/// Endpoints by port: first those that the program serves, each kind by its number of requests, the largest first.
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

/// Requests that were answered one by one at one endpoint.
#[derive(Default)]
struct Single {
    threads: BTreeSet<u32>,
    latencies_ns: Vec<u64>,
}

/// Adds what single requests show: the threads that answered, and exact percentiles if nearly all requests were recorded.
fn add_single_requests(ends: &mut [Endpoint], timeline: &Timeline) {
    let mut all: BTreeMap<(u16, u16), Single> = BTreeMap::new();
    for request in &timeline.socket_requests {
        let Some((thread, end)) = request.answered else { continue };
        let of_port = all.entry((if request.family == UNIX { UNIX } else { 0 }, request.port)).or_default();
        of_port.threads.insert(thread);
        if request.arrived >= timeline.start {
            of_port.latencies_ns.push(end.0.saturating_sub(request.arrived.0));
        }
    }
    for ((family, port), mut single) in all {
        let name = socket_name(family, port);
        let Some(end) = ends.iter_mut().find(|end| end.served && end.name == name) else { continue };
        end.threads = u32::try_from(single.threads.len()).ok();
        let latencies = &mut single.latencies_ns;
        latencies.sort_unstable();
        if latencies.len() as f64 >= NEARLY_ALL * end.count as f64 {
            let at = |percent| rank(latencies.len(), percent).and_then(|place| latencies.get(place)).copied();
            (end.median_ns, end.p99_ns) = (at(50).unwrap_or(0), at(99).unwrap_or(0));
        }
    }
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
        first: share(sums.count.saturating_sub(sums.again) as f64, sums.count as f64),
        load: (sums.again >= ENOUGH).then(|| share(again_ns, again_ns + sums.between_ns as f64)),
        threads: None,
        in_stretches: false,
        spent: Vec::new(),
    }
}

pub(super) fn name(sums: &RequestSums) -> String {
    let [a, b, c, d] = sums.address;
    match (sums.family, sums.served) {
        (UNIX, _) | (_, true) => socket_name(sums.family, sums.port),
        (_, false) if sums.address == [0; 4] => format!("port {} of others", sums.port),
        (_, false) => format!("{a}.{b}.{c}.{d}:{}", sums.port),
    }
}

/// The name of the endpoint of requests that the program answers.
pub(crate) fn socket_name(family: u16, port: u16) -> String {
    if family == UNIX { "Unix sockets".to_owned() } else { format!("port {port}") }
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

    /// Ranks of MPI ask the process that started them where the others are: `mpirun` was a server with this port.
    #[test]
    fn what_launchers_answer_is_no_traffic() {
        let of = |pid, served, port, address| RequestSums {
            pid,
            served,
            port,
            address,
            family: 2,
            count: 9,
            ..RequestSums::default()
        };
        let sums = vec![
            of(1, true, 34125, [0; 4]),
            of(2, false, 34125, [127, 0, 0, 1]),
            of(2, true, 80, [0; 4]),
            of(2, false, 34125, [10, 0, 0, 7]),
        ];
        let requests = Requests { sums, counted_ns: 1_000, ..Requests::default() };
        let timeline = Timeline { requests: Some(requests), ..Timeline::default() };
        let names = |servers: &[u32]| {
            let ends = endpoints_without(&timeline, servers);
            ends.into_iter().map(|end| end.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&[1]), ["port 80", "10.0.0.7:34125"]);
        assert_eq!(names(&[]).len(), 4);
    }
}
