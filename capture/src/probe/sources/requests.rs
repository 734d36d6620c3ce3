//! Requests over sockets: attaches the programs that count them, and reads the sums.

use std::{collections::BTreeMap, thread::JoinHandle};

use aya::{
    Ebpf,
    maps::{Array, HashMap, MapData, PerCpuArray, PerCpuHashMap},
};
use engine::event::{OpenRequest, RequestSums, Requests};
use probe_abi::{OPEN_SOCKETS, OpenSocket, RequestCounts, RequestKey};

use super::clocks::now_ns;
use super::counters::{self, ProgramCost};
use crate::probe::error::ProbeError;
use crate::probe::kernel::{
    KernelLayout, Link, SharedWords, attach_tracepoint, close_together, load_together,
};
use crate::probe::overhead::request_watch::RequestWatch;
use crate::target::processes::listening;

/// The programs in attaching order: a listening port is known before messages arrive there, and every request that is seen to
/// begin is seen to end.
const PROGRAMS: [&str; 4] = ["inet_sock_set_state", "sock_send_length", "sock_recv_length", "sk_data_ready"];

/// Assumed cost of a message of a recorded process, nanoseconds of CPU time. The programs also run when the message arrives,
/// and for the other end if that is on this machine. Measured here: 0.2 to 0.3 µs.
const MESSAGE_NS: u64 = 400;

/// Size of a place of a socket, in words.
const SOCKET_WORDS: usize = size_of::<OpenSocket>() / 8;

/// Largest number of open requests that are kept.
const MOST_OPEN: usize = 1024;

/// Largest number of sums that are kept: those with the most requests.
const MOST: usize = 64;

/// The programs that count requests, and the times at which they are attached.
pub(crate) struct RequestCounter {
    links: Vec<Link>,
    watch: RequestWatch,
    /// Sockets in use; `None`: the kernel does not show them.
    sockets: Option<SharedWords>,
    /// There are no pauses, whatever that costs.
    every: bool,
    /// Connections that the kernel dropped; `None`: not known.
    dropped: Option<listening::Dropped>,
    /// Cost of counting until the last check, nanoseconds.
    cost_ns: u64,
}

impl RequestCounter {
    /// Starts counting requests that these processes, and processes recorded later, answer or send. Nothing else
    /// depends on this count, so a kernel that refuses the programs or lacks the tracepoints (before Linux 6.3) is no
    /// error: the result is `None`.
    pub(crate) fn begin(
        ebpf: &mut Ebpf,
        kernel: &KernelLayout,
        pids: &[u32],
        every: bool,
    ) -> Option<RequestCounter> {
        if kernel.settings.sock_ports == 0 {
            return None;
        }
        let begun = load_together(ebpf, kernel, &PROGRAMS).and_then(|()| {
            let ports = pids.iter().flat_map(|pid| listening::ports(*pid));
            if let Some(map) = ebpf.map_mut("LISTENING")
                && let Ok(mut map) = HashMap::<&mut MapData, u16, u8>::try_from(map)
            {
                // If there is no room for a port, its requests count as sent by the process.
                ports.for_each(|port| drop(map.insert(&port, &1, 0)));
            }
            attach(ebpf)
        });
        match begun {
            Ok(links) => {
                let dropped = listening::Dropped::begin(pids.first().copied().unwrap_or(std::process::id()));
                let sockets = SharedWords::of(ebpf, "SOCKETS", OPEN_SOCKETS as usize * SOCKET_WORDS).ok();
                let watch = RequestWatch::begin(now_ns());
                Some(RequestCounter { links, watch, sockets, every, dropped, cost_ns: 0 })
            }
            Err(error) => {
                log::debug!("requests are not counted: {error}");
                None
            }
        }
    }

    /// Returns the cost of counting since the last check, nanoseconds. `is_limited`: ends the stretch if counting costs
    /// too much, and begins another one later.
    pub(crate) fn look(&mut self, ebpf: &mut Ebpf, is_limited: bool) -> u64 {
        let cost_ns = sum_of_cpus(ebpf, "MESSAGES").saturating_mul(MESSAGE_NS).max(self.cost_ns);
        let before_ns = std::mem::replace(&mut self.cost_ns, cost_ns);
        let change = if is_limited && !self.every { self.watch.look(now_ns(), cost_ns) } else { None };
        match change {
            // No thread must wait until the last CPU has left the programs.
            Some(false) => drop(self.end()),
            Some(true) => {
                number_stretch(ebpf, self.watch.stretch());
                match attach(ebpf) {
                    Ok(links) => self.links = links,
                    Err(error) => log::debug!("requests are no longer counted: {error}"),
                }
            }
            None => {}
        }
        cost_ns.saturating_sub(before_ns)
    }

    /// Detaches the programs; returns the threads that do it.
    pub(crate) fn end(&mut self) -> Vec<JoinHandle<()>> {
        close_together(std::mem::take(&mut self.links))
    }

    /// The sums so far; `None` if they cannot be read.
    pub(crate) fn counted(&mut self, ebpf: &Ebpf) -> Option<Requests> {
        let requests = counted(ebpf)?;
        Some(Requests {
            open: self.open(),
            dropped_connections: self.dropped.as_mut().map_or(0, listening::Dropped::count),
            counted_ns: self.watch.counted_ns(now_ns()),
            pauses: self.watch.pauses(),
            ..requests
        })
    }
}

