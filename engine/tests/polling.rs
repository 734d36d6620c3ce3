//! Waits with a time limit that are entered again, and threads that poll while a program runs.

use super::recorded_program::{RUNNING, external, operations, thread, timeline};
use engine::event::FutexFact;
use engine::predict::{Model, Scheduler, predict};
use engine::program::{Operation, Program, Thread as Written, ThreadId};
use engine::report::Cpus;
use engine::schedule::Simulation;
use engine::synth::{Execution, Numbers, generate};
use engine::time::{Ticks, Timestamp};
use engine::timeline::{
    External, Interval, State, Step, StepKind, Thread, Timeline, Wait, WaitReason, Wake, Wakeup, build,
};
use engine::translation::from_timeline;
use probe_abi::Call;

fn futex(word: u64) -> WaitReason {
    WaitReason::Futex(FutexFact { word, operation: 128, words: 0 })
}

/// A thread that repeatedly computes 5 and then waits for 10, to the wait's time limit, for the next of these words. If
/// `woken`, another thread ends the last wait.
fn polls(words: &[u64], woken: bool) -> Timeline {
    let mut states = vec![(0, RUNNING)];
    for number in 0..words.len() as u32 {
        let start = u64::from(number) * 15;
        states.extend([(start + 5, State::Blocked(number)), (start + 15, RUNNING)]);
    }
    let mut poller = thread(1, &states);
    let limit = |&word: &u64| Wait { reason: futex(word), ..external(External::Timer) };
    poller.waits = words.iter().map(limit).collect();
    let end = states[states.len() - 1].0;
    let mut waker = thread(2, &[(0, RUNNING)]);
    let mut wakeups = Vec::new();
    if woken {
        poller.waits.last_mut().expect("a wait").wake = Wake::By(0);
        let ended = Some(words.len() as u32 - 1);
        wakeups.push(Wakeup { time: Timestamp(end), waker: 1, wakee: 0, ended });
        waker.steps.push(Step { time: Timestamp(end), kind: StepKind::Wake(0) });
    }
    Timeline { wakeups, ..timeline(vec![poller, waker]) }
}

#[test]
fn a_time_limit_before_the_same_wait_again_is_no_sleep() {
    let of = |timeline: &Timeline| operations(&from_timeline(timeline));
    let awaits = "Await(EdgeId(0))";
    // The second word belongs to the other group of the same condition variable.
    assert_eq!(of(&polls(&[64, 68, 64], true)), ["exec 15", awaits, "exec 55"]);
    // The time limit decided when the thread continued.
    assert_eq!(of(&polls(&[64, 64], false)), ["exec 5", "sleep 10", "exec 5", "sleep 10", "exec 70"]);
    // Another thread ended a wait, but not the polling one.
    assert_eq!(of(&polls(&[32, 64], true)), ["exec 5", "sleep 10", "exec 5", awaits, "exec 70"]);
    // The polling thread was a clock for another thread.
    let mut clock = polls(&[64, 64], true);
    let mut third = thread(3, &[(0, State::Blocked(0)), (17, RUNNING)]);
    third.waits = vec![Wait { reason: futex(128), wake: Wake::By(1), ..external(External::Task) }];
    clock.threads.push(third);
    clock.wakeups.push(Wakeup { time: Timestamp(17), waker: 0, wakee: 2, ended: Some(0) });
    clock.threads[0].steps.push(Step { time: Timestamp(17), kind: StepKind::Wake(1) });
    (3..5).for_each(|late: usize| clock.threads[0].intervals[late].first_step = 1);
    let release = "Release(EdgeId(1))";
    assert_eq!(of(&clock), ["exec 5", "sleep 10", "exec 2", release, "exec 3", awaits, "exec 70"]);
}

/// A thread wants an object that another one holds. It checks the object three times, each time after its time limit
/// and for `looks`, and then holds the object. The other thread releases it at 300, and waits from then until it gets
/// it back at 390.
fn takes_turns(looks: u64) -> Timeline {
    let mut states = vec![(0, RUNNING), (10, State::Blocked(0))];
    for wait in 1..3 {
        let look = u64::from(wait) * (100 + looks) + 10 - looks;
        states.extend([(look, RUNNING), (look + looks, State::Blocked(wait))]);
    }
    let end = 310 + 2 * looks;
    states.push((end, RUNNING));
    let mut first = thread(1, &states);
    first.waits = vec![Wait { reason: futex(64), ..external(External::Timer) }; 3];
    first.steps = vec![Step { time: Timestamp(390), kind: StepKind::Wake(0) }];
    let mut second = thread(2, &[(0, RUNNING), (300, State::Blocked(0)), (390, RUNNING)]);
    second.waits = vec![Wait { reason: futex(128), wake: Wake::By(0), ..external(External::Task) }];
    (first.end, second.end) = (Timestamp(400), Timestamp(400));
    let wakeups = vec![Wakeup { time: Timestamp(390), waker: 0, wakee: 1, ended: Some(0) }];
    Timeline { end: Timestamp(400), wakeups, ..timeline(vec![first, second]) }
}

