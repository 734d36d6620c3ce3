//! `longpole report` on programs whose answers are in the papers or follow from their construction.

mod quicksort;
mod study;

use std::path::{Path, PathBuf};

use longpole_tests::{Answer, Longpole, Report, check_golden};

/// Nanoseconds of one unit of the papers' figures in the data files.
const UNIT: f64 = 1000.0;

/// A path relative to the tests' folder, so that screens with it are the same on all machines.
fn program(scenario: &str) -> PathBuf {
    Path::new("../tests/data").join(scenario).join("program.json")
}

fn with_segments(scenario: &str, cpus: &str) -> Report {
    let ended =
        Longpole::with(["report", "--json", "--segments", "--cpus", cpus]).and(program(scenario)).ok();
    Report::parse(&ended.stdout)
}

/// Checks weights by thread and operation; every segment must be listed.
fn check_weights(answer: &Answer<'_>, expected: &[(&str, u64, f64)]) {
    let segments = answer.segments();
    assert_eq!(segments.len(), expected.len(), "{segments:?}");
    for (thread, operation, weight) in expected {
        let found = segments.iter().find(|segment| segment.0 == *thread && segment.1 == *operation);
        let found = found.unwrap_or_else(|| panic!("no segment {thread} {operation} in {segments:?}"));
        assert!((found.4 - weight).abs() < 1e-9, "{thread} {operation}: {} instead of {weight}", found.4);
    }
}

fn near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{actual} instead of {expected}");
}

/// Broberg et al. 2001, Fig. 1 and 2.
#[test]
fn figure_1_has_the_paper_s_weights_on_every_cpu_count() {
    let report = with_segments("figure-1", "1,2,3,4,inf");
    let weights = |first, c, d, last, rest| {
        [
            ("T1", 0, first),
            ("T1", 2, rest),
            ("T1", 4, last),
            ("T2", 0, rest),
            ("T2", 2, d),
            ("T3", 1, c),
            ("T3", 3, rest),
        ]
    };
    let one = report.at(1);
    near(one.time_ns(), 7.0 * UNIT);
    check_weights(&one, &weights(1.0, 1.0, 1.0, 1.0, 1.0));
    let two = report.at(2);
    near(two.time_ns(), 4.0 * UNIT);
    near(two.speedup(), 7.0 / 4.0);
    check_weights(&two, &weights(0.5, 0.5, 1.0, 1.0, 0.0));
    for many in [report.at(3), report.at(4), report.at("inf")] {
        near(many.time_ns(), 4.0 * UNIT);
        check_weights(&many, &weights(1.0, 1.0, 1.0, 1.0, 0.0));
    }
}

/// Broberg et al. 2001, Fig. 4.
#[test]
fn figure_4_has_the_paper_s_weights_on_every_cpu_count() {
    let report = with_segments("figure-4", "1,2,3,inf");
    // In the order of the threads' operations: T1 a b c e i, T2 c g d, T3 d g h a f.
    let places = [
        ("T1", 0),
        ("T1", 2),
        ("T1", 4),
        ("T1", 6),
        ("T1", 7),
        ("T2", 1),
        ("T2", 3),
        ("T2", 5),
        ("T3", 1),
        ("T3", 3),
        ("T3", 4),
        ("T3", 6),
        ("T3", 8),
    ];
    let weights = |values: [f64; 13]| {
        places.iter().zip(values).map(|((thread, op), weight)| (*thread, *op, weight)).collect::<Vec<_>>()
    };
    near(report.at(1).time_ns(), 20.0 * UNIT);
    check_weights(&report.at(1), &weights([1.0; 13]));
    near(report.at(2).time_ns(), 12.0 * UNIT);
    let two = [1.0, 1.0, 0.0, 0.5, 0.5, 0.0, 0.5, 0.0, 0.0, 1.0, 1.0, 0.5, 1.0];
    check_weights(&report.at(2), &weights(two));
    let many = [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0];
    near(report.at(3).time_ns(), 11.0 * UNIT);
    check_weights(&report.at(3), &weights(many));
    near(report.at("inf").time_ns(), 11.0 * UNIT);
    check_weights(&report.at("inf"), &weights(many));
}

/// 2001, section 2.2, on Fig. 1: function b (T1, T2, T3) has no time on the path of three CPUs; a is called twice.
#[test]
fn functions_of_figure_1_have_the_paper_s_calls_and_times() {
    let report = Longpole::report(&program("figure-1"), "1,2,inf");
    let one = report.at(1);
    assert_eq!(one.function("b", "calls"), Some(3.0));
    near(one.function("b", "tet_ns").unwrap(), 3.0 * UNIT);
    let two = report.at(2);
    assert_eq!(two.function("a", "calls"), Some(2.0));
    near(two.function("a", "tetid_ns").unwrap(), 1.5 * UNIT);
    near(two.function("c", "tet_ns").unwrap(), 0.5 * UNIT);
    assert_eq!(report.at("inf").function("b", "tet_ns").unwrap_or(0.0), 0.0);
}

