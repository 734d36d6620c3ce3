//! Requests over stream sockets: their number, and the time until their answers began. From the kernel's tracepoints
//! `sock_recv_length`, `sock_send_length` and `sk_data_ready` (Linux `include/trace/events/sock.h`).

use crate::json::is_zero;
use probe_abi::{REQUEST_BUCKETS, bucket_begins_ns};
use serde::{Deserialize, Serialize};

/// The address family `AF_UNIX` (include/linux/socket.h).
pub(crate) const UNIX: u16 = 1;

/// Requests of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// Sums by process and port, in descending order of requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sums: Vec<RequestSums>,
    /// Time in which requests were counted, nanoseconds; for a busy server only a part of the recording.
    pub counted_ns: u64,
    /// Number of pauses in counting: requests longer than the stretch before a pause were not seen in it.
    #[serde(skip_serializing_if = "is_zero")]
    pub pauses: u64,
    /// Requests that could not be counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// Connections of clients that the kernel dropped because the queue of a listening socket was full, counted for all
    /// programs in the network namespace of the first process (`ListenOverflows` in `/proc/PID/net/netstat`).
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped_connections: u64,
    /// Requests that were read and not answered when the recording ended, those that arrived first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenRequest>,
}

impl Requests {
    /// The requests since `earlier`, counted in the same recording. The open ones stay.
    pub fn since(mut self, earlier: &Requests) -> Requests {
        self.sums.retain_mut(|sum| {
            match earlier.sums.iter().find(|before| before.is_of(sum)) {
                Some(before) => sum.subtract(before),
                // It may have been among those that were left out.
                None if earlier.lost > 0 => sum.count = 0,
                None => {}
            }
            sum.count > 0
        });
        self.sums.sort_by_key(|sum| std::cmp::Reverse(sum.count));
        self.counted_ns = self.counted_ns.saturating_sub(earlier.counted_ns);
        self.pauses = self.pauses.saturating_sub(earlier.pauses);
        self.lost = self.lost.saturating_sub(earlier.lost);
        self.dropped_connections = self.dropped_connections.saturating_sub(earlier.dropped_connections);
        self
    }
}

/// A request that was read and not answered when the recording ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenRequest {
    /// Host id of the thread that read the request.
    pub reader: u32,
    /// The port that the process listens on; 0 for Unix sockets.
    pub port: u16,
    /// The socket's address family.
    pub family: u16,
    /// Time at which the request lay in the socket (`CLOCK_MONOTONIC` nanoseconds).
    pub arrived_ns: u64,
    /// Time at which the request was read (`CLOCK_MONOTONIC` nanoseconds).
    pub read_ns: u64,
}

/// The requests that a process answered at a port, or sent to a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestSums {
    /// Host process id.
    pub pid: u32,
    /// The process answered the requests; otherwise it sent them.
    pub served: bool,
    /// The socket's address family: `AF_INET` (2), `AF_INET6` (10) or `AF_UNIX` (1).
    pub family: u16,
    /// The port: the process's own if it served, else the peer's; 0 for Unix sockets.
    pub port: u16,
    /// The peer's IPv4 address if the process sent; zeros for other families.
    pub address: [u8; 4],
    /// Requests whose answer has begun. Several that were sent together count as one.
    pub count: u64,
    /// Time in the socket before a thread read the requests, summed, nanoseconds; 0 for requests that the process sent.
    pub queued_ns: u64,
    /// Time from then, or from sending, until the answer began, summed, nanoseconds.
    pub answered_ns: u64,
    /// Time from an answer until the next request on the same connection, summed, nanoseconds.
    pub between_ns: u64,
    /// Number of requests that followed an answer on the same connection.
    pub again: u64,
    /// Time that the `again` requests took, summed, nanoseconds.
    pub again_ns: u64,
    /// Longest time of one request, from its arrival to its answer, nanoseconds.
    pub longest_ns: u64,
    /// Histogram of the requests' times, without zeros at the end ([`probe_abi::request_bucket`]).
    pub buckets: Vec<u64>,
}

impl RequestSums {
    /// Adds other requests.
    pub fn add(&mut self, other: &RequestSums) {
        self.count = self.count.saturating_add(other.count);
        self.queued_ns = self.queued_ns.saturating_add(other.queued_ns);
        self.answered_ns = self.answered_ns.saturating_add(other.answered_ns);
        self.between_ns = self.between_ns.saturating_add(other.between_ns);
        self.again = self.again.saturating_add(other.again);
        self.again_ns = self.again_ns.saturating_add(other.again_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        let buckets = &other.buckets;
        let used =
            buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1).min(REQUEST_BUCKETS);
        if self.buckets.len() < used {
            self.buckets.resize(used, 0);
        }
        for (sum, count) in self.buckets.iter_mut().zip(buckets) {
            *sum = sum.saturating_add(*count);
        }
    }

    /// Whether both are of the same process, direction and port or peer.
    fn is_of(&self, other: &RequestSums) -> bool {
        let key = |sum: &RequestSums| (sum.pid, sum.served, sum.family, sum.port, sum.address);
        key(self) == key(other)
    }

