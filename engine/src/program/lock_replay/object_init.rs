//! Sizes of barriers, initial counts of semaphores, and the threads that ran `once` code.

use super::decision::ReplayDecisions;
use super::nesting::Nesting;
use crate::event::{Effect, SyncObject, meaning};
use crate::finding::ReplayReason;
use crate::timeline::{LockOperation, Timeline};
use probe_abi::{OperationFlags, SyncOperation as S};
use rustc_hash::FxHashMap;

/// Return value of a barrier in one of its threads: `PTHREAD_BARRIER_SERIAL_THREAD`.
const SERIAL: i32 = -1;

/// Facts about objects that are not locks.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectInit {
    /// Barrier → number of threads that meet.
    pub(super) barriers: FxHashMap<u32, u32>,
    /// Semaphore → count at the start.
    pub(super) semaphores: FxHashMap<u32, u32>,
    /// For each `once` object: the operation that ran its code.
    pub(super) onces: FxHashMap<u32, u32>,
}

impl ObjectInit {
    pub(super) fn of(timeline: &Timeline, nesting: &Nesting, decisions: &mut ReplayDecisions) -> ObjectInit {
        let mut by_object: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (used, number) in timeline.lock_operations.iter().zip(0u32..) {
            let (object, effect) = meaning(used.operation);
            let is_one = match effect {
                Effect::Made => matches!(object, Some(SyncObject::Barrier | SyncObject::Semaphore)),
                Effect::Meet | Effect::TakeOne { .. } | Effect::AddOne | Effect::RunOnce => true,
                _ => false,
            };
            if is_one && (used.outcome == 0 || effect == Effect::Meet && used.outcome == SERIAL) {
                by_object.entry(used.object).or_default().push(number);
            }
        }
        let mut object_init = ObjectInit::default();
        for (object, numbers) in by_object {
            let Some(lock) = timeline.locks.get(object as usize) else { continue };
            let uses: Vec<(u32, &LockOperation)> = numbers
                .iter()
                .filter_map(|&number| Some((number, timeline.lock_operations.get(number as usize)?)))
                .collect();
            match lock.kind {
                SyncObject::Barrier => match barrier(&uses) {
                    Ok(Some(count)) => {
                        object_init.barriers.insert(object, count);
                    }
                    Ok(None) => {}
                    Err(reason) => decisions.replay(object, reason),
                },
                SyncObject::Semaphore => match semaphore(&uses, nesting, lock.put_back) {
                    Ok(count) => {
                        object_init.semaphores.insert(object, count);
                    }
                    Err(reason) => decisions.replay(object, reason),
                },
                _ => {
                    let ran = |used: &LockOperation| {
                        used.operation == S::Once && used.flags & OperationFlags::RAN != 0
                    };
                    if let Some((number, _)) = uses.iter().find(|(_, used)| ran(used)) {
                        object_init.onces.insert(object, *number);
                    }
                }
            }
        }
        object_init
    }
}

/// The size of a barrier: from its initialization, or the arrivals divided by the number of last arrivals.
///
/// Arrivals in order must form groups of this size, and no thread may leave before its group is complete.
fn barrier(uses: &[(u32, &LockOperation)]) -> Result<Option<u32>, ReplayReason> {
    let init = uses.iter().find(|(_, used)| used.operation == S::BarrierInit).map(|(_, used)| used.value);
    let mut came: Vec<&LockOperation> =
        uses.iter().map(|(_, used)| *used).filter(|used| used.operation == S::BarrierWait).collect();
    if came.is_empty() {
        return Ok(None);
    }
    let last = came.iter().filter(|used| used.outcome == SERIAL).count();
    let count = match init {
        Some(count) => usize::try_from(count).unwrap_or(0),
        None => came.len().checked_div(last).unwrap_or(0),
    };
    if count == 0 || !came.len().is_multiple_of(count) {
        return Err(ReplayReason::OddBarrier);
    }
    came.sort_by_key(|used| used.began);
    for group in came.chunks(count) {
        let all_came = group.iter().map(|used| used.began).max();
        let first_left = group.iter().map(|used| used.ended).min();
        let one_last = group.iter().filter(|used| used.outcome == SERIAL).count() == 1;
        if first_left < all_came || !one_last {
            return Err(ReplayReason::OddBarrier);
        }
    }
    Ok(u32::try_from(count).ok())
}

/// The initial count of a semaphore: from its initialization, or the least count that never becomes negative in the recorded
/// order.
///
/// The latter is exact if a thread ever had to wait, since the count was 0 then. It is plausible if it is 0: then all that
/// was taken had been posted before. If the semaphore is put back, the order is an estimate.
fn semaphore(
    uses: &[(u32, &LockOperation)],
    nesting: &Nesting,
    is_put_back: bool,
) -> Result<u32, ReplayReason> {
    let init = uses.iter().find(|(_, used)| used.operation == S::SemaphoreInit).map(|(_, used)| used.value);
    let mut changes: Vec<(u64, i64)> = Vec::new();
    let mut slept = false;
    for (number, used) in uses {
        match used.operation {
            // A post counts from its beginning and a wait from its end: this order is surely possible.
            S::SemaphorePost => changes.push((used.began.0, 1)),
            S::SemaphoreInit => {}
            _ => {
                changes.push((used.ended.0, -1));
                slept |= nesting.slept.get(*number as usize).copied().unwrap_or(false);
            }
        }
    }
    changes.sort_by_key(|(time, change)| (*time, -change));
    let (mut sum, mut least) = (0i64, 0i64);
    for (_, change) in changes {
        sum = sum.saturating_add(change);
        least = least.min(sum);
    }
    let needed = least.unsigned_abs();
    match init {
        Some(count) if count >= needed || is_put_back => {
            u32::try_from(count).map_err(|_| ReplayReason::CountNotKnown)
        }
        Some(_) => Err(ReplayReason::CountTooSmall),
        None if slept || needed == 0 => u32::try_from(needed).map_err(|_| ReplayReason::CountNotKnown),
        None => Err(ReplayReason::CountNotKnown),
    }
}
