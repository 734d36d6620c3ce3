//! A server whose slow requests are slow for a known reason: `report --per` has to name that first.

use longpole_tests::{Longpole, Recorded, skip_unless_live};

const REQUESTS: &str = "8000";

/// The first cause of the difference between slow and fast requests: its kind and its name.
fn first_cause(program: &std::path::Path, reason: &str) -> (String, String) {
    // Next to the program: temporary folders are often in memory.
    let folder = tempfile::tempdir_in(program.parent().expect("a folder")).expect("a folder");
    let file = folder.path().join("data");
    let file = file.to_str().expect("a name");
    // `serve` keeps its probes all the time, so that the slow requests are among its calls.
    let options = ["--per", "serve", "--overhead", "none"];
    let recorded = Recorded::good(&options, program, &[reason, REQUESTS, file]);
    assert!(recorded.ended.stderr.contains("report --per serve"), "{}", recorded.ended.stderr);
    let said = Longpole::with(["report", "--json", "--per", "serve"]).and(&recorded.file).ok();
    let report: serde_json::Value = serde_json::from_str(&said.stdout).expect("JSON");
    let sum = |column: &str| -> f64 {
        let causes = report["causes"].as_array().expect("causes").iter();
        causes.map(|cause| cause[column].as_f64().expect("a number")).sum()
    };
    for (column, group) in [("fast_ns", "fast"), ("slow_ns", "slow")] {
        let mean = report[group]["mean_ns"].as_f64().expect("a mean");
        assert!((sum(column) - mean).abs() < 1e-6 * mean, "{column}: {} is not {mean}", sum(column));
    }
    assert_eq!(report["slow"]["group"], "percent", "{report}");
    assert_eq!(report["unfinished"]["requests"], 0, "{report}");
    let first = &report["causes"][0];
    let word = |field: &str| first[field].as_str().expect("a word").to_owned();
    println!("{reason}: {first}");
    (word("kind"), word("name"))
}

fn check(reason: &str, kind: &str, name: &str) {
    let program = skip_unless_live!("requests.c");
    let (found, named) = first_cause(&program, reason);
    assert!(found == kind && named.starts_with(name), "{reason}: {found} {named}");
}

#[test]
fn more_computing_is_named_by_its_function() {
    check("compute", "computing", "encrypt");
}

#[test]
fn a_lock_that_another_thread_has_is_named() {
    check("lock", "lock", "mutex table");
}

#[test]
fn a_disk_is_named_by_what_it_was_asked_for() {
    check("disk", "disk", "file sync");
}

#[test]
fn a_burst_is_a_queue_behind_the_workers() {
    check("queue", "queue", "worker");
}

#[test]
fn a_cpu_that_an_own_thread_has_is_missing() {
    check("cpu", "no_cpu", "");
}
