//! Fewer file syncs: one under a lock for all threads that wait for it, or none at all (a method of longpole's own).

use crate::program::{Function, ObjectId, Operation, Program, Walk};
use crate::time::Ticks;

/// This word is part of the names of system calls that wait for the disk, and the end of the names of their waits.
const SYNC: &str = "sync";

/// Divides file syncs under the lock, both waits and the kernel's computing, by this number of threads. Each thread
/// waits for its part of a sync instead of a whole one, so all threads together write as much as if one of them synced
/// for all.
pub(super) fn group_commit(program: &mut Program, lock: ObjectId, threads: u32) {
    let syncs = Syncs::of(program);
    for thread in &mut program.threads {
        let mut walk = Walk::holding(|held| held == lock);
        for operation in &mut thread.operations {
            if walk.holds()
                && let Some(length) = syncs.length(operation, walk.stack().last().map(|own| own.0))
            {
                length.0 /= u64::from(threads.max(1));
            }
            walk.pass(operation);
        }
    }
}

/// File syncs take no time.
pub(super) fn no_syncs(program: &mut Program) {
    let syncs = Syncs::of(program);
    for thread in &mut program.threads {
        let mut walk = Walk::holding(|_| false);
        for operation in &mut thread.operations {
            if let Some(length) = syncs.length(operation, walk.stack().last().map(|own| own.0)) {
                length.0 = 0;
            }
            walk.pass(operation);
        }
    }
}

/// Whether a wait with this name is for a file sync.
pub(crate) fn is_sync(name: &str) -> bool {
    name.ends_with(SYNC)
}

/// Time of file syncs under the lock: waits, and the kernel's computing.
pub(crate) fn synced_under(program: &Program, lock: ObjectId) -> Ticks {
    let syncs = Syncs::of(program);
    let mut sum = 0u64;
    for thread in &program.threads {
        let mut walk = Walk::holding(|held| held == lock);
        for operation in &thread.operations {
            let mut operation = *operation;
            if walk.holds()
                && let Some(length) = syncs.length(&mut operation, walk.stack().last().map(|own| own.0))
            {
                sum = sum.saturating_add(length.0);
            }
            walk.pass(&operation);
        }
    }
    Ticks(sum)
}

/// Which objects are waits for a file sync (by object), and which functions are calls that sync a file (by function).
struct Syncs {
    devices: Vec<bool>,
    functions: Vec<bool>,
}

impl Syncs {
    fn of(program: &Program) -> Syncs {
        let is_call = |function: &Function| function.is_system_call() && function.name.contains(SYNC);
        Syncs {
            devices: program.objects.iter().map(|name| is_sync(name)).collect(),
            functions: program.functions.iter().map(is_call).collect(),
        }
    }

    /// The length of an operation that is part of a sync; `stack` is the thread's innermost function.
    fn length<'o>(&self, operation: &'o mut Operation, stack: Option<u32>) -> Option<&'o mut Ticks> {
        let is = |list: &[bool], number: u32| list.get(number as usize) == Some(&true);
        match operation {
            Operation::Io(device, length) if is(&self.devices, device.0) => Some(length),
            Operation::ExecIn(function, length) if is(&self.functions, function.0) => Some(length),
            Operation::Exec(length) if stack.is_some_and(|own| is(&self.functions, own)) => Some(length),
            _ => None,
        }
    }
}
