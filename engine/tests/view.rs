//! Sums of single stretches, stacks and states equal a report's, which are computed in another way.

use engine::attribution::Grouping;
use engine::predict::{Model, Scheduler, Timing};
use engine::program::Program;
use engine::report::{Cpus, Detail, Report, report_by};
use engine::synth::{Execution, Lengths, generate, random_program, sampled_program};
use engine::time::{Ticks, Timestamp};
use engine::timeline;
use engine::view::{Measured, Stack, StackBuilder, Stacks, StretchKind, ThreadActivity, path};
use std::collections::BTreeMap;

const PROGRAMS: u64 = 60;

fn cpus() -> Vec<Cpus> {
    Cpus::parse_list("1,2,3,inf").expect("a list")
}

fn models() -> [Model; 3] {
    [
        Model::default(),
        Model { scheduler: Some(Scheduler::Eevdf), runs: 1, ..Model::default() },
        Model { scheduler: Some(Scheduler::Eevdf), runs: 5, ..Model::default() },
    ]
}

fn stacks_of(program: &Program, model: &Model) -> Stacks {
    let timing = Timing::new(program, model).expect("valid");
    let builder = StackBuilder::new(&timing);
    let parts = timing.groups(&cpus()).iter().flat_map(|group| builder.at(group)).collect();
    builder.conclude(&cpus(), parts)
}

fn report_of(program: &Program, model: &Model) -> Report {
    report_by(program, &cpus(), Detail::Functions, Grouping::Function, model)
}

/// By function: sums over stacks with the function innermost, and over stacks that contain it.
fn sums(program: &Program, stacks: &[Stack], ns: impl Fn(&Stack) -> f64) -> BTreeMap<String, (f64, f64)> {
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    let name = |frame: &engine::view::Frame| program.functions[frame.function.0 as usize].name.clone();
    for stack in stacks {
        if let Some(innermost) = stack.frames.last() {
            sums.entry(name(innermost)).or_default().0 += ns(stack);
        }
        let mut all: Vec<String> = stack.frames.iter().map(name).collect();
        all.sort_unstable();
        all.dedup();
        for name in all {
            sums.entry(name).or_default().1 += ns(stack);
        }
    }
    sums
}

#[track_caller]
fn alike(a: f64, b: f64, what: &str) {
    assert!((a - b).abs() <= 1e-6 * a.abs().max(b.abs()) + 0.01, "{what}: {a} is not {b}");
}

#[test]
fn owed_times_of_stacks_add_up_to_a_report() {
    for seed in 0..PROGRAMS {
        let whole = random_program(seed, Lengths::Spread);
        let probed: Vec<bool> = (0..whole.functions.len()).map(|function| function % 2 == 0).collect();
        let lengths = whole.threads.iter().flat_map(|thread| &thread.operations);
        let longest = lengths.filter_map(engine::program::Operation::length).max().unwrap_or(Ticks(1));
        let sampled = sampled_program(&whole, &probed, Ticks((longest.0 / 8).max(1)), seed);
        for (program, exact) in [(&whole, true), (&sampled, false)] {
            for model in models() {
                let (stacks, report) = (stacks_of(program, &model), report_of(program, &model));
                for (place, result) in report.results.iter().enumerate() {
                    let sums = sums(program, &stacks.stacks, |stack| stack.owed_ns[place]);
                    for row in &result.functions {
                        let (own, within) = sums.get(&row.function).copied().unwrap_or_default();
                        alike(own, row.tet_ns, &format!("own time of {} ({seed})", row.function));
                        if exact {
                            alike(within, row.tetid_ns, &format!("time of {} ({seed})", row.function));
                        }
                    }
                    alike(stacks.on[place].time_ns, result.time_ns, "time");
                    assert_eq!(stacks.on[place].waits, result.waits);
                    let all: f64 = stacks.stacks.iter().map(|stack| stack.owed_ns[place]).sum();
                    let waits: f64 = result.waits.iter().map(|wait| wait.weighted_ns).sum();
                    if model.scheduler.is_some() {
                        alike(all + waits, result.time_ns, &format!("all of the path ({seed})"));
                    }
                }
            }
        }
    }
}

