//! Identities that hold for every program, and the shapes of the paper's Fig. 7 and Fig. 8.

use engine::critical_path::CriticalPath;
use engine::program::{FunctionRef, Operation, Program, json};
use engine::report::Cpus;
use engine::synth::{Lengths, random_program};

const COUNTS: &str = "1-6,inf";

fn each(check: impl Fn(u64, &Program, &CriticalPath<'_>, &[Cpus])) {
    let cpus = Cpus::parse_list(COUNTS).expect("counts");
    for seed in 0..2000 {
        for lengths in [Lengths::Spread, Lengths::Tied] {
            let program = random_program(seed, lengths);
            let path = CriticalPath::of(&program).expect("a program");
            check(seed, &program, &path, &cpus);
        }
    }
}

/// T_P itself (the time on P processors), as numerator and denominator.
fn time(path: &CriticalPath<'_>, cpus: Cpus) -> (i128, i128) {
    let time = path.time(cpus);
    (time.value, i128::from(time.scale))
}

#[test]
fn more_cpus_never_take_longer_or_less_than_the_critical_path_and_the_work() {
    each(|seed, _, path, cpus| {
        let (length, _) = {
            let (value, scale) = time(path, Cpus::Infinite);
            assert_eq!(value % scale, 0);
            (value / scale, 1)
        };
        for pair in cpus.windows(2) {
            let ((more, more_scale), (less, less_scale)) = (time(path, pair[0]), time(path, pair[1]));
            assert!(less * more_scale <= more * less_scale, "seed {seed}: {} against {}", pair[0], pair[1]);
            assert!(more >= length * more_scale, "seed {seed}, P={}", pair[0]);
        }
        // Length of all segments; spinning adds to it, which only one CPU shows in full.
        let work: u64 = path.segments().map(|segment| segment.end.0 - segment.start.0).sum();
        for cpus in cpus {
            assert!(path.time(*cpus).value >= i128::from(work), "seed {seed}, P={cpus}");
        }
    });
}

/// Whether threads may all be idle for a while, on any number of processors.
fn may_idle(program: &Program) -> bool {
    let mut steps = program.threads.iter().flat_map(|thread| &thread.operations);
    steps.any(|step| {
        matches!(
            step,
            Operation::Io(..)
                | Operation::Sleep(_)
                | Operation::SleepNext(_)
                | Operation::SpinLock(_)
                | Operation::Await(_)
        )
    })
}

#[test]
fn on_one_cpu_that_never_idles_every_weight_is_one() {
    let checked = std::cell::Cell::new(0);
    each(|seed, program, path, cpus| {
        let work: u64 = path.segments().map(|segment| segment.end.0 - segment.start.0).sum();
        if may_idle(program) || work == 0 {
            return;
        }
        assert_eq!(path.time(Cpus::ONE).value, i128::from(work), "seed {seed}");
        let weights = path.weights(&cpus[..1]).next().expect("weights");
        for segment in path.segments() {
            assert_eq!(weights.scaled(segment.point, 0), 1, "seed {seed}: {segment:?}");
        }
        checked.set(checked.get() + 1);
    });
    assert!(checked.get() > 200, "{} programs are too few to mean anything", checked.get());
}

#[test]
fn with_a_cpu_for_each_thread_the_weights_are_the_critical_path() {
    each(|seed, _, path, cpus| {
        let unlimited = path.weights(&cpus[6..]).next().expect("weights");
        let enough = path.weights(&cpus[5..6]).next().expect("weights");
        let scale = path.time(Cpus::Infinite).scale;
        let mut critical = 0;
        for segment in path.segments() {
            let weight = unlimited.scaled(segment.point, 0);
            assert!(weight == 0 || weight == scale, "seed {seed}: {weight}");
            assert_eq!(enough.scaled(segment.point, 0), weight / scale * 6, "seed {seed}");
            if weight != 0 {
                critical += segment.end.0 - segment.start.0;
            }
        }
        let (length, scale) = time(path, Cpus::Infinite);
        assert!(i128::from(critical) * scale <= length, "seed {seed}: a path longer than the run");
    });
}

/// Weights of `program` on `cpus`, by function, for programs in which each function has one segment. They are for the paper's
/// schedule, in which waits by the clock are as long on any number of processors as on unlimited ones.
fn weights(program: &str, cpus: &str) -> Vec<(String, f64)> {
    let program = json::read(program).expect("a program");
    let path = CriticalPath::of(&program).expect("a program");
    assert_eq!(path.findings(), []);
    let cpus = Cpus::parse_list(cpus).expect("counts");
    let weights = path.weights(&cpus).next().expect("weights");
    let name = |function: FunctionRef| program.functions[function.0 as usize].name.clone();
    let segments = path.segments();
    segments
        .map(|segment| (name(segment.function.expect("a function")), weights.weight(segment.point, 0)))
        .collect()
}

fn weight(program: &str, cpus: &str, function: &str) -> f64 {
    let all = weights(program, cpus);
    all.iter().find(|(name, _)| name == function).unwrap_or_else(|| panic!("no {function} in {all:?}")).1
}

#[test]
fn figure_7_of_the_paper_has_a_weight_above_one() {
    // Shortening `thick` on three CPUs shortens the time in which four threads share them, and brings the end forward.
    // On two CPUs `last` then also starts earlier, while two other threads run.
    let program = r#"{"format":"longpole-program","version":1,"threads":[
        {"name":"T1","ops":[["exec","thick",2],["sleep",1],["exec","last",4]]},
        {"name":"T2","ops":[["exec","b",5]]},
        {"name":"T3","ops":[["exec","c",5.5]]},
        {"name":"T4","ops":[["exec","d",2.5]]}]}"#;
    assert_eq!(weight(program, "3", "thick"), 4.0 / 3.0);
    assert_eq!(weight(program, "2", "thick"), 1.0);
    assert_eq!(weight(program, "3", "last"), 1.0);
}

#[test]
fn figure_8_of_the_paper_has_a_weight_below_zero() {
    // Shortening `thick` moves the start of `moved` into the time in which three others already share three CPUs.
    let program = r#"{"format":"longpole-program","version":1,"threads":[
        {"name":"T1","ops":[["exec","thick",3],["sleep",1],["exec","moved",1]]},
        {"name":"T2","ops":[["exec","b",4.4]]},
        {"name":"T3","ops":[["exec","c",4.5]]},
        {"name":"T4","ops":[["sleep",3.5],["exec","d",1.1]]},
        {"name":"T5","ops":[["sleep",6],["exec","last",1]]}]}"#;
    assert_eq!(weight(program, "3", "thick"), -1.0 / 3.0);
    assert_eq!(weight(program, "3", "moved"), 0.0);
    assert_eq!(weight(program, "4", "thick"), 0.0);
}
