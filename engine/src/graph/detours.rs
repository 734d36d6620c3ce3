//! Where paths can leave the longest way: the detours that matter, arranged so that the cheapest one along any part of the
//! way is found in logarithmic time.
//!
//! The longest ways into all vertices form a tree under the source. Every path goes back from the sink along that tree, and
//! leaves it at some *detours*: edges that are not the longest way into their vertex. Each detour costs its free slack. The
//! cheapest path with a detour costs the detour's total slack, and these paths differ from each other. So the k longest paths
//! use only the detours with the k smallest total slacks, and those equal to the last.

use super::activity::ActivityGraph;
use super::timing::VertexTimes;

/// An edge that is not the longest way into its vertex.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detour {
    pub(super) edge: u32,
    /// The first junction on the longest way to the detour's tail; 0 if there is none.
    pub(super) beyond: u32,
    /// Its free slack.
    pub(super) cost: u64,
}

/// A vertex with detours. Number 0 stands for none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Junction {
    pub(super) vertex: u32,
    /// The next junction on the longest way to this junction, towards the source.
    pub(super) above: u32,
    pub(super) depth: u32,
    /// A junction further up (skew-binary jumps: Myers, "An applicative random-access stack", 1983).
    jump: u32,
    /// The junction with the cheapest detour from here up to the jump, which is excluded.
    cheapest: u32,
    /// Index of the junction's first detour; a junction's detours are sorted, cheapest first.
    first: u32,
}

/// The detours with at most a given total slack.
#[derive(Debug, Default)]
pub(super) struct Detours {
    pub(super) junctions: Vec<Junction>,
    pub(super) detours: Vec<Detour>,
    /// The first junction on the longest way to the sink.
    pub(super) last: u32,
    /// Paths up to this cost are complete: all their detours are here.
    pub(super) most: u64,
    /// Whether the list contains all detours of the graph.
    pub(super) complete: bool,
}

impl Detours {
    /// At least `wanted` detours of least total slack, or all if there are fewer. O(edges + wanted log
    /// wanted).
    pub(super) fn of(graph: &ActivityGraph, timing: &VertexTimes, wanted: usize) -> Detours {
        let (most, complete) = most_slack(graph, timing, wanted);
        let vertices = graph.vertices();
        // For each vertex: the first junction on the longest way to it, itself included.
        let mut near = vec![0_u32; vertices];
        let mut junctions = vec![Junction::default()];
        let mut detours: Vec<Detour> = Vec::new();
        for vertex in 1..vertices {
            let best = timing.best[vertex] as usize;
            let above = near[graph.tail(best)];
            near[vertex] = above;
            let range = graph.range(vertex);
            if range.len() == 1 {
                continue;
            }
            let (spare, first) = (timing.late[vertex].wrapping_sub(timing.early[vertex]), detours.len());
            for edge in range.filter(|edge| *edge != best) {
                let cost = timing.free(graph, edge, vertex);
                if cost.wrapping_add(spare) <= most {
                    let beyond = near[graph.tail(edge)];
                    detours.push(Detour { edge: edge as u32, beyond, cost });
                }
            }
            if detours.len() > first {
                detours[first..].sort_unstable_by_key(|detour| (detour.cost, detour.edge));
                near[vertex] = junctions.len() as u32;
                let junction =
                    Junction { vertex: vertex as u32, above, first: first as u32, ..Junction::default() };
                add(&mut junctions, &detours, junction);
            }
        }
        let last = near.last().copied().unwrap_or(0);
        Detours { junctions, detours, last, most, complete }
    }

    /// The junction with the cheapest detour from `start` up to depth `stop`, which is excluded; of equal ones the one
    /// nearest to the source.
    pub(super) fn cheapest(&self, start: u32, stop: u32) -> Option<u32> {
        let mut at = start;
        let mut found: Option<u32> = None;
        while self.junctions[at as usize].depth > stop {
            let junction = self.junctions[at as usize];
            let (least, next) = if self.junctions[junction.jump as usize].depth >= stop {
                (junction.cheapest, junction.jump)
            } else {
                (at, junction.above)
            };
            found = Some(found.map_or(least, |found| cheaper(&self.junctions, &self.detours, found, least)));
            at = next;
        }
        found
    }

    /// The detour of a junction with this rank, and its number.
    pub(super) fn at(&self, junction: u32, rank: u32) -> Option<(u32, Detour)> {
        let end =
            self.junctions.get(junction as usize + 1).map_or(self.detours.len(), |next| next.first as usize);
        let number = self.junctions[junction as usize].first as usize + rank as usize;
        (number < end).then(|| (number as u32, self.detours[number]))
    }
}

/// The `wanted`-th smallest total slack of a detour, and whether there are no more detours than `wanted`.
fn most_slack(graph: &ActivityGraph, timing: &VertexTimes, wanted: usize) -> (u64, bool) {
    let mut slacks = Vec::new();
    for vertex in 1..graph.vertices() {
        let range = graph.range(vertex);
        if range.len() == 1 {
            continue;
        }
        let (best, late) = (timing.best[vertex] as usize, timing.late[vertex]);
        for (edge, (tail, length)) in range.clone().zip(graph.steps(range)) {
            if edge != best {
                slacks.push(late.wrapping_sub(length).wrapping_sub(timing.early[tail as usize]));
            }
        }
    }
    match wanted.checked_sub(1) {
        Some(place) if place < slacks.len() => {
            let (_, most, _) = slacks.select_nth_unstable(place);
            (*most, false)
        }
        _ => (u64::MAX, true),
    }
}

fn add(junctions: &mut Vec<Junction>, detours: &[Detour], mut junction: Junction) {
    let own = junctions.len() as u32;
    let above = junctions[junction.above as usize];
    let jump = junctions[above.jump as usize];
    let further = junctions[jump.jump as usize];
    junction.depth = above.depth + 1;
    let even = above.depth - jump.depth == jump.depth - further.depth;
    junctions.push(junction);
    let (mut cheapest, mut target) = (own, junction.above);
    if even && junction.above != 0 {
        for other in [above.cheapest, jump.cheapest] {
            cheapest = cheaper(junctions, detours, cheapest, other);
        }
        target = jump.jump;
    }
    let added = &mut junctions[own as usize];
    (added.jump, added.cheapest) = (target, cheapest);
}

/// The junction with the cheaper detour; of equal ones the one nearer to the source. 0 stands for none.
fn cheaper(junctions: &[Junction], detours: &[Detour], a: u32, b: u32) -> u32 {
    if a == 0 || b == 0 {
        return a.max(b);
    }
    let key = |junction: u32| (detours[junctions[junction as usize].first as usize].cost, junction);
    key(a).min(key(b)).1
}
