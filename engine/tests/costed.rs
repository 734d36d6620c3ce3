//! Weights of programs with waits by the clock, against scheduling them again, a little shorter, with each wait as long in
//! virtual time as before.

use engine::critical_path::{CostedPath, CriticalPath};
use engine::program::{Operation, Program};
use engine::report::Cpus;
use engine::schedule::SharedCpuCosts;
use engine::synth::{Lengths, Numbers, random_program};
use engine::time::Ticks;

/// How much an operation is shortened, ns: large compared with the rounding of times to ticks, small compared with all
/// lengths, so that the order of events stays.
const LESS: u64 = 200_000;

fn costs(hundredths: u64, latency: u64, cost: u64) -> SharedCpuCosts {
    SharedCpuCosts { hundredths, wake_latency: Ticks(latency), wake_cost: Ticks(cost), servers: Vec::new() }
}

fn shorten(operation: &Operation) -> Option<Operation> {
    let less = |length: Ticks| (length.0 > 2 * LESS).then(|| Ticks(length.0 - LESS));
    match *operation {
        Operation::Exec(length) => less(length).map(Operation::Exec),
        Operation::ExecIn(function, length) => less(length).map(|length| Operation::ExecIn(function, length)),
        Operation::Once(object, length) => less(length).map(|length| Operation::Once(object, length)),
        _ => None,
    }
}

/// Without waits by the clock, a path with costs equals the sweep over one schedule for all numbers of processors.
#[test]
fn a_costed_path_without_costs_has_the_weights_of_the_critical_path() {
    let mut compared = 0;
    for seed in 0..2000 {
        let mut program = random_program(seed, Lengths::Tied);
        for thread in &mut program.threads {
            thread.operations.retain(|operation| {
                !matches!(operation, Operation::Io(..) | Operation::Sleep(_) | Operation::SleepNext(_))
            });
        }
        let path = CriticalPath::of(&program).expect("a program");
        for count in [1, 2, 3, 5] {
            let cpus = [Cpus::count(count).expect("a count")];
            let linear = path.weights(&cpus).next().expect("weights");
            let costed = CostedPath::of(&program, cpus[0], &costs(u64::from(count) * 100, 0, 0));
            let (expected, found) = (path.time(cpus[0]).as_ns_f64(), costed.time().as_ns_f64());
            assert!((expected - found).abs() < 0.01, "seed {seed}, {count}: {found} instead of {expected}");
            let own = costed.weights();
            for (a, b) in linear.segments().zip(own.segments()) {
                assert_eq!((a.thread, a.operation), (b.thread, b.operation));
                let (a, b) = (linear.weight(a.point, 0), own.weight(b.point, 0));
                assert!((a - b).abs() < 1e-6, "seed {seed}, {count}: {b} instead of {a}");
                compared += 1;
            }
        }
    }
    assert!(compared > 30_000, "{compared}");
}

/// The program with each wait as long as it was in virtual time on a number of processors. In the schedule on unlimited
/// processors, whose time axis is virtual time, waits keep that length whatever is computed.
fn with_steady_waits(program: &Program, path: &CostedPath<'_>) -> Program {
    let mut steady = program.clone();
    for (thread, number, length) in path.virtual_lengths() {
        let operation = &mut steady.threads[thread.0 as usize].operations[number];
        let length = Ticks(length.round() as u64);
        *operation = match *operation {
            Operation::Io(object, _) => Operation::Io(object, length),
            Operation::Sleep(_) => Operation::Sleep(length),
            ref other => panic!("{other:?} is no wait"),
        };
    }
    steady
}

