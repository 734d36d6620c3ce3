//! Facts about the recorded machine, from a recording.

use engine::program::{DeviceFact, MachineFacts};
use engine::time::Timestamp;
use engine::timeline::{External, Interval, State, Thread, Timeline, Wait, WaitReason, Wake};
use engine::translation::from_timeline;
use probe_abi::Call;

fn on(cpu: u16) -> State {
    State::Running { cpu: Some(cpu) }
}

/// A thread with these states, each with its start, until `end`. All its waits end by `wake`.
fn thread(tid: u32, wake: Wake, states: &[(u64, State)], end: u64) -> Thread {
    let wait = Wait {
        reason: WaitReason::of(2, Call::NONE),
        wake,
        cut_at_start: false,
        moved_to: None,
        from_now: false,
    };
    let mut waits = 0;
    let intervals = states.iter().map(|&(start, state)| {
        let state = match state {
            State::Blocked(_) => {
                waits += 1;
                State::Blocked(waits - 1)
            }
            other => other,
        };
        Interval { start: Timestamp(start), state, first_step: 0 }
    });
    let intervals = intervals.collect();
    Thread {
        pid: 1,
        tid,
        comm: "work".to_owned(),
        start: Timestamp(states[0].0),
        end: Timestamp(end),
        intervals,
        waits: vec![wait; waits as usize],
        ..Thread::default()
    }
}

fn facts(threads: Vec<Thread>) -> MachineFacts {
    let end = threads.iter().map(|thread| thread.end).max().expect("threads");
    from_timeline(&Timeline { end, threads, ..Timeline::default() }).machine.expect("facts")
}

const DISK: Wake = Wake::External(External::Block);

/// Twelve rounds: the thread computes, waits, is woken at 500, and gets its CPU `latency` plus the round's number later.
fn sleeper(tid: u32, cpu: u16, latency: u64) -> Thread {
    let round = |n: u64| {
        let at = n * 1000;
        [(at, State::Blocked(0)), (at + 500, State::Runnable), (at + 500 + latency + n, on(cpu))]
    };
    let states: Vec<(u64, State)> = std::iter::once((0, on(cpu))).chain((1..13).flat_map(round)).collect();
    thread(tid, DISK, &states, 14_000)
}

#[test]
fn the_wake_up_latency_is_that_of_idle_cpus() {
    let alone = facts(vec![sleeper(1, 0, 30)]);
    assert_eq!(alone.wake_latency_ns, Some(37));
    assert_eq!((alone.cpus_used, alone.switch_cost_ns, alone.slice_ns), (Some(1), Some(0), None));
    // While another thread has the CPU, the delay is not a wake-up latency.
    let states = (1..13_u64).flat_map(|n| [(n * 1000, on(0)), (n * 1000 + 530 + n, State::Blocked(0))]);
    let other = thread(2, DISK, &states.collect::<Vec<_>>(), 14_000);
    assert_eq!(facts(vec![sleeper(1, 0, 30), other]).wake_latency_ns, None);
}

#[test]
fn a_time_slice_ends_when_another_thread_takes_over() {
    // Two threads take turns of 3 ms.
    let turns = |tid: u32, first: bool| {
        let states: Vec<(u64, State)> = (0..12_u64)
            .map(|turn| {
                let runs = (turn % 2 == 0) == first;
                (turn * 3_000_000, if runs { on(0) } else { State::Runnable })
            })
            .collect();
        thread(tid, DISK, &states, 36_000_000)
    };
    assert_eq!(facts(vec![turns(1, true), turns(2, false)]).slice_ns, Some(3_000_000));
    // A thread that is woken and pre-empts at once ends no slice.
    let eager =
        |n: u64| [(n * 1000, State::Blocked(0)), (n * 1000 + 500, State::Runnable), (n * 1000 + 501, on(0))];
    let states: Vec<(u64, State)> = std::iter::once((0, on(0))).chain((1..13).flat_map(eager)).collect();
    let other = (1..13_u64).flat_map(|n| [(n * 1000, on(0)), (n * 1000 + 501, State::Runnable)]);
    let other = thread(2, DISK, &other.collect::<Vec<_>>(), 14_000);
    assert_eq!(facts(vec![thread(1, DISK, &states, 14_000), other]).slice_ns, None);
    // A slice that begins as another thread goes to sleep is shorter than the others: it does not count either.
    let short =
        |n: u64| [(n * 9000, State::Runnable), (n * 9000 + 1000, on(0)), (n * 9000 + 4000, State::Runnable)];
    let states: Vec<(u64, State)> =
        std::iter::once((0, State::Runnable)).chain((1..13).flat_map(short)).collect();
    let other = (1..13_u64).flat_map(|n| {
        [
            (n * 9000, on(0)),
            (n * 9000 + 1000, State::Blocked(0)),
            (n * 9000 + 2000, State::Runnable),
            (n * 9000 + 4000, on(0)),
        ]
    });
    let other: Vec<(u64, State)> = std::iter::once((0, State::Runnable)).chain(other).collect();
    assert_eq!(
        facts(vec![thread(1, DISK, &states, 120_000), thread(2, DISK, &other, 120_000)]).slice_ns,
        None
    );
    // The thread lost its CPU to something that was not recorded, so this says nothing about slices.
    assert_eq!(facts(vec![turns(1, true)]).slice_ns, None);
}

