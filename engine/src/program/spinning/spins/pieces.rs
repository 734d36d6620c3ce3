//! Cuts a thread's running time into pieces, and decides which of them only wait.
//!
//! Waiting samples are those whose innermost function only waits ([`crate::program::spinning::busy_wait::is_waiter`]), those in loops
//! that only wait ([`crate::event::CodeFact::waits`]), and those in functions that the user named. Between samples, function
//! probes are exact: a function (or the time between two) whose samples nearly all wait, waits from begin to end. Elsewhere a
//! sample stands for the time up to the middle between it and its neighbours.

use crate::event::FunctionId;
use crate::program::spinning::mpi::{InMpi, Mpi};
use crate::timeline::{self, State, StepKind, Timeline};
use probe_abi::SampleReason;
use rustc_hash::{FxHashMap, FxHashSet};

/// A function waits if at least this share of its samples in a stretch of [`BUCKET_NS`] waits.
const NEARLY_ALL: f64 = 0.8;
/// Least number of samples from which a share is computed.
const FEWEST: u32 = 5;
/// Length of a stretch for which shares are computed, ns. Probes come and go during a recording, so the code between
/// them changes.
const BUCKET_NS: u64 = 200_000_000;

/// A stretch of running time in one function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) context: Option<FunctionId>,
    /// Whether the piece is in a recorded operation, whose purpose is known.
    pub(super) operation: bool,
    /// Whether the thread slept, or its state is unknown, before this piece.
    pub(super) after_break: bool,
    pub(super) spins: bool,
    /// Whether the piece waits for a spin lock.
    pub(super) tries: bool,
    /// The call of MPI in which the piece waits for another rank.
    pub(super) call: Option<&'static str>,
}

/// Code that only waits: stacks by index, and functions with probes that the user named.
pub(super) struct Known<'a> {
    pub(super) waiting: Vec<bool>,
    /// Stacks of threads that wait for spin locks.
    pub(super) tries: &'a [bool],
    pub(super) declared: FxHashSet<FunctionId>,
    pub(super) mpi: &'a Mpi,
}

/// A sample of the sampling clock.
#[derive(Clone, Copy, Debug)]
struct Tick {
    time: u64,
    waits: bool,
    /// The call of MPI in which the thread waits.
    call: Option<&'static str>,
}

/// A thread's pieces of running, in order of time. `operations`: stretches in recorded operations.
pub(super) fn of_thread(
    timeline: &Timeline,
    thread: &timeline::Thread,
    operations: &[(u64, u64)],
    known: &Known<'_>,
) -> Vec<Piece> {
    let is_waiting = |stack: u32| known.waiting.get(stack as usize) == Some(&true);
    let seen = || thread.samples.iter().filter(|seen| seen.reason == SampleReason::Tick);
    let tick = |seen: &timeline::StackSample| {
        let call = match known.mpi.stack(seen.stack) {
            InMpi::Waits(call) => Some(call),
            // The neighbours show whether the thread waits.
            InMpi::CallMissing if seen.truncated => return None,
            _ => None,
        };
        Some(Tick { time: seen.time.0, waits: call.is_some() || is_waiting(seen.stack), call })
    };
    let ticks: Vec<Tick> = seen().filter_map(tick).collect();
    let mut pieces = pieces(thread, operations);
    for piece in pieces.iter_mut().filter(|piece| !piece.operation) {
        piece.spins = piece.context.is_some_and(|function| known.declared.contains(&function));
    }
    let period_ns = period_ns(timeline);
    if ticks.iter().any(|tick| tick.call.is_some()) {
        mark_calls(&mut pieces, &ticks, period_ns);
    } else if ticks.iter().any(|tick| tick.waits) {
        mark(&mut pieces, &ticks, period_ns);
    }
    mark_tries(&mut pieces, seen().filter(|seen| is_waiting(seen.stack)), known.tries);
    pieces
}

/// Time between two samples of a running thread, ns; 0 if not known.
pub(super) fn period_ns(timeline: &Timeline) -> u64 {
    timeline.sampling.map_or(0, |sampling| 1_000_000_000 / u64::from(sampling.rate_hz.max(1)))
}

