//! Spin locks: like a mutex, but a waiter keeps its processor busy. A thread that lost its processor while spinning
//! sees only when it has one again whether the lock is free.

use std::collections::VecDeque;

use crate::program::ObjectId;
use crate::schedule::actor::{Flow, Moment, Stage};
use crate::schedule::core::Core;
use crate::schedule::machine::Machine;

#[derive(Debug, Default)]
pub(in crate::schedule) struct Spin {
    pub(in crate::schedule) owner: Option<u32>,
    freed: Option<Moment>,
    /// Threads that spin for the lock, with or without a processor, in the order in which they came.
    spinning: VecDeque<u32>,
    /// Whether the lock was freed while none of its spinning threads had a processor.
    unseen: bool,
}

impl Spin {
    pub(in crate::schedule) fn lock<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        object: ObjectId,
    ) -> Flow {
        core.arrive(thread);
        let first = core.actors[thread as usize].stage == Stage::Going;
        // A thread that gets the lock at once spins too, for no time: if its arrival alone came earlier, it would spin
        // until the lock is freed.
        if first {
            core.vertex(thread, 1);
        }
        // A thread that lost its processor while it spun keeps its place.
        let place = if first { None } else { self.spinning.iter().position(|other| *other == thread) };
        if self.owner.is_some() {
            if place.is_none() {
                self.spinning.push_back(thread);
            }
            core.actors[thread as usize].stage = Stage::Again;
            return Flow::Spin(object);
        }
        if let Some(place) = place {
            self.spinning.remove(place);
        }
        self.owner = Some(thread);
        let freed = self.freed;
        if std::mem::take(&mut self.unseen) {
            core.machine.spinners_on_free_locks(false);
        }
        core.note_taken(object);
        let flow = core.pass(thread, freed);
        core.vertex(thread, -1);
        flow
    }

    pub(in crate::schedule) fn unlock<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        object: ObjectId,
    ) -> Flow {
        let here = core.here(thread);
        if self.owner != Some(thread) {
            core.note_not_held(thread, object);
            return core.go_on(thread);
        }
        self.owner = None;
        self.freed = Some(here);
        match self.spinning.iter().position(|waiter| core.machine.is_spinning(*waiter)) {
            Some(place) => {
                if let Some(waiter) = self.spinning.remove(place) {
                    core.machine.retry(waiter, thread);
                }
            }
            None if !self.spinning.is_empty() => {
                self.unseen = true;
                core.machine.spinners_on_free_locks(true);
            }
            None => {}
        }
        core.note_given_back(object);
        core.go_on(thread)
    }
}
