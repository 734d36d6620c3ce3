//! Sections become operations of their threads, as if they had been recorded.

use super::super::expand_bursts::{Made as MadeStep, insert, number_by_end};
use super::super::model::{FirstUse, Lock as Object, LockOperation, NO_OBJECT, Step, StepKind, Timeline};
use super::clock::Clock;
use super::lock::Lock;
use super::sections::{Kept, Section};
use crate::event::{ReadWrite, SyncObject};
use crate::time::Timestamp;
use probe_abi::SyncOperation;
use std::collections::BTreeMap;

/// Puts the operations into the timeline; returns the numbers of the locks there.
pub(super) fn write(timeline: &mut Timeline, locks: &[Lock<'_>], kept: &Kept, clocks: &[Clock]) -> Vec<u32> {
    let first_lock = u32::try_from(timeline.locks.len()).unwrap_or(u32::MAX);
    let mut objects: BTreeMap<(u32, u64), u32> = BTreeMap::new();
    let mut numbers = Vec::with_capacity(locks.len());
    for lock in locks {
        // Both sides of a read-write lock are one object.
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
    let first_new = timeline.lock_operations.len();
    for ((index, sections), clock) in (0u32..).zip(&kept.by_thread).zip(clocks) {
        let mut made: Vec<MadeStep> = Vec::with_capacity(sections.len() * 2);
        for section in sections {
            let Some(&object) = numbers.get(section.lock) else { continue };
            let Some((taken, given)) = ends(section, clock) else { continue };
            let began = section.waited.map_or(taken.1, |(since, _)| since);
            let releases = section.woke.map_or(given.1, |(first, _)| first.clamp(taken.1, given.1));
            let of = |operation, began, ended| LockOperation {
                began: Timestamp(began),
                ended: Timestamp(ended),
                value: 0,
                caller: 0,
                thread: index,
                object,
                second: NO_OBJECT,
                outcome: 0,
                operation,
                flags: 0,
                after_hole: false,
                times: section.times,
            };
            let side = locks.get(section.lock).and_then(|lock| lock.word.side);
            let (takes, gives) = match side {
                None => (SyncOperation::MutexLock, SyncOperation::MutexUnlock),
                Some(ReadWrite::Reading) => (SyncOperation::RwLockRead, SyncOperation::RwLockUnlock),
                Some(ReadWrite::Writing) => (SyncOperation::RwLockWrite, SyncOperation::RwLockUnlock),
            };
            let both = [(taken, of(takes, began, taken.1)), (given, of(gives, releases, given.1))];
            for ((interval, time), used) in both {
                let number = u32::try_from(timeline.lock_operations.len()).unwrap_or(u32::MAX);
                timeline.lock_operations.push(used);
                let step = Step { time: Timestamp(time), kind: StepKind::Operated(number) };
                made.push(MadeStep { interval, step });
            }
        }
        if let Some(thread) = timeline.threads.get_mut(index as usize)
            && !made.is_empty()
        {
            insert(thread, &made);
        }
    }
    number_by_end(&mut timeline.threads, &mut timeline.lock_operations, first_new);
    numbers
}

/// Where a section begins and ends: interval and time.
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
