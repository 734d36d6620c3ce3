//! What is computed where: by a thread, in a stretch of its life, while a lock is held.

use super::Part;
use super::owner::Owners;
use crate::program::{FunctionRef, ObjectId, Operation, Program};
use crate::time::Ticks;
use rustc_hash::{FxHashMap, FxHashSet};

/// Ticks by the function that they count for; `None`: no function.
#[derive(Debug, Default)]
pub(super) struct Sums(FxHashMap<Option<FunctionRef>, u64>);

impl Sums {
    fn add(&mut self, function: Option<FunctionRef>, length: u64) {
        let sum = self.0.entry(function).or_insert(0);
        *sum = sum.saturating_add(length);
    }

    /// The functions with the largest sums first.
    pub(super) fn sorted(&self) -> Vec<(FunctionRef, u64)> {
        let mut sums: Vec<(FunctionRef, u64)> =
            self.0.iter().filter_map(|(function, sum)| Some(((*function)?, *sum))).collect();
        sums.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        sums
    }

    /// All together, including the time of no function.
    pub(super) fn all(&self) -> u64 {
        self.0.values().fold(0u64, |all, sum| all.saturating_add(*sum))
    }

    /// The function with the largest sum, and its share of all.
    pub(super) fn first(&self, program: &Program) -> Option<Part> {
        self.parts(program, 1).into_iter().next()
    }

    /// The functions with the largest sums, and their shares of all.
    pub(super) fn parts(&self, program: &Program, most: usize) -> Vec<Part> {
        let all = self.all().max(1) as f64;
        let parts = self.sorted().into_iter().take(most).filter(|(_, sum)| *sum > 0);
        let part = |(function, sum): (FunctionRef, u64)| {
            let function = program.functions.get(function.0 as usize)?.name.clone();
            Some(Part { function, share: sum as f64 / all })
        };
        parts.filter_map(part).collect()
    }
}

/// What a thread computes; `range`: only from that much of its computing on up to so much, ticks.
pub(super) fn of_thread(
    program: &Program,
    owners: &Owners,
    thread: usize,
    range: Option<(u64, u64)>,
    sums: &mut Sums,
) {
    let Some(thread) = program.threads.get(thread) else { return };
    let mut stack: Vec<FunctionRef> = Vec::new();
    let mut before = 0u64;
    for operation in &thread.operations {
        let function = computing(owners, &mut stack, operation);
        let (Operation::Exec(Ticks(length)) | Operation::ExecIn(_, Ticks(length))) = *operation else {
            continue;
        };
        let after = before.saturating_add(length);
        let inside = match range {
            Some((from, to)) => after.min(to).saturating_sub(before.max(from)),
            None => length,
        };
        if inside > 0 {
            sums.add(function, inside);
        }
        before = after;
    }
}

/// What all threads compute while they have one of these locks; `None` also counts, for shares.
pub(super) fn under(program: &Program, owners: &Owners, locks: &[ObjectId]) -> Sums {
    let locks: FxHashSet<ObjectId> = locks.iter().copied().collect();
    let mut sums = Sums::default();
    for thread in &program.threads {
        let mut stack: Vec<FunctionRef> = Vec::new();
        let mut held = 0u32;
        for operation in &thread.operations {
            let function = computing(owners, &mut stack, operation);
            match *operation {
                Operation::Exec(length) | Operation::ExecIn(_, length) if held > 0 => {
                    sums.add(function, length.0);
                }
                _ => match taking(operation) {
                    Some((object, true)) if locks.contains(&object) => held += 1,
                    Some((object, false)) if locks.contains(&object) => held = held.saturating_sub(1),
                    _ => {}
                },
            }
        }
    }
    sums
}

/// The function that what an operation computes counts for; calls and returns move the stack.
pub(super) fn computing(
    owners: &Owners,
    stack: &mut Vec<FunctionRef>,
    operation: &Operation,
) -> Option<FunctionRef> {
    match *operation {
        Operation::Call(function) => stack.push(function),
        Operation::Return => drop(stack.pop()),
        Operation::Exec(_) => return owned(owners, stack),
        Operation::ExecIn(function, _) => return owners.owner(function).or_else(|| owned(owners, stack)),
        _ => {}
    }
    None
}

/// The object of an operation that takes a lock (true) or releases one (false).
pub(super) fn taking(operation: &Operation) -> Option<(ObjectId, bool)> {
    match *operation {
        Operation::Lock(object)
        | Operation::ReadLock(object)
        | Operation::WriteLock(object)
        | Operation::SpinLock(object)
        | Operation::Held(object, _) => Some((object, true)),
        Operation::Unlock(object)
        | Operation::ReadWriteUnlock(object)
        | Operation::SpinUnlock(object)
        | Operation::Freed(object, _) => Some((object, false)),
        _ => None,
    }
}

/// The innermost function of the stack that a user can change.
fn owned(owners: &Owners, stack: &[FunctionRef]) -> Option<FunctionRef> {
    stack.iter().rev().find_map(|function| owners.owner(*function))
}