/// Waits keep their virtual length. If they moved with the clock, weights of a program that computes and waits for its disk
/// would be millions of percent.
#[test]
fn a_costed_weight_is_the_gain_of_a_little_less_with_waits_unchanged() {
    let (mut different, mut compared, mut waited) = (Vec::new(), 0, 0);
    for seed in 0..800 {
        let mut program = random_program(seed, Lengths::Spread);
        for thread in &mut program.threads {
            thread.operations.retain(|operation| !matches!(operation, Operation::SleepNext(_)));
        }
        for count in [1, 2, 3, 8] {
            let cpus = [Cpus::count(count).expect("a count")];
            let path = CostedPath::of(&program, cpus[0], &costs(u64::from(count) * 100, 0, 0));
            let steady = with_steady_waits(&program, &path);
            waited += path.virtual_lengths().count();
            let time = |program: &Program| {
                CriticalPath::of(program).expect("a program").time(cpus[0]).as_ns_f64() * Ticks::PER_NS as f64
            };
            let whole = time(&steady);
            assert!(
                (whole - path.time().0 as f64).abs() < 10_000.0,
                "seed {seed}, {count}: {whole} {path:?}"
            );
            let weights = path.weights();
            for segment in weights.segments() {
                let (thread, number) = (segment.thread.0 as usize, segment.operation);
                let Some(shorter) = shorten(&program.threads[thread].operations[number]) else { continue };
                let mut after = steady.clone();
                after.threads[thread].operations[number] = shorter;
                let measured = (whole - time(&after)) / LESS as f64;
                let weight = weights.weight(segment.point, 0);
                compared += 1;
                if (measured - weight).abs() > 2e-3 {
                    different.push(format!(
                        "seed {seed}, {count}: operation {number} of {thread}: {weight} instead of {measured}"
                    ));
                }
            }
        }
    }
    assert!(compared > 15_000 && waited > 2_000, "{compared} {waited}");
    assert!(
        different.is_empty(),
        "{} of {compared}: {:?}",
        different.len(),
        &different[..different.len().min(20)]
    );
}

/// Weighted computing and waiting add up to the time exactly. There are no wake-ups here, since these take all threads
/// equally long: where two things come at the same instant, neither alone moves anything, and the sum is less.
#[test]
fn costed_weights_of_computing_and_waits_add_up_to_the_time() {
    let mut waited = 0;
    for seed in 0..3000 {
        let program = random_program(seed, Lengths::Spread);
        for hundredths in [100, 150, 200, 300, 800] {
            let path = CostedPath::of(&program, Cpus::Infinite, &costs(hundredths, 0, 0));
            let weights = path.weights();
            let computed = weights
                .segments()
                .map(|segment| weights.weight(segment.point, 0) * (segment.end.0 - segment.start.0) as f64);
            let (waits, _) = path.waits();
            waited += waits.len();
            let sum = computed.sum::<f64>() + waits.iter().map(|wait| wait.weighted).sum::<f64>();
            let time = path.time().0 as f64;
            // Ticks are picoseconds, and a wait that ends while threads share processors ends at a whole tick.
            assert!((sum - time).abs() <= 1e-9 * time, "seed {seed}, {hundredths}: {sum} of {time}");
        }
    }
    assert!(waited > 3_000, "{waited}");
}

/// The activity graph of the same schedule is as long, so slack and paths refer to the same time.
#[test]
fn an_activity_graph_with_costs_is_as_long_as_the_costed_path() {
    use engine::graph::{ActivityGraph, VertexTimes};
    let mut waited = 0;
    for seed in 0..3000 {
        let program = random_program(seed, Lengths::Spread);
        let mut numbers = Numbers::new(seed + 1);
        let threads = program.threads.len() as u64;
        let latency = 1_000_000 + numbers.below(100_000_000_000);
        let cost = [0, 1_000_000 + numbers.below(10_000_000_000)][numbers.below(2) as usize];
        let costs = costs(threads * 100, latency, cost);
        let path = CostedPath::of(&program, Cpus::Infinite, &costs);
        if !path.findings().is_empty() {
            continue;
        }
        waited += path.waits().0.len();
        let graph = ActivityGraph::with_costs(&program, &costs).expect("a graph");
        let length = VertexTimes::of(&graph).length();
        assert_eq!(length, path.time(), "seed {seed}");
    }
    assert!(waited > 3_000, "{waited}");
}

