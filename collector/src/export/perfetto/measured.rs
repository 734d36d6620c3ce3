//! The measured run: processes, threads, their states and calls, wake-ups, locks, and how many threads are on CPUs.

use super::messages::{CounterDescriptor, ProcessDescriptor, ThreadDescriptor, TrackDescriptor};
use super::packets::{Event, Packets, Value, joined};
use super::{Kind, uuid};
use crate::export::detail::{self, Arrows, Does, ShownCall, ShownState, fitting};
use crate::export::words;
use engine::view::{Measured, ThreadActivity, ThreadFacts};
use std::collections::{HashMap, HashSet};
use std::io;

/// Writes the measured run in at most `most` bytes. Returns the quantum, nanoseconds: shorter items are joined or
/// omitted.
pub(super) fn write(
    measured: &Measured<'_>,
    most: Option<u64>,
    packets: &mut Packets<'_>,
) -> io::Result<u64> {
    let write = |quantum, packets: &mut Packets<'_>| {
        Writer { measured, quantum, arrows: Arrows::new(measured, quantum), packets }.all()
    };
    let quantum = fitting(most, |quantum, out| write(quantum, &mut Packets::new(out)));
    write(quantum, packets).map(|()| quantum)
}

struct Writer<'m, 'a, 'p, 'w> {
    measured: &'m Measured<'a>,
    quantum: u64,
    arrows: Arrows,
    packets: &'p mut Packets<'w>,
}

impl Writer<'_, '_, '_, '_> {
    fn all(&mut self) -> io::Result<()> {
        self.running()?;
        let measured = self.measured;
        let mut processes: HashSet<u32> = HashSet::new();
        for thread in measured.threads() {
            if processes.insert(thread.pid) {
                self.packets.track(TrackDescriptor {
                    uuid: Some(uuid(Kind::Process, u64::from(thread.pid))),
                    process: Some(ProcessDescriptor {
                        pid: i32::try_from(thread.pid).ok(),
                        process_name: Some(thread.process.to_owned()),
                    }),
                    ..TrackDescriptor::default()
                })?;
            }
            self.one_thread(thread)?;
        }
        self.wakes()?;
        self.locks()
    }

    /// Writes the number of threads on CPUs over time, or means of it.
    fn running(&mut self) -> io::Result<()> {
        let track = uuid(Kind::Counter, 0);
        let (measured, packets) = (self.measured, &mut *self.packets);
        packets.track(TrackDescriptor {
            uuid: Some(track),
            name: Some("Threads on CPUs".to_owned()),
            counter: Some(CounterDescriptor { unit_name: Some("threads".to_owned()) }),
            sibling_order_rank: Some(-1),
            ..TrackDescriptor::default()
        })?;
        if self.quantum > 0 {
            return detail::mean_running(measured, self.quantum, |time, mean| {
                packets.mean(track, time, mean)
            });
        }
        measured.running().try_for_each(|(time, count)| packets.count(track, time.0, count))
    }

    fn one_thread(&mut self, thread: &ThreadFacts<'_>) -> io::Result<()> {
        let track = uuid(Kind::Thread, thread.index as u64);
        let packets = &mut *self.packets;
        packets.track(TrackDescriptor {
            uuid: Some(track),
            parent_uuid: Some(uuid(Kind::Process, u64::from(thread.pid))),
            thread: Some(ThreadDescriptor {
                pid: i32::try_from(thread.pid).ok(),
                tid: Some(i64::from(thread.tid)),
                thread_name: Some(thread.name.to_owned()),
            }),
            ..TrackDescriptor::default()
        })?;
        let left_out = detail::calls(self.measured, thread, self.quantum, |call| match call {
            ShownCall::Begin { time, name } => packets.begin(&Event::new(track, time, name)),
            ShownCall::End { time, left_out } => packets.end_with(track, time, left_out),
        })?;
        packets.left_out.calls += left_out;
        let states = uuid(Kind::States, thread.index as u64);
        packets.track(TrackDescriptor {
            uuid: Some(states),
            parent_uuid: Some(track),
            name: Some("state".to_owned()),
            ..TrackDescriptor::default()
        })?;
        detail::states(self.measured, thread, self.quantum, |shown| self.state(states, shown))
    }

