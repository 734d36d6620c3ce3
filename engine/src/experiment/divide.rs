//! Divides the computing of one thread among several threads.

use crate::attribution::Owners;
use crate::program::{CallWalk, FunctionRef, Operation, Program, Thread};
use crate::time::Ticks;

/// A part of a thread's computing.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputePart {
    /// Index of the thread in the program.
    pub thread: usize,
    /// Start, as an offset in the thread's computing, ticks.
    pub from: u64,
    /// End of the part, in the same unit as `from`.
    pub to: u64,
    /// Only computing that counts for this function; `None`: all computing of the thread.
    pub function: Option<FunctionRef>,
}

impl ComputePart {
    /// Computing that counts for a function, in the thread with most of it. `None`: no thread computes for the
    /// function.
    pub fn of_function(program: &Program, owners: &Owners, function: FunctionRef) -> Option<ComputePart> {
        let computed = |thread: &Thread| {
            let mut walk = CallWalk::default();
            thread.operations.iter().fold(0u64, |sum, operation| {
                let is_own = owners.computing(&walk, operation) == Some(function);
                let length = walk.computed(operation).filter(|_| is_own).map_or(0, |(_, length)| length.0);
                walk.pass(operation);
                sum.saturating_add(length)
            })
        };
        let sums = program.threads.iter().map(computed).enumerate();
        let (thread, sum) = sums.max_by_key(|(_, sum)| *sum)?;
        (sum > 0).then_some(ComputePart { thread, from: 0, to: u64::MAX, function: Some(function) })
    }
}

/// Shortens this part of a thread's computing as if `among` threads did it at once. The added threads are not
/// simulated: they are assumed to have nothing else to do.
pub(super) fn divide(program: &mut Program, owners: &Owners, part: &ComputePart, among: usize) {
    let Some(thread) = program.threads.get_mut(part.thread) else { return };
    let share = 1.0 / among.max(1) as f64;
    let mut walk = CallWalk::default();
    let mut before = 0u64;
    for operation in &mut thread.operations {
        let function = owners.computing(&walk, operation);
        walk.pass(operation);
        let (Operation::Exec(length) | Operation::ExecIn(_, length)) = operation else { continue };
        let after = before.saturating_add(length.0);
        let inside = after.min(part.to).saturating_sub(before.max(part.from));
        if inside > 0 && (part.function.is_none() || part.function == function) {
            let rest = length.0 - inside;
            *length = Ticks(inside).scaled(share);
            length.0 += rest;
        }
        before = after;
    }
    // Recorded moves lie at offsets within computing, which have changed.
    thread.moves.clear();
}