/// Two threads compute 40 and 30 ms. No thread waits for the third one, which repeatedly sleeps 9 ms and computes 1 ms, ten
/// times when recorded.
fn with_a_timer(repeats: bool) -> Program {
    let ticks = [r#"["call","tick"],["sleep",9000000],["exec",1000000],["ret"]"#; 10].join(",");
    let background = if repeats { r#""background":["main",1,41],"# } else { "" };
    let text = format!(
        r#"{{"format":"longpole-program","version":1,"threads":[
        {{"name":"main","ops":[["create","timer"],["create","worker"],["exec",40000000],["join","worker"]]}},
        {{"name":"worker","ops":[["exec",30000000]]}},
        {{"name":"timer",{background}"ops":[["exec",5],{ticks}]}}]}}"#
    );
    engine::program::json::read(&text).expect("a program")
}

#[test]
fn a_background_thread_ends_with_the_program_and_repeats_as_long_as_it_runs() {
    use engine::predict::{Model, Scheduler, predict};
    use engine::program::json;
    let cpus = Cpus::parse_list("1,2,inf").expect("counts");
    for scheduler in [Scheduler::Ideal, Scheduler::Eevdf] {
        let model = Model { scheduler: Some(scheduler), ..Model::default() };
        let times = |program: &Program| {
            let prediction = predict(program, &cpus, &model);
            assert_eq!(prediction.findings, [], "{scheduler:?}");
            prediction.results.iter().map(|result| result.time_ns / 1e6).collect::<Vec<_>>()
        };
        let without = times(&with_a_timer(false));
        assert!(without.iter().all(|time| *time > 99.0), "it lasts as long as its timer: {without:?}");
        let with = times(&with_a_timer(true));
        // On one CPU: 70 ms, and one for every ten of the total. On more: the longest way, and the timer's part of it.
        assert!((75.0..80.0).contains(&with[0]), "{scheduler:?} {with:?}");
        assert!((40.0..44.0).contains(&with[1]), "{scheduler:?} {with:?}");
        assert!((with[2] - 40.0).abs() < 0.1, "{scheduler:?} {with:?}");
    }
    // The JSON form keeps the background thread.
    let program = with_a_timer(true);
    let mut text = Vec::new();
    json::write(&program, &mut text).expect("written");
    let again = json::read(std::str::from_utf8(&text).expect("text")).expect("a program");
    assert_eq!(again.threads, program.threads);
    assert!(again.threads[2].background.is_some());
    // Repeated operations have weights, too: on one CPU all of them delay the end.
    let path = CostedPath::of(&program, cpus[0], &costs(100, 0, 0));
    let weights = path.weights();
    let tick = weights.segments().filter(|segment| segment.function.is_some());
    let sum: f64 = tick.map(|segment| weights.weight(segment.point, 0)).sum();
    assert!((6.0..8.1).contains(&sum), "{sum}");
}

#[test]
fn a_deadlock_beside_a_background_thread_comes_to_an_end() {
    use engine::predict::{Model, predict};
    let text = r#"{"format":"longpole-program","version":1,"threads":[
        {"name":"main","ops":[["exec",1000],["wait","never"]]},
        {"name":"timer","background":["main",0,1],"ops":[["sleep",1]]}]}"#;
    let program = engine::program::json::read(text).expect("a program");
    let prediction = predict(&program, &[Cpus::ONE], &Model::default());
    assert_eq!(prediction.findings[0].kind(), "deadlock");
    for wrong in [r#"["timer",0,1]"#, r#"["main",0,2]"#, r#"["nobody",0,1]"#] {
        let text = text.replace(r#"["main",0,1]"#, wrong);
        assert!(engine::program::json::read(&text).is_err(), "{wrong}");
    }
}