/// Running time, cut where the function on top changes and where operations begin and end.
fn pieces(thread: &timeline::Thread, operations: &[(u64, u64)]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut stack: Vec<FunctionId> = Vec::new();
    let mut steps = (0u32..).zip(&thread.steps).peekable();
    let mut bases = thread.base_stacks.iter().peekable();
    let mut broke = true;
    for (start, end, state) in thread.spans() {
        let is_running = matches!(state, State::Running { .. });
        if !is_running {
            broke |= state != State::Runnable;
            continue;
        }
        let mut now = start.0;
        loop {
            let upcoming =
                steps.peek().map(|(number, step)| (*number, step.time.0)).filter(|(_, time)| *time < end.0);
            let until = upcoming.map_or(end.0, |(_, time)| time);
            let number = upcoming.map_or(u32::MAX, |(number, _)| number);
            while let Some(base) = bases.next_if(|base| base.first_step <= number && base.time.0 <= until) {
                stack.extend(base.functions.iter().rev());
            }
            if until > now {
                cut(&mut pieces, (now, until), stack.last().copied(), operations, &mut broke);
                now = until;
            }
            let Some((_, step)) = upcoming.and_then(|_| steps.next()) else { break };
            match step.kind {
                StepKind::Enter(function) => stack.push(function),
                StepKind::Leave => {
                    stack.pop();
                }
                _ => {}
            }
        }
    }
    pieces
}

fn cut(
    pieces: &mut Vec<Piece>,
    (mut now, until): (u64, u64),
    context: Option<FunctionId>,
    operations: &[(u64, u64)],
    broke: &mut bool,
) {
    let mut next = operations.partition_point(|(_, to)| *to <= now);
    while now < until {
        let (to, operation) = match operations.get(next) {
            Some((from, to)) if *from <= now => {
                next += 1;
                ((*to).min(until), true)
            }
            Some((from, _)) => ((*from).min(until), false),
            None => (until, false),
        };
        if to > now {
            let after_break = std::mem::take(broke);
            let (spins, tries, call) = (false, false, None);
            pieces.push(Piece { from: now, to, context, operation, after_break, spins, tries, call });
            now = to;
        }
    }
}

/// Decides which spinning pieces wait for a spin lock: those of functions nearly all of whose waiting samples do.
fn mark_tries<'a>(
    pieces: &mut [Piece],
    waiting: impl Iterator<Item = &'a timeline::StackSample>,
    tries: &[bool],
) {
    let mut seen: FxHashMap<(Option<FunctionId>, u64), (u32, u32)> = FxHashMap::default();
    let mut at = 0;
    for seen_at in waiting {
        while pieces.get(at).is_some_and(|piece| piece.to <= seen_at.time.0) {
            at += 1;
        }
        let Some(piece) = pieces.get(at).filter(|piece| piece.from <= seen_at.time.0) else { continue };
        let counts = seen.entry((piece.context, seen_at.time.0 / BUCKET_NS)).or_default();
        counts.0 += u32::from(tries.get(seen_at.stack as usize) == Some(&true));
        counts.1 += 1;
    }
    for piece in pieces.iter_mut().filter(|piece| piece.spins && piece.call.is_none()) {
        let (tries, all) = seen.get(&(piece.context, piece.from / BUCKET_NS)).copied().unwrap_or_default();
        piece.tries = tries > 0 && f64::from(tries) >= NEARLY_ALL * f64::from(all);
    }
}

