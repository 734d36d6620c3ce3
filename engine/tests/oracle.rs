//! The sweep against the paper's brute force (2001, Fig. 5) on random programs with every kind of operation.

use engine::critical_path::{CriticalPath, oracle};
use engine::program::Program;
use engine::report::Cpus;
use engine::synth::{Lengths, random_program};

/// All operations whose weight by the sweep is not that of the oracle, as (compared, different, of those reordered).
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
            // What a deadlock keeps from happening weighs nothing.
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
fn with_ties_they_differ_only_where_shortening_changes_who_comes_first() {
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
