//! The slack metric (Hollingsworth and Miller 1994, section 3): a lower bound on the gain from improving a function; the
//! critical path gives an upper bound.
//!
//! The paper sends messages along the graph; the result has a short definition. Let the *split* of a vertex be the last
//! vertex of the critical path on the longest way to it. Every edge that is not the longest way into its vertex makes a
//! *slack segment*: the critical path from the split of its tail to the split of its head, if they are in this order. The
//! segment's slack is the edge's free slack (the paper's S messages, from critical vertices and from merges off the critical
//! path alike). Calls on the critical path may get shorter, within each segment by its slack at most in all. Then no other
//! path becomes the longest: an excursion from the critical path lacks at least the slacks of all segments that it crosses.

use super::activity::ActivityGraph;
use super::subjects::function;
use super::timing::VertexTimes;
use crate::program::FunctionRef;
use crate::time::Ticks;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A stretch of the critical path that another path bypasses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlackSegment {
    /// Number of edges of the critical path after which the other path leaves it.
    pub from: u32,
    /// The other path is back after this many edges.
    pub to: u32,
    /// How much shorter the other path is than this stretch of the critical path.
    pub slack: Ticks,
}

/// A function's time on the critical path, and the part of it that can surely be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionSlack {
    /// The function.
    pub function: FunctionRef,
    /// Its self time on the critical path: an upper bound on the gain from improving it.
    pub critical: Ticks,
    /// The slack metric: a lower bound on the gain from leaving it out.
    pub slack: Ticks,
}

/// The slack segments of the critical path that [`VertexTimes::critical_path`] chooses, in order of their beginnings. O(edges),
/// and sorting the segments.
pub fn slack_segments(graph: &ActivityGraph, timing: &VertexTimes) -> Vec<SlackSegment> {
    let path = timing.critical_path(graph);
    let vertices = graph.vertices();
    /// Number of an edge that is not on the critical path.
    const OFF: u32 = u32::MAX;
    let mut split = vec![OFF; vertices];
    if let Some(source) = split.first_mut() {
        *source = 0;
    }
    // Early times of the vertices of the critical path.
    let mut times = vec![0_u64];
    for (place, edge) in path.iter().enumerate() {
        let vertex = graph.activity(*edge).head.0 as usize;
        split[vertex] = place as u32 + 1;
        times.push(timing.early[vertex]);
    }
    let mut segments = Vec::new();
    for vertex in 1..vertices {
        let best = timing.best[vertex] as usize;
        if split[vertex] == OFF {
            split[vertex] = split[graph.tail(best)];
        }
        let to = split[vertex];
        for edge in graph.range(vertex).filter(|edge| *edge != best) {
            let (from, slack) = (split[graph.tail(edge)], timing.free(graph, edge, vertex));
            // A slack that is as long as the segment itself limits nothing.
            if from < to && slack < times[to as usize] - times[from as usize] {
                segments.push(SlackSegment { from, to, slack: Ticks(slack) });
            }
        }
    }
    segments.sort_unstable_by_key(|segment| (segment.from, Reverse(segment.to), segment.slack));
    segments
}

/// Removes each segment that lies inside another one with no more slack: it adds no limit. `segments` must be sorted.
fn without_implied(mut segments: Vec<SlackSegment>, places: usize) -> Vec<SlackSegment> {
    // A Fenwick tree by segment end, from the last place: the least slack of the segments so far that end at this place
    // or later.
    let mut least = vec![u64::MAX; places + 2];
    segments.retain(|segment| {
        let mut at = places + 1 - segment.to as usize;
        let (mut place, mut known) = (at, u64::MAX);
        while place > 0 {
            known = known.min(least[place]);
            place &= place - 1;
        }
        if known <= segment.slack.0 {
            return false;
        }
        while at < least.len() {
            least[at] = least[at].min(segment.slack.0);
            at += at.isolate_lowest_one();
        }
        true
    });
    segments
}

/// Critical path and slack of every function with self time on the critical path, in order of their numbers.
///
/// As in the paper's third phase, each call on the critical path is granted the unused slack of its tightest segment. A
/// function's use of a segment is the sum of its grants since the segment's beginning, so no counter is kept for each
/// segment.
pub fn function_slacks(graph: &ActivityGraph, timing: &VertexTimes) -> Vec<FunctionSlack> {
    let mut calls: FxHashMap<FunctionRef, Vec<(u32, u64)>> = FxHashMap::default();
    let path = timing.critical_path(graph);
    for (place, edge) in path.iter().enumerate() {
        let edge = edge.0 as usize;
        if let Some(function) = function(graph, edge)
            && graph.length(edge) > 0
        {
            calls.entry(function).or_default().push((place as u32, graph.length(edge)));
        }
    }
    let segments = without_implied(slack_segments(graph, timing), path.len());
    let slacks = calls.into_iter().map(|(function, calls)| {
        let critical = calls.iter().map(|(_, length)| length).sum();
        FunctionSlack { function, critical: Ticks(critical), slack: Ticks(granted(&calls, &segments)) }
    });
    let mut slacks: Vec<FunctionSlack> = slacks.collect();
    slacks.sort_by_key(|slack| slack.function);
    slacks
}

/// The sum of slack granted to all calls of one function.
fn granted(calls: &[(u32, u64)], segments: &[SlackSegment]) -> u64 {
    // Segments around the present place: the total at which each is used up, the least first, and its end.
    let mut around: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    let mut coming = segments.iter().peekable();
    let mut total = 0_u64;
    for (place, length) in calls {
        while let Some(segment) = coming.next_if(|segment| segment.from <= *place) {
            // Segments that end before the call do not limit it. The function has used no slack of the remaining
            // segments yet.
            if segment.to > *place {
                around.push(Reverse((segment.slack.0.saturating_add(total), segment.to)));
            }
        }
        while around.peek().is_some_and(|Reverse((_, to))| *to <= *place) {
            around.pop();
        }
        let most = around.peek().map_or(u64::MAX, |Reverse((most, _))| *most);
        total += (*length).min(most.saturating_sub(total));
    }
    total
}
