//! What one thread computes alone, divided among several.

use crate::attribution::Owners;
use crate::program::{CallWalk, FunctionRef, Operation, Program, Thread};
use crate::time::Ticks;

/// A part of what a thread computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The thread, by its place in the program.
    pub thread: usize,
    /// From that much of its computing on, ticks.
    pub from: u64,
    /// Up to so much.
    pub to: u64,
    /// Only what counts for this function; `None`: all of it.
    pub function: Option<FunctionRef>,
}

impl Part {
    /// What counts for a function in the thread that computes most of that; `None`: no thread computes any.
    pub fn of_function(program: &Program, owners: &Owners, function: FunctionRef) -> Option<Part> {
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
        (sum > 0).then_some(Part { thread, from: 0, to: u64::MAX, function: Some(function) })
    }
}

/// The part takes as long as if that many threads computed it at the same time. The others have nothing else to do if the thread
/// computes alone.
pub(super) fn divide(program: &mut Program, owners: &Owners, part: &Part, among: usize) {
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
    // Places within what is computed are no longer what they were.
    thread.moves.clear();
}
