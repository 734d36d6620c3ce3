//! Tests with threads that use one lock on one CPU, as the kernel shows them. Their true sections are known and
//! compared with the estimated ones.

use super::super::model::{Interval, Stack, StackSample, State, Thread, Timeline, Wait, Wake, Wakeup};
use crate::cpus::Cpus;
use crate::event::{CodeFact, FutexFact, MappingFact, SamplingFact};
use crate::predict::{Model, Timing};
use crate::program::{Operation, Program};
use crate::time::Timestamp;
use crate::timeline::thread::wait_reason::WaitReason;
use probe_abi::{SampleReason, SyncOperation};
use std::num::NonZeroU32;

mod asleep;
mod permits;
mod read_write;

const WORD: u64 = 0x40_0000;
const PID: u32 = 7;
/// Addresses of the binary and of the C library.
const BINARY: u64 = 0x1000;
const LIBRARY: u64 = 0x8000;
/// Places in the binary: the call that takes the lock, code under it, the call that releases it, and other
/// code.
const TAKES: u64 = 0x100;
const UNDER: u64 = 0x110;
const GIVES: u64 = 0x120;
const OTHER: u64 = 0x200;

/// Parameters of a [`Run`].
#[derive(Clone, Copy)]
struct Shape {
    threads: u32,
    apart_ns: u64,
    held_ns: u64,
    /// Whether the code under the lock is known from its instructions.
    walked: bool,
    /// The function in which threads wait.
    waits_in: &'static str,
}

const HOT: Shape =
    Shape { threads: 4, apart_ns: 15_000, held_ns: 25_000, walked: true, waits_in: "pthread_mutex_lock" };

/// Threads that share a CPU in slices and use one lock: the true numbers, and the timeline that the kernel shows.
struct Run {
    timeline: Timeline,
    acquisitions: u64,
    held_ns: u64,
    ran_ns: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Doing {
    Apart(u64),
    Held(u64),
}

impl Run {
    fn of(shape: Shape, end_ns: u64) -> Run {
        let mut run = Run { timeline: empty(shape, end_ns), acquisitions: 0, held_ns: 0, ran_ns: 0 };
        let mut doing: Vec<Doing> =
            (0..shape.threads).map(|n| Doing::Apart(shape.apart_ns + u64::from(n))).collect();
        let (mut ready, mut waiting): (Vec<usize>, Vec<usize>) = ((0..doing.len()).collect(), Vec::new());
        let (mut now, mut owner, mut tick) = (1_000u64, None, 1_000_000u64);
        // As in glibc, a thread that had to wait does not know whether others still wait, so it wakes one when it
        // releases the lock.
        let (mut waited, mut wakes) = (vec![false; doing.len()], false);
        while now < end_ns && !ready.is_empty() {
            let thread = ready.remove(0);
            run.state(thread, now, State::Running { cpu: Some(0) });
            // The slice is not a multiple of the threads' periods.
            let slice_ends = now + 2_500_000 + now / 7 % 1_000_003;
            loop {
                let (Doing::Apart(left) | Doing::Held(left)) = doing[thread];
                let length = left.min(slice_ends - now).min(end_ns.saturating_sub(now));
                while tick <= now + length {
                    let stack = u32::from(matches!(doing[thread], Doing::Apart(_)));
                    run.sample(thread, tick.max(now), stack, SampleReason::Tick);
                    tick += 997_331;
                }
                now += length;
                run.ran_ns += length;
                run.held_ns += if matches!(doing[thread], Doing::Held(_)) { length } else { 0 };
                match doing[thread] {
                    Doing::Apart(left) if left > length => doing[thread] = Doing::Apart(left - length),
                    Doing::Held(left) if left > length => doing[thread] = Doing::Held(left - length),
                    Doing::Apart(_) if owner.is_none() => {
                        owner = Some(thread);
                        wakes = std::mem::take(&mut waited[thread]);
                        run.acquisitions += 1;
                        doing[thread] = Doing::Held(shape.held_ns);
                    }
                    Doing::Apart(_) => {
                        doing[thread] = Doing::Apart(0);
                        (waited[thread], wakes) = (true, true);
                        run.waits(thread, now);
                        waiting.push(thread);
                        break;
                    }
                    Doing::Held(_) => {
                        owner = None;
                        doing[thread] = Doing::Apart(shape.apart_ns);
                        if std::mem::take(&mut wakes) && !waiting.is_empty() {
                            let woken = waiting.remove(0);
                            run.wakes(thread, woken, now);
                            ready.push(woken);
                        }
                    }
                }
                if now >= slice_ends || now >= end_ns {
                    run.state(thread, now, State::Runnable);
                    ready.push(thread);
                    break;
                }
            }
        }
        for thread in &mut run.timeline.threads {
            thread.samples.sort_by_key(|seen| seen.time);
        }
        run
    }

