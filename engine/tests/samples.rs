//! Compute time divided by samples: against programs with all functions known, and invariants.

use engine::attribution::{Grouping, with_sampled_calls};
use engine::program::{Function, FunctionRef, Move, ObjectId, Operation, Program, Thread, json};
use engine::report::{Cpus, Detail, FunctionRow, Report, report, report_by};
use engine::synth::{
    Execution, Lengths, Numbers, generate, random_program, sampled_program, sampled_recording,
};
use engine::time::Ticks;
use engine::timeline::build;
use engine::translation::from_timeline;
use proptest::prelude::*;

const CPUS: [u32; 4] = [1, 2, 3, 8];

fn cpus() -> Vec<Cpus> {
    CPUS.iter().filter_map(|count| Cpus::count(*count)).chain([Cpus::Infinite]).collect()
}

fn us(number: u64) -> Ticks {
    Ticks::from_ns(number * 1_000)
}

/// A random length up to this many microseconds, in nanoseconds: no ties.
fn upto(numbers: &mut Numbers, most_us: u64) -> Ticks {
    Ticks::from_ns(1 + numbers.below(most_us * 1_000))
}

fn of(program: &Program) -> Report {
    report(program, &cpus(), Detail::Functions)
}

fn row<'r>(report: &'r Report, place: usize, function: &str) -> Option<&'r FunctionRow> {
    report.results[place].functions.iter().find(|row| row.function == function)
}

/// Threads call functions of very different lengths, between and under locks, and meet at barriers, in phases.
fn workload(seed: u64) -> Program {
    let mut numbers = Numbers::new(seed);
    let names = ["main", "work", "parse", "hash", "copy", "tiny", "rare", "merge"];
    let functions: Vec<FunctionRef> = (0..names.len() as u32).map(FunctionRef).collect();
    let [main, work, parse, hash, copy, tiny, rare, merge] = functions[..] else { unreachable!() };
    let threads = 2 + numbers.below(4);
    let (locks, rounds) = (ObjectId(0), 100 + numbers.below(200));
    let barrier = ObjectId(1);
    let long = 200 + numbers.below(4_000);
    let thread = |thread: u64| {
        let mut ops = vec![Operation::Call(main)];
        let mut numbers = Numbers::new(seed.wrapping_mul(31).wrapping_add(thread));
        for round in 0..rounds {
            let phase = round * 2 / rounds;
            ops.push(Operation::Call(work));
            ops.push(Operation::ExecIn(parse, upto(&mut numbers, if phase == 0 { 2 * long } else { 50 })));
            ops.push(Operation::Exec(upto(&mut numbers, 100)));
            ops.push(Operation::ExecIn(hash, upto(&mut numbers, 300)));
            ops.push(Operation::Lock(locks));
            ops.push(Operation::ExecIn(tiny, upto(&mut numbers, if phase == 0 { 30 } else { 600 })));
            ops.push(Operation::Unlock(locks));
            ops.push(Operation::Call(copy));
            ops.push(Operation::Exec(upto(&mut numbers, 200)));
            if numbers.chance(1, 50) {
                ops.push(Operation::ExecIn(rare, upto(&mut numbers, 3_000)));
            }
            // Recursion of work and copy, through each other.
            ops.push(Operation::Call(work));
            ops.push(Operation::ExecIn(copy, upto(&mut numbers, 100)));
            ops.push(Operation::Return);
            ops.push(Operation::Return);
            ops.push(Operation::Return);
            if round % 25 == 24 {
                ops.push(Operation::Barrier(barrier, threads as u32));
                if thread == 0 {
                    ops.push(Operation::ExecIn(merge, upto(&mut numbers, 5_000)));
                }
                ops.push(Operation::Barrier(barrier, threads as u32));
            }
        }
        ops.push(Operation::Return);
        Thread { name: format!("T{thread}"), operations: ops, ..Thread::default() }
    };
    Program {
        functions: names.map(|name| Function { name: name.to_owned(), ..Function::default() }).to_vec(),
        objects: vec!["lock".to_owned(), "barrier".to_owned()],
        threads: (0..threads).map(thread).collect(),
        ..Program::default()
    }
}

/// For self and total times: how many numbers lie within their 95 % interval, and how many are not exact.
#[derive(Default, Debug)]
struct Coverage {
    own: (u64, u64),
    total: (u64, u64),
}

