//! Reports on recordings: shares of the path of the predicted run.

use engine::attribution::Grouping;
use engine::predict::{Model, Scheduler};
use engine::program::{Background, Function, FunctionRef, Operation, Program, Thread, ThreadId};
use engine::report::{Cpus, Detail, report_by};
use engine::synth::{Lengths, random_program};
use engine::time::Ticks;

/// Rows of a report lie between nothing and all, and with waits add up to all.
#[test]
fn shares_of_a_report_add_up_to_the_whole() {
    let cpus = Cpus::parse_list("1,2,3,inf").expect("counts");
    let model = Model {
        scheduler: Some(Scheduler::Eevdf),
        wake_latency_ns: Some(20_000),
        switch_cost_ns: Some(2_000),
        idle_tick_ns: Some(4_000_000),
        ..Model::default()
    };
    for seed in 0..500 {
        let mut program = random_program(seed, Lengths::Spread);
        // Every thread is in a function, since computing outside of functions has no row.
        for (number, thread) in program.threads.iter_mut().enumerate() {
            let function = engine::program::FunctionRef((number % program.functions.len()) as u32);
            thread.operations.insert(0, Operation::Call(function));
        }
        let grouping = engine::attribution::Grouping::Function;
        let report = report_by(&program, &cpus, Detail::Functions, grouping, &model);
        for result in &report.results {
            let own = result.functions.iter().map(|row| row.tet_ns);
            let waits = result.waits.iter().map(|row| row.weighted_ns);
            let parts: Vec<f64> = own.chain(waits).collect();
            let sum: f64 = parts.iter().sum();
            assert!(parts.iter().all(|part| *part >= 0.0), "seed {seed}: {parts:?}");
            assert!(
                (sum - result.time_ns).abs() <= 1e-6 * result.time_ns + 1e-3,
                "seed {seed}: {sum} {result:?}"
            );
            let total = result.functions.iter().all(|row| row.tetid_ns <= result.time_ns * (1.0 + 1e-9));
            assert!(total, "seed {seed}: {result:?}");
        }
    }
}

/// As Go's `sysmon`, which wakes each 10 ms: its sleep is on no path of a program that only computes.
#[test]
fn the_sleep_of_a_housekeeping_thread_is_on_no_path() {
    let ms = |ms: u64| Ticks::from_ns(ms * 1_000_000);
    let call = Operation::Call(FunctionRef(0));
    let thread = |name: &str, operations: &[Operation], background| Thread {
        name: name.to_owned(),
        operations: operations.to_vec(),
        background,
        ..Thread::default()
    };
    let looks = [Operation::Sleep(ms(10)), Operation::Exec(ms(1))];
    let beside = Some(Background { ends_with: ThreadId(0), repeats_from: 0, repeats_until: 2 });
    let program = Program {
        functions: vec![Function { name: "work".to_owned(), ..Function::default() }],
        threads: vec![
            thread("worker", &[call, Operation::Exec(ms(500)), Operation::Return], None),
            thread("monitor", &looks, beside),
        ],
        ..Program::default()
    };
    let model = Model { scheduler: Some(Scheduler::Eevdf), ..Model::default() };
    let one = [Cpus::count(1).expect("a count")];
    let report = report_by(&program, &one, Detail::Functions, Grouping::Function, &model);
    let [result] = report.results.as_slice() else { panic!("{report:?}") };
    assert!(result.time_ns > 500e6, "{result:?}");
    assert_eq!(result.functions[0].tet_ns, 500e6, "{result:?}");
    let slept =
        result.waits.iter().filter(|row| row.kind.name() == "sleep").map(|row| row.weighted_ns).sum::<f64>();
    assert_eq!(slept, 0.0, "{result:?}");
}