    fn thread(&mut self, thread: usize) -> &mut Thread {
        &mut self.timeline.threads[thread]
    }

    fn state(&mut self, thread: usize, now: u64, state: State) {
        let thread = self.thread(thread);
        let first_step = u32::try_from(thread.steps.len()).expect("few");
        thread.intervals.push(Interval { start: Timestamp(now), state, first_step });
    }

    fn sample(&mut self, thread: usize, now: u64, stack: u32, reason: SampleReason) {
        self.thread(thread).samples.push(StackSample {
            time: Timestamp(now),
            stack,
            reason,
            truncated: false,
        });
    }

    fn waits(&mut self, thread: usize, now: u64) {
        self.waits_for(thread, now, 2, WORD);
    }

    fn waits_for(&mut self, thread: usize, now: u64, stack: u32, word: u64) {
        self.sample(thread, now, stack, SampleReason::Block);
        let number = u32::try_from(self.thread(thread).waits.len()).expect("few");
        self.thread(thread).waits.push(Wait {
            reason: WaitReason::Futex(FutexFact { word, operation: 128, words: 0 }),
            wake: Wake::CutAtEnd,
            cut_at_start: false,
            moved_to: None,
            from_now: false,
        });
        self.state(thread, now, State::Blocked(number));
    }

    fn wakes(&mut self, waker: usize, woken: usize, now: u64) {
        use super::super::model::{Step, StepKind};
        self.sample(waker, now, 3, SampleReason::Wake);
        let number = u32::try_from(self.timeline.wakeups.len()).expect("few");
        let ended = u32::try_from(self.thread(woken).waits.len() - 1).expect("few");
        self.timeline.wakeups.push(Wakeup {
            time: Timestamp(now),
            waker: waker as u32,
            wakee: woken as u32,
            ended: Some(ended),
        });
        self.thread(woken).waits[ended as usize].wake = Wake::By(number);
        self.thread(waker).steps.push(Step { time: Timestamp(now), kind: StepKind::Wake(number) });
        self.state(woken, now, State::Runnable);
    }

