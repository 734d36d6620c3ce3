//! Threads that no thread waits for ([`crate::program::Background`]): the run does not wait for their end, and until
//! then they repeat their operations.

use super::actor::{Actor, Stage};
use crate::program::{Background, Operation, Program, RunBreaks};

/// The threads of a run as background threads.
#[derive(Debug)]
pub(super) struct Backgrounds {
    /// Their states; empty if the program has no background thread.
    states: Vec<BackgroundState>,
    /// Number of foreground threads that have not ended.
    foreground: usize,
    /// Time at which a thread that does not repeat its operations last had a turn.
    last_turn: u64,
}

/// Where a thread begins to repeat its operations.
pub(super) struct RepeatStart {
    pub(super) operation: u32,
    /// Number of runs of compute operations before that operation.
    pub(super) runs_before: u32,
}

/// The state of a background thread. It is used only if no thread waits for the thread.
#[derive(Clone, Copy, Debug)]
struct BackgroundState {
    background: Option<Background>,
    /// Number of runs of compute operations before the operations that the thread repeats.
    runs_before: u32,
    /// Whether the thread has begun to repeat operations.
    repeats: bool,
    /// Repeating stops once no thread that does not repeat has had a turn for this long, ticks.
    patience: u64,
}

impl Backgrounds {
    pub(super) fn of(program: &Program) -> Backgrounds {
        let foreground = program.threads.iter().filter(|thread| thread.background.is_none()).count();
        Backgrounds { states: states(program), foreground, last_turn: 0 }
    }

    /// Whether the program is over: no thread waits for the remaining ones.
    pub(super) fn is_over(&self) -> bool {
        self.foreground == 0 && !self.states.is_empty()
    }

    /// Whether the thread is a background thread, for which no thread waits.
    #[inline]
    pub(super) fn is_background(&self, thread: u32) -> bool {
        self.states.get(thread as usize).is_some_and(|state| state.background.is_some())
    }

    /// Whether the thread repeats its operations.
    #[inline]
    pub(super) fn repeats(&self, thread: u32) -> bool {
        self.states.get(thread as usize).is_some_and(|state| state.repeats)
    }

    /// For a thread that repeats operations, the next of which is `next`: how many different operations it has done.
    pub(super) fn done(&self, thread: u32, next: u32) -> Option<usize> {
        let state = self.states.get(thread as usize).filter(|state| state.repeats)?;
        state.background.map(|background| background.repeats_until.max(next) as usize)
    }

    /// Notes the time of a turn of a thread that does not repeat.
    #[inline]
    pub(super) fn note_turn(&mut self, thread: u32, now: u64) {
        if !self.states.is_empty() && !self.repeats(thread) {
            self.last_turn = now;
        }
    }

    /// Notes that the thread has ended.
    pub(super) fn note_end(&mut self, thread: u32) {
        if !self.is_background(thread) {
            self.foreground = self.foreground.saturating_sub(1);
        }
    }

    /// Where the thread begins again, if it is at the end of its repeated operations, unless the thread with which it
    /// ends has ended.
    pub(super) fn begin_again(&mut self, thread: u32, actors: &[Actor], now: u64) -> Option<RepeatStart> {
        let state = self.states.get_mut(thread as usize)?;
        let background = state.background?;
        let until = background.repeats_until;
        let nothing = actors[thread as usize].next != until || background.repeats_from >= until;
        let is_over = actors[background.ends_with.0 as usize].stage == Stage::Ended;
        let forever = now.saturating_sub(self.last_turn) > state.patience;
        if nothing || is_over || forever {
            return None;
        }
        state.repeats = true;
        Some(RepeatStart { operation: background.repeats_from, runs_before: state.runs_before })
    }
}

/// The states of all threads; empty if every thread has a waiter.
fn states(program: &Program) -> Vec<BackgroundState> {
    if program.threads.iter().all(|thread| thread.background.is_none()) {
        return Vec::new();
    }
    let lengths = program.threads.iter().flat_map(|thread| &thread.operations).filter_map(Operation::length);
    let longest = lengths.map(|length| length.0).max().unwrap_or(0);
    // No step takes longer than this, however many threads share a processor: a thread that waits longer waits forever.
    let patience = longest.saturating_mul(program.threads.len() as u64 + 1);
    let states = program.threads.iter().map(|thread| {
        let from = thread.background.map_or(0, |background| background.repeats_from as usize);
        let mut breaks = RunBreaks::default();
        let before = thread.operations.iter().take(from).filter(|operation| breaks.starts_run(operation));
        let runs_before = before.count() as u32;
        BackgroundState { background: thread.background, runs_before, repeats: false, patience }
    });
    states.collect()
}