impl RequestCounter {
    /// Requests that were read and are not answered yet, those that arrived first, at most [`MOST_OPEN`].
    fn open(&self) -> Vec<OpenRequest> {
        if self.watch.is_paused() {
            return Vec::new();
        }
        let places = 0..OPEN_SOCKETS as usize;
        let sockets = self
            .sockets
            .iter()
            .flat_map(|sockets| places.clone().filter_map(|place| sockets.value::<SOCKET_WORDS>(place)));
        let mut open: Vec<OpenRequest> = sockets
            .filter_map(|words| open_request(zerocopy::transmute!(words), self.watch.stretch()))
            .collect();
        open.sort_by_key(|request| request.arrived_ns);
        open.truncate(MOST_OPEN);
        open
    }
}

/// The request that a socket has open in this stretch, if a thread has read it.
fn open_request(socket: OpenSocket, stretch: u64) -> Option<OpenRequest> {
    let is_open = socket.stretch == stretch && socket.began_ns != 0 && socket.key.served == 1;
    is_open.then_some(OpenRequest {
        reader: socket.reader as u32,
        port: socket.key.port,
        family: socket.key.family,
        arrived_ns: socket.arrived_ns,
        read_ns: socket.began_ns,
    })
}

fn attach(ebpf: &mut Ebpf) -> Result<Vec<Link>, ProbeError> {
    PROGRAMS.iter().map(|name| attach_tracepoint(ebpf, name)).collect()
}

/// Informs the programs that a new stretch begins, so that they ignore what they knew about sockets before.
fn number_stretch(ebpf: &mut Ebpf, number: u64) {
    if let Some(map) = ebpf.map_mut("STRETCH")
        && let Ok(mut map) = Array::<&mut MapData, u64>::try_from(map)
        && let Err(error) = map.set(0, &number, 0)
    {
        log::debug!("requests before a pause may count as longer: {error}");
    }
}

/// Whether this program writes no records, so that runs that the kernel leaves out lose none.
pub(crate) fn counts_only(program: &ProgramCost) -> bool {
    PROGRAMS.contains(&program.name.as_str())
}

fn counted(ebpf: &Ebpf) -> Option<Requests> {
    const KEY: usize = size_of::<RequestKey>() / 4;
    const WORDS: usize = size_of::<RequestCounts>() / 8;
    let map = PerCpuHashMap::<&MapData, [u32; KEY], [u64; WORDS]>::try_from(ebpf.map("REQUESTS")?).ok()?;
    let mut sums: BTreeMap<[u32; KEY], RequestSums> = BTreeMap::new();
    for (key, of_cpus) in map.iter().filter_map(Result::ok) {
        let none = none_of(zerocopy::transmute!(key));
        let sum = sums.entry(key).or_insert_with(|| none.clone());
        for &words in of_cpus.iter() {
            let counts: RequestCounts = zerocopy::transmute!(words);
            let one = RequestSums {
                count: counts.count,
                queued_ns: counts.queued_ns,
                answered_ns: counts.answered_ns,
                between_ns: counts.between_ns,
                again: counts.again,
                again_ns: counts.again_ns,
                longest_ns: counts.longest_ns,
                buckets: counts.buckets.to_vec(),
                ..none.clone()
            };
            sum.add(&one);
        }
    }
    let lost = sum_of_cpus(ebpf, "REQUESTS_LOST").saturating_add(counters::missed(ebpf, counts_only));
    Some(most(sums.into_values().filter(|sum| sum.count > 0).collect(), lost))
}

/// The sum of a per-CPU counter; 0 if it cannot be read.
fn sum_of_cpus(ebpf: &Ebpf, map: &str) -> u64 {
    let counter = ebpf.map(map).and_then(|map| PerCpuArray::<&MapData, u64>::try_from(map).ok());
    let of_cpus = counter.and_then(|counter| counter.get(&0, 0).ok());
    of_cpus.iter().flat_map(|of_cpus| of_cpus.iter()).fold(0, |sum, one| sum.saturating_add(*one))
}

fn none_of(key: RequestKey) -> RequestSums {
    RequestSums {
        pid: key.pid,
        served: key.served != 0,
        family: key.family,
        port: key.port,
        address: key.address.to_ne_bytes(),
        ..RequestSums::default()
    }
}

/// The sums with the most requests; requests of all other sums count as lost.
fn most(mut sums: Vec<RequestSums>, mut lost: u64) -> Requests {
    sums.sort_by_key(|of| std::cmp::Reverse(of.count));
    if sums.len() > MOST {
        lost = sums.drain(MOST..).fold(lost, |sum, of| sum.saturating_add(of.count));
    }
    Requests { sums, lost, ..Requests::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_sums_beyond_the_limit_are_counted_as_lost() {
        let of = |count| RequestSums { count, ..RequestSums::default() };
        let all: Vec<RequestSums> = (1..=MOST as u64 + 2).map(of).collect();
        let kept = most(all, 5);
        assert_eq!((kept.sums.len(), kept.sums[0].count, kept.lost), (MOST, MOST as u64 + 2, 5 + 1 + 2));
    }
}
