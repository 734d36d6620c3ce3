//! Turns sections into operations of their threads, as if they had been recorded.

use super::super::expand_bursts::{Made, insert, number_by_end};
use super::super::model::{FirstUse, Lock as Object, LockOperation, NO_OBJECT, Step, StepKind, Timeline};
use super::clock::Clock;
use super::lock::Lock;
use super::sections::{Kept, Section};
use crate::event::{ReadWrite, SyncObject};
use crate::time::Timestamp;
use probe_abi::SyncOperation;
use std::collections::BTreeMap;

/// Adds the operations of all sections to the timeline; returns the index in `Timeline::locks` for each of `locks`.
pub(super) fn write(timeline: &mut Timeline, locks: &[Lock<'_>], kept: &Kept, clocks: &[Clock]) -> Vec<u32> {
    let first_lock = u32::try_from(timeline.locks.len()).unwrap_or(u32::MAX);
    let mut objects: BTreeMap<(u32, u64), u32> = BTreeMap::new();
    let mut numbers = Vec::with_capacity(locks.len());
    for lock in locks {
        // Both sides of a read-write lock are one object, so they share a number.
        let next = first_lock.saturating_add(u32::try_from(objects.len()).unwrap_or(u32::MAX));
        let number = *objects.entry(lock.key()).or_insert(next);
        numbers.push(number);
        if number != next {
            continue;
        }
        let (time, thread) = lock.word.first;
        timeline.locks.push(Object {
            pid: lock.word.pid,
            address: lock.word.address,
            kind: lock.word.side.map_or(SyncObject::Mutex, |_| SyncObject::RwLock),
            first: FirstUse { time: Timestamp(time), thread, caller: 0 },
            put_back: true,
        });
    }
    let mut by_thread: BTreeMap<u32, Vec<(LockOperation, usize)>> = BTreeMap::new();
    for ((index, sections), clock) in (0u32..).zip(&kept.by_thread).zip(clocks) {
        let own = by_thread.entry(index).or_default();
        for section in sections {
            let Some(&object) = numbers.get(section.lock) else { continue };
            let Some((taken, given)) = ends(section, clock) else { continue };
            let began = section.waited.map_or(taken.1, |(since, _)| since);
            let releases = section.woke.map_or(given.1, |(first, _)| first.clamp(taken.1, given.1));
            let of = |kind, began, ended| LockOperation {
                times: section.times,
                ..operation(index, object, kind, (began, ended))
            };
            let side = locks.get(section.lock).and_then(|lock| lock.word.side);
            let (takes, gives) = match side {
                None => (SyncOperation::MutexLock, SyncOperation::MutexUnlock),
                Some(ReadWrite::Reading) => (SyncOperation::RwLockRead, SyncOperation::RwLockUnlock),
                Some(ReadWrite::Writing) => (SyncOperation::RwLockWrite, SyncOperation::RwLockUnlock),
            };
            own.push((of(takes, began, taken.1), taken.0));
            own.push((of(gives, releases, given.1), given.0));
        }
    }
    put(timeline, by_thread);
    numbers
}

/// An operation between two instants.
pub(super) fn operation(
    thread: u32,
    object: u32,
    operation: SyncOperation,
    (began_ns, ended_ns): (u64, u64),
) -> LockOperation {
    LockOperation {
        began: Timestamp(began_ns),
        ended: Timestamp(ended_ns),
        value: 0,
        caller: 0,
        thread,
        object,
        second: NO_OBJECT,
        outcome: 0,
        operation,
        flags: 0,
        after_hole: false,
        times: 1,
    }
}

/// Adds operations to their threads. Each comes with the index of the interval in which it ended.
pub(super) fn put(timeline: &mut Timeline, by_thread: BTreeMap<u32, Vec<(LockOperation, usize)>>) {
    let first_new = timeline.lock_operations.len();
    for (thread, mut uses) in by_thread {
        uses.sort_by_key(|(used, _)| used.ended);
        let mut made: Vec<Made> = Vec::with_capacity(uses.len());
        for (used, interval) in uses {
            let number = u32::try_from(timeline.lock_operations.len()).unwrap_or(u32::MAX);
            let step = Step { time: used.ended, kind: StepKind::Operated(number) };
            timeline.lock_operations.push(used);
            made.push(Made { interval, step });
        }
        let thread = timeline.threads.get_mut(thread as usize).filter(|_| !made.is_empty());
        if let Some(thread) = thread {
            insert(thread, &made);
        }
    }
    number_by_end(&mut timeline.threads, &mut timeline.lock_operations, first_new);
}

/// Interval and time of a section's beginning, and of its end.
fn ends(section: &Section, clock: &Clock) -> Option<((usize, u64), (usize, u64))> {
    let taken = match section.waited {
        Some((_, ran)) => clock.next_run(ran)?,
        None => clock.when(section.from_ns, true)?,
    };
    let given = match section.woke {
        Some((_, time)) => {
            clock.next_run(time).filter(|next| next.1 == time).or(clock.when(section.until_ns, false))?
        }
        None => clock.when(section.until_ns, false)?,
    };
    Some((taken, if given.1 < taken.1 { taken } else { given }))
}
