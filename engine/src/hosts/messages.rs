//! Wake-ups by messages from another host, and reads of messages for which no thread had to wait.

use super::clock::Clock;
use super::exchanges::{Both, End};
use super::of_host::OfHost;
use super::renumber::id;
use crate::event::Recording;
use probe_abi::{Call, Context, Exchange, Header, Kind, Record, Waking, WakingFlags};

/// Times of two clocks are compared to within this, nanoseconds.
const ROUNDING_NS: u64 = 8;
/// A thread that sleeps until a message arrives is woken at most this long after the message lay in the socket, nanoseconds: both
/// happen in the same interrupt.
const AT_ONCE_NS: u64 = 100_000;

/// Marks the wake-ups by messages in the receivers' records. Returns for each host records to be added: of messages that its
/// threads send, in which the receiver has the joined recording's numbers already, and of messages that they read without waiting.
pub(super) fn mark(hosts: &mut [OfHost], clocks: &[Clock], both: &[Both]) -> Vec<Vec<Waking>> {
    let mut sent: Vec<Vec<Waking>> = vec![Vec::new(); hosts.len()];
    let mut read: Vec<(usize, Waking)> = Vec::new();
    let mut number = 0u32;
    for both in both {
        let (asks, answers) = (both.asks, both.answers);
        let request =
            Message { from: asks, sender: asks.exchange.other, to: answers, reader: answers.exchange.other };
        let answer = Message {
            from: answers,
            sender: answers.exchange.header.tid,
            to: asks,
            reader: asks.exchange.header.tid,
        };
        for message in [request, answer] {
            let (Some(host), Some(sent)) = (hosts.get_mut(message.to.host), sent.get_mut(message.from.host))
            else {
                continue;
            };
            let (Some(there), Some(here)) = (clocks.get(message.from.host), clocks.get(message.to.host))
            else {
                continue;
            };
            let arrival = match woken(&mut host.recording, &message) {
                Some(waking) => {
                    waking.flags |= WakingFlags::ARRIVED;
                    waking.cause = number;
                    *waking
                }
                None => {
                    let waking = message.read(number);
                    read.push((message.to.host, waking));
                    waking
                }
            };
            // No message arrives before it is sent, however the clocks err.
            let latest_ns = there.own(here.first_host_s(arrival.header.time_ns)).saturating_sub(ROUNDING_NS);
            sent.push(message.sent(&arrival, number, latest_ns));
            number = number.wrapping_add(1);
        }
    }
    // Later, since no message may be taken for another one's wake-up.
    for (host, waking) in read {
        sent.get_mut(host).into_iter().for_each(|records| records.push(waking));
    }
    sent
}

struct Message {
    from: End,
    sender: u32,
    to: End,
    reader: u32,
}

impl Message {
    /// The record of a thread that reads the message without having slept, in its own host's numbers.
    fn read(&self, number: u32) -> Waking {
        let Exchange { header, read_ns, .. } = self.to.exchange;
        let flags = WakingFlags::ARRIVED | WakingFlags::READ;
        waking((read_ns, Context::SoftIrq, 0, 0), (self.reader, header.pid), flags, number)
    }

    /// The record of the thread that sends the message, `latest_ns` at the latest. Only the receiver has the joined recording's
    /// numbers.
    fn sent(&self, arrival: &Waking, number: u32, latest_ns: u64) -> Waking {
        let Exchange { header, sent_ns, .. } = self.from.exchange;
        let to = (id(arrival.wakee_tid, self.to.host), id(arrival.wakee_pid, self.to.host));
        let flags = WakingFlags::SENT | WakingFlags::WAKER_TRACKED;
        waking((sent_ns.min(latest_ns), Context::Task, self.sender, header.pid), to, flags, number)
    }
}

/// A record that no kernel wrote: when, where, and the current thread with its process; the thread that is woken, with its process.
fn waking(
    (time_ns, context, tid, pid): (u64, Context, u32, u32),
    (wakee_tid, wakee_pid): (u32, u32),
    flags: u32,
    number: u32,
) -> Waking {
    let (kind, context) = (Kind::Waking as u8, context as u8);
    Waking {
        header: Header { time_ns, sequence: 0, cpu: Header::NO_CPU, kind, context, tid, pid },
        wakee_tid,
        wakee_pid,
        flags,
        // It sleeps, interruptibly.
        wakee_state: 1,
        waker_call: Call::NONE.number,
        cause: number,
        wakee_call: Call::NONE,
    }
}

/// The wake-up by which a message ended a wait: of the thread that read it, else of another one of its process, which waited for
/// several sockets and passed the message on. `None`: no thread waited.
fn woken<'a>(recording: &'a mut Recording, message: &Message) -> Option<&'a mut Waking> {
    let Message { to: End { exchange, .. }, reader, .. } = message;
    let (arrived_ns, pid) = (exchange.arrived_ns, exchange.header.pid);
    let events = &mut recording.events;
    let first = events.partition_point(|event| event.header().time_ns < arrived_ns);
    let near = events.get(first..)?;
    let near =
        near.iter().take_while(|event| event.header().time_ns <= arrived_ns.saturating_add(AT_ONCE_NS));
    let by_network = |(place, event): (usize, &Record)| match event {
        Record::Waking(waking) if waking.wakee_pid == pid && is_outside(waking) => {
            Some((place, waking.wakee_tid))
        }
        _ => None,
    };
    let mut found = near.enumerate().filter_map(by_network);
    let any = found.next()?;
    let best = if any.1 == *reader { any } else { found.find(|(_, tid)| tid == reader).unwrap_or(any) };
    match events.get_mut(first + best.0) {
        Some(Record::Waking(waking)) => Some(waking),
        _ => None,
    }
}

/// Whether something outside the recorded threads made the wake-up, and no message explains it yet.
fn is_outside(waking: &Waking) -> bool {
    // Between containers of one machine a packet wakes its reader while its sender, of another recording, is in the call.
    let own_packet = waking.flags & WakingFlags::OWN_PACKET != 0;
    let in_task = Context::from_byte(waking.header.context) == Context::Task || own_packet;
    let by_thread = in_task && waking.flags & WakingFlags::WAKER_TRACKED != 0;
    let other = WakingFlags::NEW | WakingFlags::SIGNAL | WakingFlags::ARRIVED;
    waking.wakee_state != 0 && !by_thread && waking.flags & other == 0
}

/// Adds the records from `from_ns` to `to_ns` to a host's, in order of time.
pub(super) fn add(events: &mut Vec<Record>, mut sent: Vec<Waking>, (from_ns, to_ns): (u64, u64)) {
    sent.retain(|waking| (from_ns..=to_ns).contains(&waking.header.time_ns));
    if sent.is_empty() {
        return;
    }
    sent.sort_by_key(|waking| waking.header.time_ns);
    let mut all = Vec::with_capacity(events.len() + sent.len());
    let mut next = sent.into_iter().peekable();
    for event in events.drain(..) {
        let time_ns = event.header().time_ns;
        while let Some(waking) = next.next_if(|waking| waking.header.time_ns < time_ns) {
            all.push(Record::Waking(waking));
        }
        all.push(event);
    }
    all.extend(next.map(Record::Waking));
    *events = all;
}
