//! Work that costs more on more CPUs, as runs of the command show.

use super::*;
use crate::event::{CpuRun, FunctionSamples};
use crate::program::MachineFacts;

const MS: u64 = 1_000_000;

/// Two threads that compute `f` for 150 ms and `g` for 50 ms each on the two recorded CPUs. On one CPU `f` takes a `part` of that.
fn run_on_one_and_two(part: f64) -> Program {
    let threads = r#"{"name":"T","ops":[["exec","f",150000000],["exec","g",50000000]]},
        {"name":"U","ops":[["exec","f",150000000],["exec","g",50000000]]}"#;
    let mut cpu_runs = Vec::new();
    for round in 0..3 {
        let f_ns = 300.0 * part * MS as f64;
        for (cpus, f_ns) in [(1, f_ns as u64), (2, 300 * MS)] {
            let cpu_ns = f_ns + 100 * MS;
            let of =
                |name: &str, ns: u64| FunctionSamples { name: name.into(), samples: ns / (200 * MS / 1000) };
            let functions = vec![of("f", f_ns), of("g", 100 * MS)];
            let samples = functions.iter().map(|function| function.samples).sum();
            let time_ns = cpu_ns / u64::from(cpus) + MS;
            cpu_runs.push(CpuRun { cpus, round, time_ns, cpu_ns, others_ns: 0, samples, functions });
        }
    }
    let machine = Some(MachineFacts { cpu_runs, ..MachineFacts::default() });
    Program { machine, recorded_cpus: Some(2), ..program(threads) }
}

#[test]
fn a_function_that_costs_more_on_two_cpus_limits() {
    let program = run_on_one_and_two(1.0 / 3.0);
    let limits = on(&program, 2);
    let limit = limits.at.first().expect("a limit");
    let LimitKind::CostsMore { few: 1, many: 2, growth, function, .. } = &limit.kind else {
        panic!("{:?}", limit.kind);
    };
    assert!((growth - 2.0).abs() < 0.01 && function.as_deref() == Some("f"), "{:?}", limit.kind);
    // 200 ms on each CPU, of which f is 150 ms and would be 50 ms.
    assert!((limit.gain() - 0.5).abs() < 0.02, "{}", limit.gain());
    let fix = limits.fixes.iter().find(|fix| fix.edit == Edit::CostAsOn(1)).expect("a fix");
    assert!((fix.gain - 0.5).abs() < 0.02 && fix.function.as_deref() == Some("f"), "{fix:?}");
    assert!(limits.more_threads.is_none_or(|more| more.gain < WORTH), "{:?}", limits.more_threads);
    // The prediction for one CPU is the time that the run on one CPU took.
    let one = on(&program, 1).at.iter().find(|limit| limit.cpus == Cpus::ONE).expect("one CPU").time_ns;
    assert!((one / 200e6 - 1.0).abs() < 0.02, "{one}");
}

#[test]
fn work_that_costs_the_same_on_all_cpus_has_no_row_of_costs() {
    let limits = on(&run_on_one_and_two(1.0), 2);
    let is_cost = |kind: &LimitKind| matches!(kind, LimitKind::CostsMore { .. });
    let rows =
        limits.at.iter().flat_map(|limit| limit.others.iter().map(|row| &row.kind).chain([&limit.kind]));
    assert_eq!(rows.filter(|kind| is_cost(kind)).count(), 0);
    assert!(limits.costs.is_some_and(|costs| !costs.grows()));
}
