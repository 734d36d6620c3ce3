//! What one thread computes alone, divided among several.

use super::holders;
use super::owner::Owners;
use crate::program::{FunctionRef, Operation, Program};
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

/// The part takes this share of its time, as if other threads computed the rest at the same time. They have nothing else to do
/// if the thread computes alone.
pub(super) fn divided(program: &Program, owners: &Owners, part: &Part, share: f64) -> Program {
    let mut program = program.clone();
    let Some(thread) = program.threads.get_mut(part.thread) else { return program };
    let mut stack: Vec<FunctionRef> = Vec::new();
    let mut before = 0u64;
    for operation in &mut thread.operations {
        let function = holders::computing(owners, &mut stack, operation);
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
    program
}