impl Coverage {
    /// Compares an estimate with the truth. `tie`: error by ties that are decided differently, as a share of the
    /// predicted time.
    fn add(&mut self, truth: &Report, estimate: &Report, tie: f64) {
        for (place, result) in estimate.results.iter().enumerate() {
            for row_ in &result.functions {
                let real = row(truth, place, &row_.function);
                let (tet, tetid) = real.map_or((0.0, 0.0), |row| (row.tet_ns, row.tetid_ns));
                let check = |value: f64, error: Option<f64>, truth: f64, counts: &mut (u64, u64)| match error
                {
                    Some(error) => {
                        counts.1 += 1;
                        counts.0 += u64::from((value - truth).abs() <= error);
                    }
                    None => assert!(
                        (value - truth).abs() <= 1.0 + tie * result.time_ns,
                        "{} is called exact and is {value} instead of {truth}",
                        row_.function
                    ),
                };
                check(row_.tet_ns, row_.tet_error_ns, tet, &mut self.own);
                check(row_.tetid_ns, row_.tetid_error_ns, tetid, &mut self.total);
            }
        }
    }
}

fn within(counts: (u64, u64)) -> f64 {
    counts.0 as f64 / counts.1 as f64
}

#[test]
fn true_times_lie_within_the_errors_stated_for_samples() {
    for (probes, probed) in
        [("none", 0u64), ("main and work", 0b11), ("hash and tiny", 0b10_1000), ("all but copy", 0b1110_1111)]
    {
        let mut coverage = Coverage::default();
        let mut worst: f64 = 0.0;
        for seed in 0..60 {
            let program = workload(seed);
            let truth = of(&program);
            let probed: Vec<bool> = (0..8).map(|bit| probed >> bit & 1 == 1).collect();
            let sampled = sampled_program(&program, &probed, us(250), seed);
            assert_eq!(sampled.check(), Ok(()));
            let estimate = of(&sampled);
            coverage.add(&truth, &estimate, 0.0);
            for (real, result) in truth.results.iter().zip(&estimate.results) {
                assert_eq!(real.time_ns.to_bits(), result.time_ns.to_bits());
                for row in &result.functions {
                    worst = worst.max(row.tet_error_ns.unwrap_or(0.0) / result.time_ns);
                }
            }
        }
        println!(
            "{probes}: {coverage:?}, {:.3} {:.3}, widest {worst:.3}",
            within(coverage.own),
            within(coverage.total)
        );
        assert!(coverage.own.1 > 1_000, "{coverage:?}");
        assert!(within(coverage.own) > 0.93, "{probes}: {coverage:?}");
        assert!(within(coverage.total) > 0.93 || coverage.total.1 < 100, "{probes}: {coverage:?}");
        assert!(worst < 0.2, "an interval that holds everything says nothing: {worst}");
    }
}

/// Tests the whole way: a true schedule on two CPUs, recorded with probes on some functions and a clock that ticks on
/// all CPUs at once.
#[test]
fn a_sampled_recording_tells_what_a_fully_probed_one_does() {
    let mut coverage = Coverage::default();
    for seed in 0..24 {
        let program = workload(seed);
        let execution = Execution { seed, operations: true, ..Execution::default() };
        let generated = generate(&program, &execution).expect("executed");
        let truth = of(&from_timeline(&build(&generated.recording())));
        // Probes on no function; on main and work; on hash and tiny.
        let probed = [0u32, 0b11, 0b10_1000][seed as usize % 3];
        let recording = sampled_recording(
            generated.recording(),
            &generated.truth,
            |function| probed >> function & 1 == 1,
            4_999,
            seed * 7_919,
        );
        let hybrid = from_timeline(&build(&recording));
        assert_eq!(hybrid.check(), Ok(()));
        let samples = &hybrid.samples;
        assert!(samples.count() > 500 && samples.rate_hz == 4_999, "{}", samples.count());
        assert!(samples.elsewhere * 10 < samples.count(), "{} {}", samples.elsewhere, samples.count());
        let named = hybrid.functions.iter().filter(|function| !function.sampled).count() as u32;
        assert_eq!(named, probed.count_ones(), "what has probes is one function, on stacks, too");
        let estimate = of(&hybrid);
        let mut bare = hybrid.clone();
        bare.samples = Default::default();
        for (real, result) in of(&bare).results.iter().zip(&estimate.results) {
            assert_eq!(real.time_ns.to_bits(), result.time_ns.to_bits());
        }
        // Generated lengths are whole grains, so threads meet at one instant. Which one gets the lock then depends on its
        // number of operations.
        coverage.add(&truth, &estimate, 2e-2);
    }
    println!("{coverage:?}");
    assert!(coverage.own.1 > 500 && within(coverage.own) > 0.93, "{coverage:?}");
    assert!(within(coverage.total) > 0.93, "{coverage:?}");
}

