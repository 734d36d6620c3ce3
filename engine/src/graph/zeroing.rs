//! Logical zeroing (Hollingsworth and Miller 1994, section 4): how much shorter the critical path gets if something takes
//! no time at all. All subjects in one walk over the edges, side by side.

use super::activity::ActivityGraph;
use super::subjects::{AT_ONCE, Subject, Subjects};
use super::timing::Timing;
use crate::time::Ticks;

/// A place in memory for each vertex, used again as soon as the last edge out of it has been walked: what is known of a
/// vertex is needed only so long, and there are few vertices for which it is needed at once.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) of: Vec<u32>,
    pub(super) count: usize,
}

impl Places {
    pub(super) fn of(graph: &ActivityGraph) -> Places {
        let vertices = graph.vertices();
        let mut waiting = vec![0_u32; vertices];
        for (tail, _) in graph.steps(0..graph.edges()) {
            waiting[tail as usize] += 1;
        }
        let mut of = vec![0_u32; vertices];
        let mut free = Vec::new();
        let mut count = 1;
        for vertex in 1..vertices {
            for (tail, _) in graph.steps(graph.range(vertex)) {
                let left = &mut waiting[tail as usize];
                *left -= 1;
                if *left == 0 {
                    free.push(of[tail as usize]);
                }
            }
            of[vertex] = free.pop().unwrap_or_else(|| {
                count += 1;
                count - 1
            });
        }
        Places { of, count: count as usize }
    }
}

/// How much shorter the critical path gets if a subject takes no time, for each of them, in order.
pub fn zeroing(graph: &ActivityGraph, timing: &Timing, subjects: &Subjects, which: &[Subject]) -> Vec<Ticks> {
    let places = Places::of(graph);
    let mut gains = Vec::with_capacity(which.len());
    for some in which.chunks(AT_ONCE) {
        let marks = subjects.marks(graph, some);
        let left = longest_without(graph, &places, &marks, some.len());
        gains.extend(left.iter().map(|left| Ticks(timing.length().0.saturating_sub(*left))));
    }
    gains
}

/// The longest path if what is marked takes no time, for each mark.
fn longest_without(graph: &ActivityGraph, places: &Places, marks: &[u64], width: usize) -> Vec<u64> {
    let mut known = vec![0_u64; places.count * width];
    let mut longest = vec![0_u64; width];
    for vertex in 1..graph.vertices() {
        let range = graph.range(vertex);
        longest.fill(0);
        for (edge, (tail, length)) in range.clone().zip(graph.steps(range)) {
            let place = places.of[tail as usize] as usize * width;
            let before = &known[place..place + width];
            let mut bits = marks[edge];
            if bits == 0 {
                for (longest, before) in longest.iter_mut().zip(before) {
                    *longest = (*longest).max(before.wrapping_add(length));
                }
                continue;
            }
            // Few are marked: their sums are made again, without the length.
            let mut kept = [0_u64; AT_ONCE];
            let marked = bits;
            while bits != 0 {
                let subject = bits.trailing_zeros() as usize;
                kept[subject] = longest[subject].max(before[subject]);
                bits &= bits - 1;
            }
            for (longest, before) in longest.iter_mut().zip(before) {
                *longest = (*longest).max(before.wrapping_add(length));
            }
            bits = marked;
            while bits != 0 {
                let subject = bits.trailing_zeros() as usize;
                longest[subject] = kept[subject];
                bits &= bits - 1;
            }
        }
        let place = places.of[vertex] as usize * width;
        known[place..place + width].copy_from_slice(&longest);
    }
    longest
}