/// As with CPython's GIL and four threads: such waits are not sleeping.
#[test]
fn a_thread_that_only_looks_at_each_time_limit_waits_for_the_other() {
    let program = from_timeline(&takes_turns(1));
    let (polled, woke) = ("Await(EdgeId(1))", "Release(EdgeId(0))");
    assert_eq!(operations(&program), ["exec 12", polled, "exec 78", woke, "exec 10"]);
    let second = Program { threads: program.threads[1..].to_vec(), ..program.clone() };
    let (release, awaits) = ("Release(EdgeId(1))", "Await(EdgeId(0))");
    assert_eq!(operations(&second), ["exec 300", release, awaits, "exec 10"]);
    assert_eq!(program.edges[1], "polling #0");
    // A thread that computes after each time limit depends on the time.
    let program = from_timeline(&takes_turns(20));
    let sleeps = ["exec 10", "sleep 100", "exec 20", "sleep 100", "exec 20", "sleep 100", "exec 40"];
    assert_eq!(operations(&program), [&sleeps[..], &[woke, "exec 10"]].concat());
}

/// As Go's `usleep(3)`, which takes 55 µs while another thread has work to take over: such sleeps count as waits for that
/// thread.
#[test]
fn a_short_sleep_beside_a_working_thread_becomes_a_wait_for_it() {
    let of = |length: u64| {
        let states = [(0, RUNNING), (10, State::Blocked(0)), (10 + length, RUNNING)];
        let mut first = thread(1, &states);
        let reason = WaitReason::of(1, Call { number: 35, argument1: 0, argument0: 5 });
        first.waits = vec![Wait { reason, ..external(External::Timer) }];
        let mut second = thread(2, &[(0, RUNNING)]);
        (first.end, second.end) = (Timestamp(300_000), Timestamp(300_000));
        from_timeline(&Timeline { end: Timestamp(300_000), ..timeline(vec![first, second]) })
    };
    assert_eq!(operations(&of(55_000)), ["exec 10", "Await(EdgeId(0))", "exec 244990"]);
    assert_eq!(operations(&of(155_000)), ["exec 10", "sleep 155000", "exec 144990"]);
}

/// As Go's `sysmon`, which sleeps for 10 ms while there is nothing to do and rarely wakes a thread. Such sleeps must not
/// limit how fast the program gets.
#[test]
fn housekeeping_sleeps_of_a_thread_do_not_limit_the_program() {
    const SLEEP: u64 = 10_000_000;
    let of = |acts_each_time: bool, others: &[(u64, State)]| {
        let mut states = vec![(0, RUNNING)];
        for number in 0..3 {
            let woken = u64::from(number + 1) * (SLEEP + 1_000);
            states.extend([(woken - SLEEP, State::Blocked(number)), (woken, RUNNING)]);
        }
        let mut house = thread(1, &states);
        let reason = WaitReason::of(1, Call { number: 35, argument1: 0, argument0: 5 });
        house.waits = vec![Wait { reason, ..external(External::Timer) }; 3];
        let mut works = thread(2, others);
        works.waits = vec![Wait { reason: futex(64), wake: Wake::CutAtEnd, ..external(External::Task) }];
        let (mut woken, mut wakeups) = (thread(3, &[(0, RUNNING)]), Vec::new());
        woken.intervals.clear();
        let first = if acts_each_time { 1 } else { 3 };
        let mut from = 0;
        for (number, sleep) in (first..=3_u64).enumerate() {
            let time = Timestamp(sleep * (SLEEP + 1_000) + 500);
            house.steps.push(Step { time, kind: StepKind::Wake(number as u32) });
            let later = house.intervals.iter_mut().filter(|interval| interval.start > time);
            later.for_each(|interval| interval.first_step = number as u32 + 1);
            let intervals = thread(3, &[(from, State::Blocked(number as u32)), (time.0, RUNNING)]).intervals;
            woken.intervals.extend(intervals);
            woken.waits.push(Wait {
                reason: futex(128),
                wake: Wake::By(number as u32),
                ..external(External::Task)
            });
            wakeups.push(Wakeup { time, waker: 0, wakee: 2, ended: Some(number as u32) });
            from = time.0 + 10;
        }
        let end = Timestamp(40_000_000);
        [&mut works, &mut woken].into_iter().for_each(|thread| thread.end = end);
        house.end = Timestamp(3 * (SLEEP + 1_000) + 1_000);
        let program = from_timeline(&Timeline { end, wakeups, ..timeline(vec![house, works, woken]) });
        operations(&program).iter().filter(|operation| operation.starts_with("sleep")).count()
    };
    let busy = [(0, RUNNING)];
    assert_eq!(of(false, &busy), 0);
    // The thread is a clock for others.
    assert_eq!(of(true, &busy), 3);
    // No other thread has anything to do meanwhile.
    assert_eq!(of(false, &[(0, RUNNING), (3_000_000, State::Blocked(0))]), 3);
}

