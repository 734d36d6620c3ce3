//! Threads that no thread waits for ([`crate::program::Background`]): the run does not wait for their end, and until
//! then they repeat their operations.

use super::actor::Stage;
use super::machine::Machine;
use super::simulation::Simulation;
use super::source::Operations;
use crate::program::RunBreaks;
use crate::program::{Background, Operation, Program};

/// The state of a background thread. It is used only if no thread waits for the thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct BackgroundState {
    background: Option<Background>,
    /// Number of runs of compute operations before the operations that the thread repeats.
    runs_before: u32,
    /// Whether the thread has begun to repeat operations.
    repeats: bool,
    /// Repeating stops once no thread that does not repeat has had a turn for this long, ticks.
    patience: u64,
}

/// The states of all threads; empty if every thread has a waiter.
pub(super) fn states(program: &Program) -> Vec<BackgroundState> {
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

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    /// Whether the program is over: no thread waits for the remaining ones.
    pub(super) fn is_over(&self) -> bool {
        self.foreground == 0 && !self.backgrounds.is_empty()
    }

    /// Whether the thread is a background thread, for which no thread waits.
    #[inline]
    pub(super) fn is_background(&self, thread: u32) -> bool {
        self.backgrounds.get(thread as usize).is_some_and(|state| state.background.is_some())
    }

    /// For a thread that repeats operations: how many different operations it has done.
    pub(super) fn done_in_background(&self, thread: u32) -> Option<usize> {
        let state = self.backgrounds.get(thread as usize).filter(|state| state.repeats)?;
        let actor = &self.actors[thread as usize];
        state.background.map(|background| background.repeats_until.max(actor.next) as usize)
    }

    /// Whether the thread repeats its operations.
    #[inline]
    pub(super) fn repeats(&self, thread: u32) -> bool {
        self.backgrounds.get(thread as usize).is_some_and(|state| state.repeats)
    }

    /// Notes the time of a turn of a thread that does not repeat.
    #[inline]
    pub(super) fn note_turn(&mut self, thread: u32) {
        if !self.backgrounds.is_empty() && !self.repeats(thread) {
            self.last_turn = self.machine.now();
        }
    }

    /// At the end of its repeated operations, a thread goes back to their start, unless the thread with which it ends
    /// has ended.
    pub(super) fn begin_again(&mut self, thread: u32) {
        let Some(state) = self.backgrounds.get(thread as usize).copied() else { return };
        let Some(background) = state.background else { return };
        let until = background.repeats_until;
        let nothing = self.actors[thread as usize].next != until || background.repeats_from >= until;
        let is_over = self.actors[background.ends_with.0 as usize].stage == Stage::Ended;
        let forever = self.machine.now().saturating_sub(self.last_turn) > state.patience;
        // A trace shows recorded operations only, and on unlimited processors repeats change no time.
        if nothing || is_over || forever || self.has_trace() || (M::DECIDES && !M::COSTS) {
            return;
        }
        if self.actors[thread as usize].computing {
            self.end_run(thread);
        }
        self.backgrounds[thread as usize].repeats = true;
        let first = self.first_run(thread);
        let actor = &mut self.actors[thread as usize];
        actor.next = background.repeats_from;
        actor.next_run = first.saturating_add(state.runs_before);
    }
}
