//! Brute force: at every instant with a change, divides the time among all threads that compute.

use super::adds_up;
use engine::parallelism::{Parallelism, ParallelismRowKind, predicted};
use engine::predict::{Model, Scheduler, Timing};
use engine::program::Program;
use engine::report::Cpus;
use engine::schedule::{Interval, SimulatedState};
use engine::synth::{Lengths, random_program};

/// Normalized time of each thread, from stretches `(thread, from, to)` of computing, and the time in which no thread
/// computes.
pub(in crate::tests) fn by_hand(threads: usize, computes: &[(usize, u64, u64)], end: u64) -> (Vec<f64>, f64) {
    let mut changes: Vec<(u64, bool, usize)> =
        computes.iter().flat_map(|&(thread, from, to)| [(from, true, thread), (to, false, thread)]).collect();
    changes.push((end, false, threads));
    changes.sort_unstable();
    let mut normalized = vec![0.0; threads];
    let mut busy = vec![0_u32; threads + 1];
    let (mut nobody, mut last) = (0.0, 0);
    for (time, begins, thread) in changes {
        let length = (time.min(end) - last) as f64;
        last = time.min(end);
        let count = busy.iter().filter(|busy| **busy > 0).count();
        if count == 0 {
            nobody += length;
        }
        for (normalized, _) in normalized.iter_mut().zip(&busy).filter(|(_, busy)| **busy > 0) {
            *normalized += length / count as f64;
        }
        busy[thread] = if begins { busy[thread] + 1 } else { busy[thread].saturating_sub(1) };
    }
    (normalized, nobody)
}

fn compare(program: &Program, cpus: Cpus, model: &Model) {
    let mut computes = Vec::new();
    let timing = Timing::new(program, model).expect("a program");
    let outcome = timing.run_watched(
        cpus,
        0,
        Box::new(|interval: Interval| {
            if interval.doing == SimulatedState::Busy {
                computes.push((interval.thread.0 as usize, interval.start.0, interval.end.0));
            }
        }),
    );
    let (expected, nobody) = by_hand(program.threads.len(), &computes, outcome.length.0);
    let run = predicted(program, cpus, model).expect("a program");
    assert_is(
        &run,
        program,
        &expected.iter().map(|ticks| ticks / 1_000.0).collect::<Vec<_>>(),
        nobody / 1_000.0,
    );
}

/// Compares the normalized times of all threads, and the idle time, in nanoseconds.
pub(in crate::tests) fn assert_is(run: &Parallelism, program: &Program, expected: &[f64], nobody: f64) {
    adds_up(run);
    let close = |ns: u64, expected: f64| (ns as f64 - expected).abs() <= 1.001;
    assert!(close(run.nobody_busy_ns, nobody), "nobody: {} ns, not {nobody}", run.nobody_busy_ns);
    for (thread, expected) in program.threads.iter().zip(expected) {
        let is_it = |kind, name: &Option<String>| {
            kind == ParallelismRowKind::Thread && name.as_ref() == Some(&thread.name)
        };
        let found = run.rows.iter().find(|row| is_it(row.kind, &row.name));
        let ns = found.map_or(0, |row| row.normalized_self_ns);
        assert!(close(ns, *expected), "{}: {ns} ns, not {expected}", thread.name);
    }
}

#[test]
fn random_programs_agree_with_brute_force_on_any_machine() {
    for seed in 0..60 {
        let lengths = if seed % 2 == 0 { Lengths::Spread } else { Lengths::Tied };
        let program = random_program(seed, lengths);
        for scheduler in [Scheduler::Ideal, Scheduler::Eevdf] {
            let model = Model { scheduler: Some(scheduler), ..Model::default() };
            for cpus in [Cpus::ONE, Cpus::count(2).expect("two"), Cpus::Infinite] {
                compare(&program, cpus, &model);
            }
        }
    }
}
