//! Which probed functions are open on a thread, derived from stack pointers.
//!
//! On x86-64 stacks grow down, and at a function's first instruction and at its `ret` the stack pointer is the address
//! of its return address.
//!
//! Rules (all are longpole's own):
//! - Entry at S: open frames below S have ended (longjmp, exception, an exit without a probe); an open frame at S ended
//!   in a tail call.
//! - Exit at S: open frames below S have ended, and the frame at S ends.
//! - A thread leaves its CPU with user stack pointer S: open frames below S have ended.
//! - Exit at S without a frame there, S above everything recorded on the thread's first stack: the function was open
//!   all the time, around everything known. Any other exit without a frame proves nothing and is counted.
//! - A function loses its probes: its open frames end at that moment, and those above, since nothing tells any more
//!   whether they are inside of it. Their own exits, when they come, are expected.
//! - A stack pointer more than [`OTHER_STACK_BYTES`] away from a stack is on another one (signal stack, coroutine) and
//!   ends no frame of the first. The visible frames are those of the active stacks. Going to an inactive stack puts it
//!   on top; returning to an active one removes those above.

use crate::event::{FrameFact, FunctionId, StackFact};
use crate::time::Timestamp;
use crate::timeline::model::{Step, StepKind};

/// Beyond this distance, a stack pointer is on another stack: the usual size limit of a main thread's stack.
const OTHER_STACK_BYTES: u64 = 8 << 20;

/// Largest number of stacks kept of a thread. If there are more, the oldest inactive one is forgotten.
const MAX_STACKS: usize = 64;

/// Number of frames that may become visible again with their stacks, per event of the thread. Programs need far fewer,
/// and without a limit a hostile recording could use memory of the square of its size.
const SHOWN_AGAIN_PER_EVENT: u64 = 32;
/// Number of frames that may become visible again before the thread's first event.
const SHOWN_AGAIN: u64 = 1 << 16;

/// The open frames of one thread, on all of its stacks.
#[derive(Clone, Debug, Default)]
pub(in crate::timeline) struct Stacks {
    stacks: Vec<StackFact>,
    /// Indices in `stacks`. The visible frames are those of these stacks, one after the other.
    active: Vec<usize>,
    /// Entries and exits so far, and frames that became visible again.
    events: u64,
    shown_again: u64,
    /// Stack pointers of frames that were closed while their functions were running, the outermost first.
    closed: Vec<u64>,
}

/// Largest number of closed frames whose exits are expected. Exits of further ones count as strays.
const MAX_CLOSED: usize = 256;

/// What a function exit showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::timeline) enum ExitOutcome {
    /// The exit ended a known frame.
    Matched,
    /// The function had been open all the time.
    OpenSinceStart,
    /// Its frame had been closed before.
    Closed,
    /// The exit belongs to no known frame.
    Stray,
}

