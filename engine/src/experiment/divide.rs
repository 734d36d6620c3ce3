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
    /// All that the thread computes of a function that computes most of it.
    pub fn of_function(program: &Program, function: FunctionRef) -> Part {
        let computed = |thread: &Thread| {
            let mut walk = CallWalk::default();
            thread.operations.iter().fold(0u64, |sum, operation| {
                let own = walk.computed(operation).filter(|(own, _)| *own == Some(function));
                walk.pass(operation);
                own.map_or(sum, |(_, length)| sum.saturating_add(length.0))
            })
        };
        let most = (0..).zip(&program.threads).max_by_key(|(_, thread)| computed(thread));
        let thread = most.map_or(0, |(thread, _)| thread);
        Part { thread, from: 0, to: u64::MAX, function: Some(function) }
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
