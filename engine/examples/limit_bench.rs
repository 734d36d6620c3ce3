//! Times a report of a generated program, and the search for what limits it; `./x bench limit` calls it in a
//! release build. usage: limit_bench OPERATIONS; prints one line of JSON.

use std::hint::black_box;
use std::process::ExitCode;

use engine::attribution::Grouping;
use engine::limit::{Limits, Search};
use engine::predict::{Model, Scheduler};
use engine::report::{Cpus, Detail, report_by};
use engine::synth::large_program;
use timed::timed;

#[path = "shared/timed.rs"]
mod timed;

const THREADS: usize = 16;
const MACHINE: u32 = 4;

fn main() -> ExitCode {
    let Some(operations) = std::env::args().nth(1).and_then(|text| text.parse().ok()) else {
        eprintln!("usage: limit_bench OPERATIONS");
        return ExitCode::from(2);
    };
    let mut program = large_program(operations, THREADS, 1);
    program.recorded_cpus = Some(MACHINE);
    // Simulated as a recorded program, on the model of Linux's scheduler.
    let model = Model { scheduler: Some(Scheduler::Eevdf), ..Model::default() };
    let counts = [1, 2, 4, 8, 16].into_iter().filter_map(Cpus::count);
    let cpus: Vec<Cpus> = counts.chain([Cpus::Infinite]).collect();
    let report = || report_by(&program, &cpus, Detail::Functions, Grouping::Function, &model);
    let ((), _, report_ns) = timed(|| drop(black_box(report())));
    let Ok(search) = Search::new(&program, &cpus, &model) else {
        eprintln!("the program cannot be scheduled");
        return ExitCode::FAILURE;
    };
    let ((found, runs), _, limit_ns) = timed(|| limits(search));
    let kind = found.at.first().map_or("none", |limit| limit.kind.name());
    println!(
        "{{\"operations\":{operations},\"report_ns\":{report_ns},\"limit_ns\":{limit_ns},\"runs\":{runs},\"kind\":\"{kind}\"}}"
    );
    ExitCode::SUCCESS
}

/// The limits, and the number of runs that the search took.
fn limits(search: Search) -> (Limits, usize) {
    let found: Vec<_> = search.counts().iter().map(|cpus| search.at(*cpus)).collect();
    let fixes = search.edits(&found).iter().filter_map(|edit| search.fix(edit, &found)).collect();
    let functions =
        search.functions().into_iter().filter_map(|function| search.tenth(function, &found)).collect();
    let runs = search.runs();
    (search.conclude(found, fixes, functions), runs)
}
