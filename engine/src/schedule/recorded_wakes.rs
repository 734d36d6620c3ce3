//! Recorded wake edges whose object is not understood: replayed as they are.

use std::collections::BTreeMap;

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
}

#[derive(Clone, Debug, Default)]
struct Edge {
    released: Option<Moment>,
    waiters: WaitQueue,
}

/// A set of edges as ranges: edges are numbered about in the order in which they are released, so that it stays small
/// however many there are.
#[derive(Debug, Default)]
struct Released(BTreeMap<u32, u32>);

impl Released {
    fn contains(&self, edge: u32) -> bool {
        self.0.range(..=edge).next_back().is_some_and(|(_, last)| *last >= edge)
    }

    /// False if it was there already.
    fn insert(&mut self, edge: u32) -> bool {
        let before = self.0.range(..=edge).next_back().map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, last)| last >= edge) {
            return false;
        }
        let after = edge.checked_add(1).and_then(|next| self.0.remove(&next));
        let last = after.unwrap_or(edge);
        match before {
            Some((first, end)) if end.checked_add(1) == Some(edge) => self.0.insert(first, last),
            _ => self.0.insert(edge, last),
        };
        true
    }
}

impl Edges {
    /// Room for the edges of a program whose times of release matter.
    pub(super) fn of(program: &Program) -> Edges {
        Edges { all: vec![Edge::default(); edge_count(program)], ..Edges::default() }
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
        if self.program.is_spinning(edge) { Why::Turn } else { Why::Edge }
    }
}

#[cfg(test)]
mod tests {
    use super::Released;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_are_a_set(edges in prop::collection::vec(prop_oneof![0..40_u32, u32::MAX - 3..=u32::MAX], 0..120)) {
            let mut ranges = Released::default();
            let mut set = std::collections::BTreeSet::new();
            for edge in edges {
                prop_assert_eq!(ranges.insert(edge), set.insert(edge));
                prop_assert_eq!(ranges.contains(edge), true);
                prop_assert_eq!(ranges.contains(41), set.contains(&41));
                let gaps = set.iter().filter(|edge| edge.checked_add(1).is_none_or(|next| !set.contains(&next)));
                prop_assert_eq!(ranges.0.len(), gaps.count());
            }
        }
    }
}
