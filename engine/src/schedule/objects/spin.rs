//! Spin locks: like a mutex, but a waiter keeps its processor busy. A thread that lost its processor while spinning
//! sees only when it has one again whether the lock is free.

use std::collections::VecDeque;

use crate::program::ObjectId;
use crate::schedule::actor::{Flow, Moment, Stage};
use crate::schedule::machine::Machine;
use crate::schedule::simulation::Simulation;
use crate::schedule::source::Operations;

#[derive(Debug, Default)]
pub(in crate::schedule) struct Spin {
    pub(in crate::schedule) owner: Option<u32>,
    freed: Option<Moment>,
    /// Threads that spin for the lock, with or without a processor, in the order in which they came.
    spinning: VecDeque<u32>,
    /// Whether the lock was freed while none of its spinning threads had a processor.
    unseen: bool,
}

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    pub(in crate::schedule) fn spin_lock(&mut self, thread: u32, object: ObjectId) -> Flow {
        self.arrive(thread);
        let first = self.actors[thread as usize].stage == Stage::Going;
        // A thread that gets the lock at once spins too, for no time: if its arrival alone came earlier, it would spin
        // until the lock is freed.
        if first {
            self.vertex(thread, 1);
        }
        let spin = self.spins.at(object);
        // A thread that lost its processor while it spun keeps its place.
        let place = if first { None } else { spin.spinning.iter().position(|other| *other == thread) };
        if spin.owner.is_some() {
            if place.is_none() {
                spin.spinning.push_back(thread);
            }
            self.actors[thread as usize].stage = Stage::Again;
            return Flow::Spin(object);
        }
        if let Some(place) = place {
            spin.spinning.remove(place);
        }
        spin.owner = Some(thread);
        let freed = spin.freed;
        if std::mem::take(&mut spin.unseen) {
            self.machine.spinners_on_free_locks(false);
        }
        self.note_taken(object);
        let flow = self.pass(thread, freed);
        self.vertex(thread, -1);
        flow
    }

    pub(in crate::schedule) fn spin_unlock(&mut self, thread: u32, object: ObjectId) -> Flow {
        let here = self.here(thread);
        let spin = self.spins.at(object);
        if spin.owner != Some(thread) {
            self.note_not_held(thread, object);
            return self.go_on(thread);
        }
        spin.owner = None;
        spin.freed = Some(here);
        match spin.spinning.iter().position(|waiter| self.machine.is_spinning(*waiter)) {
            Some(place) => {
                if let Some(waiter) = spin.spinning.remove(place) {
                    self.machine.retry(waiter, thread);
                }
            }
            None if !spin.spinning.is_empty() => {
                spin.unseen = true;
                self.machine.spinners_on_free_locks(true);
            }
            None => {}
        }
        self.note_given_back(object);
        self.go_on(thread)
    }
}
