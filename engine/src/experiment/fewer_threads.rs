//! Replaces threads by fewer ones that do the same.

use super::edit::EditError;
use crate::program::{EdgeId, ObjectId, Operation, Program};
use crate::time::Ticks;
use rustc_hash::{FxHashMap, FxHashSet};

/// Removes all but `kept` of these threads, which then share the work of all evenly. A thread that awaited a removed
/// thread now awaits the edge that the removed thread awaited last. The kept threads no longer spin for each other, as
/// if all arrived at the same time, so the gain is an upper bound. Removed threads still take and give permits and
/// tokens, but compute nothing.
pub(super) fn fewer_threads(program: &mut Program, threads: &[usize], kept: usize) -> Result<(), EditError> {
    if kept == 0 || kept >= threads.len() {
        return Err(EditError::NothingToChange("the program has no more threads than that"));
    }
    let sorted = by_importance(program, threads);
    let (kept, gone) = sorted.split_at(kept);
    let sum = |threads: &[usize]| threads.iter().map(|thread| computed(program, *thread)).sum::<f64>();
    let each = sum(threads) / kept.len() as f64;
    let factors: Vec<f64> = kept.iter().map(|thread| factor(each, computed(program, *thread))).collect();
    let spun = spun_for(program, threads);
    let mut awaited = Awaited::of(program, gone);
    let barriers = barriers(program, gone);
    for thread in gone {
        let Some(thread) = program.threads.get_mut(*thread) else { continue };
        thread.moves.clear();
        thread.operations.iter_mut().filter(|operation| !is_token(operation)).for_each(|operation| {
            *operation = Operation::Exec(Ticks(0));
        });
    }
    for (thread, factor) in kept.iter().zip(factors) {
        let Some(thread) = program.threads.get_mut(*thread) else { continue };
        thread.moves.clear();
        for operation in &mut thread.operations {
            if let Operation::Exec(length)
            | Operation::ExecIn(_, length)
            | Operation::Io(_, length)
            | Operation::Sleep(length)
            | Operation::SleepNext(length) = operation
            {
                *length = length.scaled(factor);
            }
            if matches!(operation, Operation::Await(edge) if spun.contains(edge)) {
                *operation = Operation::Exec(Ticks(0));
            }
        }
    }
    for operation in program.threads.iter_mut().flat_map(|thread| &mut thread.operations) {
        match operation {
            Operation::Await(edge) => {
                *operation = awaited.instead_of(*edge).map_or(Operation::Exec(Ticks(0)), Operation::Await);
            }
            Operation::Barrier(barrier, count) => {
                *count = count.saturating_sub(barriers.get(barrier).copied().unwrap_or(0)).max(1);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Orders threads by importance: first those that create others of the group, since these may do part of their work;
/// then those that compute most.
fn by_importance(program: &Program, threads: &[usize]) -> Vec<usize> {
    let members: FxHashSet<usize> = threads.iter().copied().collect();
    let starts = |thread: usize| {
        let operations = program.threads.get(thread).map_or(&[][..], |thread| &thread.operations);
        operations.iter().filter_map(super::created).any(|other| members.contains(&other))
    };
    let mut sorted: Vec<(bool, f64, usize)> =
        threads.iter().map(|thread| (!starts(*thread), -computed(program, *thread), *thread)).collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
    sorted.into_iter().map(|(_, _, thread)| thread).collect()
}

/// The factor for a thread's lengths; 1 for a thread that computes nothing.
fn factor(each: f64, computed: f64) -> f64 {
    if computed > 0.0 { each / computed } else { 1.0 }
}

/// Edges that these threads release and for which other threads busy-wait.
fn spun_for(program: &Program, threads: &[usize]) -> FxHashSet<EdgeId> {
    let threads = threads.iter().filter_map(|thread| program.threads.get(*thread));
    let released = threads.flat_map(|thread| &thread.operations).filter_map(|operation| match operation {
        Operation::Release(edge) => Some(*edge),
        _ => None,
    });
    released.filter(|edge| program.is_spinning(*edge)).collect()
}

fn computed(program: &Program, thread: usize) -> f64 {
    let operations = program.threads.get(thread).map_or(&[][..], |thread| &thread.operations);
    let lengths = operations.iter().map(|operation| match operation {
        Operation::Exec(length) | Operation::ExecIn(_, length) => length.0 as f64,
        _ => 0.0,
    });
    lengths.sum()
}

/// Whether the operation takes or gives something that other threads count on.
fn is_token(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Signal(_)
            | Operation::Wait(_)
            | Operation::SemInit(..)
            | Operation::SemWait(_)
            | Operation::SemPost(_)
            | Operation::CondSignal(_)
            | Operation::CondBroadcast(_)
            | Operation::Create(_)
            | Operation::Join(_)
    )
}

/// For each barrier: how many of these threads reach it.
fn barriers(program: &Program, threads: &[usize]) -> FxHashMap<ObjectId, u32> {
    let mut count: FxHashMap<ObjectId, u32> = FxHashMap::default();
    for thread in threads.iter().filter_map(|thread| program.threads.get(*thread)) {
        let of = thread.operations.iter().filter_map(|operation| match operation {
            Operation::Barrier(barrier, _) => Some(*barrier),
            _ => None,
        });
        for barrier in of.collect::<FxHashSet<ObjectId>>() {
            *count.entry(barrier).or_insert(0) += 1;
        }
    }
    count
}

/// For each edge that a removed thread released: the edge that this thread had awaited last before that; `None`: it had
/// awaited none.
struct Awaited(FxHashMap<EdgeId, Option<EdgeId>>);

impl Awaited {
    fn of(program: &Program, gone: &[usize]) -> Awaited {
        let mut before = FxHashMap::default();
        for thread in gone.iter().filter_map(|thread| program.threads.get(*thread)) {
            let mut last = None;
            for operation in &thread.operations {
                match operation {
                    Operation::Await(edge) => last = Some(*edge),
                    Operation::Release(edge) => {
                        before.insert(*edge, last);
                    }
                    _ => {}
                }
            }
        }
        Awaited(before)
    }

    /// The edge that a thread now awaits in place of `edge`.
    fn instead_of(&mut self, edge: EdgeId) -> Option<EdgeId> {
        let (mut found, mut passed) = (Some(edge), Vec::new());
        while let Some(edge) = found
            && let Some(before) = self.0.get(&edge)
            // A cycle of edges was never released.
            && passed.len() <= self.0.len()
        {
            passed.push(edge);
            found = *before;
        }
        for edge in passed {
            self.0.insert(edge, found);
        }
        found
    }
}
