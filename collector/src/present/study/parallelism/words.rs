//! Advice for a row, in words.

use crate::cell::duration;
use crate::present::words::short::short;
use engine::parallelism::{Advice, Parallelism, ParallelismRow, ParallelismRowKind};
use engine::program::bare_name;
use engine::report::Cpus;

/// A few words of advice, for a table.
pub(super) fn brief(advice: Advice) -> String {
    match advice {
        Advice::Parallelize { alone } => format!("alone {}: parallelize", percent(alone)),
        Advice::Optimize { .. } => "all CPUs busy: optimize".to_owned(),
        Advice::MoreThreads { .. } => "CPUs idle: more threads".to_owned(),
        Advice::OthersSpin { .. } => "others spin: let them sleep".to_owned(),
        Advice::Split { .. } => "split it".to_owned(),
        Advice::Processes { .. } => "processes, not threads".to_owned(),
        Advice::Balance { .. } => "divide work evenly".to_owned(),
        Advice::Earlier { .. } => "produce earlier".to_owned(),
        Advice::Wait { .. } => "wait less for it".to_owned(),
        Advice::Overlap => "begin I/O earlier".to_owned(),
        Advice::Less { alone } => format!("alone {}: give it less", percent(alone)),
    }
}

/// A sentence of advice.
pub(super) fn sentence(run: &Parallelism, row: &ParallelismRow, advice: Advice) -> String {
    let name = name(row);
    match advice {
        Advice::Parallelize { alone } => format!(
            "Parallelize {name}: {} of its time no other CPU is busy, and it is {} of the run.",
            percent(alone),
            share(row.normalized_total_ns, run)
        ),
        Advice::Optimize { .. } if is_one_cpu(run) => {
            format!(
                "Make {name} faster: it is {} of the run on one CPU.",
                share(row.normalized_total_ns, run)
            )
        }
        Advice::Optimize { all_busy } => format!(
            "Make {name} faster: it is {} of the run, and all CPUs are busy {} of its time.",
            share(row.normalized_total_ns, run),
            percent(all_busy)
        ),
        Advice::MoreThreads { busy } => format!(
            "Give {name} more threads: it is {} of the run, and only {busy:.1} CPUs are busy meanwhile.",
            share(row.normalized_total_ns, run)
        ),
        Advice::OthersSpin { spinning } => format!(
            "Let threads sleep instead of spinning: {spinning:.1} spin while {name} runs, and more threads would spin, too."
        ),
        Advice::Processes { queue } => format!(
            "Use processes in place of threads: {} wait for {name}, the interpreter's own lock.",
            waiting(queue)
        ),
        Advice::Split { queue } => format!(
            "Split {name}, or hold it for a shorter time: {} wait for it, {} for each access.",
            waiting(queue),
            duration(row.average_wait_ns().unwrap_or(0.0))
        ),
        Advice::Balance { queue } => {
            format!(
                "Divide the work before {name} more evenly: {} wait there for the last one.",
                waiting(queue)
            )
        }
        Advice::Earlier { queue } => {
            format!("Produce what {name} stands for earlier: {} wait for it.", waiting(queue))
        }
        Advice::Wait { queue } => format!(
            "Wait less for {name}: {} wait for it, {} for each access. If it is a lock, split it, or hold it for a shorter time.",
            waiting(queue),
            duration(row.average_wait_ns().unwrap_or(0.0))
        ),
        Advice::Overlap => format!(
            "Begin to read or write earlier: threads wait for {name}, and no CPU is busy for {} of the run.",
            share(run.nobody_busy_ns, run)
        ),
        Advice::Less { alone } => format!(
            "Give {name} less to do: {} of its time no other CPU is busy, and it is {} of the run.",
            percent(alone),
            share(row.normalized_total_ns, run)
        ),
    }
}

fn is_one_cpu(run: &Parallelism) -> bool {
    run.cpus == Some(Cpus::ONE)
}

fn waiting(queue: f64) -> String {
    match queue {
        queue if queue < 1.05 => "one thread at a time has to".to_owned(),
        queue => format!("on average, {queue:.1} threads at once"),
    }
}

/// A row's name for people.
pub(super) fn name(row: &ParallelismRow) -> String {
    named(row.name.as_deref(), row.kind)
}

/// The words for a row, from its name and kind.
pub(super) fn named(name: Option<&str>, kind: ParallelismRowKind) -> String {
    match (name, kind) {
        (None, _) => "(in no function)".to_owned(),
        (Some(name), ParallelismRowKind::Function) => short(name),
        (Some(name), ParallelismRowKind::Thread) => name.to_owned(),
        (Some(name), _) => bare_name(name).to_owned(),
    }
}

/// A share as a percentage: `25 %`.
pub(super) fn percent(share: f64) -> String {
    super::super::listing::share(share, 1.0)
}

/// A time as a share of the run.
pub(super) fn share(ns: u64, run: &Parallelism) -> String {
    super::super::listing::share(ns as f64, run.elapsed_ns as f64)
}
