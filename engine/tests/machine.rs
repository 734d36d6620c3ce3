//! Invariants of every program on every machine with a number of processors.

use engine::critical_path::CriticalPath;
use engine::program::{ObjectId, Operation, Program, json};
use engine::report::Cpus;
use engine::schedule::{RunOutcome, SchedulerParameters, Setup, Sharing, Simulation, run};
use engine::synth::{Lengths, Numbers, random_program};
use engine::time::Ticks;

fn on(program: &Program, processors: Sharing) -> RunOutcome {
    run(program, &Setup { processors, servers: Vec::new() }).expect("a program")
}

fn ideal(cpus: u64) -> Sharing {
    Sharing::Ideal { hundredths: cpus * 100 }
}

fn free(cpus: u32) -> Sharing {
    Sharing::Scheduled(SchedulerParameters::free(cpus))
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

/// Computing of all threads, as far as they get in the run.
fn work(outcome: &RunOutcome) -> u64 {
    outcome.threads.iter().map(|thread| thread.busy).sum()
}

fn idles(program: &Program) -> bool {
    let mut steps = program.threads.iter().flat_map(|thread| &thread.operations);
    steps.any(|step| {
        matches!(
            step,
            Operation::Io(..) | Operation::Sleep(_) | Operation::SleepNext(_) | Operation::SpinLock(_)
        )
    })
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
                // Sharing loses less than a tick to rounding for each thread and change.
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
fn ideal_sharing_takes_the_extended_critical_path_s_time_on_the_papers_programs() {
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

/// Whether the order in which threads run has no effect: each waiter waits for one action of one thread.
fn order_decides_nothing(program: &Program) -> bool {
    let mut steps = program.threads.iter().flat_map(|thread| &thread.operations);
    steps.all(|step| {
        matches!(
            step,
            Operation::Exec(_)
                | Operation::ExecIn(..)
                | Operation::Call(_)
                | Operation::Return
                | Operation::Io(..)
                | Operation::Sleep(_)
                | Operation::SleepNext(_)
                | Operation::Barrier(..)
                | Operation::Create(_)
                | Operation::Join(_)
                | Operation::Release(_)
                | Operation::Await(_)
        )
    })
}

#[test]
fn no_machine_is_faster_than_the_critical_path_if_order_decides_nothing() {
    let checked = std::cell::Cell::new(0);
    each(|seed, program| {
        if !order_decides_nothing(program) {
            return;
        }
        let unlimited = Simulation::new(program).expect("a program").finish();
        for cpus in 1..=4 {
            for machine in [ideal(cpus), free(cpus as u32)] {
                let outcome = on(program, machine);
                assert!(outcome.length >= unlimited.length, "seed {seed} {machine:?}");
                assert_eq!(outcome.done, unlimited.done, "seed {seed} {machine:?}");
            }
        }
        // Without waits there is one phase of sharing, for which the paper's stretching of the unlimited schedule is exact.
        let mut steps = program.threads.iter().flat_map(|thread| &thread.operations);
        if steps.all(|step| {
            matches!(
                step,
                Operation::Exec(_) | Operation::ExecIn(..) | Operation::Call(_) | Operation::Return
            )
        }) {
            let path = CriticalPath::of(program).expect("a program");
            for cpus in 1..=4 {
                let time = path.time(Cpus::count(cpus as u32).expect("a count"));
                let expected = time.value / i128::from(time.scale);
                assert_eq!(i128::from(on(program, ideal(cpus)).length.0), expected, "seed {seed} on {cpus}");
            }
        }
        checked.set(checked.get() + 1);
    });
    assert!(checked.get() > 100, "{} programs are too few to mean anything", checked.get());
}

/// A random machine, with random costs, quota and devices.
fn any_machine(numbers: &mut Numbers, most_ns: u64) -> Setup {
    let mut up_to = |most: u64| Ticks::from_ns(numbers.below(most + 1));
    let (slice, switch_cost, wake_latency) = (up_to(most_ns), up_to(most_ns / 4), up_to(most_ns / 2));
    let wake_cost = up_to(most_ns / 4);
    let tick = up_to(most_ns);
    let up_to_half = up_to(most_ns / 2);
    let parameters = SchedulerParameters {
        cpus: 1 + numbers.below(4) as u32,
        slice,
        switch_cost,
        wake_latency,
        wake_cost,
        tick: if numbers.chance(1, 2) { tick } else { Ticks(0) },
        quota: numbers.chance(1, 3).then(|| 1 + numbers.below(250) as u32),
        seed: numbers.below(3),
        slow_wakes: [up_to_half, up_to_half].map(|least| Ticks(least.0 + wake_latency.0 * numbers.below(3))),
        idle_found: if numbers.chance(1, 2) { 1000 } else { numbers.below(1000) as u32 },
    };
    let processors = match numbers.chance(1, 5) {
        true => Sharing::Ideal { hundredths: 1 + numbers.below(400) },
        false => Sharing::Scheduled(parameters),
    };
    Setup { processors, servers: (0..11).map(|_| numbers.below(3) as u32).collect() }
}

fn any_threads(numbers: &mut Numbers, program: &mut Program) {
    for thread in &mut program.threads {
        if numbers.chance(1, 3) {
            thread.nice = numbers.below(40) as i8 - 20;
        }
        if numbers.chance(1, 3) {
            thread.cpus = (0..1 + numbers.below(2)).map(|_| numbers.below(5) as u32).collect();
        }
    }
    if numbers.chance(1, 2) {
        // Number 5 is the read-write lock of random programs.
        program.writers_first = vec![ObjectId(5)];
    }
}

#[test]
fn any_program_on_any_machine_comes_to_an_end_and_adds_up() {
    let mut cut_off = 0;
    for seed in 0..3000 {
        let mut numbers = Numbers::new(seed);
        let lengths = if numbers.chance(1, 2) { Lengths::Tied } else { Lengths::Spread };
        let mut program = random_program(seed, lengths);
        any_threads(&mut numbers, &mut program);
        let setup = any_machine(&mut numbers, if lengths == Lengths::Tied { 8 } else { 1_000_000_000 });
        let outcome = run(&program, &setup).expect("a program");
        assert_eq!(outcome, run(&program, &setup).expect("a program"), "seed {seed}: once more is the same");
        let complete =
            outcome.done.iter().zip(&program.threads).all(|(done, thread)| *done == thread.operations.len());
        let deadlock = outcome.findings.iter().any(|finding| finding.kind() == "deadlock");
        // A small quota and switches that take longer than its period: each needs hundreds of steps.
        let cut = outcome.findings.iter().any(|finding| finding.kind() == "too_long");
        cut_off += usize::from(cut);
        assert_eq!(complete, !deadlock && !cut, "seed {seed}: {:?}", outcome.findings);
        assert_eq!(outcome.busy.iter().sum::<u64>(), outcome.length.0, "seed {seed}");
        for used in &outcome.threads {
            let life = used.busy + used.spinning + used.ready + used.blocked;
            assert!(life <= outcome.length.0, "seed {seed}");
        }
        for object in &outcome.objects {
            assert!(object.held <= outcome.length.0, "seed {seed}");
        }
        if let Sharing::Scheduled(parameters) = setup.processors {
            assert!(outcome.busy.len() <= parameters.cpus as usize + 1, "seed {seed}");
        }
    }
    assert!(cut_off <= 10, "{cut_off} runs were cut off");
}

/// Predicting such a program took hours: each slice and each repetition was a step.
#[test]
fn a_run_of_months_ends_after_a_bounded_number_of_steps() {
    let read = |text: &str| json::read(text).expect("a program");
    let hogs = read(
        r#"{"format":"longpole-program","version":1,"threads":[
        {"name":"a","ops":[["exec",1e15]]},{"name":"b","ops":[["exec",1e15]]},{"name":"c","ops":[["exec",1e15]]}]}"#,
    );
    for cpus in [1, 2] {
        let outcome = on(&hogs, free(cpus));
        assert_eq!(outcome.findings, []);
        let shortest = Ticks::from_ns(3_000_000_000_000_000 / u64::from(cpus));
        assert!((shortest..=Ticks(shortest.0 / 10 * 12)).contains(&outcome.length), "{cpus}: {outcome:?}");
        assert_eq!(
            outcome.threads.iter().map(|used| used.busy).sum::<u64>(),
            Ticks::from_ns(3_000_000_000_000_000).0
        );
    }
    let timer = read(
        r#"{"format":"longpole-program","version":1,"threads":[
        {"name":"main","ops":[["create","timer"],["exec",1e15]]},
        {"name":"timer","background":["main",0,1],"ops":[["sleep",1]]}]}"#,
    );
    let is_cut =
        |findings: &[engine::report::Finding]| findings.iter().any(|finding| finding.kind() == "too_long");
    for machine in [free(2), ideal(2)] {
        assert!(is_cut(&on(&timer, machine).findings), "{machine:?}");
    }
}
