//! Stretches of running in which a thread only checks whether it may go on, and the thread that ended them.
//!
//! Samples tell where: those whose innermost function only waits ([`super::busy_wait::is_waiter`]), those in
//! loops that only wait ([`crate::event::CodeFact::waits`]), and those in functions that the user named.
//! Between two samples the function probes are exact. A function (or the time between two of them) that is
//! almost always sampled waiting waits from its beginning to its end. Elsewhere a sample stands for the time
//! up to halfway to its neighbours.
//!
//! A stretch is no work. It ends when another thread of the process has done something: the one that itself
//! stopped computing just then, else one that computes, else the one that computed last. That stays as it was
//! recorded: an edge from there. If no thread of the process has computed since the stretch began, what it
//! waits for is outside, and the stretch stays computing. A stretch that ends in a sleep needs no edge: the
//! sleep has one.

use super::sampled_code::SampledCode;
use super::spin_locks::{self, HandOver, Spans, SpinLocks};
use crate::event::FunctionId;
use crate::timeline::{self, State, StepKind, Timeline};
use probe_abi::SampleReason;
use rustc_hash::{FxHashMap, FxHashSet};

/// A function counts as waiting for as long as at least this share of its samples is, in stretches of [`BUCKET_NS`].
const NEARLY_ALL: f64 = 0.8;
/// Of fewer samples than this no share is taken.
const FEWEST: u32 = 5;
/// Probes come and go during a recording, so that what lies between them changes.
const BUCKET_NS: u64 = 200_000_000;
/// Shorter stretches are the first look, which found that nothing had to be waited for.
const SHORTEST_NS: u64 = 1_000;
/// A spinning thread notices the change within this time: a cache line's way, and two probes.
const SEEN_WITHIN_NS: u64 = 20_000;

/// Something at an instant of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    /// When, ns.
    pub(super) time: u64,
    pub(super) kind: MarkKind,
}

/// See [`Mark`]; edges are counted from 0. At one instant a thread ends the spinning of others before it
/// spins itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MarkKind {
    /// It releases a spin lock, by number.
    Give(u32),
    /// It ends the spinning of another thread.
    Release(u32),
    /// It continues, because of that edge; `None`: into a sleep, or with a spin lock.
    End(Option<u32>),
    /// It takes a spin lock.
    Take(u32),
    /// The same, and releases it at once.
    Touch(u32),
    /// It only waits from here on.
    Begin,
}

/// All stretches of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spins {
    /// By thread of the timeline, in order of time.
    pub(super) marks: Vec<Vec<Mark>>,
    /// How many edges there are.
    pub(super) edges: u32,
    /// How many of those have a source that is guessed: more than one thread computed.
    pub(super) guessed: u32,
    /// CPU time in stretches, ns.
    pub(super) spun_ns: u64,
    /// How many stretches were for spin locks, and the process of each such lock.
    pub(super) hand_overs: usize,
    pub(super) locks: Vec<u32>,
}

/// A stretch of running in one function.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: u64,
    to: u64,
    context: Option<FunctionId>,
    /// In a recorded operation: what that waits for is known.
    operation: bool,
    /// The thread slept, or its state is unknown, before this one.
    after_break: bool,
    spins: bool,
    /// For a spin lock.
    tries: bool,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: u64,
    to: u64,
    ran_ns: u64,
    into_sleep: bool,
    tries: bool,
}

/// What only waits: stacks, by number, and functions with probes that the user named.
struct Known<'a> {
    waiting: Vec<bool>,
    /// Stacks that wait for spin locks.
    tries: &'a [bool],
    declared: FxHashSet<FunctionId>,
}

/// What a thread ran, cut into computing and waiting.
#[derive(Clone, Debug, Default)]
struct Ran {
    stretches: Vec<Stretch>,
    /// From and to, ascending.
    computes: Vec<(u64, u64)>,
    /// The same without recorded operations, cut where the thread slept.
    plain: Spans,
}