/// Decides which pieces wait; cuts pieces that wait for a part of their time.
fn mark(pieces: &mut Vec<Piece>, ticks: &[Tick], period_ns: u64) {
    let key = |piece: &Piece, time: u64| (piece.context, time / BUCKET_NS);
    let within = |piece: &Piece| ticks_within(ticks, piece.from, piece.to);
    let mut seen: FxHashMap<(Option<FunctionId>, u64), (u32, u32)> = FxHashMap::default();
    for piece in pieces.iter().filter(|piece| !piece.operation) {
        for tick in ticks.get(within(piece)).unwrap_or_default() {
            let counts = seen.entry(key(piece, tick.time)).or_default();
            counts.0 += u32::from(tick.waits);
            counts.1 += 1;
        }
    }
    let mut out = Vec::with_capacity(pieces.len());
    for piece in pieces.drain(..) {
        let counts = seen.get(&key(&piece, piece.from)).copied().unwrap_or_default();
        let ticks_in = within(&piece);
        let waits = |range: &[Tick]| range.iter().any(|tick| tick.waits);
        let computes = |range: &[Tick]| range.iter().any(|tick| !tick.waits);
        let inside = ticks.get(ticks_in.clone()).unwrap_or_default();
        let nearly_all = counts.1 >= FEWEST && f64::from(counts.0) >= NEARLY_ALL * f64::from(counts.1);
        if piece.spins || piece.operation || (!nearly_all && !waits(inside)) {
            out.push(piece);
        } else if nearly_all && !(computes(inside) && piece.to - piece.from > 4 * period_ns) {
            out.push(Piece { spins: true, ..piece });
        } else {
            by_sample(&mut out, &piece, ticks, ticks_in, period_ns);
        }
    }
    *pieces = out;
}

/// Decides which pieces of a thread that calls MPI wait. A thread that offers its CPU to others while it waits
/// (`sched_yield`) has many pieces without samples: the samples around such a piece decide.
fn mark_calls(pieces: &mut Vec<Piece>, ticks: &[Tick], period_ns: u64) {
    let is_fixed = |piece: &Piece| piece.spins || piece.operation;
    let goes_on = |before: &Piece, piece: &Piece| {
        !piece.after_break && before.context == piece.context && is_fixed(before) == is_fixed(piece)
    };
    let mut out = Vec::with_capacity(pieces.len());
    for group in pieces.chunk_by(goes_on) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let inside = ticks_within(ticks, first.from, last.to);
        let ticks_in = ticks.get(inside.clone()).unwrap_or_default();
        if is_fixed(first) || !ticks_in.iter().any(|tick| tick.waits) {
            out.extend_from_slice(group);
            continue;
        }
        // The clock stands still while the thread has no CPU.
        let gaps = ticks_in.windows(2).map(|pair| pair[1].time.saturating_sub(pair[0].time));
        let reach_ns = gaps.max().unwrap_or(0).max(period_ns);
        for piece in group {
            let own = ticks_within(ticks, piece.from, piece.to);
            let around = own.start.saturating_sub(1).max(inside.start)..(own.end + 1).min(inside.end);
            by_sample(&mut out, piece, ticks, around, reach_ns);
        }
    }
    *pieces = out;
}

/// Indices of the samples in a stretch of time.
fn ticks_within(ticks: &[Tick], from: u64, to: u64) -> std::ops::Range<usize> {
    ticks.partition_point(|tick| tick.time < from)..ticks.partition_point(|tick| tick.time < to)
}

/// Divides a piece by its samples: each stands for the time up to the middle between it and its neighbours.
fn by_sample(
    out: &mut Vec<Piece>,
    piece: &Piece,
    ticks: &[Tick],
    within: std::ops::Range<usize>,
    period_ns: u64,
) {
    let mut now = piece.from;
    let mut after_break = piece.after_break;
    let mut push = |from: u64, to: u64, tick: Option<Tick>, out: &mut Vec<Piece>| {
        if to > from {
            let (spins, call) = tick.map_or((false, None), |tick| (tick.waits, tick.call));
            let after_break = std::mem::take(&mut after_break);
            out.push(Piece { from, to, spins, call, after_break, ..*piece });
        }
    };
    for at in within {
        let Some(tick) = ticks.get(at).copied() else { break };
        let time = tick.time;
        let next = ticks.get(at + 1).map_or(u64::MAX, |next| next.time);
        let reach = (next - time).min(period_ns.saturating_mul(2)) / 2;
        let from = now.max(time.saturating_sub(period_ns)).min(piece.to);
        push(now, from, None, out);
        let to = time.saturating_add(reach).clamp(from, piece.to);
        push(from, to, Some(tick), out);
        now = to;
    }
    push(now, piece.to, None, out);
}
