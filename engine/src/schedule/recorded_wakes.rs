//! Recorded wake edges whose object is not understood: replayed as they are.

use rustc_hash::FxHashMap;

use super::actor::{Flow, Moment};
use super::machine::{Machine, Why};
use super::queue::WaitQueue;
use super::simulation::Simulation;
use super::source::Operations;
use crate::program::{EdgeId, Operation, Program};

/// All edges of a program.
#[derive(Debug, Default)]
pub(super) struct Edges {
    /// Every edge, where it matters when it was released.
    all: Vec<Edge>,
    /// Those released, where it does not.
    released: Released,
    /// Waiting threads of edges whose release time does not matter.
    waiting: FxHashMap<u32, WaitQueue>,
    /// Some of them are waited for awake.
    some_spin: bool,
}

#[derive(Clone, Debug, Default)]
struct Edge {
    released: Option<Moment>,
    waiters: WaitQueue,
}

/// A set of edges: 64 of them with one look-up, so that it stays small and fast, whatever numbers they have.
#[derive(Debug, Default)]
struct Released(FxHashMap<u32, u64>);

impl Released {
    fn contains(&self, edge: u32) -> bool {
        let (word, bit) = place(edge);
        self.0.get(&word).is_some_and(|bits| bits & bit != 0)
    }

    /// False if it was there already.
    fn insert(&mut self, edge: u32) -> bool {
        let (word, bit) = place(edge);
        let bits = self.0.entry(word).or_insert(0);
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }
}

fn place(edge: u32) -> (u32, u64) {
    (edge / u64::BITS, 1 << (edge % u64::BITS))
}

impl Edges {
    /// Room for the edges of a program; `decides`: their times of release matter.
    pub(super) fn of(program: &Program, decides: bool) -> Edges {
        let room = if decides { edge_count(program) } else { 0 };
        // The name of an edge that is waited for is far away in memory.
        let some_spin = program.has_spinning();
        Edges { all: vec![Edge::default(); room], some_spin, ..Edges::default() }
    }
}

/// How many edges the program's operations number. [`Program::check`] bounds it by the number of operations.
fn edge_count(program: &Program) -> usize {
    let operations = program.threads.iter().flat_map(|thread| &thread.operations);
    let edges = operations.filter_map(|operation| match operation {
        Operation::Release(edge) | Operation::Await(edge) => Some(edge.0 as usize + 1),
        _ => None,
    });
    edges.max().unwrap_or(0)
}

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    pub(super) fn release(&mut self, thread: u32, edge: EdgeId) -> Flow {
        let here = self.here(thread);
        if !M::DECIDES {
            return self.release_only(thread, edge, here);
        }
        let state = &mut self.edges.all[edge.0 as usize];
        if state.released.is_some() {
            self.note_released_twice(thread, edge);
            return self.go_on(thread);
        }
        state.released = Some(here);
        while let Some(waiter) = self.edges.all[edge.0 as usize].waiters.pop(&self.links) {
            self.grant(waiter, here, thread);
        }
        self.go_on(thread)
    }

    fn release_only(&mut self, thread: u32, edge: EdgeId, here: Moment) -> Flow {
        if !self.edges.released.insert(edge.0) {
            self.note_released_twice(thread, edge);
        } else if let Some(mut waiters) = self.edges.waiting.remove(&edge.0) {
            while let Some(waiter) = waiters.pop(&self.links) {
                self.grant(waiter, here, thread);
            }
        }
        self.go_on(thread)
    }

    pub(super) fn await_release(&mut self, thread: u32, edge: EdgeId) -> Flow {
        self.arrive(thread);
        if !M::DECIDES {
            if self.edges.released.contains(edge.0) {
                return self.go_on(thread);
            }
            self.edges.waiting.entry(edge.0).or_default().push(&mut self.links, thread);
            return Flow::Wait(self.why(edge));
        }
        let state = &mut self.edges.all[edge.0 as usize];
        match state.released {
            Some(released) => self.pass(thread, Some(released)),
            None => {
                state.waiters.push(&mut self.links, thread);
                Flow::Wait(self.why(edge))
            }
        }
    }

    fn why(&self, edge: EdgeId) -> Why {
        if self.edges.some_spin && self.program.is_spinning(edge) { Why::Turn } else { Why::Edge }
    }
}

#[cfg(test)]
mod tests {
    use super::Released;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_of_bits_are_a_set(edges in prop::collection::vec(prop_oneof![0..40_u32, u32::MAX - 3..=u32::MAX], 0..120)) {
            let mut words = Released::default();
            let mut set = std::collections::BTreeSet::new();
            for edge in edges {
                prop_assert_eq!(words.insert(edge), set.insert(edge));
                prop_assert_eq!(words.contains(edge), true);
                prop_assert_eq!(words.contains(41), set.contains(&41));
            }
        }
    }
}
