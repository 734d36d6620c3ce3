//! Conditions of hand-written programs beyond [`Program::check`]. A recording may start inside a critical section, but in a
//! text an unlock of a lock that the thread does not hold is a mistake.

use std::collections::HashMap;

use crate::program::{ObjectId, Operation, Program, ProgramError, Thread, quoted};

/// Kinds of locks: the same name may be used once for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sort {
    Mutex,
    ReadWrite,
    Spin,
}

/// Checks that each unlock and `cond_wait` is of a lock that the thread holds, and that each thread is created at most once.
pub(super) fn check(program: &Program) -> Result<(), ProgramError> {
    let mut created = vec![false; program.threads.len()];
    for thread in &program.threads {
        check_thread(program, thread, &mut created)?;
    }
    Ok(())
}

fn check_thread(program: &Program, thread: &Thread, created: &mut [bool]) -> Result<(), ProgramError> {
    let mut held: HashMap<(Sort, ObjectId), u64> = HashMap::new();
    for (index, operation) in thread.operations.iter().enumerate() {
        let (lock, change) = match *operation {
            Operation::Lock(object) => ((Sort::Mutex, object), Change::Take),
            Operation::Unlock(object) => ((Sort::Mutex, object), Change::Give),
            Operation::CondWait(_, object) => ((Sort::Mutex, object), Change::Keep),
            Operation::ReadLock(object) | Operation::WriteLock(object) => {
                ((Sort::ReadWrite, object), Change::Take)
            }
            Operation::ReadWriteUnlock(object) => ((Sort::ReadWrite, object), Change::Give),
            Operation::SpinLock(object) => ((Sort::Spin, object), Change::Take),
            Operation::SpinUnlock(object) => ((Sort::Spin, object), Change::Give),
            Operation::Create(other) => {
                let other = other.0 as usize;
                if std::mem::replace(&mut created[other], true) {
                    let problem =
                        format!("thread {} is created a second time", quoted(&program.threads[other].name));
                    let hint = "a thread is created at most once: remove one \"create\", or add a thread";
                    return Err(ProgramError::new(problem, hint).at(&thread.name, index));
                }
                continue;
            }
            _ => continue,
        };
        let count = held.entry(lock).or_insert(0);
        match (change, *count) {
            (Change::Take, _) => *count += 1,
            (_, 0) => return Err(not_held(program, lock.1).at(&thread.name, index)),
            (Change::Give, _) => *count -= 1,
            (Change::Keep, _) => {}
        }
    }
    Ok(())
}

enum Change {
    Take,
    Give,
    Keep,
}

fn not_held(program: &Program, object: ObjectId) -> ProgramError {
    let name = quoted(&program.objects[object.0 as usize]);
    ProgramError::new(
        format!("{name} is unlocked or waited under, but the thread does not hold it"),
        "a lock is unlocked by the thread that locked it, and \"cond_wait\" needs its mutex locked: use \"signal\" and \"wait\" between threads",
    )
}
