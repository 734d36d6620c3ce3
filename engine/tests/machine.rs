//! What must hold for every program on every machine with a number of processors.

use engine::critical_path::CriticalPath;
use engine::program::{Operation, Program, json};
use engine::report::Cpus;
use engine::schedule::{Outcome, Rules, Setup, Sharing, Simulation, run};
use engine::synth::{Lengths, random_program};

fn on(program: &Program, processors: Sharing) -> Outcome {
    run(program, &Setup { processors, servers: Vec::new() }).expect("a program")
}

fn ideal(cpus: u64) -> Sharing {
    Sharing::Ideal { hundredths: cpus * 100 }
}

fn free(cpus: u32) -> Sharing {
    Sharing::Scheduled(Rules::free(cpus))
}

fn each(check: impl Fn(u64, &Program)) {
    for seed in 0..3000 {
        for lengths in [Lengths::Spread, Lengths::Tied] {
            check(seed, &random_program(seed, lengths));
        }
    }
}

#[test]
fn enough_processors_without_costs_are_unlimited_processors() {
    each(|seed, program| {
        let unlimited = Simulation::new(program).expect("a program").finish();
        let threads = program.threads.len();
        for machine in [ideal(threads as u64), free(threads as u32), ideal(100), free(100)] {
            let outcome = on(program, machine);
            assert_eq!(outcome.done, unlimited.done, "seed {seed} {machine:?}");
            assert_eq!(outcome.findings, unlimited.findings, "seed {seed} {machine:?}");
            assert_eq!(outcome.length, unlimited.length, "seed {seed} {machine:?}");
        }
    });
}

/// What the threads compute, as far as they get.
fn work(outcome: &Outcome) -> u64 {
    outcome.threads.iter().map(|thread| thread.busy).sum()
}

fn idles(program: &Program) -> bool {
    let mut steps = program.threads.iter().flat_map(|thread| &thread.operations);
    steps.any(|step| matches!(step, Operation::Io(..) | Operation::Sleep(_) | Operation::SpinLock(_)))
}

#[test]
fn one_processor_without_costs_is_busy_all_the_time() {
    each(|seed, program| {
        for machine in [ideal(1), free(1)] {
            let outcome = on(program, machine);
            let work = work(&outcome);
            assert!(outcome.length.0 >= work, "seed {seed}");
            if !idles(program) {
                assert_eq!(outcome.length.0, work, "seed {seed} {machine:?}");
            }
        }
    });
}

#[test]
fn no_number_of_processors_beats_the_work_shared_among_them() {
    each(|seed, program| {
        for cpus in 1..=4_u32 {
            for machine in [ideal(u64::from(cpus)), free(cpus)] {
                let outcome = on(program, machine);
                let used: u64 = outcome.threads.iter().map(|thread| thread.busy + thread.spinning).sum();
                // Sharing rounds down by less than a tick for each thread and change.
                assert!(
                    outcome.length.0 * u64::from(cpus) + 1000 >= used,
                    "seed {seed}, {machine:?}: {} and {used}",
                    outcome.length.0
                );
                let histogram: u64 = outcome.busy.iter().sum();
                assert_eq!(histogram, outcome.length.0, "seed {seed} {machine:?}");
            }
        }
    });
}

#[test]
fn ideal_sharing_takes_as_long_as_the_extended_critical_path_where_the_order_stays() {
    for name in ["figure-1", "figure-4", "quicksort"] {
        let path = format!("{}/../tests/data/{name}/program.json", env!("CARGO_MANIFEST_DIR"));
        let program = json::read(&std::fs::read_to_string(path).expect("a file")).expect("a program");
        let critical = CriticalPath::of(&program).expect("a program");
        for cpus in 1..=8 {
            let time = critical.time(Cpus::count(cpus as u32).expect("a count"));
            // Rounded down to a tick.
            let expected = time.value / i128::from(time.scale);
            assert_eq!(i128::from(on(&program, ideal(cpus)).length.0), expected, "{name} on {cpus}");
        }
    }
}
