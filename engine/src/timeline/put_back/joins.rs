//! Joins of threads that had already ended are put back (a method of longpole's own). Without probes, a join shows only
//! where the joiner has to wait. Which threads have ended by then depends on the number of CPUs: replayed as recorded,
//! a joiner on more CPUs would not wait for some threads for which it would really wait.
//!
//! A round: a thread creates threads, then waits for the end of some. It ends where the thread creates the next ones, or ends
//! itself. If in nearly all rounds all created threads have ended by then, the program joins all of them. In each round, the
//! others are joined after the last one that was waited for.

use super::super::expand_bursts::{Made, insert};
use super::super::model::{Birth, LockOperation, State, Step, StepKind, Timeline, Wake};
use super::clock::Clock;
use crate::finding::Finding;
use crate::time::Timestamp;
use probe_abi::SyncFamily;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Fewer rounds may be a coincidence.
const FEWEST_ROUNDS: usize = 3;
/// Percentage of rounds in which all threads must have ended.
const WHOLE_PERCENT: usize = 90;
/// Longest time from a thread's last wake-up to its end, ns: the kernel first frees its memory and files.
const ENDS_WITHIN_NS: u64 = 1_000_000;

/// Threads that one thread created, and which of them it waited for.
#[derive(Clone, Debug, Default)]
struct Round {
    created: BTreeSet<u32>,
    awaited: FxHashSet<u32>,
    /// Time at which the creating thread was on a CPU after its last wait, ns.
    ran_ns: u64,
    /// Time at which the creating thread creates the next threads, or ends, ns.
    until_ns: u64,
}

/// An event in the thread that creates and waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Created(u32),
    /// The end of this thread woke the creating thread.
    Awaited(u32),
}

/// Adds joins to the timeline, in processes in which nearly all rounds are complete.
pub(super) fn put_back(timeline: &mut Timeline, clocks: &[Clock]) {
    let family = |used: &LockOperation| (pid(timeline, used.thread), used.operation.family());
    let recorded: FxHashSet<(u32, SyncFamily)> = timeline.lock_operations.iter().map(family).collect();
    let is_unknown = |thread: &u32| !recorded.contains(&(pid(timeline, *thread), SyncFamily::Thread));
    let threads = (0u32..).take(timeline.threads.len()).filter(is_unknown);
    let rounds: Vec<(u32, Round)> = threads
        .flat_map(|thread| rounds(timeline, thread).into_iter().map(move |round| (thread, round)))
        .collect();
    let ended = |thread: &u32, by_ns: u64| {
        let thread = timeline.threads.get(*thread as usize);
        thread.is_some_and(|thread| thread.died && thread.end.0 <= by_ns)
    };
    let is_whole = |round: &Round| round.created.iter().all(|thread| ended(thread, round.until_ns));
    let mut whole: FxHashMap<u32, (usize, usize)> = FxHashMap::default();
    for (joiner, round) in &rounds {
        let count = whole.entry(pid(timeline, *joiner)).or_default();
        *count = (count.0 + usize::from(is_whole(round)), count.1 + 1);
    }
    let joins = |pid: u32| {
        whole
            .get(&pid)
            .is_some_and(|(whole, all)| *all >= FEWEST_ROUNDS && whole * 100 >= all * WHOLE_PERCENT)
    };
    let mut made: BTreeMap<u32, Vec<Made>> = BTreeMap::new();
    let (mut put_back, mut of) = (0, 0);
    for (joiner, round) in
        rounds.iter().filter(|(joiner, round)| joins(pid(timeline, *joiner)) && is_whole(round))
    {
        of += round.created.len();
        for thread in round.created.iter().filter(|thread| !round.awaited.contains(thread)) {
            let end_ns = timeline.threads.get(*thread as usize).map_or(0, |thread| thread.end.0);
            let at = clocks.get(*joiner as usize).and_then(|clock| clock.next_run(end_ns.max(round.ran_ns)));
            let Some((interval, time)) = at.filter(|(_, time)| *time <= round.until_ns) else { continue };
            let step = Step { time: Timestamp(time), kind: StepKind::Join(*thread) };
            made.entry(*joiner).or_default().push(Made { interval, step });
            put_back += 1;
        }
    }
    for (joiner, mut made) in made {
        made.sort_by_key(|made| made.step.time);
        if let Some(thread) = timeline.threads.get_mut(joiner as usize) {
            insert(thread, &made);
        }
    }
    if put_back > 0 {
        timeline.findings.push(Finding::JoinsPutBack { joins: put_back, of });
    }
}

