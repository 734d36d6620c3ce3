//! Which probed functions are open on a thread, derived from stack pointers (x86-64: stacks grow down; at a
//! function's first instruction and at its `ret` the stack pointer is the address of its return address).
//!
//! Rules, all ours:
//! - Entry at S: open frames below S are gone (longjmp, exception, an exit that was not probed); an open frame at
//!   S ended in a tail call.
//! - Exit at S: open frames below S are gone, and the one at S ends.
//! - The user stack pointer S of a thread that leaves its CPU: open frames below S are gone.
//! - An exit at S without a frame there, S above everything recorded on the thread's first stack: the
//!   function was open all the time, outside everything known. Any other such exit proves nothing and is
//!   counted.
//! - A function that loses its probes: its open frames end at that moment, and with them those above, since nothing tells any
//!   more whether they are still inside of it. Their own exits, when they come, are expected.
//! - A stack pointer more than [`OTHER_STACK_BYTES`] away from a stack belongs to another one (signal stack,
//!   coroutine) and ends no frame of the first. The frames in view are those of the active stacks: going to a
//!   stack that is not active puts it on top, going back to an active one takes off those above.

use super::model::{Step, StepKind};
use crate::event::{FrameFact, FunctionId, StackFact};
use crate::time::Timestamp;

/// Stack pointers further away than this are on another stack: the usual limit of a main thread's stack.
const OTHER_STACK_BYTES: u64 = 8 << 20;

/// Stacks kept apart per thread; beyond that the oldest inactive one is forgotten.
const MAX_STACKS: usize = 64;

/// Frames that may come into view again with their stacks, for each event of the thread: far more than programs make,
/// while a hostile recording could make memory grow by the square of its own size.
const SHOWN_AGAIN_PER_EVENT: u64 = 32;
/// The same at the beginning.
const SHOWN_AGAIN: u64 = 1 << 16;

/// The open frames of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Stacks {
    stacks: Vec<StackFact>,
    /// Indices in `stacks`; the frames in view are theirs, one after the other.
    active: Vec<usize>,
    /// Entries and exits so far, and frames that came into view again.
    events: u64,
    shown_again: u64,
    /// Stack pointers of frames that were closed while their functions went on, the outermost first.
    closed: Vec<u64>,
}

/// Closed frames whose exits are waited for; those of more are strays.
const MAX_CLOSED: usize = 256;

/// What a function exit showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExitOutcome {
    /// It ended a known frame.
    Matched,
    /// The function had been open all the time.
    OpenSinceStart,
    /// Its frame was closed before.
    Closed,
    /// It fits nothing.
    Stray,
}

/// Where changes of the frames in view are written.
pub(super) struct StepLog<'a> {
    pub(super) time: Timestamp,
    pub(super) steps: &'a mut Vec<Step>,
}

impl StepLog<'_> {
    fn push(&mut self, frame: &FrameFact) {
        self.steps.push(Step { time: self.time, kind: StepKind::Enter(frame.function) });
    }

    fn pop(&mut self, count: usize) {
        self.steps.extend(std::iter::repeat_n(Step { time: self.time, kind: StepKind::Leave }, count));
    }
}

impl Stacks {
    /// The stacks as facts, and which of them are active.
    pub(super) fn facts(&self) -> (Vec<StackFact>, Vec<u32>) {
        (self.stacks.clone(), self.active.iter().filter_map(|&index| u32::try_from(index).ok()).collect())
    }

    /// Goes on from facts; the frames in view are written to the log.
    pub(super) fn resume(stacks: &[StackFact], active: &[u32], log: &mut StepLog<'_>) -> Stacks {
        let mut resumed = Stacks { stacks: stacks.to_vec(), ..Stacks::default() };
        resumed.stacks.truncate(MAX_STACKS);
        for &index in active {
            let index = index as usize;
            if let Some(stack) = resumed.stacks.get(index)
                && !resumed.active.contains(&index)
            {
                stack.frames.iter().for_each(|frame| log.push(frame));
                resumed.active.push(index);
            }
        }
        resumed
    }

    /// A function starts.
    pub(super) fn enter(&mut self, function: FunctionId, stack_pointer: u64, log: &mut StepLog<'_>) {
        self.events = self.events.saturating_add(1);
        let index = self.find(stack_pointer).unwrap_or_else(|| self.add());
        self.activate(index, log);
        let Some(stack) = self.stacks.get_mut(index) else { return };
        log.pop(drop_frames(stack, |frame| frame.stack_pointer <= stack_pointer));
        self.closed.retain(|closed| is_kept(*closed, stack_pointer));
        let frame = FrameFact { function, stack_pointer };
        stack.frames.push(frame);
        log.push(&frame);
        stack.highest = stack.highest.max(stack_pointer);
        stack.latest = stack_pointer;
    }