    /// Sections that were put back: their number, and their part of the running time.
    fn put_back(&self, timeline: &Timeline) -> (u64, f64) {
        let mut held = 0;
        let mut open = vec![0; timeline.threads.len()];
        let clocks: Vec<super::clock::Clock> = timeline.threads.iter().map(super::clock::Clock::of).collect();
        let mut count = 0;
        for used in &timeline.lock_operations {
            let at = clocks[used.thread as usize].at(used.ended.0);
            match used.operation {
                SyncOperation::MutexLock => {
                    count += u64::from(used.times);
                    open[used.thread as usize] = at;
                }
                _ => held += at - open[used.thread as usize],
            }
        }
        (count, held as f64 / self.ran_ns as f64)
    }
}

fn empty(shape: Shape, end_ns: u64) -> Timeline {
    let mapping = |start: u64, path: &str| MappingFact {
        pid: PID,
        start,
        end: start + 0x1000,
        path: path.to_owned(),
        ..MappingFact::default()
    };
    let place = |path: &str, offset, function: &str, under: &[u64]| CodeFact {
        path: path.to_owned(),
        offset,
        function: Some(function.to_owned()),
        entry: Some(offset & !0xff),
        under: under.to_vec(),
        ..CodeFact::default()
    };
    let under: &[u64] = if shape.walked { &[TAKES] } else { &[] };
    // Return addresses: all frames but the innermost.
    let stacks: [&[u64]; 4] = [
        &[BINARY + UNDER],
        &[BINARY + OTHER],
        &[LIBRARY + 0x10, BINARY + TAKES + 1],
        &[LIBRARY + 0x20, BINARY + GIVES + 1],
    ];
    Timeline {
        start: Timestamp(0),
        end: Timestamp(end_ns),
        threads: (0..shape.threads)
            .map(|number| Thread {
                pid: PID,
                tid: PID + number,
                comm: "worker".to_owned(),
                end: Timestamp(end_ns),
                intervals: vec![Interval { start: Timestamp(0), state: State::Runnable, first_step: 0 }],
                ..Thread::default()
            })
            .collect(),
        stacks: stacks
            .iter()
            .map(|frames| Stack { pid: PID, time: Timestamp(1), frames: frames.to_vec(), ..Stack::default() })
            .collect(),
        sampling: Some(SamplingFact { rate_hz: 1000, ..SamplingFact::default() }),
        mappings: vec![mapping(BINARY, "/program"), mapping(LIBRARY, "/libc.so.6")],
        code: vec![
            place("/program", UNDER, "under", under),
            place("/program", OTHER, "other", &[]),
            place("/program", TAKES, "under", &[]),
            place("/program", GIVES, "under", &[]),
            place("/libc.so.6", 0x10, shape.waits_in, &[]),
            place("/libc.so.6", 0x20, "pthread_mutex_unlock", &[]),
        ],
        ..Timeline::default()
    }
}

fn locks(program: &Program) -> usize {
    let all = program.threads.iter().flat_map(|thread| &thread.operations);
    all.filter(|operation| matches!(operation, Operation::Lock(_))).count()
}

fn speed_up(program: &Program, cpus: u32) -> f64 {
    let timing = Timing::new(program, &Model::default()).expect("a program");
    let length =
        |cpus: u32| timing.run(Cpus::Count(NonZeroU32::new(cpus).expect("not 0")), 0).length.0 as f64;
    length(1) / length(cpus)
}

#[test]
fn unrecorded_lock_sections_are_put_back_in_their_number_and_length() {
    let run = Run::of(HOT, 1_500_000_000);
    let seen = run.timeline.threads.iter().map(|thread| thread.waits.len() as u64).sum::<u64>();
    assert!(seen * 20 < run.acquisitions, "{seen} of {} show", run.acquisitions);
    let mut timeline = run.timeline.clone();
    super::put_back(&mut timeline);
    let (count, held) = run.put_back(&timeline);
    let truth = run.held_ns as f64 / run.ran_ns as f64;
    assert!((held - truth).abs() < 0.05, "{held} of {truth}");
    let many = count as f64 / run.acquisitions as f64;
    assert!((many - 1.0).abs() < 0.15, "{count} of {}", run.acquisitions);
    let [fact] = timeline.put_back[..] else { panic!("one lock: {:?}", timeline.put_back) };
    assert!((fact.share - truth).abs() <= fact.error && fact.error < 0.1, "{fact:?} of {truth}");
    assert_eq!(fact.hold_ns, 25_000);
}

/// With estimated sections, the simulation decides the lock again. If recorded wake-ups were replayed, four CPUs would
/// seem to help a program that its lock limits to 1.6 CPUs.
#[test]
fn a_lock_without_probes_is_decided_anew_in_the_simulation() {
    let run = Run::of(HOT, 300_000_000);
    let before = crate::translation::from_timeline(&run.timeline);
    assert_eq!(locks(&before), 0);
    let promised = speed_up(&before, 4);
    let mut timeline = run.timeline.clone();
    super::put_back(&mut timeline);
    let program = crate::translation::from_timeline(&timeline);
    assert!(locks(&program) > 1000, "{:?}", program.findings);
    let speed_up = speed_up(&program, 4);
    assert!((0.9..=1.7).contains(&speed_up), "{speed_up}: 40 of 25 µs are 1.6 at most");
    assert!(promised > speed_up + 0.3, "{promised} with wake-ups as recorded");
    let of_it = |kind: &str| program.findings.iter().any(|finding| finding.kind() == kind);
    assert!(of_it("put_back") && !of_it("replayed"), "{:?}", program.findings);
}

#[test]
fn a_lock_whose_code_cannot_be_followed_is_a_finding_held_not_measured() {
    let run = Run::of(Shape { walked: false, ..HOT }, 300_000_000);
    let mut timeline = run.timeline.clone();
    super::put_back(&mut timeline);
    assert_eq!((timeline.put_back.len(), timeline.lock_operations.len()), (0, 0));
    assert!(timeline.findings.iter().any(|finding| finding.kind() == "held_not_measured"));
}

#[test]
fn waits_in_functions_that_are_no_mutex_put_no_lock_back() {
    let waits = [
        "pthread_cond_wait",
        "std::condition_variable::wait(std::unique_lock<std::mutex>&)",
        "std::condition_variable_any::wait<std::unique_lock<std::mutex> >",
        "parking_lot::raw_mutex::RawMutex::lock_slow",
    ];
    for waits_in in waits {
        let run = Run::of(Shape { waits_in, ..HOT }, 300_000_000);
        let mut timeline = run.timeline.clone();
        super::put_back(&mut timeline);
        assert_eq!(timeline, run.timeline, "{waits_in}");
    }
}

/// Without this rule, glibc's stack lock would seem to be held from `pthread_create` to `pthread_join`, by many threads
/// at once.
#[test]
fn code_with_several_threads_in_it_at_once_is_not_put_back_as_under_a_lock() {
    let mut run = Run::of(HOT, 300_000_000);
    for thread in &mut run.timeline.threads {
        for interval in &mut thread.intervals {
            if interval.state == State::Runnable {
                interval.state = State::Running { cpu: Some(1) };
            }
        }
        thread
            .samples
            .iter_mut()
            .filter(|seen| seen.reason == SampleReason::Tick)
            .for_each(|seen| seen.stack = 0);
    }
    super::put_back(&mut run.timeline);
    assert_eq!((run.timeline.put_back.len(), run.timeline.lock_operations.len()), (0, 0));
    assert!(run.timeline.findings.iter().any(|finding| finding.kind() == "held_not_measured"));
}

/// With random distances between sections, more CPUs would seem to help.
#[test]
fn sections_that_are_put_back_are_as_evenly_apart_as_recorded() {
    let run = Run::of(HOT, 1_500_000_000);
    let mut timeline = run.timeline.clone();
    super::put_back(&mut timeline);
    let clocks: Vec<super::clock::Clock> = timeline.threads.iter().map(super::clock::Clock::of).collect();
    let (mut given, mut apart) = (vec![None; clocks.len()], Vec::new());
    for used in &timeline.lock_operations {
        let (thread, at) = (used.thread as usize, clocks[used.thread as usize].at(used.ended.0));
        match used.operation {
            SyncOperation::MutexLock => apart.extend(given[thread].take().map(|given: u64| at - given)),
            _ => given[thread] = Some(at),
        }
    }
    let even = apart.iter().filter(|apart| (12_000..=19_000).contains(*apart)).count();
    assert!(even * 10 > apart.len() * 6, "{even} of {}, each 15 µs", apart.len());
}

/// Threads that meet at a barrier on one CPU, in order of their numbers. The last one wakes the others.
fn rounds(waits_in: &'static str, count: u64, missing: impl Fn(u64, usize) -> bool) -> Run {
    let shape = Shape { threads: 3, waits_in, ..HOT };
    let mut run = Run { timeline: empty(shape, 20_000_000), acquisitions: 0, held_ns: 0, ran_ns: 0 };
    let mut now = 1_000;
    for round in 0..count {
        for thread in 0..3 {
            run.state(thread, now, State::Running { cpu: Some(0) });
            now += 100_000 * (1 + (thread as u64 + round) % 3);
            match thread {
                2 => {
                    for other in (0..2).filter(|other| !missing(round, *other)) {
                        run.wakes(2, other, now);
                        now += 2_000;
                    }
                    run.state(2, now, State::Runnable);
                }
                _ if missing(round, thread) => run.state(thread, now, State::Runnable),
                _ => run.waits(thread, now),
            }
        }
    }
    run
}

/// Without estimated barriers, all threads but the last would pass the barrier too early: 1.92 times as fast on two
/// CPUs; measured 1.68.
#[test]
fn barriers_without_probes_are_decided_anew_in_the_simulation() {
    let truth = 6.0 / 3.0;
    let run = rounds("pthread_barrier_wait", 20, |_, _| false);
    let promised = speed_up(&crate::translation::from_timeline(&run.timeline), 3);
    assert!(promised > 1.3 * truth, "{promised} with wake-ups as recorded");
    for missing in [(99, 0), (7, 1)] {
        let run = rounds("pthread_barrier_wait", 20, |round, thread| (round, thread) == missing);
        let mut timeline = run.timeline.clone();
        super::put_back(&mut timeline);
        // The last round has no end: its waiters never ran again.
        assert_eq!(timeline.lock_operations.len(), 57);
        let program = crate::translation::from_timeline(&timeline);
        let speed_up = speed_up(&program, 3);
        assert!((speed_up / truth - 1.0).abs() < 0.05, "{speed_up} of {truth}: {:?}", program.findings);
        assert!(
            !program.findings.iter().any(|finding| finding.kind() == "replayed"),
            "{:?}",
            program.findings
        );
    }
}

#[test]
fn waits_that_are_no_barrier_or_not_met_by_all_stay_as_recorded() {
    let often_missing = rounds("pthread_barrier_wait", 20, |round, thread| round % 4 == 0 && thread == 1);
    let condition = rounds("std::condition_variable::wait(barrier&)", 20, |_, _| false);
    let few = rounds("pthread_barrier_wait", 3, |_, _| false);
    for run in [often_missing, condition, few] {
        let mut timeline = run.timeline.clone();
        super::put_back(&mut timeline);
        assert_eq!(timeline, run.timeline);
    }
}
