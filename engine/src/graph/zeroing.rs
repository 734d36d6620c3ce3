//! Logical zeroing (Hollingsworth and Miller 1994, section 4): how much shorter the critical path gets if a subject takes no
//! time. All subjects in one walk over the edges, side by side.

use super::activity::ActivityGraph;
use super::subjects::{Marks, Subject, Subjects};
use super::timing::VertexTimes;
use crate::time::Ticks;

/// A slot in memory for each vertex, reused once the last edge out of the vertex has been walked. So memory is needed only
/// for vertices with edges yet to come, which are few.
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

/// Largest number of values in memory at once: enough for many thousand subjects if there are few threads.
const MOST_NUMBERS: usize = 1 << 23;

/// For each subject in `which`, how much shorter the critical path gets if the subject takes no time. One walk over the
/// edges computes all subjects, unless the graph is so wide that it would need too much memory. O(edges + subjects ·
/// merges), where a merge is a vertex with more than one edge into it: at other vertices only the edge's own subjects
/// take work.
pub fn zeroing(
    graph: &ActivityGraph,
    timing: &VertexTimes,
    subjects: &Subjects,
    which: &[Subject],
) -> Vec<Ticks> {
    let places = Places::of(graph);
    let mut gains = Vec::with_capacity(which.len());
    for some in which.chunks((MOST_NUMBERS / places.count.max(1)).max(1)) {
        let marks = subjects.marks(graph, some);
        let left = longest_without(graph, &places, &marks, some.len());
        gains.extend(left.iter().map(|left| Ticks(timing.length().0.saturating_sub(*left))));
    }
    gains
}

/// For each subject, the length of the longest path if the subject takes no time.
fn longest_without(graph: &ActivityGraph, places: &Places, marks: &Marks<'_>, width: usize) -> Vec<u64> {
    // The way to a vertex without a subject is `all` + `own` long, modulo 2⁶⁴, since `own` may be below zero. The sum never
    // is, and `ActivityGraph::check` bounds it.
    let mut all = vec![0_u64; places.count];
    let mut own = vec![0_u64; places.count * width];
    let mut longest = vec![0_u64; width];
    let mut kept: Vec<(usize, u64)> = Vec::new();
    for vertex in 1..graph.vertices() {
        let place = places.of[vertex] as usize;
        let range = graph.range(vertex);
        if range.len() == 1 {
            let from = places.of[graph.tail(range.start)] as usize;
            if from != place {
                own.copy_within(from * width..(from + 1) * width, place * width);
            }
            all[place] = all[from].wrapping_add(graph.length(range.start));
            let own = &mut own[place * width..][..width];
            marks.each(range.start, |subject, part| own[subject] = own[subject].wrapping_sub(part));
            continue;
        }
        longest.fill(0);
        for (edge, (tail, length)) in range.clone().zip(graph.steps(range)) {
            let from = places.of[tail as usize] as usize;
            let (before, length) = (&own[from * width..][..width], all[from].wrapping_add(length));
            // The edge belongs to only a few subjects, whose sums get the edge's length without the counted part.
            kept.clear();
            marks.each(edge, |subject, part| {
                let without = before[subject].wrapping_add(length).wrapping_sub(part);
                kept.push((subject, longest[subject].max(without)));
            });
            for (longest, before) in longest.iter_mut().zip(before) {
                *longest = (*longest).max(before.wrapping_add(length));
            }
            for (subject, without) in &kept {
                longest[*subject] = *without;
            }
        }
        all[place] = 0;
        own[place * width..][..width].copy_from_slice(&longest);
    }
    let last = places.of.last().map_or(0, |place| *place as usize);
    let own = own.get(last * width..(last + 1) * width).unwrap_or_default();
    own.iter().map(|own| own.wrapping_add(all[last])).collect()
}
