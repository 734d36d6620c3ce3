//! Removes one constraint from a program: waits of one kind take no time.

use super::polling::Polling;
use crate::program::{EdgeId, ObjectId, ObjectMeaning, Operation, Program, Thread};
use crate::time::Ticks;
use rustc_hash::{FxHashMap, FxHashSet};

/// Every thread finds these locks free. Condition variables keep working: a lock with conditions becomes one lock for each
/// thread.
pub(super) fn locks(program: &mut Program, locks: &[ObjectId]) {
    let locks: FxHashSet<ObjectId> = locks.iter().copied().collect();
    let is_one = |object: &ObjectId| locks.contains(object);
    let with_conditions = program.threads.iter().flat_map(|thread| &thread.operations);
    let mut conditional: Vec<ObjectId> = with_conditions
        .filter_map(|operation| match operation {
            Operation::CondWait(_, mutex) if is_one(mutex) => Some(*mutex),
            _ => None,
        })
        .collect();
    conditional.sort_unstable();
    conditional.dedup();
    for number in 0..program.threads.len() {
        let mut own: FxHashMap<ObjectId, ObjectId> = FxHashMap::default();
        for lock in &conditional {
            let name = program.objects.get(lock.0 as usize).cloned().unwrap_or_default();
            own.insert(*lock, ObjectId(program.objects.len() as u32));
            program.objects.push(name);
        }
        let Some(thread) = program.threads.get_mut(number) else { continue };
        for operation in &mut thread.operations {
            *operation = match *operation {
                Operation::Lock(lock)
                | Operation::ReadLock(lock)
                | Operation::WriteLock(lock)
                | Operation::SpinLock(lock)
                    if is_one(&lock) =>
                {
                    own.get(&lock).map_or(Operation::Held(lock, Ticks(0)), |own| Operation::Lock(*own))
                }
                Operation::Unlock(lock) | Operation::ReadWriteUnlock(lock) | Operation::SpinUnlock(lock)
                    if is_one(&lock) =>
                {
                    own.get(&lock).map_or(Operation::Freed(lock, Ticks(0)), |own| Operation::Unlock(*own))
                }
                Operation::CondWait(condition, mutex) => {
                    Operation::CondWait(condition, own.get(&mutex).copied().unwrap_or(mutex))
                }
                other => other,
            };
        }
        if thread.background.is_none() {
            replayed(thread, &is_one);
        }
    }
}

/// Removes the replayed waits for a lock: the waits before the thread holds it, back to its last real computing.
fn replayed(thread: &mut Thread, is_one: &impl Fn(&ObjectId) -> bool) {
    for place in 0..thread.operations.len() {
        let Some(Operation::Held(lock, waited)) = thread.operations.get(place).copied() else { continue };
        if !is_one(&lock) || waited == Ticks(0) {
            continue;
        }
        let mut left = waited.0;
        for operation in thread.operations.iter_mut().take(place).rev() {
            match operation {
                Operation::Await(_) => {
                    *operation = Operation::Freed(lock, Ticks(0));
                }
                Operation::Sleep(length) | Operation::SleepNext(length) if length.0 <= left => {
                    left -= length.0;
                    length.0 = 0;
                }
                // A waiting thread computes next to nothing.
                Operation::Exec(length) | Operation::ExecIn(_, length) if length.0 > waited.0 / 8 => break,
                Operation::Held(other, _) | Operation::Freed(other, _) if *other == lock => break,
                _ => {}
            }
        }
    }
}

/// Waiting for these devices takes no time.
pub(super) fn devices(program: &mut Program, devices: &[ObjectId]) {
    for operation in program.threads.iter_mut().flat_map(|thread| &mut thread.operations) {
        if let Operation::Io(device, length) = operation
            && devices.contains(device)
        {
            *length = Ticks(0);
        }
    }
}

/// Threads that poll do not sleep between their checks (`None`: no thread sleeps), nor wait for timers, except where a thread
/// repeats a sleep in the background: the thread would loop without a pause.
pub(super) fn sleeps(program: &mut Program, polling: Option<&Polling>) {
    let timers = timers(program);
    let all = program.threads.iter_mut().enumerate();
    let chosen = all.filter(|(number, _)| polling.is_none_or(|polling| polling.threads.contains(number)));
    let is_free = |length: Ticks| {
        polling.is_none_or(|Polling { between: (least, most), .. }| *least <= length && length <= *most)
    };
    for (_, thread) in chosen {
        let once = thread.once();
        for operation in thread.operations.iter_mut().take(once) {
            match operation {
                Operation::Sleep(length) | Operation::SleepNext(length) | Operation::SleepUntil(length)
                    if is_free(*length) =>
                {
                    *length = Ticks(0)
                }
                Operation::Io(device, length)
                    if timers.get(device.0 as usize) == Some(&true) && is_free(*length) =>
                {
                    *length = Ticks(0);
                }
                _ => {}
            }
        }
    }
}

/// For each object: whether it is a timer.
pub(crate) fn timers(program: &Program) -> Vec<bool> {
    program.meanings().map(|meaning| meaning == ObjectMeaning::Timer).collect()
}

/// A thread that waits for a spin lock yields its CPU.
pub(super) fn spinning(program: &mut Program) {
    for operation in program.threads.iter_mut().flat_map(|thread| &mut thread.operations) {
        *operation = match *operation {
            Operation::SpinLock(lock) => Operation::Lock(lock),
            Operation::SpinUnlock(lock) => Operation::Unlock(lock),
            other => other,
        };
    }
}

/// A thread that busy-waits for another thread continues at once.
pub(super) fn spun_waits(program: &mut Program) {
    let spinning: Vec<bool> =
        (0..program.edges.len() as u32).map(|edge| program.is_spinning(EdgeId(edge))).collect();
    for thread in program.threads.iter_mut().filter(|thread| thread.background.is_none()) {
        for operation in &mut thread.operations {
            if let Operation::Await(EdgeId(edge)) = operation
                && spinning.get(*edge as usize) == Some(&true)
            {
                *operation = Operation::Exec(Ticks(0));
            }
        }
    }
}
