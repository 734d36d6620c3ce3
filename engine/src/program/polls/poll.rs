//! The meaning of a timed wait.

use crate::program::background::lets_go;
use crate::program::lock_replay::Plan;
use crate::timeline::StepKind;
use std::ops::Range;

/// What a wait stands for that its time limit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::program) enum Poll {
    /// Time that passed.
    Time,
    /// Nothing: the wait goes on in a later one.
    Nothing,
    /// Another thread's work; number of the edge.
    Ended(u32),
}

pub(super) fn set(waits: &mut [Poll], numbers: impl IntoIterator<Item = u32>, poll: Poll) {
    for number in numbers {
        if let Some(wait) = waits.get_mut(number as usize) {
            *wait = poll;
        }
    }
}

/// Whether a step may wake another thread.
pub(super) fn helps(step: StepKind, plan: &Plan) -> bool {
    let lets_others_go = |mut operations: Range<u32>| {
        operations.any(|index| plan.operation(index).is_some_and(|operation| lets_go(&operation)))
    };
    match step {
        StepKind::Wake(wakeup) => plan.edges.get(wakeup as usize).is_some_and(Option::is_some),
        StepKind::Create(_) => true,
        StepKind::Operated(used) => {
            let (begin, end, _) = plan.lowered(used);
            lets_others_go(begin) || lets_others_go(end)
        }
        StepKind::Hole(number) => lets_others_go(plan.at_hole(number)),
        StepKind::Enter(_) | StepKind::Leave | StepKind::Join(_) => false,
    }
}
