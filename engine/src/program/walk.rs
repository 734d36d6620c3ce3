//! A walk along a thread's operations: the functions that the thread is in, and whether it holds one of some locks.

use super::{FunctionRef, ObjectId, Operation, Program};
use crate::time::Ticks;

/// The state of a walk. `L` decides for a lock whether the walk is about it.
#[derive(Debug)]
pub(crate) struct Walk<L> {
    stack: Vec<FunctionRef>,
    is_asked: L,
    held: u32,
}

/// A walk without locks.
pub(crate) type CallWalk = Walk<fn(ObjectId) -> bool>;

impl Default for CallWalk {
    fn default() -> CallWalk {
        Walk::holding(|_| false)
    }
}

impl<L: Fn(ObjectId) -> bool> Walk<L> {
    /// A walk at the start of a thread, about the locks for which `is_asked` holds.
    pub(crate) fn holding(is_asked: L) -> Walk<L> {
        Walk { stack: Vec::new(), is_asked, held: 0 }
    }

    /// Passes an operation. The operation's own computing belongs to the state before it.
    pub(crate) fn pass(&mut self, operation: &Operation) {
        match *operation {
            Operation::Call(function) => self.stack.push(function),
            Operation::Return => drop(self.stack.pop()),
            _ => match taking(operation) {
                Some((lock, takes)) if (self.is_asked)(lock) => {
                    self.held = if takes { self.held + 1 } else { self.held.saturating_sub(1) };
                }
                _ => {}
            },
        }
    }

    /// The functions that the thread is in, the innermost last.
    pub(crate) fn stack(&self) -> &[FunctionRef] {
        &self.stack
    }

    /// The function that computes in this operation, and the length; `Some((None, _))`: outside of all functions.
    pub(crate) fn computed(&self, operation: &Operation) -> Option<(Option<FunctionRef>, Ticks)> {
        match *operation {
            Operation::Exec(length) | Operation::Once(_, length) => {
                Some((self.stack.last().copied(), length))
            }
            Operation::ExecIn(function, length) => Some((Some(function), length)),
            _ => None,
        }
    }

    /// Whether the thread holds a lock for which `is_lock` of the walk holds.
    pub(crate) fn holds(&self) -> bool {
        self.held > 0
    }
}

/// The object of an operation that takes a lock (`true`) or releases one (`false`).
pub(crate) fn taking(operation: &Operation) -> Option<(ObjectId, bool)> {
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

impl Program {
    /// For each object: whether it is a lock. Locks are objects that threads take or release, or that have lock facts.
    /// User locks have their facts under the index of their condition variable.
    pub fn is_lock(&self) -> Vec<bool> {
        let mut is_lock = vec![false; self.objects.len()];
        let operations = self.threads.iter().flat_map(|thread| &thread.operations);
        let taken = operations.filter_map(taking).map(|(object, _)| object);
        for object in taken.chain(self.locks.iter().map(|lock| lock.object)) {
            if let Some(is_lock) = is_lock.get_mut(object.0 as usize) {
                *is_lock = true;
            }
        }
        is_lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_knows_the_innermost_function_and_the_locks_held() {
        let (f, g, lock, other) = (FunctionRef(0), FunctionRef(1), ObjectId(0), ObjectId(1));
        let mut walk = Walk::holding(|object| object == lock);
        let mut seen = Vec::new();
        for operation in [
            Operation::Exec(Ticks(1)),
            Operation::Call(f),
            Operation::Lock(other),
            Operation::Exec(Ticks(2)),
            Operation::Lock(lock),
            Operation::ExecIn(g, Ticks(3)),
            Operation::Once(other, Ticks(4)),
            Operation::Unlock(lock),
            Operation::Unlock(lock),
            Operation::Return,
            Operation::Return,
            Operation::Exec(Ticks(5)),
        ] {
            seen.extend(
                walk.computed(&operation).map(|(function, length)| (function, length.0, walk.holds())),
            );
            walk.pass(&operation);
        }
        let of =
            [(None, 1, false), (Some(f), 2, false), (Some(g), 3, true), (Some(f), 4, true), (None, 5, false)];
        assert_eq!(seen, of);
        assert!(walk.stack().is_empty());
    }
}