#[test]
fn a_device_serves_as_many_at_once_as_waited_for_it_at_once() {
    let two = facts(vec![sleeper(1, 0, 30), sleeper(2, 1, 30)]);
    assert_eq!(two.devices, [DeviceFact { name: "disk".to_owned(), most_at_once: 2 }]);
    // The threads' waits follow one another.
    let mut late = sleeper(2, 1, 30);
    late.intervals.iter_mut().for_each(|interval| interval.start.0 += 500);
    late.end.0 += 500;
    assert_eq!(facts(vec![sleeper(1, 0, 30), late]).devices[0].most_at_once, 1);
    // The network is no device: another machine ends the wait.
    let remote = thread(1, Wake::External(External::Network), &[(0, State::Blocked(0)), (5, on(0))], 9);
    assert_eq!(facts(vec![remote]).devices, []);
}

/// In each round thread 1 is woken while another thread has its CPU and a third one has just left the other CPU. In every
/// fourth round thread 1 gets that idle CPU at once.
fn beside_an_idle_cpu(rounds: u64) -> Vec<Thread> {
    let at = |n: u64| n * 1_000_000;
    let woken = (0..rounds).flat_map(|n| {
        let (from, to) = if n % 4 == 0 { (on(1), 520) } else { (on(0), 800) };
        [
            (at(n), on(0)),
            (at(n) + 100, State::Blocked(0)),
            (at(n) + 500, State::Runnable),
            (at(n) + to, from),
            (at(n) + 900, State::Blocked(0)),
        ]
    });
    let until = |cpu: u16, end: u64| {
        (0..rounds).flat_map(move |n| [(at(n) + 200, on(cpu)), (at(n) + end, State::Blocked(0))])
    };
    let whole = |tid: u32, states: Vec<(u64, State)>| thread(tid, DISK, &states, at(rounds));
    let mut others = vec![(0, State::Blocked(0))];
    others.extend(until(0, 800));
    let mut left = vec![(0, State::Blocked(0))];
    left.extend(until(1, 450));
    vec![whole(1, woken.collect()), whole(2, others), whole(3, left)]
}

#[test]
fn the_share_of_wake_ups_that_find_an_idle_cpu_needs_enough_of_them() {
    assert_eq!(facts(beside_an_idle_cpu(40)).idle_found, Some(250));
    // Too few wake-ups.
    assert_eq!(facts(beside_an_idle_cpu(20)).idle_found, None);
    // Nothing shows that the other CPU is idle.
    assert_eq!(facts(beside_an_idle_cpu(40).drain(..2).collect()).idle_found, None);
}

#[test]
fn slow_wake_ups_are_told_apart_from_those_that_queued() {
    let round = |n: u64, latency: u64| {
        let at = n * 10_000_000;
        [(at, State::Blocked(0)), (at + 500, State::Runnable), (at + 500 + latency, on(0))]
    };
    // Latencies from 1 to 200 µs, and ten of 5 ms.
    let latencies = (1..=200_u64).map(|n| n * 1000).chain([5_000_000; 10]);
    let states = (1..).zip(latencies).flat_map(|(n, latency)| round(n, latency));
    let states: Vec<(u64, State)> = std::iter::once((0, on(0))).chain(states).collect();
    let facts = facts(vec![thread(1, DISK, &states, 3_000_000_000)]);
    assert_eq!((facts.wake_latency_ns, facts.slow_wakes_ns), (Some(106_000), Some([181_000, 199_000])));
}
