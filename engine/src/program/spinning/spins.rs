//! Stretches of running in which a thread only checks whether it may go on, and the threads that ended them.
//!
//! Such a stretch is not work. Another thread of the process is assumed to end it: the one that stopped computing just
//! then, else one that computes, else the last one that computed. An edge from that thread replays this. If no thread
//! of the process computed during the stretch, the thread waits for something outside the process, and the stretch
//! counts as computing. A stretch that ends in a sleep needs no edge: the sleep has one.
//!
//! A rank of MPI waits for other processes ([`super::mpi`]); [`ranks`] chooses the one that ended its wait.

mod pieces;
mod ranks;

use self::pieces::{Known, Piece};
use self::ranks::Works;
use super::mpi::Mpi;
use super::spin_locks::{self, HandOver, Spans, SpinLocks};
use crate::event::FunctionId;
use crate::program::SPINNING;
use crate::program::sampled::sampled_code::SampledCode;
use crate::timeline::{self, State, Timeline};
use rustc_hash::{FxHashMap, FxHashSet};

/// Shorter stretches are first checks that found nothing to wait for.
const SHORTEST_NS: u64 = 1_000;
/// Longest time until a spinning thread notices a change: a cache line's transfer, and two probes.
const SEEN_WITHIN_NS: u64 = 20_000;

/// A mark at an instant of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::program) struct Mark {
    /// Time of the mark, ns.
    pub(in crate::program) time: u64,
    pub(in crate::program) kind: MarkKind,
}

/// The kind of a mark; edges are counted from 0. The order decides at one instant: a thread ends others' spinning before it
/// spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::program) enum MarkKind {
    /// Releases a spin lock, by number.
    Give(u32),
    /// Ends the spinning of another thread: number of the edge.
    Release(u32),
    /// Stops spinning because of this edge; `None`: because the thread goes to sleep or takes a spin lock.
    End(Option<u32>),
    /// Takes a spin lock, by number.
    Take(u32),
    /// Takes the spin lock with this number and releases it at once.
    Touch(u32),
    /// Begins to spin.
    Begin,
}

/// Begins and ends of a thread's spinning, ns.
pub(in crate::program) fn spun(marks: &[Mark]) -> Vec<(u64, u64)> {
    let mut begun = None;
    let spun = marks.iter().filter_map(|mark| match mark.kind {
        MarkKind::Begin => {
            begun = Some(mark.time);
            None
        }
        MarkKind::End(_) => begun.take().map(|from| (from, mark.time)),
        _ => None,
    });
    spun.collect()
}

/// All stretches of spinning of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::program) struct Spins {
    /// For each thread of the timeline: marks in order of time.
    pub(in crate::program) marks: Vec<Vec<Mark>>,
    /// Number of edges.
    pub(in crate::program) edges: u32,
    /// Number of edges whose source is a guess, since several threads computed.
    pub(in crate::program) guessed: u32,
    /// CPU time in stretches, ns.
    pub(in crate::program) spun_ns: u64,
    /// Number of stretches for spin locks, and the process of each sampled spin lock.
    pub(in crate::program) hand_overs: usize,
    pub(in crate::program) locks: Vec<u32>,
    /// Edges that end a wait of a rank of MPI, ascending, each with the call that waits.
    pub(in crate::program) calls: Vec<(u32, &'static str)>,
    pub(in crate::program) mpi: Mpi,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: u64,
    to: u64,
    ran_ns: u64,
    into_sleep: bool,
    tries: bool,
    /// The call of MPI in which the thread waits for another rank.
    call: Option<&'static str>,
}

/// A thread's running time, divided into computing and spinning.
#[derive(Clone, Debug, Default)]
struct Ran {
    stretches: Vec<Stretch>,
    /// Begins and ends, ascending.
    computes: Vec<(u64, u64)>,
    /// Stretches of running without recorded operations, cut where the thread slept.
    plain: Spans,
    /// Its work, if the thread calls MPI.
    works: Works,
}

/// The threads that may end a thread's spinning.
#[derive(Clone, Copy, Debug)]
struct Peers<'a> {
    /// Threads of the process.
    same: &'a [usize],
    /// Threads that call MPI in other ranks.
    ranks: &'a [usize],
    /// Time between two samples, ns.
    period_ns: u64,
}