/// Where segments of one function are long and those of another short, most short ones have no sample. Their time must not go
/// to the function of the long ones.
#[test]
fn time_of_short_segments_is_not_given_to_the_functions_of_long_ones() {
    let (long, short) = (FunctionRef(0), FunctionRef(1));
    let mut ops = Vec::new();
    for _ in 0..50 {
        ops.push(Operation::ExecIn(long, us(10_000)));
        for _ in 0..100 {
            ops.push(Operation::SemPost(ObjectId(0)));
            ops.push(Operation::ExecIn(short, us(100)));
        }
    }
    let program = Program {
        functions: ["long", "short"]
            .map(|name| Function { name: name.into(), ..Function::default() })
            .to_vec(),
        objects: vec!["s".to_owned()],
        threads: vec![Thread { name: "T".to_owned(), operations: ops, ..Thread::default() }],
        ..Program::default()
    };
    let report = of(&sampled_program(&program, &[false, false], us(2_000), 7));
    let short = row(&report, 0, "short").expect("seen");
    let error = short.tet_error_ns.expect("sampled");
    assert!((short.tet_ns - 500e6).abs() < error.min(60e6), "{} ± {error}", short.tet_ns);
}

/// The program with every thread inside a function with a probe, so that all time has an owner.
fn wrapped(mut program: Program) -> Program {
    let root = FunctionRef(program.functions.len() as u32);
    program.functions.push(Function { name: "root".to_owned(), ..Function::default() });
    for thread in &mut program.threads {
        thread.operations.insert(0, Operation::Call(root));
        thread.operations.push(Operation::Return);
    }
    program
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn sums_are_the_same_with_and_without_samples(
        seed in any::<u64>(), tied in any::<bool>(), probes in any::<u8>(), period in 1u64..2_000_000_000,
    ) {
        let lengths = if tied { Lengths::Tied } else { Lengths::Spread };
        let program = wrapped(random_program(seed, lengths));
        let mut probed: Vec<bool> = (0..program.functions.len()).map(|bit| probes >> (bit % 8) & 1 == 1).collect();
        *probed.last_mut().expect("root") = true;
        let period = if tied { Ticks(period % 5_000 + 1) } else { Ticks::from_ns(period) };
        // Some ten thousand samples at most.
        let total = program.threads.iter().flat_map(|t| &t.operations).filter_map(Operation::length).map(|l| l.0).sum::<u64>();
        let period = Ticks(period.0.max(total / 10_000));
        let sampled = sampled_program(&program, &probed, period, seed);
        prop_assert_eq!(sampled.check(), Ok(()));
        let mut bare = sampled.clone();
        bare.samples = Default::default();
        let (with, without) = (of(&sampled), of(&bare));
        for (place, (with, without)) in with.results.iter().zip(&without.results).enumerate() {
            prop_assert_eq!(with.time_ns.to_bits(), without.time_ns.to_bits());
            let sum = |rows: &[FunctionRow]| rows.iter().map(|row| row.tet_ns).sum::<f64>();
            let (a, b) = (sum(&with.functions), sum(&without.functions));
            prop_assert!((a - b).abs() <= 1e-9 * (a.abs() + 1.0) + 1e-2, "{} {}", a, b);
            for row_ in &without.functions {
                let same = with.functions.iter().find(|row| row.function == row_.function);
                // A function that loses all its self time and has no calls has no row.
                let Some(same) = same else { continue };
                if probed[program.functions.iter().position(|f| f.name == row_.function).expect("known")] {
                    prop_assert_eq!(same.calls, row_.calls, "{} at {}", &row_.function, place);
                    // Exact, unless samples show it where its probe did not.
                    if same.tetid_error_ns.is_none() {
                        prop_assert_eq!(same.tetid_ns.to_bits(), row_.tetid_ns.to_bits());
                    }
                }
            }
        }
        // Files, lines and binaries have the same sum.
        for grouping in [Grouping::File, Grouping::Line, Grouping::Module] {
            let grouped = report_by(&sampled, &cpus(), Detail::Functions, grouping, &engine::predict::Model::default());
            for (grouped, plain) in grouped.results.iter().zip(&with.results) {
                let sum = |rows: &[FunctionRow]| rows.iter().map(|row| row.tet_ns).sum::<f64>();
                let (a, b) = (sum(&grouped.functions), sum(&plain.functions));
                prop_assert!((a - b).abs() <= 1e-9 * (a.abs() + 1.0) + 1e-2, "{:?} {} {}", grouping, a, b);
            }
        }
        // The JSON form gives the same report.
        let mut text = Vec::new();
        json::write(&sampled, &mut text).expect("written");
        let back = json::read(&String::from_utf8(text).expect("text")).expect("read");
        prop_assert_eq!(of(&back), of(&sampled));
    }
}