/// With one run there is one path, and its stretches add up to the report's shares.
#[test]
fn stretches_of_the_path_add_up_to_a_report() {
    let model = Model { scheduler: Some(Scheduler::Eevdf), runs: 1, ..Model::default() };
    for seed in 0..PROGRAMS {
        let program = random_program(seed, Lengths::Spread);
        let report = report_of(&program, &model);
        let timing = Timing::new(&program, &model).expect("valid");
        for (cpus, result) in cpus().into_iter().zip(&report.results) {
            let path = path(&timing, cpus);
            assert!(path.is_one_path);
            let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
            let (mut now, mut waits) = (Ticks(0), 0.0);
            for stretch in &path.stretches {
                assert!(stretch.start == now && stretch.end > now, "a hole ({seed})");
                now = stretch.end;
                let ns = Ticks(stretch.end.0 - stretch.start.0).as_ns_f64();
                match &stretch.kind {
                    StretchKind::Computes { function: Some(function), .. } => {
                        *sums.entry(&program.functions[function.0 as usize].name).or_default() += ns;
                    }
                    StretchKind::Computes { function: None, .. } => {}
                    StretchKind::Passes(_) => waits += ns,
                }
            }
            alike(now.as_ns_f64(), result.time_ns, "length");
            for row in &result.functions {
                let sum = sums.get(row.function.as_str()).copied().unwrap_or(0.0);
                alike(sum, row.tet_ns, &format!("{} on {cpus} ({seed})", row.function));
            }
            alike(waits, result.waits.iter().map(|wait| wait.weighted_ns).sum(), "waits");
        }
    }
}

/// A program written by hand runs ideally: its answer is weights, unless there is one path.
#[test]
fn an_ideal_run_has_weights_instead_of_one_path() {
    for seed in 0..PROGRAMS {
        let program = random_program(seed, Lengths::Spread);
        let report = report_of(&program, &Model::default());
        let timing = Timing::new(&program, &Model::default()).expect("valid");
        for (cpus, result) in cpus().into_iter().zip(&report.results) {
            let path = path(&timing, cpus);
            if path.is_one_path {
                continue;
            }
            for row in &result.functions {
                let mine = path.stretches.iter().filter(|stretch| {
                    matches!(&stretch.kind, StretchKind::Computes { function: Some(function), .. }
                        if program.functions[function.0 as usize].name == row.function)
                });
                let ns = |stretch: &engine::view::ViewStretch| {
                    Ticks(stretch.end.0 - stretch.start.0).as_ns_f64() * stretch.weight
                };
                alike(mine.map(ns).sum(), row.tet_ns, &format!("{} on {cpus} ({seed})", row.function));
            }
        }
    }
}

#[test]
fn states_and_calls_of_a_measured_run_are_whole() {
    let mut seen = 0;
    for seed in 0..1_000 {
        let program = random_program(seed, Lengths::Spread);
        let execution = Execution { cpus: 1 + (seed % 3) as u16, seed, ..Execution::default() };
        let Ok(generated) = generate(&program, &execution) else { continue };
        let timeline = timeline::build(&generated.recording());
        let program = engine::translation::from_timeline(&timeline);
        let measured = Measured::of(&timeline, &program);
        let mut on_cpu = 0;
        for thread in measured.threads() {
            assert_eq!(thread.name, program.threads[thread.number as usize].name);
            let mut now = thread.start;
            for state in measured.states(thread) {
                assert!(state.start == now && state.end >= now, "{state:?}");
                if matches!(state.doing, ThreadActivity::Running { .. } | ThreadActivity::Spinning { .. }) {
                    on_cpu += state.end.0 - state.start.0;
                }
                now = state.end;
            }
            assert_eq!(now, thread.end);
            let (mut depth, mut last) = (0u32, Timestamp(0));
            for call in measured.calls(thread) {
                assert!(call.time >= last && call.time <= thread.end);
                last = call.time;
                depth = if call.enters.is_some() { depth + 1 } else { depth.checked_sub(1).expect("nested") };
            }
            assert_eq!(depth, 0);
        }
        let changes: Vec<(Timestamp, u32)> = measured.running().collect();
        let area =
            changes.windows(2).map(|pair| (pair[1].0.0 - pair[0].0.0) * u64::from(pair[0].1)).sum::<u64>();
        assert_eq!(area, on_cpu, "seed {seed}");
        assert_eq!(changes.last().map(|(_, count)| *count), Some(0));
        seen += 1;
        if seen == 30 {
            break;
        }
    }
    assert!(seen >= 20, "only {seen} programs could be recorded");
}
