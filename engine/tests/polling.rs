//! Waits with a time limit that are entered again, and pollers beside a program.

use super::recorded_program::{RUNNING, external, operations, thread, timeline};
use engine::event::FutexFact;
use engine::predict::{Model, Scheduler, predict};
use engine::program::from_timeline;
use engine::report::Cpus;
use engine::synth::Numbers;
use engine::time::Timestamp;
use engine::timeline::{
    External, Interval, State, Step, StepKind, Thread, Timeline, Wait, WaitReason, Wake, Wakeup,
};
use probe_abi::Call;

fn futex(word: u64) -> WaitReason {
    WaitReason::Futex(FutexFact { word, operation: 128, words: 0 })
}

/// A thread that computes 5, waits for each of these words in turn until its time limit after 10, computes 5 again, and so on.
/// The last wait is ended by another thread, if `woken`.
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
fn a_time_limit_before_the_same_wait_decides_nothing() {
    let of = |timeline: &Timeline| operations(&from_timeline(timeline));
    let awaits = "Await(EdgeId(0))";
    // The second word is that of the other group of the same condition variable.
    assert_eq!(of(&polls(&[64, 68, 64], true)), ["exec 15", awaits, "exec 55"]);
    // Time decided when it went on.
    assert_eq!(of(&polls(&[64, 64], false)), ["exec 5", "sleep 10", "exec 5", "sleep 10", "exec 70"]);
    // Another wait was what somebody ended.
    assert_eq!(of(&polls(&[32, 64], true)), ["exec 5", "sleep 10", "exec 5", awaits, "exec 70"]);
    // It was a clock for another thread.
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

/// A thread that sleeps and computes in turn until the end of the window.
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

/// However often it wakes up, and whichever way it sleeps.
#[test]
fn a_poller_costs_no_more_than_what_it_computes() {
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