fn pid(timeline: &Timeline, thread: u32) -> u32 {
    timeline.threads.get(thread as usize).map_or(0, |thread| thread.pid)
}

/// The finished rounds of a thread.
fn rounds(timeline: &Timeline, thread: u32) -> Vec<Round> {
    let Some(known) = timeline.threads.get(thread as usize) else { return Vec::new() };
    let mut events: Vec<(u64, Event)> = Vec::new();
    for step in &known.steps {
        if let StepKind::Create(child) = step.kind
            && timeline.threads.get(child as usize).is_some_and(|child| child.birth == Birth::By(thread))
        {
            events.push((step.time.0, Event::Created(child)));
        }
    }
    if events.is_empty() {
        return Vec::new();
    }
    for (_, end, state) in known.spans() {
        let State::Blocked(wait) = state else { continue };
        let Some(Wake::By(wakeup)) = known.waits.get(wait as usize).map(|wait| wait.wake) else { continue };
        let Some(wakeup) = timeline.wakeups.get(wakeup as usize) else { continue };
        if is_end_of(timeline, wakeup.waker, wakeup.time.0) {
            events.push((end.0, Event::Awaited(wakeup.waker)));
        }
    }
    events.sort_unstable();
    let mut rounds: Vec<Round> = Vec::new();
    let mut round = Round::default();
    for (time_ns, event) in events {
        match event {
            Event::Created(child) => {
                if !round.awaited.is_empty() {
                    rounds.push(Round { until_ns: time_ns, ..std::mem::take(&mut round) });
                }
                round.created.insert(child);
            }
            Event::Awaited(child) => {
                if round.created.contains(&child) {
                    round.awaited.insert(child);
                    round.ran_ns = time_ns;
                }
            }
        }
    }
    if known.died && !round.awaited.is_empty() {
        rounds.push(Round { until_ns: known.end.0, ..round });
    }
    rounds
}

/// Whether this wake-up was the end of the thread: its last one, shortly before it died.
fn is_end_of(timeline: &Timeline, thread: u32, woke_ns: u64) -> bool {
    let Some(thread) = timeline.threads.get(thread as usize).filter(|thread| thread.died) else {
        return false;
    };
    let last = thread.steps.iter().rev().find(|step| matches!(step.kind, StepKind::Wake(_)));
    let is_last = last.is_some_and(|last| last.time.0 <= woke_ns);
    is_last && thread.end.0.saturating_sub(woke_ns) <= ENDS_WITHIN_NS
}

#[cfg(test)]
mod tests {
    use super::super::super::model::{Interval, Thread, Wait, Wakeup};
    use super::*;
    use crate::cpus::Cpus;
    use crate::event::FutexFact;
    use crate::predict::{Model, Timing};
    use crate::program::Operation;
    use crate::timeline::thread::wait_reason::WaitReason;

    const SHORT_NS: u64 = 100_000;
    const LONG_NS: u64 = 300_000;

