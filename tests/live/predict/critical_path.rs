//! Reports for workloads whose critical path is known by construction.

use longpole_tests::{Answer, Longpole, Recorded, skip_unless_live};

/// Options with which functions keep their probes at any cost. With the usual goal, it depends on the machine which
/// functions keep them. There are no samples, so calls without probes count for their callers.
const WHOLE: [&str; 5] = ["--exact", "--overhead", "none", "-F", "0"];

/// The workload's own function that has the largest self time.
fn most_of_its_own(answer: &Answer<'_>) -> String {
    let time = |name: &String| answer.function(name, "tet_ns").unwrap_or(0.0);
    let functions = answer.functions();
    functions.into_iter().max_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or_default()
}

fn within(value: f64, low: f64, high: f64, what: &str) {
    assert!((low..=high).contains(&value), "{what} is {value}, not between {low} and {high}");
}

/// The program has one critical path through all threads, so more CPUs must not make it faster.
#[test]
fn a_hand_off_chain_is_predicted_no_faster_on_more_cpus() {
    let program = skip_unless_live!("handoff.c");
    let report = Recorded::good(&WHOLE, &program, &["199", "3", "500000"]).report("1,2,8,inf");
    for answer in [report.at(1), report.at(2), report.at(8), report.at("inf")] {
        assert_eq!(most_of_its_own(&answer), "HoldToken");
        assert_eq!(answer.function("HoldToken", "calls"), Some(199.0));
        // Every hand-over to an idle CPU takes as long as waking took in the recording. On a busy host this is half of
        // a step.
        within(answer.speedup(), 0.3, 1.3, "the speed-up of a chain");
    }
}

#[test]
fn the_long_branch_of_fork_and_join_is_critical_on_many_cpus_only() {
    let program = skip_unless_live!("forkjoin.c");
    let report = Recorded::good(&WHOLE, &program, &["23", "7", "1000000"]).report("1,2,16,inf");
    assert_eq!(most_of_its_own(&report.at(1)), "ShortBranch");
    for many in [report.at(16), report.at("inf")] {
        assert_eq!(most_of_its_own(&many), "LongBranch");
        // All 23 rounds count, except those in which a busy machine delayed a short branch for longer, or did not show
        // a long one.
        let calls = many.function("LongBranch", "calls").unwrap_or(0.0);
        within(calls, 12.0, 23.0, "calls of the long branch on the path");
        // There are seven short branches of one unit and a long one of four: 11 units of work on a path of 4. Branches
        // on CPUs that share a core slow each other down.
        within(many.speedup(), 2.0, 3.5, "the speed-up of 11 units on a path of 4");
        let short = many.function("ShortBranch", "tet_ns").unwrap_or(0.0);
        let long = many.function("LongBranch", "tet_ns").unwrap_or(0.0);
        assert!(short < long / 2.0, "{short} beside {long}");
    }
}

#[test]
fn the_slow_stage_of_a_pipeline_is_critical() {
    let program = skip_unless_live!("pipeline.c");
    let report = Recorded::good(&WHOLE, &program, &["211", "4", "400000"]).report("1,2,3,inf");
    for answer in [report.at(1), report.at(2), report.at(3), report.at("inf")] {
        assert_eq!(most_of_its_own(&answer), "StageTransform");
    }
    // Each item takes seven units, five of them in the slow stage.
    within(report.at("inf").speedup(), 1.15, 1.7, "the speed-up of a pipeline of 1 + 5 + 1 units");
    let slow = report.at("inf").function("StageTransform", "tet_ns").unwrap_or(0.0);
    within(slow / report.at("inf").time_ns(), 0.9, 1.0, "the slow stage's share");
}

/// 2001, section 4.1. The CPU count at which the other function becomes more important depends on the machine. The
/// program guarantees that both functions have a part in the time, and that it is parallel.
#[test]
fn both_functions_of_the_quick_sort_are_on_the_critical_path() {
    let program = skip_unless_live!("quicksort.c");
    let report = Recorded::good(&WHOLE, &program, &["10"]).report("1,2,4,8,16,inf");
    let one = report.at(1);
    for name in ["ParallelQuickSort", "RecursiveQuickSort"] {
        let time = one.function(name, "tetid_ns").unwrap_or(0.0);
        assert!(time > 0.0, "{name} has no time: {:?}", one.functions());
    }
    let recursive = one.function("RecursiveQuickSort", "tetid_ns").unwrap_or(0.0);
    within(recursive / one.time_ns(), 0.4, 1.0, "the recursive sort's share on one CPU");
    let inf = report.at("inf");
    assert!(inf.speedup() > 2.0, "{}", inf.speedup());
    let falling = [one, report.at(2), report.at(4), report.at(8), report.at(16), inf];
    let times: Vec<f64> = falling.iter().map(Answer::time_ns).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
}

/// Issue 2: `export` writes the program of a recording. `report` must give the same result for both.
#[test]
fn an_exported_recording_has_the_same_report() {
    let program = skip_unless_live!("pipeline.c");
    let recorded = Recorded::good(&WHOLE, &program, &["53", "4", "20000"]);
    let exported = recorded.beside("exported.json");
    Longpole::with(["export", "--format", "program", "-o"]).and(&exported).and(&recorded.file).ok();
    let answer = |file: &std::path::Path| {
        let text = Longpole::with(["report", "--json", "--segments"]).and(file).ok().stdout;
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["results"].clone()
    };
    assert_eq!(answer(&exported), answer(&recorded.file));
}

/// Issue 2, overhead controller: a function that is called more often than `--max-rate` must lose its probes, and the
/// report must say so.
#[test]
fn a_function_above_the_maximum_rate_is_folded_into_its_callers() {
    let program = skip_unless_live!("quicksort.c");
    let recorded =
        Recorded::good(&["--exact", "--max-rate", "2000", "--overhead", "none"], &program, &["20"]);
    let report = recorded.report("1");
    let rows = report.0["results"][0]["functions"].as_array().cloned().unwrap_or_default();
    let folded = |name: &str| rows.iter().any(|row| row["function"] == name && row["folded"] == true);
    assert!(folded("SortRange"), "{rows:?}\n{}", recorded.ended.stderr);
    assert!(!folded("RecursiveQuickSort"), "{rows:?}");
    // The time of SortRange must count for its caller.
    let recursive = report.at(1).function("RecursiveQuickSort", "tetid_ns").unwrap_or(0.0);
    within(recursive / report.at(1).time_ns(), 0.4, 1.0, "the recursive sort's share");
}
