//! More threads that do the same.

use crate::program::{ObjectId, Operation, Program, Walk};
use rustc_hash::FxHashSet;

/// What these threads compute is divided among them and `more` others: each computes less. The exception is what they compute
/// while they hold one of the locks of `under` (`None`: any): that does not get faster by being divided among more threads.
pub(super) fn more_threads(
    program: &mut Program,
    threads: &[usize],
    more: usize,
    under: Option<&[ObjectId]>,
) {
    let factor = threads.len() as f64 / (threads.len() as f64 + more as f64).max(1.0);
    let under: Option<FxHashSet<ObjectId>> = under.map(|locks| locks.iter().copied().collect());
    let is_shared = |lock: ObjectId| under.as_ref().is_none_or(|under| under.contains(&lock));
    for thread in threads {
        let Some(thread) = program.threads.get_mut(*thread) else { continue };
        let mut walk = Walk::holding(is_shared);
        for operation in &mut thread.operations {
            match operation {
                // Others read at the same time.
                Operation::ReadLock(_) => {}
                Operation::Exec(length) | Operation::ExecIn(_, length) if !walk.holds() => {
                    *length = length.scaled(factor);
                }
                _ => walk.pass(operation),
            }
        }
    }
}