    /// Removes requests that were counted earlier.
    fn subtract(&mut self, earlier: &RequestSums) {
        self.count = self.count.saturating_sub(earlier.count);
        self.queued_ns = self.queued_ns.saturating_sub(earlier.queued_ns);
        self.answered_ns = self.answered_ns.saturating_sub(earlier.answered_ns);
        self.between_ns = self.between_ns.saturating_sub(earlier.between_ns);
        self.again = self.again.saturating_sub(earlier.again);
        self.again_ns = self.again_ns.saturating_sub(earlier.again_ns);
        for (count, before) in self.buckets.iter_mut().zip(&earlier.buckets) {
            *count = count.saturating_sub(*before);
        }
        let used = self.buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        self.buckets.truncate(used);
        if self.longest_ns <= earlier.longest_ns {
            // The longest request came earlier; of the others' longest only the bucket is known.
            self.longest_ns = self.longest_ns.min(bucket_begins_ns(used.min(REQUEST_BUCKETS)));
        }
    }

    /// Total time of the requests, nanoseconds. Divided by a length of time, it is the mean number of open requests.
    pub fn all_ns(&self) -> u64 {
        self.queued_ns.saturating_add(self.answered_ns)
    }

    /// Mean time of a request, nanoseconds; 0 if there is none.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.all_ns() as f64 / self.count as f64 }
    }

    /// The quantile `part` (0 to 1) of the requests' times, nanoseconds: the end of a histogram bucket, at most a
    /// quarter too long.
    pub fn quantile_ns(&self, part: f64) -> u64 {
        let all = self.buckets.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        let wanted = (all as f64 * part).ceil().max(1.0) as u64;
        let mut sum = 0u64;
        for (bucket, count) in self.buckets.iter().take(REQUEST_BUCKETS).enumerate() {
            sum = sum.saturating_add(*count);
            if sum >= wanted {
                return bucket_begins_ns(bucket + 1).min(self.longest_ns);
            }
        }
        self.longest_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe_abi::request_bucket;

    /// A stretch of a live server must not have the slow requests of hours ago, nor their number.
    #[test]
    fn requests_of_a_stretch_are_those_since_its_start() {
        let sum = |port, times: u64, ns: u64, longest_ns| {
            let mut buckets = vec![0; REQUEST_BUCKETS];
            buckets[request_bucket(ns)] = times;
            let answered_ns = times * ns;
            RequestSums {
                served: true,
                port,
                count: times,
                answered_ns,
                longest_ns,
                buckets,
                ..RequestSums::default()
            }
        };
        let earlier = Requests {
            sums: vec![sum(80, 100, 70_000_000, 80_000_000), sum(443, 10, 5_000, 5_000)],
            counted_ns: 9_000_000_000,
            pauses: 2,
            ..Requests::default()
        };
        let mut now = Requests { counted_ns: 10_000_000_000, pauses: 2, ..earlier.clone() };
        now.sums[0].add(&sum(80, 3, 100_000, 100_000));
        now.sums.push(sum(81, 7, 5_000, 5_000));
        let stretch = now.clone().since(&earlier);
        assert_eq!((stretch.counted_ns, stretch.pauses), (1_000_000_000, 0));
        let found: Vec<(u16, u64)> = stretch.sums.iter().map(|sum| (sum.port, sum.count)).collect();
        assert_eq!(found, [(81, 7), (80, 3)], "without the port that answered nothing");
        let slow = &stretch.sums[1];
        assert_eq!(slow.mean_ns(), 100_000.0);
        assert!((100_000..=125_000).contains(&slow.longest_ns), "{}", slow.longest_ns);
        assert!((100_000..=125_000).contains(&slow.quantile_ns(0.99)));
        assert_eq!(now.clone().since(&Requests::default()).sums.len(), 3);
        // A port that an earlier count had no room for may have answered long before.
        assert_eq!(now.since(&Requests { lost: 1, ..earlier }).sums.len(), 1);
    }

    #[test]
    fn a_quantile_of_requests_is_the_end_of_its_bucket() {
        let mut sums = RequestSums::default();
        for (ns, times) in [(100_000u64, 98), (1_000_000, 1), (70_000_000, 1)] {
            let mut buckets = [0; REQUEST_BUCKETS];
            buckets[request_bucket(ns)] = times;
            let sum_ns = ns / 2 * times;
            sums.add(&RequestSums {
                count: times,
                queued_ns: sum_ns,
                answered_ns: sum_ns,
                longest_ns: ns,
                buckets: buckets.to_vec(),
                ..RequestSums::default()
            });
        }
        assert_eq!(sums.count, 100);
        assert_eq!(sums.mean_ns(), (100_000.0 * 98.0 + 71_000_000.0) / 100.0);
        let within = |part: f64, ns: u64| {
            let found = sums.quantile_ns(part);
            ns <= found && found <= ns + ns / 4
        };
        assert!(within(0.5, 100_000) && within(0.99, 1_000_000) && within(1.0, 70_000_000));
        assert_eq!([sums.quantile_ns(1.0), RequestSums::default().quantile_ns(0.99)], [70_000_000, 0]);
        // A file may contain any numbers.
        let odd = RequestSums { buckets: vec![u64::MAX; 300], longest_ns: 5, ..RequestSums::default() };
        assert_eq!(odd.quantile_ns(0.5), 5);
    }
}