/// Receives the changes of the visible frames as steps.
pub(in crate::timeline) struct StepLog<'a> {
    pub(in crate::timeline) time: Timestamp,
    pub(in crate::timeline) steps: &'a mut Vec<Step>,
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
    /// The stacks as facts, and the indices of the active ones.
    pub(in crate::timeline) fn facts(&self) -> (Vec<StackFact>, Vec<u32>) {
        (self.stacks.clone(), self.active.iter().filter_map(|&index| u32::try_from(index).ok()).collect())
    }

    /// Continues from facts; writes the visible frames to the log.
    pub(in crate::timeline) fn resume(stacks: &[StackFact], active: &[u32], log: &mut StepLog<'_>) -> Stacks {
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

    /// A function is entered.
    pub(in crate::timeline) fn enter(
        &mut self,
        function: FunctionId,
        stack_pointer: u64,
        log: &mut StepLog<'_>,
    ) {
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

    /// A function is entered whose exits have no probes.
    pub(in crate::timeline) fn touch(
        &mut self,
        function: FunctionId,
        stack_pointer: u64,
        log: &mut StepLog<'_>,
    ) {
        self.enter(function, stack_pointer, log);
        if let Some(stack) = self.active.last().and_then(|&index| self.stacks.get_mut(index))
            && stack.frames.pop().is_some()
        {
            log.pop(1);
        }
    }

    /// A function returns; the exit probe's stack pointer is `stack_pointer`.
    pub(in crate::timeline) fn exit(&mut self, stack_pointer: u64, log: &mut StepLog<'_>) -> ExitOutcome {
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

    /// Closes the frames of functions that lost their probes, and the frames above: it is not known any more whether
    /// they are open.
    pub(in crate::timeline) fn close(&mut self, gone: &dyn Fn(FunctionId) -> bool, log: &mut StepLog<'_>) {
        let first = |stack: &StackFact| stack.frames.iter().position(|frame| gone(frame.function));
        let outermost =
            self.active.iter().position(|&index| self.stacks.get(index).is_some_and(|s| first(s).is_some()));
        for (index, stack) in self.stacks.iter_mut().enumerate() {
            let position = self.active.iter().position(|&active| active == index);
            // Whether this stack is active above a stack that has a frame of such a function.
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

    /// A record of a function whose probes do not count proves that the thread is at this stack pointer.
    pub(in crate::timeline) fn passes(&mut self, stack_pointer: u64, begins: bool, log: &mut StepLog<'_>) {
        // At an entry, open frames at `stack_pointer` have ended, too.
        self.seen_at(stack_pointer.saturating_add(u64::from(begins)), log);
    }

    /// The thread left its CPU with this stack pointer in user space.
    pub(in crate::timeline) fn seen_at(&mut self, stack_pointer: u64, log: &mut StepLog<'_>) {
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

    /// Removes all frames, as after an exec.
    pub(in crate::timeline) fn clear(&mut self, log: &mut StepLog<'_>) {
        log.pop(self.in_view(0));
        *self = Stacks::default();
    }

    /// The stack of a stack pointer: the nearest in reach; of equally near ones, the active one.
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
            // All stacks are active: the innermost one is used again.
            let Some(unused) = unused else { return self.stacks.len() - 1 };
            self.stacks.remove(unused);
            for index in &mut self.active {
                *index -= usize::from(*index > unused);
            }
        }
        self.stacks.push(StackFact::default());
        self.stacks.len() - 1
    }

    /// Makes a stack's frames visible on top.
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
                    // The exits of these frames will count as strays.
                    stack.frames.clear();
                }
                stack.frames.iter().for_each(|frame| log.push(frame));
            }
        }
    }

    /// Number of visible frames on the active stacks from this position on.
    fn in_view(&self, position: usize) -> usize {
        let active = self.active.get(position..).unwrap_or_default();
        active.iter().filter_map(|&index| self.stacks.get(index)).map(|stack| stack.frames.len()).sum()
    }
}

/// Removes frames from the top as long as `gone` holds; returns their number.
fn drop_frames(stack: &mut StackFact, gone: impl Fn(&FrameFact) -> bool) -> usize {
    let before = stack.frames.len();
    while stack.frames.last().is_some_and(&gone) {
        stack.frames.pop();
    }
    before - stack.frames.len()
}

/// Whether a closed frame may still be open when a function is entered at `stack_pointer`.
fn is_kept(closed: u64, stack_pointer: u64) -> bool {
    closed > stack_pointer || stack_pointer - closed > OTHER_STACK_BYTES
}

/// Distance of a stack pointer from the part of the stack that is in use; 0 inside of it.
fn distance(stack: &StackFact, stack_pointer: u64) -> u64 {
    let high = stack.frames.first().map_or(stack.latest, |frame| frame.stack_pointer.max(stack.latest));
    let low = stack.frames.last().map_or(stack.latest, |frame| frame.stack_pointer.min(stack.latest));
    low.saturating_sub(stack_pointer).max(stack_pointer.saturating_sub(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the limit, 10,000 frames to which a thread returns 10,000 times make 10^8 steps.
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
