//! Every command gives the same time: report, predict, what-if in all its forms, diff. Slack and paths give the length of the
//! schedule with ideal sharing.

use engine::attribution::Owners;
use engine::compare::compare;
use engine::critical_path::CostedPath;
use engine::experiment::{Edit, Trials};
use engine::graph::{PathsWanted, paths_report, slack_report};
use engine::predict::{Model, Scheduler, Timing, predict};
use engine::program::{FunctionRef, MachineFacts, Program};
use engine::report::{Cpus, Detail, report_by};
use engine::synth::{Lengths, random_program};

use engine::what_if::{headroom, rank, what_if};

/// A random program as if recorded on a machine where waking a thread takes 20 µs.
fn recorded(seed: u64) -> Program {
    let facts = MachineFacts {
        wake_latency_ns: Some(20_000),
        cpus_used: Some(2),
        tick_ns: Some(4_000_000),
        idle_tick_ns: Some(4_000_000),
        ..MachineFacts::default()
    };
    Program { machine: Some(facts), ..random_program(seed, Lengths::Spread) }
}

#[test]
fn all_commands_say_the_same_time() {
    let cpus = Cpus::parse_list("1,2,3,inf").expect("counts");
    let mut compared = 0;
    for seed in 0..300 {
        let program = recorded(seed);
        for scheduler in [None, Some(Scheduler::Ideal), Some(Scheduler::Eevdf)] {
            let model = Model { scheduler, ..Model::default() };
            let grouping = engine::attribution::Grouping::Function;
            let report = report_by(&program, &cpus, Detail::Functions, grouping, &model);
            let expected: Vec<f64> = report.results.iter().map(|result| result.time_ns).collect();
            assert_eq!(expected.len(), cpus.len(), "seed {seed}");
            let same = |what: &str, times: Vec<f64>| assert_eq!(times, expected, "seed {seed}: {what}");
            let prediction = predict(&program, &cpus, &model);
            same("predict", prediction.results.iter().map(|result| result.time_ns).collect());
            let edits = [Edit::Scale(vec![FunctionRef(0)], 1.0)];
            let what = what_if(&Trials::of(&program, &model), &edits, &cpus).expect("a program");
            same("what-if before", what.results.iter().map(|row| row.before_ns).collect());
            same("what-if after nothing", what.results.iter().map(|row| row.after_ns).collect());
            let ranks = rank(&program, &cpus, &model, 2).expect("a program");
            same("rank", ranks.iter().map(|ranking| ranking.time_ns).collect());
            let curves = headroom(&program, &[FunctionRef(0)], &cpus, &model).expect("a program");
            same("headroom", curves.iter().map(|curve| curve.points[0].time_ns).collect());
            let comparison = compare(&program, &program, &cpus, &model).expect("programs");
            same("diff", comparison.curve.iter().map(|row| row.time.before).collect());
            let owners = Owners::themselves(&program);
            let own = (&program, &owners);
            let slack = slack_report(&program, own, false, 0, &model).expect("a program");
            same("slack beside its own run", vec![expected[0], expected[1], expected[2], slack.predicted_ns]);
            let slack = slack.length_ns;
            let wanted =
                PathsWanted { most: 1, within: None, routes: 0, shown: None, segments: false, simulated: 0 };
            assert_eq!(paths_report(&program, own, &wanted, &model).expect("a program").length_ns, slack);
            if report.findings.is_empty() && program.threads.len() > 1 {
                let timing = Timing::new(&program, &model).expect("a program");
                let path = CostedPath::of(&program, Cpus::Infinite, &timing.costs(Cpus::Infinite));
                assert!((path.time().as_ns_f64() - slack).abs() < 0.01, "seed {seed}: {path:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 300, "{compared}");
}

/// A tenth off a function gains a tenth of its share, unless something else becomes critical first. As a scale, in the
/// ranking and as headroom the gain is the same to the last digit.
#[test]
fn a_scaled_function_gains_the_same_by_what_if_rank_and_headroom() {
    let cpus = Cpus::parse_list("1,2,inf").expect("counts");
    let mut compared = 0;
    for seed in 0..200 {
        let program = recorded(seed);
        let model = Model::default();
        let ranks = rank(&program, &cpus, &model, 1).expect("a program");
        let Some(name) = ranks[0].rows.first().map(|row| row.function.clone()) else { continue };
        let number = program.functions.iter().position(|function| function.name == name).expect("a function");
        let function = FunctionRef(number as u32);
        let edits = [Edit::Scale(vec![function], 0.5)];
        let scaled = what_if(&Trials::of(&program, &model), &edits, &cpus).expect("a program");
        let curves = headroom(&program, &[function], &cpus, &model).expect("a program");
        for (place, row) in scaled.results.iter().enumerate() {
            let half = curves[place].points.iter().find(|point| (point.scale - 0.5).abs() < 1e-9);
            assert_eq!(half.expect("the middle").time_ns, row.after_ns, "seed {seed}");
            let ranked = ranks[place].rows.iter().find(|row| row.function == name).expect("a row");
            assert_eq!(ranked.gains_ns[2], row.before_ns - row.after_ns, "seed {seed}");
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared}");
}