/// A loop that sleeps to pace itself, with no other thread to wait for, sleeps as long as recorded.
#[test]
fn short_sleeps_of_a_thread_alone_are_sleeps() {
    let states = [(0, RUNNING), (10, State::Blocked(0)), (60_010, RUNNING), (60_020, State::Blocked(1))];
    let mut alone = thread(1, &[&states[..], &[(120_020, RUNNING)]].concat());
    let reason = WaitReason::of(1, Call { number: 35, argument1: 0, argument0: 5 });
    alone.waits = vec![Wait { reason, ..external(External::Timer) }; 2];
    alone.end = Timestamp(120_030);
    let program = from_timeline(&Timeline { end: Timestamp(120_030), ..timeline(vec![alone]) });
    assert_eq!(operations(&program), ["exec 10", "sleep 60000", "exec 10", "sleep 60000", "exec 10"]);
}

/// As Java's thread for safepoints, which comes after a second wherever the others are in the program: its sleep counts as a
/// wait for them.
#[test]
fn a_thread_that_stops_others_at_its_time_limit_waits_for_them() {
    let of = |waits_since: u64| {
        let mut first =
            thread(1, &[(0, State::Blocked(0)), (2_000_000, RUNNING), (2_000_010, State::Blocked(1))]);
        let limit = Wait { reason: futex(64), ..external(External::Timer) };
        first.waits = vec![limit, Wait { wake: Wake::CutAtEnd, ..limit }];
        first.steps = vec![Step { time: Timestamp(2_000_005), kind: StepKind::Wake(0) }];
        first.intervals[2].first_step = 1;
        let mut second = thread(2, &[(0, RUNNING), (waits_since, State::Blocked(0)), (2_000_005, RUNNING)]);
        second.waits = vec![Wait { reason: futex(128), wake: Wake::By(0), ..external(External::Task) }];
        (first.end, second.end) = (Timestamp(4_000_000), Timestamp(4_000_000));
        let wakeups = vec![Wakeup { time: Timestamp(2_000_005), waker: 0, wakee: 1, ended: Some(0) }];
        from_timeline(&Timeline { end: Timestamp(4_000_000), wakeups, ..timeline(vec![first, second]) })
    };
    let release = "Release(EdgeId(0))";
    assert_eq!(operations(&of(2_000_003)), ["Await(EdgeId(1))", "exec 5", release, "exec 5"]);
    // Another thread waits for it already, so it is a clock.
    assert_eq!(operations(&of(1_999_999)), ["sleep 2000000", "exec 5", release, "exec 5"]);
}

/// Whichever sleeps count as polling, an effect comes later than its cause.
#[test]
fn threads_that_poll_come_to_their_end_and_take_no_longer_than_recorded() {
    for seed in 0..300 {
        let mut numbers = Numbers::new(seed);
        let threads = (0..2 + numbers.below(3)).map(|number| {
            let mut now = numbers.below(1_000);
            let (mut states, mut waits) = (vec![(0, RUNNING)], Vec::new());
            while now < 200_000 {
                states.push((now, State::Blocked(waits.len() as u32)));
                let sleep = WaitReason::of(1, Call { number: 35, argument1: 0, argument0: 5 });
                let reason = if numbers.chance(1, 3) { sleep } else { futex(64) };
                waits.push(Wait { reason, ..external(External::Timer) });
                now += 1 + numbers.below(20_000);
                states.push((now, RUNNING));
                let most = if numbers.chance(1, 3) { 10_000 } else { 100 };
                now += 1 + numbers.below(most);
            }
            let mut thread = thread(1 + number as u32, &states);
            // After each computation it creates a short-lived thread, so that others are woken.
            thread.steps =
                (0..20).map(|at| Step { time: Timestamp(at * 10_000), kind: StepKind::Create(9) }).collect();
            for interval in &mut thread.intervals {
                interval.first_step = interval.start.0.div_ceil(10_000).min(20) as u32;
            }
            (thread.waits, thread.end) = (waits, Timestamp(now));
            thread
        });
        let threads: Vec<Thread> = threads.collect();
        let end = threads.iter().map(|thread| thread.end).max().unwrap_or_default();
        let program = from_timeline(&Timeline { end, ..timeline(threads) });
        assert_eq!(program.check(), Ok(()), "seed {seed}");
        let schedule = Simulation::new(&program).expect("a program").finish();
        assert_eq!(schedule.findings, [], "seed {seed}");
        for (thread, done) in program.threads.iter().zip(&schedule.done) {
            assert!(thread.background.is_some() || thread.operations.len() == *done, "seed {seed}");
        }
        assert!(schedule.length.0 <= end.0 * Ticks::PER_NS, "seed {seed}");
    }
}