impl Spins {
    pub(in crate::program) fn of(timeline: &Timeline, sampled: &SampledCode) -> Spins {
        let waiting = sampled.waiting(timeline);
        let declared: FxHashSet<FunctionId> = timeline
            .functions
            .iter()
            .filter(|fact| super::busy_wait::is_declared(&timeline.spin, &fact.name))
            .map(|fact| fact.id)
            .collect();
        let mpi = Mpi::of(timeline, sampled);
        if !waiting.contains(&true) && declared.is_empty() && mpi.callers.is_empty() {
            return Spins::default();
        }
        let known = Known { waiting, tries: sampled.in_tries(), declared, mpi: &mpi };
        let operations = operations(timeline);
        let rans: Vec<Ran> = timeline
            .threads
            .iter()
            .zip(&operations)
            .map(|(thread, operations)| ran(timeline, thread, operations, &known))
            .collect();
        let mut same: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (index, thread) in timeline.threads.iter().enumerate() {
            same.entry(thread.pid).or_default().push(index);
        }
        let marks = vec![Vec::new(); rans.len()];
        let mut spins = Spins { marks, ..Spins::default() };
        let mut hand_overs = Vec::new();
        for (index, (thread, ran)) in timeline.threads.iter().zip(&rans).enumerate() {
            let same = same.get(&thread.pid).map_or(&[][..], Vec::as_slice);
            let ranks = if ran.stretches.iter().any(|stretch| stretch.call.is_some()) {
                mpi.callers.iter().copied().filter(|caller| !same.contains(caller)).collect()
            } else {
                Vec::new()
            };
            let peers = Peers { same, ranks: &ranks, period_ns: pieces::period_ns(timeline) };
            for stretch in &ran.stretches {
                hand_overs.extend(spins.add((index, thread.pid), *stretch, peers, &rans));
            }
        }
        spins.hand_overs = hand_overs.len();
        let spans: Vec<&Spans> = rans.iter().map(|ran| &ran.plain).collect();
        let found = SpinLocks::of(hand_overs, &spans);
        spins.locks = found.pids;
        for (thread, mark) in found.marks {
            spins.marks.get_mut(thread).into_iter().for_each(|marks| marks.push(mark));
        }
        spins.marks.iter_mut().for_each(|marks| marks.sort_unstable());
        spins.mpi = mpi;
        spins
    }

    /// Names of the edges, in order.
    pub(in crate::program) fn edge_names(&self) -> impl Iterator<Item = String> + '_ {
        let mut calls = self.calls.iter().peekable();
        (0..self.edges).map(move |number| match calls.next_if(|(edge, _)| *edge == number) {
            Some((_, call)) => format!("{SPINNING}{number} in {call}"),
            None => format!("{SPINNING}{number}"),
        })
    }

    /// Adds a stretch of spinning; returns the hand-over if it was for a spin lock.
    fn add(
        &mut self,
        (index, pid): (usize, u32),
        mut stretch: Stretch,
        peers: Peers<'_>,
        rans: &[Ran],
    ) -> Option<HandOver> {
        let mut over = None;
        let mut edge = None;
        if !stretch.into_sleep {
            let source = match stretch.call {
                Some(_) => ranks::source(index, &mut stretch, peers.ranks, rans, peers.period_ns),
                None => source(index, &stretch, peers.same, rans),
            }?;
            let spans = rans.get(source.thread).map(|ran| &ran.plain);
            if stretch.tries && spans.is_some_and(|spans| spin_locks::computes_up_to(spans, source.time)) {
                let (given, taken, begun) = (source.time, stretch.to, stretch.from);
                over = Some(HandOver { given, taken, begun, holder: source.thread, waiter: index, pid });
            } else {
                let number = self.edges;
                self.edges = self.edges.saturating_add(1);
                self.guessed = self.guessed.saturating_add(u32::from(source.is_guess));
                let mark = Mark { time: source.time, kind: MarkKind::Release(number) };
                self.marks.get_mut(source.thread).into_iter().for_each(|marks| marks.push(mark));
                self.calls.extend(stretch.call.map(|call| (number, call)));
                edge = Some(number);
            }
        }
        self.spun_ns = self.spun_ns.saturating_add(stretch.ran_ns);
        if let Some(marks) = self.marks.get_mut(index) {
            marks.push(Mark { time: stretch.from, kind: MarkKind::Begin });
            marks.push(Mark { time: stretch.to, kind: MarkKind::End(edge) });
        }
        over
    }
}

