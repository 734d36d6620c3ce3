//! Threads that spin, with a known answer.

use crate::event::{CodeFact, FunctionFact, MappingFact, SamplingFact};
use crate::finding::Finding;
use crate::program::{Operation, Program};
use crate::schedule::Simulation;
use crate::synth::Numbers;
use crate::time::{Ticks, Timestamp};
use crate::timeline::{
    External, Interval, Stack, StackSample, State, Step, StepKind, Thread, Timeline, Wait, WaitReason, Wake,
};
use crate::translation::from_timeline;
use probe_abi::SampleReason;

pub(super) const US: u64 = 1_000;
const WORK: u32 = 0;
const WAITS: u32 = 1;

/// A part of a thread's time: length in microseconds, and whether it only waits.
pub(super) type Part = (u64, bool);

/// Threads of one process that run all the time, with a sample every `period_us` microseconds. `probed`: everything
/// except the waiting is in a probed function.
pub(super) fn timeline(threads: &[Vec<Part>], period_us: u64, probed: bool, waits: &str) -> Timeline {
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
    let stack = |address| Stack { pid: 1, time: Timestamp(0), frames: vec![address], ..Stack::default() };
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
        sampling: Some(SamplingFact { rate_hz: (1_000_000 / period_us) as u32, ..SamplingFact::default() }),
        ..Timeline::default()
    }
}

pub(super) fn computes_ns(program: &Program) -> u64 {
    program.compute_times().total().0 / Ticks::PER_NS
}

pub(super) fn unlimited_ns(program: &Program) -> u64 {
    Simulation::new(program).expect("a program").finish().length.0 / Ticks::PER_NS
}

fn ping_pong(rounds: u64, ping: u64, pong: u64) -> Vec<Vec<Part>> {
    let parts = |first: bool| (0..rounds).flat_map(|_| [(ping, !first), (pong, first)]).collect();
    vec![parts(true), parts(false)]
}

/// The predictions for one CPU and for two must be the same: two threads that yield to each other never compute at
/// once.
#[test]
fn two_threads_that_yield_to_each_other_are_serial() {
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

/// Loops of the program count as waiting if they are found in its code, or if the user names them.
#[test]
fn loops_found_in_code_or_declared_by_the_user_count_as_waiting() {
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

/// A lock held three quarters of the time: a thread must spin, too, while the lock's holder has no CPU.
#[test]
fn spinning_for_a_lock_takes_time_from_its_holder_on_one_cpu() {
    let parts = |first: bool| {
        let start = if first { vec![] } else { vec![(300, true)] };
        start.into_iter().chain((0..3_000).flat_map(|_| [(300, false), (100, false), (200, true)])).collect()
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
    // Work alone gives 1.33; each slice that ends with the lock held is followed by a slice of spinning.
    assert!((1.6..2.7).contains(&(time(0) / time(1))), "{} and {}", time(0), time(1));
}

#[test]
fn a_probed_function_declared_as_waiting_needs_no_samples() {
    let mut timeline =
        timeline(&[vec![(1_000, false), (1_000, true)], vec![(3_000, true)]], 10_000, true, "x");
    timeline.spin = vec!["wor?".to_owned()];
    // The other thread computes while this thread is in `work`.
    assert_eq!(computes_ns(&from_timeline(&timeline)), (1_000 + 3_000) * US);
}

/// OpenMP's threads spin at the end of a loop until the slowest one arrives.
#[test]
fn active_waiting_for_the_slowest_thread_is_not_computing() {
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
fn a_function_that_does_not_wait_counts_as_computing() {
    let threads = ping_pong(100, 4_000, 2_000);
    let program = from_timeline(&timeline(&threads, 2_000, true, "strlen"));
    assert_eq!(computes_ns(&program), 2 * 600_000 * US);
    assert!(program.findings.iter().all(|finding| finding.kind() != "spinning"));
}

/// A thread that polls for something outside waits for no other thread.
#[test]
fn spinning_that_no_other_thread_ends_stays_computing() {
    let threads = [vec![(100_000, true)], vec![(50_000, true)]];
    let program = from_timeline(&timeline(&threads, 2_000, false, "sched_yield"));
    assert_eq!(computes_ns(&program), 150_000 * US);
}

#[test]
fn spinning_that_ends_in_a_sleep_has_no_edge() {
    let mut timeline = timeline(&[vec![(10_000, false), (10_000, true)]], 1_000, false, "do_spin");
    let thread = &mut timeline.threads[0];
    thread.waits.push(Wait {
        reason: WaitReason::of(0, probe_abi::Call::NONE),
        wake: Wake::External(External::Timer),
        cut_at_start: false,
        moved_to: None,
        from_now: false,
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
fn random_spinning_threads_end_and_take_no_longer_than_recorded() {
    for seed in 0..300_u64 {
        let mut numbers = Numbers::new(seed);
        let threads: Vec<Vec<Part>> = (0..2 + numbers.below(4))
            .map(|_| (0..40).map(|_| (1 + numbers.below(5_000), numbers.chance(1, 2))).collect())
            .collect();
        let mut timeline = timeline(&threads, 500, numbers.chance(1, 2), "sched_yield");
        // Half of the threads wait for a lock: which one gets it first is open.
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