    /// A function starts without a probe that shows when it ends.
    pub(super) fn touch(&mut self, function: FunctionId, stack_pointer: u64, log: &mut StepLog<'_>) {
        self.enter(function, stack_pointer, log);
        if let Some(stack) = self.active.last().and_then(|&index| self.stacks.get_mut(index))
            && stack.frames.pop().is_some()
        {
            log.pop(1);
        }
    }

    /// A function ends.
    pub(super) fn exit(&mut self, stack_pointer: u64, log: &mut StepLog<'_>) -> ExitOutcome {
        self.events = self.events.saturating_add(1);
        let first_ever = self.stacks.is_empty();
        let found = self.find(stack_pointer);
        let index = found.unwrap_or_else(|| self.add());
        self.activate(index, log);
        let bottom = index == 0 && self.active.len() == 1;
        let Some(stack) = self.stacks.get_mut(index) else { return ExitOutcome::Stray };
        log.pop(drop_frames(stack, |frame| frame.stack_pointer < stack_pointer));
        let outcome = if stack.frames.last().is_some_and(|frame| frame.stack_pointer == stack_pointer) {
            stack.frames.pop();
            log.pop(1);
            ExitOutcome::Matched
        } else if let Some(closed) = self.closed.iter().rposition(|closed| *closed == stack_pointer) {
            self.closed.truncate(closed);
            ExitOutcome::Closed
        } else if bottom && stack.frames.is_empty() && (first_ever || stack_pointer > stack.highest) {
            log.pop(1);
            ExitOutcome::OpenSinceStart
        } else {
            ExitOutcome::Stray
        };
        stack.highest = stack.highest.max(stack_pointer);
        stack.latest = stack_pointer;
        outcome
    }

    /// These functions lost their probes: their frames, and those above, are not known to be open any more.
    pub(super) fn close(&mut self, gone: &dyn Fn(FunctionId) -> bool, log: &mut StepLog<'_>) {
        let first = |stack: &StackFact| stack.frames.iter().position(|frame| gone(frame.function));
        let outermost =
            self.active.iter().position(|&index| self.stacks.get(index).is_some_and(|s| first(s).is_some()));
        for (index, stack) in self.stacks.iter_mut().enumerate() {
            let position = self.active.iter().position(|&active| active == index);
            // What is in view on top of a stack with such a frame.
            let above = position.zip(outermost).is_some_and(|(position, outermost)| position > outermost);
            let Some(from) = (if above { Some(0) } else { first(stack) }) else { continue };
            let closed = stack.frames.split_off(from);
            if position.is_some() {
                log.pop(closed.len());
            }
            let others = closed.iter().filter(|frame| !gone(frame.function)).map(|frame| frame.stack_pointer);
            self.closed.extend(others.take(MAX_CLOSED.saturating_sub(self.closed.len())));
        }
    }

    /// The thread begins or ends a function that has no probes, as far as is known, with this stack pointer.
    pub(super) fn passes(&mut self, stack_pointer: u64, begins: bool, log: &mut StepLog<'_>) {
        // At its first instruction it takes the place of what was at or below it.
        self.seen_at(stack_pointer.saturating_add(u64::from(begins)), log);
    }

    /// The thread left its CPU with this user stack pointer.
    pub(super) fn seen_at(&mut self, stack_pointer: u64, log: &mut StepLog<'_>) {
        let Some(index) = self.find(stack_pointer) else { return };
        let in_view = self.active.contains(&index);
        if in_view {
            self.activate(index, log);
        }
        let Some(stack) = self.stacks.get_mut(index) else { return };
        let gone = drop_frames(stack, |frame| frame.stack_pointer < stack_pointer);
        if in_view {
            log.pop(gone);
        }
        stack.highest = stack.highest.max(stack_pointer);
        stack.latest = stack_pointer;
    }

    /// All frames are gone, as after an exec.
    pub(super) fn clear(&mut self, log: &mut StepLog<'_>) {
        log.pop(self.in_view(0));
        *self = Stacks::default();
    }

