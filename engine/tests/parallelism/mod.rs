//! Quartz (1989): the paper's own reasoning, and numbers by hand or by brute force.

pub(super) mod brute;
mod reasons;
mod sharing;

use engine::parallelism::{Parallelism, ParallelismRow, ParallelismRowKind, predicted};
use engine::predict::Model;
use engine::program::{Program, json};
use engine::report::Cpus;

fn program(threads: &str) -> Program {
    let text = format!(r#"{{"format":"longpole-program","version":1,"threads":[{threads}]}}"#);
    json::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn on(threads: &str, cpus: u32) -> Parallelism {
    let cpus = Cpus::count(cpus).unwrap_or(Cpus::Infinite);
    let run = predicted(&program(threads), cpus, &Model::default()).expect("a program");
    adds_up(&run);
    run
}

/// Asserts that rows and idle time add up to the elapsed time, to the nanosecond, and each row's distribution to the row.
pub(super) fn adds_up(run: &Parallelism) {
    let sum = |kind: ParallelismRowKind| -> u64 {
        run.rows.iter().filter(|row| row.kind == kind).map(|row| row.normalized_self_ns).sum()
    };
    assert_eq!(sum(ParallelismRowKind::Function) + run.nobody_busy_ns, run.elapsed_ns, "functions");
    assert_eq!(sum(ParallelismRowKind::Thread) + run.nobody_busy_ns, run.elapsed_ns, "threads");
    assert_eq!(run.levels.iter().map(|(_, ns)| ns).sum::<u64>(), run.elapsed_ns, "levels");
    for row in &run.rows {
        let sum = |cells: &[(u32, u64)]| cells.iter().map(|(_, ns)| ns).sum::<u64>();
        assert_eq!(sum(&row.by_busy), row.normalized_self_ns, "{row:?}");
        assert_eq!(sum(&row.total_by_busy), row.normalized_total_ns, "{row:?}");
        assert!(row.normalized_self_ns <= row.normalized_total_ns, "{row:?}");
    }
}

#[track_caller]
fn row<'r>(run: &'r Parallelism, kind: ParallelismRowKind, name: &str) -> &'r ParallelismRow {
    let found = run.rows.iter().find(|row| row.kind == kind && row.name.as_deref() == Some(name));
    found.unwrap_or_else(|| panic!("{name} is not in {run:#?}"))
}

#[track_caller]
fn function<'r>(run: &'r Parallelism, name: &str) -> &'r ParallelismRow {
    row(run, ParallelismRowKind::Function, name)
}