    fn state(&mut self, track: u64, shown: &ShownState) -> io::Result<()> {
        let measured = self.measured;
        let name = words::state(measured, &shown.doing);
        if let Some(wakeup) = shown.woken_by {
            self.arrows.mark(wakeup);
        }
        let mut values = Vec::new();
        if let ThreadActivity::Blocked { wait, wakeup } = shown.doing {
            let waker = wakeup.and_then(|wakeup| measured.wake(wakeup));
            let waker = waker.and_then(|wake| measured.thread(wake.waker)).map(|thread| thread.name);
            values.push(("ended by", Value::Text(waker.unwrap_or(wait.ended_by))));
            if wait.idle {
                values.push(("idle", Value::Flag(true)));
            }
        }
        values.extend(joined(shown.joined));
        let flow_to = shown.woken_by.map(flow);
        let event = Event { flow_to, values: &values, ..Event::new(track, shown.from, &name) };
        self.packets.begin(&event)?;
        self.packets.end(track, shown.from.saturating_add(shown.ns))
    }

    /// Writes the instants at which arrows begin.
    fn wakes(&mut self) -> io::Result<()> {
        let measured = self.measured;
        for (number, wake) in (0u32..).zip(measured.wakes()) {
            let (Some(waker), Some(wakee)) = (measured.thread(wake.waker), measured.thread(wake.wakee))
            else {
                continue;
            };
            let flow_from = wake.ended_wait.then(|| flow(number));
            if self.quantum > 0 && (flow_from.is_none() || !self.arrows.has(number)) {
                self.packets.left_out.wake_ups += 1;
                continue;
            }
            let name = format!("wakes {}", wakee.name);
            let track = uuid(Kind::States, waker.index as u64);
            self.packets.instant(&Event { flow_from, ..Event::new(track, wake.time.0, &name) })?;
        }
        Ok(())
    }

    /// Writes a track for each lock and thread: what a thread does with one lock never overlaps.
    fn locks(&mut self) -> io::Result<()> {
        let (measured, packets) = (self.measured, &mut *self.packets);
        let group = uuid(Kind::Locks, 0);
        let mut locks: HashSet<u32> = HashSet::new();
        // For each lock and thread: the number of the track, and the time of its last use.
        let mut tracks: HashMap<(u32, u32), (u64, u64)> = HashMap::new();
        detail::uses(measured, self.quantum, |shown| {
            let Some(thread) = measured.thread(shown.thread) else { return Ok(()) };
            if locks.is_empty() {
                packets.track(TrackDescriptor {
                    uuid: Some(group),
                    name: Some("Locks".to_owned()),
                    ..TrackDescriptor::default()
                })?;
            }
            let lock = uuid(Kind::Lock, u64::from(shown.object));
            if locks.insert(shown.object) {
                packets.track(TrackDescriptor {
                    uuid: Some(lock),
                    parent_uuid: Some(group),
                    name: Some(measured.object(shown.object).to_owned()),
                    ..TrackDescriptor::default()
                })?;
            }
            let next = tracks.len() as u64;
            let known = tracks.get(&(shown.object, shown.thread)).copied();
            let (number, used_until) = known.unwrap_or((next, 0));
            let track = uuid(Kind::LockOfThread, number);
            if known.is_none() {
                packets.track(TrackDescriptor {
                    uuid: Some(track),
                    parent_uuid: Some(lock),
                    name: Some(thread.name.to_owned()),
                    ..TrackDescriptor::default()
                })?;
            }
            let from = shown.from.max(used_until);
            let to = shown.to.max(from);
            tracks.insert((shown.object, shown.thread), (number, to));
            let name = match shown.does {
                Does::Waits => "waits for it",
                Does::Has => "has it",
                Does::Reads => "has it, reading",
                Does::Takes => {
                    let name = "takes it; the time of release is not known";
                    return packets.instant(&Event::new(track, from, name));
                }
            };
            let values: Vec<_> = joined(shown.joined).into_iter().collect();
            packets.begin(&Event { values: &values, ..Event::new(track, from, name) })?;
            packets.end(track, to)
        })
    }
}

/// Number of a wake-up's arrow; 0 means none.
fn flow(wakeup: u32) -> u64 {
    u64::from(wakeup) + 1
}