    /// The stack that a stack pointer lies on: the nearest within reach, the active one if several are.
    fn find(&self, stack_pointer: u64) -> Option<usize> {
        let reach = |index: usize| {
            let distance = self.stacks.get(index).map(|stack| distance(stack, stack_pointer))?;
            (distance <= OTHER_STACK_BYTES).then_some((distance, index))
        };
        let current = self.active.last().and_then(|&index| reach(index));
        if self.stacks.len() == 1 || current.is_some_and(|(distance, _)| distance == 0) {
            return current.map(|(_, index)| index);
        }
        let others = (0..self.stacks.len()).filter_map(reach);
        current.into_iter().chain(others).min_by_key(|&(distance, _)| distance).map(|(_, index)| index)
    }

    /// A new stack; the oldest inactive one makes room for it.
    fn add(&mut self) -> usize {
        if self.stacks.len() >= MAX_STACKS {
            let unused = (1..self.stacks.len()).find(|index| !self.active.contains(index));
            // 64 stacks active within one another: the innermost is used again.
            let Some(unused) = unused else { return self.stacks.len() - 1 };
            self.stacks.remove(unused);
            for index in &mut self.active {
                *index -= usize::from(*index > unused);
            }
        }
        self.stacks.push(StackFact::default());
        self.stacks.len() - 1
    }

    /// Puts a stack's frames into view on top.
    fn activate(&mut self, index: usize, log: &mut StepLog<'_>) {
        if self.active.last() == Some(&index) {
            return;
        }
        if let Some(position) = self.active.iter().position(|&active| active == index) {
            log.pop(self.in_view(position + 1));
            self.active.truncate(position + 1);
        } else {
            self.active.push(index);
            let most = SHOWN_AGAIN.saturating_add(self.events.saturating_mul(SHOWN_AGAIN_PER_EVENT));
            if let Some(stack) = self.stacks.get_mut(index) {
                self.shown_again = self.shown_again.saturating_add(stack.frames.len() as u64);
                if self.shown_again > most {
                    // Their exits will be strays, which are counted.
                    stack.frames.clear();
                }
                stack.frames.iter().for_each(|frame| log.push(frame));
            }
        }
    }

    /// Frames in view on the active stacks from this position on.
    fn in_view(&self, position: usize) -> usize {
        let active = self.active.get(position..).unwrap_or_default();
        active.iter().filter_map(|&index| self.stacks.get(index)).map(|stack| stack.frames.len()).sum()
    }
}

/// Takes off frames from the top as long as `gone` holds, and says how many.
fn drop_frames(stack: &mut StackFact, gone: impl Fn(&FrameFact) -> bool) -> usize {
    let before = stack.frames.len();
    while stack.frames.last().is_some_and(&gone) {
        stack.frames.pop();
    }
    before - stack.frames.len()
}

/// Whether a closed frame may still be there when a function starts at `stack_pointer`.
fn is_kept(closed: u64, stack_pointer: u64) -> bool {
    closed > stack_pointer || stack_pointer - closed > OTHER_STACK_BYTES
}

/// How far a stack pointer is outside the part of the stack that is in use.
fn distance(stack: &StackFact, stack_pointer: u64) -> u64 {
    let high = stack.frames.first().map_or(stack.latest, |frame| frame.stack_pointer.max(stack.latest));
    let low = stack.frames.last().map_or(stack.latest, |frame| frame.stack_pointer.min(stack.latest));
    low.saturating_sub(stack_pointer).max(stack_pointer.saturating_sub(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory grew by the square of the recording: 10,000 frames, to which a thread went back 10,000 times, made 10^8
    /// steps.
    #[test]
    fn going_to_and_fro_between_deep_stacks_takes_bounded_memory() {
        const MANY: u64 = 10_000;
        let (first, deep) = (1 << 30, 1 << 40);
        let (mut stacks, mut steps) = (Stacks::default(), Vec::new());
        let mut log = StepLog { time: Timestamp(0), steps: &mut steps };
        stacks.enter(1, first, &mut log);
        (0..MANY).for_each(|n| stacks.enter(2, deep - 16 * n, &mut log));
        for n in 0..MANY {
            stacks.enter(3, first - 16, &mut log);
            stacks.enter(4, deep - 16 * (MANY + n), &mut log);
        }
        let open = steps.iter().fold(0i64, |open, step| match step.kind {
            StepKind::Enter(_) => open + 1,
            StepKind::Leave => open - 1,
            StepKind::Wake(_)
            | StepKind::Create(_)
            | StepKind::Join(_)
            | StepKind::Operated(_)
            | StepKind::Hole(_) => open,
        });
        assert!(open > 0, "{open}");
        assert!(steps.len() < 3_000_000, "{} steps", steps.len());
    }
}
