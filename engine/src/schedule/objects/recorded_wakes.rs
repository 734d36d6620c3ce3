//! Recorded wake edges, for waits whose object is not simulated: the same thread wakes the same thread again.

use rustc_hash::FxHashMap;

use super::queue::WaitQueue;
use crate::program::{EdgeId, Operation, Program};
use crate::schedule::actor::{Flow, Moment};
use crate::schedule::machine::{Machine, Why};
use crate::schedule::simulation::Simulation;
use crate::schedule::source::Operations;

/// All edges of a program.
#[derive(Debug, Default)]
pub(in crate::schedule) struct Edges {
    /// All edges by number, on machines that keep when each was released.
    all: Vec<Edge>,
    /// Released edges, on other machines.
    released: Released,
    /// Threads waiting for each edge, on other machines.
    waiting: FxHashMap<u32, WaitQueue>,
    /// Some edges were waited for by spinning.
    some_spin: bool,
}

#[derive(Clone, Debug, Default)]
struct Edge {
    released: Option<Moment>,
    waiters: WaitQueue,
}

/// A set of edges as words of 64 bits, in a map: small and fast whatever their numbers are.
#[derive(Debug, Default)]
struct Released(FxHashMap<u32, u64>);

impl Released {
    fn contains(&self, edge: u32) -> bool {
        let (word, bit) = place(edge);
        self.0.get(&word).is_some_and(|bits| bits & bit != 0)
    }

    /// False if the edge was in the set already.
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
    /// Room for the edges of a program; `decides`: whether times of release are kept.
    pub(in crate::schedule) fn of(program: &Program, decides: bool) -> Edges {
        let room = if decides { edge_count(program) } else { 0 };
        // Kept here, since looking up an edge each time would be a cache miss.
        let some_spin = program.has_spinning();
        Edges { all: vec![Edge::default(); room], some_spin, ..Edges::default() }
    }
}

/// One more than the highest edge number in the program. [`Program::check`] limits that number by the number of
/// operations.
fn edge_count(program: &Program) -> usize {
    let operations = program.threads.iter().flat_map(|thread| &thread.operations);
    let edges = operations.filter_map(|operation| match operation {
        Operation::Release(edge) | Operation::Await(edge) => Some(edge.0 as usize + 1),
        _ => None,
    });
    edges.max().unwrap_or(0)
}

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    pub(in crate::schedule) fn release(&mut self, thread: u32, edge: EdgeId) -> Flow {
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

    pub(in crate::schedule) fn await_release(&mut self, thread: u32, edge: EdgeId) -> Flow {
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
        fn released_edges_are_kept_as_a_set(edges in prop::collection::vec(prop_oneof![0..40_u32, u32::MAX - 3..=u32::MAX], 0..120)) {
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
