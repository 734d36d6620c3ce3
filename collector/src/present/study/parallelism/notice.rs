//! Sentences instead of an empty table, for runs with little to show.

use crate::cell::duration;
use crate::present::study::listing::deadlock;
use engine::parallelism::{Parallelism, ParallelismRowKind};

/// Whether nothing was computed.
pub(super) fn is_empty(run: &Parallelism) -> bool {
    run.elapsed_ns == run.nobody_busy_ns
}

/// Why the rows say little; `None`: they say enough.
pub(super) fn problem(run: &Parallelism) -> Option<String> {
    if let Some(deadlock) = deadlock(&run.findings) {
        return Some(deadlock);
    }
    if run.elapsed_ns == 0 {
        return Some("Nothing happened in this run: no time passed. Record for longer.".to_owned());
    }
    if is_empty(run) {
        return Some(
            "No thread computed in this run: all threads waited. Record while the program works.".to_owned(),
        );
    }
    let functions =
        || run.rows.iter().filter(|row| row.kind == ParallelismRowKind::Function && row.name.is_some());
    functions().all(|row| row.normalized_self_ns == 0).then(|| {
        "No function is known to take time here, so only threads and locks have rows: record with samples or probes, and a program with symbols."
            .to_owned()
    })
}

/// A run that is idle, or never parallel: advice about one row would miss that.
pub(super) fn shape(run: &Parallelism) -> Option<String> {
    let functions =
        || run.rows.iter().filter(|row| row.kind == ParallelismRowKind::Function && row.name.is_some());
    let parallel = run.levels.iter().any(|(level, ns)| *level > 1 && *ns > 0);
    let most = functions().max_by_key(|row| row.normalized_self_ns)?;
    let name = super::words::name(most);
    if run.threads == 1 {
        return Some(format!(
            "This program has one thread, so time divided by busy CPUs is plain CPU time. Most of it is {name}'s."
        ));
    }
    if run.nobody_busy_ns as f64 >= IDLE * run.elapsed_ns as f64 {
        return Some(idle(run));
    }
    (!parallel && !is_one_cpu(run)).then(|| {
        format!("This run is never parallel: no two CPUs are busy at once. Most of its time is {name}'s.")
    })
}

/// If no CPU is busy for more than this share of the run, a notice says so.
const IDLE: f64 = 0.5;

fn idle(run: &Parallelism) -> String {
    let objects = run.rows.iter().filter(|row| {
        matches!(
            row.kind,
            ParallelismRowKind::Lock | ParallelismRowKind::Barrier | ParallelismRowKind::Condition
        )
    });
    let waited = objects.max_by_key(|row| row.own.blocked.ns).filter(|row| row.own.blocked.ns > 0);
    let most = waited.map_or(String::new(), |row| {
        let each = row.average_wait_ns().map_or(String::new(), |ns| format!(", {} each time", duration(ns)));
        format!(", most of all for {}{each}", super::words::name(row))
    });
    format!(
        "No CPU is busy for {} of the run: threads wait{most}. Faster code shortens only the rest.",
        super::words::share(run.nobody_busy_ns, run)
    )
}

fn is_one_cpu(run: &Parallelism) -> bool {
    run.cpus == Some(engine::report::Cpus::ONE)
}
