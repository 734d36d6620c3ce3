//! The measured run: processes, threads, their states and calls, wake-ups, locks, and how many threads are on CPUs.

use super::messages::{CounterDescriptor, ProcessDescriptor, ThreadDescriptor, TrackDescriptor};
use super::packets::{Event, Packets, Value};
use super::{Kind, uuid};
use crate::export::words;
use engine::view::{Measured, ThreadActivity, ThreadFacts, ThreadState};
use std::collections::{HashMap, HashSet};
use std::io;

pub(super) fn write(measured: &Measured<'_>, packets: &mut Packets<'_>) -> io::Result<()> {
    running(measured, packets)?;
    let mut processes: HashSet<u32> = HashSet::new();
    for thread in measured.threads() {
        if processes.insert(thread.pid) {
            packets.track(TrackDescriptor {
                uuid: Some(uuid(Kind::Process, u64::from(thread.pid))),
                process: Some(ProcessDescriptor {
                    pid: i32::try_from(thread.pid).ok(),
                    process_name: Some(thread.process.to_owned()),
                }),
                ..TrackDescriptor::default()
            })?;
        }
        one_thread(measured, thread, packets)?;
    }
    wakes(measured, packets)?;
    locks(measured, packets)
}

fn running(measured: &Measured<'_>, packets: &mut Packets<'_>) -> io::Result<()> {
    let track = uuid(Kind::Counter, 0);
    packets.track(TrackDescriptor {
        uuid: Some(track),
        name: Some("Threads on CPUs".to_owned()),
        counter: Some(CounterDescriptor { unit_name: Some("threads".to_owned()) }),
        sibling_order_rank: Some(-1),
        ..TrackDescriptor::default()
    })?;
    for (time, count) in measured.running() {
        packets.count(track, time.0, count)?;
    }
    Ok(())
}

fn one_thread(
    measured: &Measured<'_>,
    thread: &ThreadFacts<'_>,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    let track = uuid(Kind::Thread, thread.index as u64);
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
    for call in measured.calls(thread) {
        match call.enters {
            Some(name) => packets.begin(&Event::new(track, call.time.0, name))?,
            None => packets.end(track, call.time.0)?,
        }
    }
    let states = uuid(Kind::States, thread.index as u64);
    packets.track(TrackDescriptor {
        uuid: Some(states),
        parent_uuid: Some(track),
        name: Some("state".to_owned()),
        ..TrackDescriptor::default()
    })?;
    let mut woken_by = None;
    for state in measured.states(thread) {
        one_state(measured, states, &state, woken_by.take(), packets)?;
        if let ThreadActivity::Blocked { wakeup, .. } = state.doing {
            woken_by = wakeup;
        }
    }
    Ok(())
}

fn one_state(
    measured: &Measured<'_>,
    track: u64,
    state: &ThreadState,
    woken_by: Option<u32>,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    let name = words::state(measured, &state.doing);
    let flow_to = woken_by.map(flow);
    let event = Event { flow_to, ..Event::new(track, state.start.0, &name) };
    match state.doing {
        ThreadActivity::Blocked { wait, wakeup } => {
            let waker = wakeup.and_then(|wakeup| measured.wake(wakeup));
            let waker = waker.and_then(|wake| measured.thread(wake.waker)).map(|thread| thread.name);
            let ended_by = ("ended by", Value::Text(waker.unwrap_or(wait.ended_by)));
            let values = [ended_by, ("idle", Value::Flag(true))];
            let values = if wait.idle { &values[..] } else { &values[..1] };
            packets.begin(&Event { values, ..event })?;
        }
        _ => packets.begin(&event)?,
    }
    packets.end(track, state.end.0)
}

/// Number of a wake-up's arrow; 0 means none.
fn flow(wakeup: u32) -> u64 {
    u64::from(wakeup) + 1
}

/// Writes the instants at which arrows begin.
fn wakes(measured: &Measured<'_>, packets: &mut Packets<'_>) -> io::Result<()> {
    for (number, wake) in (0u32..).zip(measured.wakes()) {
        let (Some(waker), Some(wakee)) = (measured.thread(wake.waker), measured.thread(wake.wakee)) else {
            continue;
        };
        let name = format!("wakes {}", wakee.name);
        let track = uuid(Kind::States, waker.index as u64);
        let flow_from = wake.ended_wait.then(|| flow(number));
        packets.instant(&Event { flow_from, ..Event::new(track, wake.time.0, &name) })?;
    }
    Ok(())
}

/// Writes a track for each lock and thread: what a thread does with one lock never overlaps.
fn locks(measured: &Measured<'_>, packets: &mut Packets<'_>) -> io::Result<()> {
    let group = uuid(Kind::Locks, 0);
    let mut locks: HashSet<u32> = HashSet::new();
    // For each lock and thread: the number of the track, and the time of its last use.
    let mut tracks: HashMap<(u32, u32), (u64, u64)> = HashMap::new();
    for section in measured.lock_sections() {
        let Some(thread) = measured.thread(section.thread) else { continue };
        if locks.is_empty() {
            packets.track(TrackDescriptor {
                uuid: Some(group),
                name: Some("Locks".to_owned()),
                ..TrackDescriptor::default()
            })?;
        }
        let lock = uuid(Kind::Lock, u64::from(section.object));
        if locks.insert(section.object) {
            packets.track(TrackDescriptor {
                uuid: Some(lock),
                parent_uuid: Some(group),
                name: Some(measured.object(section.object).to_owned()),
                ..TrackDescriptor::default()
            })?;
        }
        let next = tracks.len() as u64;
        let known = tracks.get(&(section.object, section.thread)).copied();
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
        let from = section.from.0.max(used_until);
        let to = section.to.0.max(from);
        if section.waited_ns > 0 {
            let began = section.from.0.saturating_sub(section.waited_ns).max(used_until);
            packets.begin(&Event::new(track, began, "waits for it"))?;
            packets.end(track, from)?;
        }
        let name = if section.reads { "has it, reading" } else { "has it" };
        if section.given_back {
            packets.begin(&Event::new(track, from, name))?;
            packets.end(track, to)?;
        } else {
            packets.instant(&Event::new(track, from, "takes it; the time of release is not known"))?;
        }
        tracks.insert((section.object, section.thread), (number, to));
    }
    Ok(())
}
