//! More threads that share the work of some.

use crate::program::{ObjectId, Operation, Program, Walk};
use rustc_hash::FxHashSet;

/// Divides the computing of these threads among them and `more` additional threads, so that each computes less.
/// Computing under one of the locks `under` (`None`: any lock) stays: more threads do not make it faster.
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
                // Under a read lock, threads compute at the same time.
                Operation::ReadLock(_) => {}
                Operation::Exec(length) | Operation::ExecIn(_, length) if !walk.holds() => {
                    *length = length.scaled(factor);
                }
                _ => walk.pass(operation),
            }
        }
    }
}
