//! Recorded wake edges whose object is not understood: replayed as they are.

use super::actor::{Flow, Moment};
use super::queue::WaitQueue;
use super::simulation::Simulation;
use crate::program::{EdgeId, Operation, Program};

#[derive(Clone, Debug, Default)]
pub(super) struct Edge {
    released: Option<Moment>,
    waiters: WaitQueue,
}

/// How many edges the program's operations number. [`Program::check`] bounds it by the number of operations.
pub(super) fn edge_count(program: &Program) -> usize {
    let operations = program.threads.iter().flat_map(|thread| &thread.operations);
    let edges = operations.filter_map(|operation| match operation {
        Operation::Release(edge) | Operation::Await(edge) => Some(edge.0 as usize + 1),
        _ => None,
    });
    edges.max().unwrap_or(0)
}

impl Simulation<'_> {
    pub(super) fn release(&mut self, thread: u32, edge: EdgeId) -> Flow {
        let here = self.here(thread);
        let state = &mut self.edges[edge.0 as usize];
        if state.released.is_some() {
            self.note_released_twice(thread, edge);
            return self.go_on(thread);
        }
        state.released = Some(here);
        while let Some(waiter) = self.edges[edge.0 as usize].waiters.pop(&self.links) {
            self.grant(waiter, here);
        }
        self.go_on(thread)
    }

    pub(super) fn await_release(&mut self, thread: u32, edge: EdgeId) -> Flow {
        self.arrive(thread);
        let state = &mut self.edges[edge.0 as usize];
        match state.released {
            Some(released) => self.pass(thread, Some(released)),
            None => {
                state.waiters.push(&mut self.links, thread);
                Flow::Stop
            }
        }
    }
}
