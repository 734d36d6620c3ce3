//! Tests of the path through a run: its parts add up to the run's time on any machine. With enough processors and no
//! costs it is the critical path.

use crate::cpus::Cpus;
use crate::critical_path::CriticalPath;
use crate::program::RunBreaks;
use crate::program::{Operation, Program};
use crate::schedule::{Runs, SchedulerParameters, run_with_path};
use crate::synth::{Lengths, Numbers, random_program};
use crate::time::Ticks;

fn machine(numbers: &mut Numbers) -> SchedulerParameters {
    let mut some = |most: u64| [0, 1 + numbers.below(most)][numbers.below(2) as usize];
    SchedulerParameters {
        slice: Ticks::from_ns(300_000 + some(40_000_000)),
        switch_cost: Ticks::from_ns(some(2_000_000)),
        wake_latency: Ticks::from_ns(some(5_000_000)),
        wake_cost: Ticks::from_ns(some(2_000_000)),
        tick: Ticks::from_ns(some(4) * 1_000_000),
        quota: Some(some(400) as u32 / 10 * 10).filter(|quota| *quota > 0),
        seed: some(1 << 40),
        ..SchedulerParameters::free(1 + numbers.below(6) as u32)
    }
}

/// Every tick of a run belongs to exactly one function or wait, and the path computes only what the program computes.
#[test]
fn the_path_through_a_run_takes_the_whole_time() {
    let mut waited = 0;
    for seed in 0..1500 {
        let lengths = if seed % 2 == 0 { Lengths::Spread } else { Lengths::Tied };
        let mut program = random_program(seed, lengths);
        let mut numbers = Numbers::new(seed + 1);
        for thread in &mut program.threads {
            thread.nice = numbers.below(6) as i8 - 3;
        }
        for _ in 0..3 {
            let parameters = machine(&mut numbers);
            let (outcome, path, _) = run_with_path(&program, parameters, &[1, 0, 2], None);
            assert_eq!(path.length(), outcome.length.0, "seed {seed}, {parameters:?}");
            waited += path.passed.values().map(|passed| passed.on_path.0).sum::<u64>();
            let mut visits = path.visits.clone();
            visits.sort_unstable();
            for pair in visits.windows(2) {
                assert!(
                    pair[0].run != pair[1].run || pair[0].to <= pair[1].from,
                    "seed {seed}, {parameters:?}"
                );
            }
            let computed: u64 = visits.iter().map(|visit| visit.to - visit.from).sum();
            let operations = program.threads.iter().flat_map(|thread| &thread.operations);
            let all: u64 = operations
                .filter(|operation| {
                    matches!(operation, Operation::Exec(_) | Operation::ExecIn(..) | Operation::Once(..))
                })
                .filter_map(Operation::length)
                .map(|length| length.0)
                .sum();
            assert!(computed <= all, "seed {seed}, {parameters:?}");
        }
    }
    assert!(waited > 0);
}

/// With a processor for each thread and no costs, each run of compute operations is on the path either entirely or not
/// at all, as its weight requires.
#[test]
fn with_enough_cpus_the_path_through_a_run_is_the_critical_path() {
    let mut compared = 0;
    for seed in 0..3000 {
        let program = random_program(seed, Lengths::Spread);
        let parameters = SchedulerParameters::free(program.threads.len() as u32);
        let (outcome, path, runs) = run_with_path(&program, parameters, &[], None);
        let critical = CriticalPath::of(&program).expect("a program");
        let cpus = [Cpus::Infinite];
        assert_eq!(outcome.length.as_ns_f64(), critical.time(cpus[0]).as_ns_f64(), "seed {seed}");
        let weights = critical.weights(&cpus).next().expect("weights");
        let on_path = |run: u32| -> u64 {
            path.visits.iter().filter(|visit| visit.run == run).map(|visit| visit.to - visit.from).sum()
        };
        let mut expected = vec![0.0; runs.len()];
        for segment in weights.segments() {
            let run = run_of(&program, &runs, segment.thread.0 as usize, segment.operation);
            expected[run as usize] +=
                weights.weight(segment.point, 0) * (segment.end.0 - segment.start.0) as f64;
        }
        for (run, expected) in (0..).zip(expected) {
            assert_eq!(on_path(run) as f64, expected, "seed {seed}, run {run}");
            compared += usize::from(expected > 0.0);
        }
    }
    assert!(compared > 5_000, "{compared}");
}

/// The number of the run that contains the operation.
fn run_of(program: &Program, runs: &Runs, thread: usize, operation: usize) -> u32 {
    let mut breaks = RunBreaks::default();
    let operations = program.threads[thread].operations.iter().take(operation + 1);
    let before = operations.filter(|operation| breaks.starts_run(operation)).count();
    runs.first_of(thread) + before as u32 - 1
}
