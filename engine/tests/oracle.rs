//! The sweep against the paper's brute force (2001, Fig. 5) on random programs with every kind of operation.

use engine::critical_path::{CriticalPath, oracle};
use engine::program::{EdgeId, ObjectId, Operation, Program, Thread, ThreadId};
use engine::report::Cpus;
use engine::synth::{Lengths, random_program};

/// Operations whose weight by the sweep differs from the oracle's, as (compared, different, different with a new order).
fn differences(program: &Program, seed: u64) -> (usize, Vec<String>, usize) {
    let cpus = Cpus::parse_list("1,2,3,4,inf").expect("counts");
    let path = CriticalPath::of(program).expect("a program");
    let weights = path.weights(&cpus).next().expect("weights");
    let (mut compared, mut different, mut reordered) = (0, Vec::new(), 0);
    for (place, cpus) in cpus.iter().enumerate() {
        assert_eq!(path.time(*cpus).value, oracle::time(program, *cpus).expect("a program"), "seed {seed}");
        let swept: Vec<_> = path.segments().collect();
        for shortened in oracle::weights(program, *cpus).expect("a program") {
            let segment = swept.iter().find(|segment| {
                (segment.thread, segment.operation) == (shortened.thread, shortened.operation)
            });
            // Operations after a deadlock do not happen and weigh nothing.
            let swept = segment.map_or(0, |segment| i128::from(weights.scaled(segment.point, place)));
            compared += 1;
            if swept != shortened.scaled_weight && shortened.reordered {
                reordered += 1;
            } else if swept != shortened.scaled_weight {
                let (thread, operation) = (shortened.thread.0, shortened.operation);
                different.push(format!(
                    "seed {seed}, P={cpus}, thread {thread}, operation {operation}: sweep {swept}, oracle {}",
                    shortened.scaled_weight
                ));
            }
        }
    }
    (compared, different, reordered)
}

#[test]
fn without_ties_the_sweep_is_the_oracle() {
    let mut compared = 0;
    for seed in 0..3000 {
        let (count, different, reordered) = differences(&random_program(seed, Lengths::Spread), seed);
        assert_eq!(different, [""; 0]);
        assert_eq!(reordered, 0, "seed {seed}");
        compared += count;
    }
    assert!(compared > 100_000, "{compared} weights are too few to mean anything");
}

#[test]
fn with_ties_sweep_and_oracle_differ_only_where_order_of_arrival_changes() {
    let (mut compared, mut reordered) = (0, 0);
    for seed in 0..3000 {
        let (count, different, excused) = differences(&random_program(seed, Lengths::Tied), seed);
        assert_eq!(different, [""; 0]);
        compared += count;
        reordered += excused;
    }
    assert!(compared > 100_000, "{compared} weights are too few to mean anything");
    println!("{reordered} of {compared} weights belong to another order of arrival");
    assert!(reordered * 50 < compared, "{reordered} of {compared} weights differ");
}

/// Several random programs side by side, so that many threads end at one instant. They share only semaphores.
fn crowd(seed: u64, lengths: Lengths) -> Program {
    let mut crowd = random_program(seed, lengths);
    for part in 1..6 {
        let other = random_program(seed.wrapping_add(part * 1_000_003), lengths);
        let threads = crowd.threads.len() as u32;
        let objects = crowd.objects.len() as u32;
        // More edges than one part has.
        let edges = part as u32 * 1000;
        let object = |object: ObjectId| if object.0 < 3 { object } else { ObjectId(object.0 + objects) };
        let moved = |operation: &Operation| match *operation {
            Operation::Lock(it) => Operation::Lock(object(it)),
            Operation::Unlock(it) => Operation::Unlock(object(it)),
            Operation::ReadLock(it) => Operation::ReadLock(object(it)),
            Operation::WriteLock(it) => Operation::WriteLock(object(it)),
            Operation::ReadWriteUnlock(it) => Operation::ReadWriteUnlock(object(it)),
            Operation::SpinLock(it) => Operation::SpinLock(object(it)),
            Operation::SpinUnlock(it) => Operation::SpinUnlock(object(it)),
            Operation::Barrier(it, count) => Operation::Barrier(object(it), count),
            Operation::CondWait(it, mutex) => Operation::CondWait(object(it), object(mutex)),
            Operation::CondSignal(it) => Operation::CondSignal(object(it)),
            Operation::CondBroadcast(it) => Operation::CondBroadcast(object(it)),
            Operation::Once(it, length) => Operation::Once(object(it), length),
            Operation::Create(thread) => Operation::Create(ThreadId(thread.0 + threads)),
            Operation::Join(thread) => Operation::Join(ThreadId(thread.0 + threads)),
            Operation::Release(edge) => Operation::Release(EdgeId(edge.0 + edges)),
            Operation::Await(edge) => Operation::Await(EdgeId(edge.0 + edges)),
            same => same,
        };
        crowd.threads.extend(other.threads.iter().map(|thread| Thread {
            name: format!("{part}{}", thread.name),
            operations: thread.operations.iter().map(moved).collect(),
            ..thread.clone()
        }));
        crowd.objects.extend(other.objects.iter().map(|name| format!("{part}{name}")));
    }
    crowd.edges = (0..6000).map(|edge| format!("edge{edge}")).collect();
    crowd
}

#[test]
fn sweep_and_oracle_agree_on_many_threads_at_one_instant() {
    let (mut compared, mut reordered, mut most) = (0, 0, 0);
    for seed in 0..60 {
        for lengths in [Lengths::Spread, Lengths::Tied] {
            let program = crowd(seed, lengths);
            let (count, different, excused) = differences(&program, seed);
            assert_eq!(different, [""; 0]);
            assert!(excused == 0 || lengths == Lengths::Tied, "seed {seed}");
            compared += count;
            reordered += excused;
            most = most.max(CriticalPath::of(&program).expect("a program").most_executing());
        }
    }
    println!("{reordered} of {compared} weights belong to another order of arrival");
    assert!(most > 10, "{most} executing threads are no crowd");
    assert!(compared > 10_000 && reordered * 20 < compared, "{reordered} of {compared}");
}