/// 2001, section 4.1: up to five processors the recursive function dominates, from six on the parallel one.
#[test]
fn the_paper_s_quick_sort_crosses_over_between_five_and_six_cpus() {
    check_golden("quicksort/program.json", &quicksort::program());
    let report = Longpole::report(&program("quicksort"), "1-8,16,inf");
    for cpus in 1..=8 {
        let answer = report.at(cpus);
        let time = |name| answer.function(name, "tet_ns").unwrap_or(0.0);
        let recursive_first = time("RecursiveQuickSort") > time("ParallelQuickSort");
        assert_eq!(recursive_first, cpus <= 5, "at {cpus} CPUs: {:?}", answer.functions());
    }
    let total = quicksort::total_ns();
    near(report.at(1).time_ns(), total);
    assert!(report.at("inf").time_ns() < total / 6.0);
}

/// The whole text and JSON of every scenario's report are as expected.
#[test]
fn reports_of_the_scenarios_are_their_golden_files() {
    for scenario in ["figure-1", "figure-4", "quicksort", "deadlock"] {
        let text = Longpole::with(["report", "--wide", "--cpus", "1,2,4,8,inf"]).and(program(scenario)).ok();
        let text = text.stdout;
        check_golden(format!("{scenario}/report.txt"), &text);
        let json = Longpole::with(["report", "--json", "--cpus", "1,2,4,8,inf"]).and(program(scenario)).ok();
        check_golden(format!("{scenario}/report.json"), &json.stdout);
    }
}

/// The whole text and JSON of every scenario's prediction are as expected.
#[test]
fn predictions_of_the_scenarios_are_their_golden_files() {
    for scenario in ["figure-1", "figure-4", "quicksort"] {
        let call = |extra: &[&str]| {
            let mut call = Longpole::with(["predict", "--cpus", "1-8,16,inf"]).and(program(scenario));
            call.command().args(extra).env("LC_ALL", "C.UTF-8").env("COLUMNS", "80");
            call.ok().stdout
        };
        check_golden(format!("{scenario}/predict.txt"), &call(&[]));
        check_golden(format!("{scenario}/predict.json"), &call(&["--json"]));
        check_golden(format!("{scenario}/predict-ideal.txt"), &call(&["--model", "ideal"]));
    }
}

/// 2001, section 4.1: the crossover between five and six processors is reported.
#[test]
fn predict_says_at_how_many_cpus_the_paper_s_functions_cross_over() {
    let ended = Longpole::with(["predict", "--cpus", "1-8"]).and(program("quicksort")).ok();
    let said = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("From 6 CPUs on, ParallelQuickSort outweighs RecursiveQuickSort."), "{said}");
}

/// Repeated runs give the same bytes.
#[test]
fn a_report_is_deterministic() {
    let call = || Longpole::with(["report", "--json", "--segments"]).and(program("quicksort")).ok().stdout;
    let first = call();
    assert!((0..3).all(|_| call() == first));
}

/// Issue 2, "Bad input": a deadlock has exit code 0, the result up to it, and which thread waits for what.
#[test]
fn a_deadlock_is_a_note_that_names_threads_and_locks() {
    let report = Longpole::report(&program("deadlock"), "1,inf");
    let found = report.findings("deadlock");
    assert_eq!(found.len(), 1, "{}", report.0);
    for name in ["T1", "T2", "left", "right"] {
        assert!(found[0].contains(name), "no {name} in: {}", found[0]);
    }
    near(report.at(1).time_ns(), 4.0 * UNIT);
    near(report.at("inf").time_ns(), 2.0 * UNIT);
}

/// The `export` of a program is the same program: its report is unchanged.
#[test]
fn an_exported_scenario_has_the_same_report() {
    let folder = tempfile::tempdir().unwrap();
    for scenario in ["figure-1", "figure-4", "quicksort"] {
        let copy = folder.path().join(format!("{scenario}.json"));
        Longpole::with(["export", "--format", "program", "-o"]).and(&copy).and(program(scenario)).ok();
        let answer = |file: &Path| Longpole::with(["report", "--json", "--segments"]).and(file).ok().stdout;
        assert_eq!(answer(&copy), answer(&program(scenario)));
    }
}
