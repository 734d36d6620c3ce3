//! Recorded wake edges, for waits whose object is not simulated: the same thread wakes the same thread again.

use rustc_hash::FxHashMap;

use super::queue::WaitQueue;
use crate::program::{EdgeId, Operation, Program};
use crate::schedule::actor::{Flow, Moment};
use crate::schedule::core::Core;
use crate::schedule::machine::{Machine, Why};

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

impl Edges {
    pub(in crate::schedule) fn release<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        edge: EdgeId,
    ) -> Flow {
        let here = core.here(thread);
        if !M::DECIDES {
            return self.release_only(core, thread, edge, here);
        }
        let state = &mut self.all[edge.0 as usize];
        if state.released.is_some() {
            note_released_twice(core, thread, edge);
            return core.go_on(thread);
        }
        state.released = Some(here);
        while let Some(waiter) = self.all[edge.0 as usize].waiters.pop(&core.links) {
            core.grant(waiter, here, thread);
        }
        core.go_on(thread)
    }

    fn release_only<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        edge: EdgeId,
        here: Moment,
    ) -> Flow {
        if !self.released.insert(edge.0) {
            note_released_twice(core, thread, edge);
        } else if let Some(mut waiters) = self.waiting.remove(&edge.0) {
            while let Some(waiter) = waiters.pop(&core.links) {
                core.grant(waiter, here, thread);
            }
        }
        core.go_on(thread)
    }

    pub(in crate::schedule) fn await_release<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        edge: EdgeId,
    ) -> Flow {
        core.arrive(thread);
        if !M::DECIDES {
            if self.released.contains(edge.0) {
                return core.go_on(thread);
            }
            self.waiting.entry(edge.0).or_default().push(&mut core.links, thread);
            return Flow::Wait(self.why(core.program, edge));
        }
        let state = &mut self.all[edge.0 as usize];
        match state.released {
            Some(released) => core.pass(thread, Some(released)),
            None => {
                state.waiters.push(&mut core.links, thread);
                Flow::Wait(self.why(core.program, edge))
            }
        }
    }

    fn why(&self, program: &Program, edge: EdgeId) -> Why {
        if self.some_spin && program.is_spinning(edge) { Why::Turn } else { Why::Edge }
    }
}

fn note_released_twice<M: Machine>(core: &mut Core<'_, M>, thread: u32, edge: EdgeId) {
    core.warnings.released_twice(core.program, thread, core.actors[thread as usize].next, edge);
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