/// Analyses of single operations run on a program with samples written as calls: it runs as before, and its functions have a
/// report's times.
#[test]
fn samples_written_out_as_calls_give_the_times_of_the_report() {
    for (seed, probed) in [(1, 0u64), (2, 0b11), (3, 0b10_1000), (4, 0b1110_1111)] {
        let program = workload(seed);
        let probed: Vec<bool> = (0..8).map(|bit| probed >> bit & 1 == 1).collect();
        let mut sampled = sampled_program(&program, &probed, us(250), seed);
        for (number, thread) in sampled.threads.iter_mut().enumerate() {
            thread.moves = moves(thread, number as u64);
        }
        let computed = on_cpus(&sampled);
        let expanded = with_sampled_calls(sampled.clone());
        assert_eq!(expanded.check(), Ok(()));
        assert!(expanded.samples.is_empty());
        assert_eq!(on_cpus(&expanded), computed);
        assert_eq!(expanded.findings.iter().filter(|finding| finding.kind() == "spelled_out").count(), 1);
        let (before, after, truth) = (of(&sampled), of(&expanded), of(&program));
        for (place, (a, b)) in before.results.iter().zip(&after.results).enumerate() {
            assert_eq!(a.time_ns.to_bits(), b.time_ns.to_bits());
            for a in &a.functions {
                let own = row(&after, place, &a.function).map_or(0.0, |row| row.tet_ns);
                // On one CPU all time weighs the same; on more CPUs the sum depends on which operations a function
                // gets.
                let close = if place == 0 { 0.002 } else { 0.03 } * b.time_ns;
                assert!((own - a.tet_ns).abs() <= close, "{}: {own}, reported {}", a.function, a.tet_ns);
                let real = row(&truth, place, &a.function).map_or(0.0, |row| row.tet_ns);
                let stated = 2.0 * a.tet_error_ns.unwrap_or(0.0);
                assert!((own - real).abs() <= close + stated, "{}: {own}, really {real}", a.function);
            }
        }
    }
}

#[test]
fn a_program_without_samples_is_written_out_as_it_is() {
    let program = workload(5);
    assert_eq!(with_sampled_calls(program.clone()), program);
}

/// Every tenth compute operation moves to another CPU half-way.
fn moves(thread: &Thread, seed: u64) -> Vec<Move> {
    let mut numbers = Numbers::new(seed);
    let mut moves = Vec::new();
    for (operation, what) in (0u32..).zip(&thread.operations) {
        if let (Operation::Exec(length) | Operation::ExecIn(_, length), true) =
            (what, moves.is_empty() || numbers.chance(1, 10))
        {
            let after = if moves.is_empty() { Ticks(0) } else { Ticks(length.0 / 2) };
            moves.push(Move { operation, after, cpu: Some(numbers.below(4) as u16) });
        }
    }
    moves
}

/// Ticks of each thread on each CPU.
fn on_cpus(program: &Program) -> Vec<[u64; 5]> {
    let thread = |thread: &Thread| {
        let mut ticks = [0; 5];
        let (mut cpu, mut moves) = (4, thread.moves.iter().peekable());
        for (index, operation) in (0u32..).zip(&thread.operations) {
            let (Operation::Exec(length) | Operation::ExecIn(_, length)) = operation else { continue };
            let mut at = 0;
            while let Some(moved) = moves.next_if(|moved| moved.operation == index) {
                ticks[cpu] += moved.after.0 - at;
                (at, cpu) = (moved.after.0, moved.cpu.map_or(4, usize::from));
            }
            ticks[cpu] += length.0 - at;
        }
        assert_eq!(moves.next(), None);
        ticks
    };
    program.threads.iter().map(thread).collect()
}

/// A function that only samples show differs between recordings by the sampling error, which must not be a clear change.
#[test]
fn the_sampling_error_is_chance_in_a_comparison() {
    let program = workload(7);
    let probed = [true, true, false, false, false, false, false, false];
    let [a, b] = [1, 2].map(|seed| sampled_program(&program, &probed, us(250), seed));
    let compared = engine::compare::compare(&a, &b, &cpus(), &engine::predict::Model::default())
        .expect("both can be scheduled");
    let mut rows = 0;
    for row in compared.functions.iter().filter(|row| row.name != "main" && row.name != "work") {
        for change in &row.changes {
            assert!(change.noise.is_some_and(|noise| noise > 0.0), "{row:?}");
            // The interval covers 19 differences of 20; none is far beyond it.
            assert!(change.by().abs() <= 2.0 * change.noise.unwrap_or(0.0), "{row:?}");
            rows += 1;
        }
    }
    assert!(rows >= 25, "{rows}");
}
