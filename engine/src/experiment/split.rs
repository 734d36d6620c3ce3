//! Splits a lock into several.

use super::edit::EditError;
use crate::numbers::Numbers;
use crate::program::{ObjectId, Operation, Program};

/// Splits the lock into `parts` locks. Each acquisition takes one of them, drawn at random.
pub(super) fn split(program: &mut Program, lock: ObjectId, parts: u32) -> Result<(), EditError> {
    let name = program.objects.get(lock.0 as usize).cloned().unwrap_or_default();
    if parts == 0 {
        return Err(EditError::NoLocks);
    }
    check_split(program, lock, &name)?;
    if parts == 1 {
        return Ok(());
    }
    // The lock itself is the first part.
    let mut all = vec![lock];
    for part in 2..=u64::from(parts) {
        // More parts than there are operations make no difference.
        if all.len() > program.threads.iter().map(|thread| thread.operations.len()).sum() {
            break;
        }
        let mut other = format!("{name} {part}");
        while program.objects.contains(&other) {
            other.push('\'');
        }
        all.push(ObjectId(program.objects.len() as u32));
        program.objects.push(other);
    }
    if program.writers_first.contains(&lock) {
        program.writers_first.extend_from_slice(&all[1..]);
        program.writers_first.sort_unstable();
    }
    for (number, thread) in program.threads.iter_mut().enumerate() {
        // Each thread has its own random numbers, so an edit of one thread does not change the locks that other threads
        // draw.
        let mut numbers = Numbers::new(number as u64 + 1);
        // Parts that the thread holds, the last taken last: they are released in reverse order.
        let mut taken: Vec<ObjectId> = Vec::new();
        for operation in &mut thread.operations {
            match operation {
                Operation::Lock(object)
                | Operation::SpinLock(object)
                | Operation::ReadLock(object)
                | Operation::WriteLock(object)
                    if *object == lock =>
                {
                    // A nested acquisition takes the same part.
                    let drawn = || all[numbers.below(all.len() as u64) as usize];
                    *object = taken.last().copied().unwrap_or_else(drawn);
                    taken.push(*object);
                }
                Operation::Unlock(object)
                | Operation::SpinUnlock(object)
                | Operation::ReadWriteUnlock(object)
                    if *object == lock =>
                {
                    *object = taken.pop().unwrap_or(lock);
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn check_split(program: &Program, lock: ObjectId, name: &str) -> Result<(), EditError> {
    let (mut is_taken, mut is_replayed) = (false, false);
    for operation in program.threads.iter().flat_map(|thread| &thread.operations) {
        match *operation {
            Operation::Lock(object)
            | Operation::SpinLock(object)
            | Operation::ReadLock(object)
            | Operation::WriteLock(object)
                if object == lock =>
            {
                is_taken = true;
            }
            Operation::CondWait(_, mutex) if mutex == lock => {
                return Err(EditError::WithCondition(name.to_owned()));
            }
            Operation::Held(object, _) if object == lock => is_replayed = true,
            _ => {}
        }
    }
    match (is_taken, is_replayed) {
        (true, _) => Ok(()),
        (false, true) => Err(EditError::Replayed(name.to_owned())),
        (false, false) => Err(EditError::NotALock(name.to_owned())),
    }
}
