//! Waits for a client's next request, as opposed to waits for another server's answer (a method of longpole's own).
//!
//! A thread that has a connection sleeps in the same call for both. If a request arrived while the thread slept, and the thread read
//! it then, the wait was for that request. A wait inside of one of the thread's own requests is for something else. Where requests
//! were recorded in stretches, most waits are in neither, so a descriptor's other waits count like those that are known.

use super::model::{External, State, Timeline, Wake};
use super::thread::wait::Wait;
use super::thread::wait_reason::WaitReason;
use crate::event::io_name;
use rustc_hash::FxHashMap;

/// All of a descriptor's waits are for requests if this share of those that are known are.
const MOST: f64 = 0.8;
/// A thread reads a request at most this long after the wait in which the request arrived, nanoseconds: it may wait for a CPU.
const READ_NS: u64 = 100_000_000;

/// Waits at one descriptor of one process.
#[derive(Default)]
struct Known {
    for_requests: u64,
    for_others: u64,
}

/// A wait at a socket.
struct AtSocket {
    thread: u32,
    number: u32,
    /// The process and the descriptor.
    place: (u32, u64),
    /// Whether it was for a request, if that is known.
    is_for_request: Option<bool>,
}

/// The thread's own requests: when each arrived, was read, and was answered; in order of reading.
type Own = Vec<(u64, u64, u64)>;

/// Marks waits for requests as ended by [`External::Request`].
pub(super) fn mark(timeline: &mut Timeline) {
    let mut own: FxHashMap<u32, Own> = FxHashMap::default();
    for request in &timeline.socket_requests {
        let end = request.answered.map_or(timeline.end, |(_, time)| time);
        own.entry(request.reader).or_default().push((request.arrived.0, request.read.0, end.0));
    }
    own.values_mut().for_each(|own| own.sort_unstable_by_key(|(_, read, _)| *read));
    let mut known: FxHashMap<(u32, u64), Known> = FxHashMap::default();
    let mut waits: Vec<AtSocket> = Vec::new();
    for (index, requests) in &own {
        let Some(thread) = timeline.threads.get(*index as usize) else { continue };
        for (start, end, state) in thread.spans() {
            let State::Blocked(number) = state else { continue };
            let Some(descriptor) = thread.waits.get(number as usize).and_then(of_socket) else { continue };
            let place = (thread.pid, descriptor);
            let is_for_request = is_for_request(requests, start.0, end.0);
            match is_for_request {
                Some(true) => known.entry(place).or_default().for_requests += 1,
                Some(false) => known.entry(place).or_default().for_others += 1,
                None => {}
            }
            waits.push(AtSocket { thread: *index, number, place, is_for_request });
        }
    }
    let mostly = |place: &(u32, u64)| {
        let known = known.get(place);
        known.is_some_and(|known| {
            known.for_requests as f64 > MOST * known.for_requests.saturating_add(known.for_others) as f64
        })
    };
    for AtSocket { thread, number, place, is_for_request } in waits {
        if is_for_request.unwrap_or_else(|| mostly(&place))
            && let Some(thread) = timeline.threads.get_mut(thread as usize)
            && let Some(wait) = thread.waits.get_mut(number as usize)
        {
            wait.wake = Wake::External(External::Request);
        }
    }
}

/// The descriptor of a wait that something outside the recorded threads ended by a message.
fn of_socket(wait: &Wait) -> Option<u64> {
    let WaitReason::Kernel { call, .. } = wait.reason else { return None };
    let is_message = matches!(
        wait.wake,
        Wake::External(
            External::Network | External::Task | External::SoftIrq | External::HardIrq | External::Idle
        )
    );
    let is_socket = io_name(wait.kind(), wait.descriptor()) == Some("socket receive");
    (is_message && is_socket).then_some(call.argument0)
}

/// Whether the wait from `start` to `end` was for one of these requests; `None`: no request shows it.
fn is_for_request(requests: &Own, start: u64, end: u64) -> Option<bool> {
    let next = requests.partition_point(|(_, read, _)| *read < end);
    if let Some((arrived, read, _)) = requests.get(next)
        && (start..=end).contains(arrived)
        && read.saturating_sub(end) <= READ_NS
    {
        return Some(true);
    }
    let (_, _, answered) = requests.get(next.checked_sub(1)?)?;
    (start < *answered).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use crate::timeline::{Interval, SocketRequest, Thread};
    use probe_abi::{Call, Descriptor};

    const RECVFROM: u32 = 45;

    /// A thread that sleeps at these times at these descriptors, and its requests (arrived, read, answered).
    fn marked(sleeps: &[(u64, u64, u64)], requests: &[(u64, u64, u64)]) -> Vec<bool> {
        let mut thread = Thread { pid: 7, end: Timestamp(1_000), ..Thread::default() };
        for (number, (from, to, descriptor)) in (0u32..).zip(sleeps) {
            let call = Call { number: RECVFROM, argument0: *descriptor, ..Call::NONE };
            thread.waits.push(Wait {
                reason: WaitReason::Kernel { call, descriptor: Descriptor::Socket, task_state: 1 },
                wake: Wake::External(External::Network),
                cut_at_start: false,
                moved_to: None,
                from_now: false,
            });
            let states = [(*from, State::Blocked(number)), (*to, State::Running { cpu: None })];
            thread.intervals.extend(states.map(|(start, state)| Interval {
                start: Timestamp(start),
                state,
                first_step: 0,
            }));
        }
        let requests = requests.iter().map(|(arrived, read, answered)| SocketRequest {
            port: 80,
            family: 2,
            inner: false,
            arrived: Timestamp(*arrived),
            read: Timestamp(*read),
            reader: 0,
            answered: Some((0, Timestamp(*answered))),
        });
        let mut timeline = Timeline {
            end: Timestamp(1_000),
            threads: vec![thread],
            socket_requests: requests.collect(),
            ..Timeline::default()
        };
        mark(&mut timeline);
        let waits = timeline.threads[0].waits.iter();
        waits.map(|wait| wait.wake == Wake::External(External::Request)).collect()
    }

    /// Public report: tracedecay, issue 825. Waiting for clients was "waiting for socket receive: 99 % of the time".
    #[test]
    fn a_wait_in_which_a_request_arrived_is_for_the_request_and_others_are_for_answers() {
        let sleeps = [(0, 100, 5), (110, 190, 6), (200, 300, 5), (310, 390, 6)];
        let requests = [(99, 101, 200), (299, 301, 400)];
        assert_eq!(marked(&sleeps, &requests), [true, false, true, false]);
    }

    #[test]
    fn waits_between_recorded_requests_count_like_the_known_ones_of_their_descriptor() {
        let sleeps = [(0, 100, 5), (110, 190, 6), (500, 600, 5), (610, 690, 6)];
        assert_eq!(marked(&sleeps, &[(99, 101, 200)]), [true, false, true, false]);
        assert_eq!(marked(&sleeps, &[]), [false; 4]);
    }
}
