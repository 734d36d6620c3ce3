//! The analysis of recordings and programs: what the commands compute, on three CPU counts.

use engine::attribution::Owners;
use engine::event::FunctionId;
use engine::graph::{PathsWanted, paths_report, slack_report};
use engine::limit::limits;
use engine::parallelism::{measured, predicted};
use engine::predict::Model;
use engine::program::Program;
use engine::report::{Cpus, Detail, report};
use engine::requests::{calls, summarize};
use engine::what_if::rank;

/// Reads a recording and analyses it.
pub fn analyse(bytes: &[u8]) {
    let Some(recording) = crate::session::recording(bytes) else { return };
    let timeline = engine::timeline::build(&recording);
    drop(recording);
    let program = engine::translation::from_timeline(&timeline);
    measured(&timeline, &program, false);
    let functions: Vec<FunctionId> = timeline.functions.iter().map(|fact| fact.id).take(4).collect();
    summarize(&timeline, &program, &calls(&timeline, &functions));
    analyse_program(&program);
}

/// Analyses a program. It may be invalid: each function then returns an error.
pub fn analyse_program(program: &Program) {
    let cpus: Vec<Cpus> = [1, 2, 16].into_iter().filter_map(Cpus::count).collect();
    let model = Model::default();
    report(program, &cpus, Detail::Segments);
    limits(program, &cpus, &model);
    let _ = rank(program, &cpus, &model, 3);
    for &cpus in &cpus {
        let _ = predicted(program, cpus, &model);
    }
    let owners = Owners::themselves(program);
    let _ = slack_report(program, (program, &owners), true, 1, &model);
    let paths =
        PathsWanted { most: 20, within: None, routes: 2, shown: Some(1), segments: true, simulated: 1 };
    let _ = paths_report(program, (program, &owners), &paths, &model);
}
