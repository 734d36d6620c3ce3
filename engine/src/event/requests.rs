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