struct Source {
    thread: usize,
    time: u64,
    is_guess: bool,
}

/// The thread that ended the spinning, and when.
fn source(index: usize, stretch: &Stretch, peers: &[usize], rans: &[Ran]) -> Option<Source> {
    let mut stopped: Option<(u64, usize)> = None;
    let mut computing: Option<usize> = None;
    let mut others = 0;
    for &peer in peers.iter().filter(|peer| **peer != index) {
        let Some(ran) = rans.get(peer) else { continue };
        let before = ran.computes.partition_point(|(from, _)| *from < stretch.to);
        let Some((_, to)) = before.checked_sub(1).and_then(|last| ran.computes.get(last)) else { continue };
        if *to >= stretch.to {
            others += 1;
            computing.get_or_insert(peer);
        } else if *to > stretch.from && stopped.is_none_or(|(time, _)| time < *to) {
            stopped = Some((*to, peer));
        }
    }
    match (stopped, computing) {
        (Some((time, thread)), _) if stretch.to - time <= SEEN_WITHIN_NS => {
            Some(Source { thread, time, is_guess: false })
        }
        (_, Some(thread)) => Some(Source { thread, time: stretch.to, is_guess: others > 1 }),
        (Some((time, thread)), None) => Some(Source { thread, time, is_guess: true }),
        (None, None) => None,
    }
}

/// For each thread: stretches inside recorded operations, ascending and without overlap.
fn operations(timeline: &Timeline) -> Vec<Vec<(u64, u64)>> {
    let mut all: Vec<Vec<(u64, u64)>> = vec![Vec::new(); timeline.threads.len()];
    for used in &timeline.lock_operations {
        if let Some(list) = all.get_mut(used.thread as usize) {
            list.push((used.began.0, used.ended.0));
        }
    }
    for list in &mut all {
        list.sort_unstable();
        list.dedup_by(|next, last| {
            let overlaps = next.0 < last.1;
            if overlaps {
                last.1 = last.1.max(next.1);
            }
            overlaps
        });
    }
    all
}

fn ran(timeline: &Timeline, thread: &timeline::Thread, operations: &[(u64, u64)], known: &Known<'_>) -> Ran {
    let pieces = pieces::of_thread(timeline, thread, operations, known);
    let sleeps: FxHashSet<u64> = thread
        .intervals
        .iter()
        .filter(|interval| matches!(interval.state, State::Blocked(_)))
        .map(|interval| interval.start.0)
        .collect();
    let works = if known.mpi.callers.is_empty() { Works::default() } else { Works::of(&pieces) };
    let mut ran = Ran { works, ..Ran::default() };
    let mut open: Option<Stretch> = None;
    let mut all: Vec<Stretch> = Vec::new();
    for piece in &pieces {
        let length = piece.to - piece.from;
        match &mut open {
            Some(stretch) if piece.spins && !piece.after_break && piece.call == stretch.call => {
                stretch.to = piece.to;
                stretch.ran_ns += length;
                stretch.tries &= piece.tries;
            }
            _ => {
                all.extend(open.take());
                if piece.spins {
                    let Piece { from, to, tries, call, .. } = *piece;
                    open = Some(Stretch { from, to, ran_ns: length, into_sleep: false, tries, call });
                }
            }
        }
    }
    all.extend(open);
    for mut stretch in all {
        if stretch.ran_ns >= SHORTEST_NS {
            stretch.into_sleep = sleeps.contains(&stretch.to);
            ran.stretches.push(stretch);
        }
    }
    let mut broke = true;
    for piece in &pieces {
        broke |= piece.spins || piece.operation || piece.after_break;
        if piece.spins || piece.operation {
            continue;
        }
        match ran.plain.last_mut() {
            Some(last) if !broke => last.1 = piece.to,
            _ => ran.plain.push((piece.from, piece.to)),
        }
        broke = false;
    }
    let computes = pieces.iter().filter(|piece| !piece.spins);
    for piece in computes {
        match ran.computes.last_mut() {
            Some(last) if last.1 == piece.from => last.1 = piece.to,
            _ => ran.computes.push((piece.from, piece.to)),
        }
    }
    ran
}

#[cfg(test)]
mod tests;