impl Spins {
    pub(super) fn of(timeline: &Timeline, sampled: &SampledCode) -> Spins {
        let waiting = sampled.waiting(timeline);
        let declared: FxHashSet<FunctionId> = timeline
            .functions
            .iter()
            .filter(|fact| super::busy_wait::is_declared(&timeline.spin, &fact.name))
            .map(|fact| fact.id)
            .collect();
        if !waiting.contains(&true) && declared.is_empty() {
            return Spins::default();
        }
        let known = Known { waiting, tries: sampled.in_tries(), declared };
        let operations = operations(timeline);
        let rans: Vec<Ran> = timeline
            .threads
            .iter()
            .zip(&operations)
            .map(|(thread, operations)| ran(timeline, thread, operations, &known))
            .collect();
        let mut peers: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (index, thread) in timeline.threads.iter().enumerate() {
            peers.entry(thread.pid).or_default().push(index);
        }
        let mut spins = Spins { marks: vec![Vec::new(); rans.len()], ..Spins::default() };
        let mut hand_overs = Vec::new();
        for (index, (thread, ran)) in timeline.threads.iter().zip(&rans).enumerate() {
            let peers = peers.get(&thread.pid).map_or(&[][..], Vec::as_slice);
            for stretch in &ran.stretches {
                hand_overs.extend(spins.add((index, thread.pid), stretch, peers, &rans));
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
        spins
    }

    /// Adds a stretch; returns what it says about a spin lock.
    fn add(
        &mut self,
        (index, pid): (usize, u32),
        stretch: &Stretch,
        peers: &[usize],
        rans: &[Ran],
    ) -> Option<HandOver> {
        let mut over = None;
        let mut edge = None;
        if !stretch.into_sleep {
            let source = source(index, stretch, peers, rans)?;
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

/// By thread: from when to when it was in recorded operations, ascending and without overlap.
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
    let is_waiting = |stack: u32| known.waiting.get(stack as usize) == Some(&true);
    let seen = || thread.samples.iter().filter(|seen| seen.reason == SampleReason::Tick);
    let ticks: Vec<(u64, bool)> = seen().map(|seen| (seen.time.0, is_waiting(seen.stack))).collect();
    let mut pieces = pieces(thread, operations);
    for piece in pieces.iter_mut().filter(|piece| !piece.operation) {
        piece.spins = piece.context.is_some_and(|function| known.declared.contains(&function));
    }
    if ticks.iter().any(|(_, waits)| *waits) {
        let period_ns =
            timeline.sampling.map_or(0, |sampling| 1_000_000_000 / u64::from(sampling.rate_hz.max(1)));
        mark(&mut pieces, &ticks, period_ns);
    }
    mark_tries(&mut pieces, seen().filter(|seen| is_waiting(seen.stack)), known.tries);
    let sleeps: FxHashSet<u64> = thread
        .intervals
        .iter()
        .filter(|interval| matches!(interval.state, State::Blocked(_)))
        .map(|interval| interval.start.0)
        .collect();
    let mut ran = Ran::default();
    let mut open: Option<Stretch> = None;
    let mut all: Vec<Stretch> = Vec::new();
    for piece in &pieces {
        let length = piece.to - piece.from;
        match &mut open {
            Some(stretch) if piece.spins && !piece.after_break => {
                stretch.to = piece.to;
                stretch.ran_ns += length;
                stretch.tries &= piece.tries;
            }
            _ => {
                all.extend(open.take());
                if piece.spins {
                    let Piece { from, to, tries, .. } = *piece;
                    open = Some(Stretch { from, to, ran_ns: length, into_sleep: false, tries });
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

/// What a thread ran, cut where the function on top changes and where operations begin and end.
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
            let (spins, tries) = (false, false);
            pieces.push(Piece { from: now, to, context, operation, after_break, spins, tries });
            now = to;
        }
    }
}

/// Decides which spinning pieces spin for a spin lock: those in a function whose waiting samples nearly all
/// did.
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
    for piece in pieces.iter_mut().filter(|piece| piece.spins) {
        let (tries, all) = seen.get(&(piece.context, piece.from / BUCKET_NS)).copied().unwrap_or_default();
        piece.tries = tries > 0 && f64::from(tries) >= NEARLY_ALL * f64::from(all);
    }
}

/// Decides which pieces spin; cuts those that spin partly.
fn mark(pieces: &mut Vec<Piece>, ticks: &[(u64, bool)], period_ns: u64) {
    let key = |piece: &Piece, time: u64| (piece.context, time / BUCKET_NS);
    let within = |piece: &Piece| {
        let first = ticks.partition_point(|(time, _)| *time < piece.from);
        let end = ticks.partition_point(|(time, _)| *time < piece.to);
        first..end
    };
    let mut seen: FxHashMap<(Option<FunctionId>, u64), (u32, u32)> = FxHashMap::default();
    for piece in pieces.iter().filter(|piece| !piece.operation) {
        for (time, waits) in ticks.get(within(piece)).unwrap_or_default() {
            let counts = seen.entry(key(piece, *time)).or_default();
            counts.0 += u32::from(*waits);
            counts.1 += 1;
        }
    }
    let mut out = Vec::with_capacity(pieces.len());
    for piece in pieces.drain(..) {
        let counts = seen.get(&key(&piece, piece.from)).copied().unwrap_or_default();
        let ticks_in = within(&piece);
        let waits = |range: &[(u64, bool)]| range.iter().any(|(_, waits)| *waits);
        let computes = |range: &[(u64, bool)]| range.iter().any(|(_, waits)| !*waits);
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

/// Each sample stands for the time up to halfway to its neighbours, or to where the piece ends.
fn by_sample(
    out: &mut Vec<Piece>,
    piece: &Piece,
    ticks: &[(u64, bool)],
    within: std::ops::Range<usize>,
    period_ns: u64,
) {
    let mut now = piece.from;
    let mut after_break = piece.after_break;
    let mut push = |from: u64, to: u64, spins: bool, out: &mut Vec<Piece>| {
        if to > from {
            out.push(Piece { from, to, spins, after_break: std::mem::take(&mut after_break), ..*piece });
        }
    };
    for at in within {
        let Some((time, waits)) = ticks.get(at).copied() else { break };
        let next = ticks.get(at + 1).map_or(u64::MAX, |(next, _)| *next);
        let reach = (next - time).min(period_ns.saturating_mul(2)) / 2;
        let from = now.max(time.saturating_sub(period_ns));
        push(now, from, false, out);
        let to = time.saturating_add(reach).clamp(from, piece.to);
        push(from, to, waits, out);
        now = to;
    }
    push(now, piece.to, false, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{CodeFact, FunctionFact, MappingFact, SamplingFact};
    use crate::finding::Finding;
    use crate::program::{Operation, Program};
    use crate::schedule::Simulation;
    use crate::synth::Numbers;
    use crate::time::{Ticks, Timestamp};
    use crate::timeline::{External, Interval, Stack, StackSample, Step, Thread, Wait, WaitReason, Wake};
    use crate::translation::from_timeline;

    const US: u64 = 1_000;
    const WORK: u32 = 0;
    const WAITS: u32 = 1;

    /// A part of a thread's time: length in microseconds, and whether it only waits.
    type Part = (u64, bool);

    /// Threads of one process that run all the time, sampled each `period`; `probed`: with a function around
    /// everything except waiting.
    fn timeline(threads: &[Vec<Part>], period_us: u64, probed: bool, waits: &str) -> Timeline {
        let end = threads.iter().map(|parts| parts.iter().map(|part| part.0).sum::<u64>()).max().unwrap_or(0);
        let thread = |(number, parts): (u32, &Vec<Part>)| {
            let (mut now, mut steps, mut samples) = (0, Vec::new(), Vec::new());
            let mut next = u64::from(number) * period_us * US / 3;
            for (length, waiting) in parts {
                let until = now + length * US;
                if probed && !waiting {
                    steps.push(Step { time: Timestamp(now), kind: StepKind::Enter(7) });
                }
                while next < until {
                    let stack = if *waiting { WAITS } else { WORK };
                    samples.push(StackSample {
                        time: Timestamp(next),
                        stack,
                        reason: SampleReason::Tick,
                        truncated: false,
                    });
                    next += period_us * US;
                }
                if probed && !waiting {
                    steps.push(Step { time: Timestamp(until), kind: StepKind::Leave });
                }
                now = until;
            }
            Thread {
                pid: 1,
                tid: number + 1,
                comm: "t".to_owned(),
                end: Timestamp(now),
                died: true,
                intervals: vec![Interval {
                    start: Timestamp(0),
                    state: State::Running { cpu: Some(number as u16) },
                    first_step: 0,
                }],
                steps,
                samples,
                ..Thread::default()
            }
        };
        let code = |offset: u64, name: &str| CodeFact {
            path: "/bin/app".to_owned(),
            offset,
            function: Some(name.to_owned()),
            entry: Some(offset & !0xff),
            ..CodeFact::default()
        };
        let stack = |address| Stack { pid: 1, time: Timestamp(0), frames: vec![address] };
        Timeline {
            end: Timestamp(end * US),
            threads: (0..).zip(threads).map(thread).collect(),
            functions: vec![FunctionFact {
                id: 7,
                name: "work".to_owned(),
                module: "app".to_owned(),
                offset: 0x100,
                ..FunctionFact::default()
            }],
            stacks: vec![stack(0x1110), stack(0x1210)],
            mappings: vec![MappingFact {
                pid: 1,
                start: 0x1000,
                end: 0x2000,
                path: "/bin/app".to_owned(),
                ..MappingFact::default()
            }],
            code: vec![code(0x110, "work"), code(0x210, waits)],
            sampling: Some(SamplingFact {
                rate_hz: (1_000_000 / period_us) as u32,
                ..SamplingFact::default()
            }),
            ..Timeline::default()
        }
    }

    fn computes_ns(program: &Program) -> u64 {
        program.compute_times().total().0 / Ticks::PER_NS
    }

    fn unlimited_ns(program: &Program) -> u64 {
        Simulation::new(program).expect("a program").finish().length.0 / Ticks::PER_NS
    }

    fn ping_pong(rounds: u64, ping: u64, pong: u64) -> Vec<Vec<Part>> {
        let parts = |first: bool| (0..rounds).flat_map(|_| [(ping, !first), (pong, first)]).collect();
        vec![parts(true), parts(false)]
    }

    /// It was predicted twice as fast on two CPUs as on one.
    #[test]
    fn a_hand_over_by_yields_is_serial() {
        let serial_ns = 2_000 * 600 * US;
        let timeline = timeline(&ping_pong(2_000, 400, 200), 2_000, true, "sched_yield");
        let program = from_timeline(&timeline);
        assert_eq!(program.check(), Ok(()));
        let (all, alone) = (computes_ns(&program), unlimited_ns(&program));
        assert!(all.abs_diff(serial_ns) < serial_ns / 50, "{all} of {serial_ns}");
        assert!(alone.abs_diff(serial_ns) < serial_ns / 50, "{alone} of {serial_ns}");
        let share = program.findings.iter().find_map(|finding| match finding {
            Finding::Spinning { spun_ns, ran_ns, .. } => Some(*spun_ns as f64 / *ran_ns as f64),
            _ => None,
        });
        assert!(share.is_some_and(|share| (share - 0.5).abs() < 0.005), "{share:?}");
    }

    /// Loops of a program's own: found in its code, or named by the user.
    #[test]
    fn a_loop_that_waits_and_a_function_that_does_so_as_the_user_says_are_waiting() {
        let serial_ns = 2_000 * 600 * US;
        let by_name = timeline(&ping_pong(2_000, 400, 200), 2_000, true, "until_my_turn");
        let mut by_code = by_name.clone();
        by_code.code[1].waits = true;
        let mut declared = by_name.clone();
        declared.spin = vec!["until_*".to_owned()];
        assert_eq!(computes_ns(&from_timeline(&by_name)), 2 * serial_ns);
        for timeline in [by_code, declared] {
            let program = from_timeline(&timeline);
            for ns in [computes_ns(&program), unlimited_ns(&program)] {
                assert!(ns.abs_diff(serial_ns) < serial_ns / 50, "{ns} of {serial_ns}");
            }
        }
    }

    /// A lock that is held three quarters of the time: it was predicted as if no thread spun while its holder
    /// has no CPU.
    #[test]
    fn who_spins_for_a_lock_takes_time_from_its_holder_on_one_cpu() {
        let parts = |first: bool| {
            let start = if first { vec![] } else { vec![(300, true)] };
            start
                .into_iter()
                .chain((0..3_000).flat_map(|_| [(300, false), (100, false), (200, true)]))
                .collect()
        };
        let threads: Vec<Vec<Part>> = vec![parts(true), parts(false)];
        let mut timeline = timeline(&threads, 2_000, true, "enter");
        (timeline.code[1].waits, timeline.code[1].tries) = (true, true);
        let program = from_timeline(&timeline);
        assert_eq!(program.check(), Ok(()));
        assert!(program.objects.iter().any(|name| name.starts_with("spin lock")), "{:?}", program.objects);
        let serial_ns = 3_000 * 600 * US;
        let alone = unlimited_ns(&program);
        assert!(alone.abs_diff(serial_ns) < serial_ns / 20, "{alone} of {serial_ns}");
        let model = crate::predict::Model::default();
        let cpus = [1, 2].map(|count| crate::cpus::Cpus::count(count).expect("a count"));
        let predicted = crate::predict::predict(&program, &cpus, &model);
        let time = |at: usize| predicted.results[at].time_ns;
        // 1.33 of them is work; each slice that ends while the lock is held is followed by one of spinning.
        assert!((1.6..2.7).contains(&(time(0) / time(1))), "{} and {}", time(0), time(1));
    }

    #[test]
    fn a_probed_function_that_waits_as_the_user_says_needs_no_samples() {
        let mut timeline =
            timeline(&[vec![(1_000, false), (1_000, true)], vec![(3_000, true)]], 10_000, true, "x");
        timeline.spin = vec!["wor?".to_owned()];
        // The other one computes while this one is in `work`.
        assert_eq!(computes_ns(&from_timeline(&timeline)), (1_000 + 3_000) * US);
    }

    /// OpenMP's threads spin at the end of a loop until the slowest one is there.
    #[test]
    fn who_waits_actively_for_the_slowest_does_not_compute() {
        for probed in [false, true] {
            let slow = vec![(40_000, false); 10];
            let quick: Vec<Part> = (0..10).flat_map(|_| [(10_000, false), (30_000, true)]).collect();
            let timeline = timeline(&[slow, quick], 2_000, probed, "gomp_team_barrier_wait_end");
            let program = from_timeline(&timeline);
            let (all, alone) = (computes_ns(&program), unlimited_ns(&program));
            assert!(all.abs_diff(500_000 * US) < 25_000 * US, "{probed}: {all}");
            assert!(alone.abs_diff(400_000 * US) < 10_000 * US, "{probed}: {alone}");
        }
    }

    #[test]
    fn a_function_that_only_looks_like_it_computes_as_before() {
        let threads = ping_pong(100, 4_000, 2_000);
        let program = from_timeline(&timeline(&threads, 2_000, true, "strlen"));
        assert_eq!(computes_ns(&program), 2 * 600_000 * US);
        assert!(program.findings.iter().all(|finding| finding.kind() != "spinning"));
    }

    /// A thread that polls for something from outside has no other thread to wait for.
    #[test]
    fn what_no_other_thread_ends_stays_computing() {
        let threads = [vec![(100_000, true)], vec![(50_000, true)]];
        let program = from_timeline(&timeline(&threads, 2_000, false, "sched_yield"));
        assert_eq!(computes_ns(&program), 150_000 * US);
    }

    #[test]
    fn spinning_that_ends_in_a_sleep_needs_no_edge() {
        let mut timeline = timeline(&[vec![(10_000, false), (10_000, true)]], 1_000, false, "do_spin");
        let thread = &mut timeline.threads[0];
        thread.waits.push(Wait {
            reason: WaitReason::of(0, probe_abi::Call::NONE),
            wake: Wake::External(External::Timer),
            cut_at_start: false,
            moved_to: None,
        });
        thread.intervals.push(Interval {
            start: Timestamp(20_000 * US),
            state: State::Blocked(0),
            first_step: 0,
        });
        thread.end = Timestamp(25_000 * US);
        let program = from_timeline(&timeline);
        assert!(computes_ns(&program).abs_diff(10_000 * US) <= 1_000 * US);
        assert!(!program.threads[0].operations.iter().any(|op| matches!(op, Operation::Await(_))));
    }

    #[test]
    fn random_threads_come_to_their_end_and_take_no_longer_than_recorded() {
        for seed in 0..300_u64 {
            let mut numbers = Numbers::new(seed);
            let threads: Vec<Vec<Part>> = (0..2 + numbers.below(4))
                .map(|_| (0..40).map(|_| (1 + numbers.below(5_000), numbers.chance(1, 2))).collect())
                .collect();
            let mut timeline = timeline(&threads, 500, numbers.chance(1, 2), "sched_yield");
            // Half of them for a lock: which thread gets it first is open then.
            let tries = seed % 2 == 1;
            timeline.code[1].tries = tries;
            let program = from_timeline(&timeline);
            assert_eq!(program.check(), Ok(()), "seed {seed}");
            let recorded: u64 = threads.iter().flatten().map(|part| part.0 * US).sum();
            assert!(computes_ns(&program) <= recorded, "seed {seed}");
            let schedule = Simulation::new(&program).expect("a program").finish();
            for (thread, done) in program.threads.iter().zip(&schedule.done) {
                assert_eq!(thread.operations.len(), *done, "seed {seed}");
            }
            assert!(tries || schedule.length.0 <= timeline.end.0 * Ticks::PER_NS, "seed {seed}");
        }
    }
}