/// A thread that alternately sleeps and computes until the end of the window.
fn poller(tid: u32, end: u64, asleep: u64, computes: u64, reason: WaitReason) -> Thread {
    let mut thread = thread(tid, &[(0, State::Blocked(0))]);
    thread.intervals.clear();
    thread.end = Timestamp(end);
    let mut time = 0;
    while time < end {
        let wait = thread.waits.len() as u32;
        let interval = |start, state| Interval { start: Timestamp(start), state, first_step: 0 };
        thread.intervals.push(interval(time, State::Blocked(wait)));
        thread.waits.push(Wait { reason, ..external(External::Timer) });
        if time + asleep < end {
            thread.intervals.push(interval(time + asleep, RUNNING));
        } else {
            thread.waits[wait as usize].wake = Wake::CutAtEnd;
        }
        time += asleep + computes;
    }
    thread
}

/// A thread that polls costs its computing only, at any rate of polling and with either kind of sleep.
#[test]
fn a_poller_costs_no_more_than_its_computing() {
    let cpus = Cpus::parse_list("1,2,inf").expect("counts");
    let model = Model { scheduler: Some(Scheduler::Ideal), ..Model::default() };
    let times = |timeline: &Timeline| -> Vec<f64> {
        predict(&from_timeline(timeline), &cpus, &model).results.iter().map(|result| result.time_ns).collect()
    };
    let ways = [futex(64), WaitReason::of(1, Call { number: 35, argument1: 0, argument0: 5 })];
    for seed in 0..200 {
        let mut numbers = Numbers::new(seed);
        let end = 1_000_000 + numbers.below(1_000_000);
        let workers = (0..=numbers.below(3)).map(|number| {
            let mut worker = thread(1 + number as u32, &[(0, RUNNING)]);
            worker.end = Timestamp(end / (1 + number));
            worker
        });
        let workers: Vec<Thread> = workers.collect();
        let with_end = |threads| Timeline { end: Timestamp(end), ..timeline(threads) };
        let without = times(&with_end(workers.clone()));
        let asleep = 1 + numbers.below(end / 2);
        let computes = (1 + numbers.below(1000)).min(asleep.div_ceil(12));
        let reason = ways[numbers.below(2) as usize];
        let first = numbers.below(2) == 0;
        let mut threads = workers;
        let poller = poller(if first { 1 } else { 9 }, end, asleep, computes, reason);
        if first {
            threads.iter_mut().for_each(|thread| thread.tid += 1);
        }
        threads.push(poller);
        let with = times(&with_end(threads));
        for (with, without) in with.iter().zip(&without) {
            let ticks = with / (asleep + computes) as f64 + 2.0;
            let most = without + ticks * computes as f64 + 1.0;
            let what = format!("seed {seed}: {asleep} {computes}: {without} {with}");
            assert!(*with <= most && *with >= without - 1.0, "{what}");
        }
    }
}

/// A thread that creates another between two sleeps does more than poll, however short its computing is.
#[test]
fn a_sleep_before_a_thread_is_created_is_no_poll() {
    let sleep = Operation::Sleep(Ticks::from_ns(101_000));
    let of = |name: &str, operations| Written { name: name.to_owned(), operations, ..Written::default() };
    let created = vec![Operation::Exec(Ticks::from_ns(1000))];
    let threads = vec![of("a", vec![sleep, Operation::Create(ThreadId(1)), sleep]), of("b", created)];
    let program = Program { threads, ..Program::default() };
    let generated = generate(&program, &Execution::default()).expect("supported");
    let program = from_timeline(&build(&generated.recording()));
    let sleeps = |operation: &&Operation| matches!(operation, Operation::Sleep(_));
    assert_eq!(program.threads[0].operations.iter().filter(sleeps).count(), 2, "{:?}", program.threads);
}
