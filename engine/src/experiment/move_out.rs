//! Moves computing out of a lock.

use crate::attribution::Owners;
use crate::program::{FunctionRef, ObjectId, Operation, Program, Walk};
use crate::time::Ticks;
use rustc_hash::FxHashSet;

/// Moves a function's computing under these locks before the first of them is taken.
pub(super) fn move_out(program: &mut Program, owners: &Owners, function: FunctionRef, locks: &[ObjectId]) {
    let locks: FxHashSet<ObjectId> = locks.iter().copied().collect();
    // Background threads are excepted: their repeated part is given by indices of operations.
    for thread in program.threads.iter_mut().filter(|thread| thread.background.is_none()) {
        let operations = std::mem::take(&mut thread.operations);
        let mut moved: Vec<Operation> = Vec::with_capacity(operations.len());
        let mut walk = Walk::holding(|lock| locks.contains(&lock));
        // Index of the operation before the held locks, which gets the moved computing.
        let mut before: Option<usize> = None;
        for mut operation in operations {
            let own = walk.computed(&operation).and_then(|(own, _)| own).and_then(|own| owners.owner(own));
            if own == Some(function)
                && let Operation::Exec(length) | Operation::ExecIn(_, length) = &mut operation
                && let Some(place) = before
                && let Some(Operation::ExecIn(_, sum)) = moved.get_mut(place)
            {
                sum.0 = sum.0.saturating_add(std::mem::take(&mut length.0));
            }
            let held = walk.holds();
            walk.pass(&operation);
            match (held, walk.holds()) {
                (false, true) => {
                    before = Some(moved.len());
                    moved.push(Operation::ExecIn(function, Ticks(0)));
                }
                (true, false) => before = None,
                _ => {}
            }
            moved.push(operation);
        }
        thread.operations = moved;
        // Recorded moves lie at indices of operations, which have changed.
        thread.moves.clear();
    }
}
