//! Waits with a time limit that are entered again: CPython's GIL (5 ms), `condition_variable::wait_for` loops, the threads of
//! virtual machines. Such a wait is one wait that polls: what ends the last of them ends it, and the limits before only cost
//! what the thread computes in between. **Ours.** A chain of waits for the same thing counts as one wait if
//!
//! 1. a thread of the recording ended the last of them, so what it did is what was waited for: where a time limit ended
//!    the last one, time may be what the thread goes by; and
//! 2. the thread let nobody go on between them: one that does is a clock for others.

use super::background::lets_go;
use super::relive::Plan;
use crate::timeline::{State, StepKind, Thread, Wait, WaitReason, Wake};
use rustc_hash::FxHashMap;

/// By wait of a thread (by its index in the timeline): its time limit decided nothing.
pub(super) fn of(thread: &Thread, plan: &Plan) -> Vec<bool> {
    let mut polls = vec![false; thread.waits.len()];
    if !thread.waits.iter().any(Wait::timed_out) {
        return polls;
    }
    // Waits for each thing that a time limit has ended, since the thread last let somebody go on.
    let mut open: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
    let mut seen = 0;
    for interval in &thread.intervals {
        let State::Blocked(number) = interval.state else { continue };
        let steps = thread.steps.get(seen..interval.first_step as usize).unwrap_or_default();
        seen = seen.max(interval.first_step as usize);
        if steps.iter().any(|step| helps(step.kind, plan)) {
            open.clear();
        }
        let Some(wait) = thread.waits.get(number as usize) else { continue };
        let Some(thing) = thing(wait) else { continue };
        if wait.timed_out() {
            open.entry(thing).or_default().push(number);
            continue;
        }
        let before = open.remove(&thing).unwrap_or_default();
        if let Wake::By(_) = wait.wake {
            for number in before {
                if let Some(poll) = polls.get_mut(number as usize) {
                    *poll = true;
                }
            }
        }
    }
    polls
}

/// Whether a step lets another thread go on.
fn helps(step: StepKind, plan: &Plan) -> bool {
    match step {
        StepKind::Wake(wakeup) => plan.edges.get(wakeup as usize).is_some_and(Option::is_some),
        StepKind::Create(_) => true,
        StepKind::Operated(used) => {
            let (begin, end, _) = plan.act(used);
            begin.chain(end).filter_map(|index| plan.operation(index)).any(|operation| lets_go(&operation))
        }
        StepKind::Enter(_) | StepKind::Leave => false,
    }
}

/// What a wait is for: the eight bytes around a futex, in which glibc's condition variables have the words of both their
/// groups.
fn thing(wait: &Wait) -> Option<u64> {
    match wait.reason {
        WaitReason::Futex(futex) => Some(futex.word & !7),
        WaitReason::Kernel { .. } => None,
    }
}