    /// One CPU: a thread creates a thread with a short life and one with a long life. The long one runs first, so only
    /// the short one is waited for.
    ///
    /// With `leaves`, the long one lives on.
    fn run(rounds: u64, leaves: bool) -> Timeline {
        let state = |start: u64, state, first_step| Interval { start: Timestamp(start), state, first_step };
        let running = State::Running { cpu: Some(0) };
        let mut timeline = Timeline::default();
        let mut joiner = Thread { pid: 7, tid: 7, ..Thread::default() };
        let (mut now, mut children) = (0, Vec::new());
        for _ in 0..rounds {
            let first_step = joiner.steps.len() as u32;
            joiner.intervals.push(state(now, running, first_step));
            let (begin, child) = (now + 10_000, children.len() as u32 + 1);
            for child in [child, child + 1] {
                joiner.steps.push(Step { time: Timestamp(begin), kind: StepKind::Create(child) });
            }
            joiner.intervals.push(state(begin, State::Blocked(joiner.waits.len() as u32), first_step + 2));
            let (middle, end) = (begin + LONG_NS, begin + LONG_NS + SHORT_NS);
            joiner.waits.push(Wait {
                reason: WaitReason::Futex(FutexFact { word: 64, operation: 0, words: 0 }),
                wake: Wake::By(timeline.wakeups.len() as u32),
                cut_at_start: false,
                moved_to: None,
                from_now: false,
            });
            for (from, until, wakes) in [(begin, middle, false), (middle, end, true)] {
                let mut thread = Thread {
                    pid: 7,
                    tid: 8 + children.len() as u32,
                    start: Timestamp(begin),
                    end: Timestamp(until),
                    birth: Birth::By(0),
                    died: !leaves || wakes,
                    intervals: vec![state(begin, State::Runnable, 0), state(from, running, 0)],
                    ..Thread::default()
                };
                if wakes {
                    let (time, waker) = (Timestamp(end), children.len() as u32 + 1);
                    thread.steps.push(Step { time, kind: StepKind::Wake(timeline.wakeups.len() as u32) });
                    let ended = Some(joiner.waits.len() as u32 - 1);
                    timeline.wakeups.push(Wakeup { time, waker, wakee: 0, ended });
                }
                children.push(thread);
            }
            now = end;
        }
        joiner.intervals.push(state(now, running, joiner.steps.len() as u32));
        (joiner.end, joiner.died, timeline.end) = (Timestamp(now + 10_000), true, Timestamp(now + 10_000));
        timeline.threads = std::iter::once(joiner).chain(children).collect();
        timeline
    }

    fn put_back_of(timeline: &Timeline) -> (Timeline, usize) {
        let mut timeline = timeline.clone();
        let clocks: Vec<Clock> = timeline.threads.iter().map(Clock::of).collect();
        put_back(&mut timeline, &clocks);
        let program = crate::translation::from_timeline(&timeline);
        let all = program.threads.iter().flat_map(|thread| &thread.operations);
        let joins = all.filter(|operation| matches!(operation, Operation::Join(_))).count();
        (timeline, joins)
    }

    /// Without these joins, a program that forks and joins 41 threads would seem to be 10.2 times as fast on 16 CPUs;
    /// measured are 7.4.
    #[test]
    fn joins_of_threads_that_had_ended_are_put_back_where_all_are_joined() {
        let time = |timeline: &Timeline| {
            let program = crate::translation::from_timeline(timeline);
            let timing = Timing::new(&program, &Model::default()).expect("a program");
            timing.run(Cpus::Infinite, 0).length.as_ns_f64() / 5.0
        };
        let recorded = run(5, false);
        let (timeline, joins) = put_back_of(&recorded);
        assert_eq!(joins, 5);
        assert!(timeline.findings.contains(&Finding::JoinsPutBack { joins: 5, of: 10 }));
        let (before, after) = (time(&recorded), time(&timeline));
        assert!(before < LONG_NS as f64 && after > LONG_NS as f64, "{before} and {after} a round");
    }

    #[test]
    fn joins_are_not_put_back_after_few_rounds_or_for_threads_that_live_on() {
        for recorded in [run(2, false), run(5, true)] {
            let (timeline, joins) = put_back_of(&recorded);
            assert_eq!((&timeline, joins), (&recorded, 0));
        }
    }
}
