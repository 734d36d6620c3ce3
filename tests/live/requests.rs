//! A server whose slow requests are slow for a known reason. `report --per` must name that reason first.

use longpole_tests::{Longpole, Recorded, skip_unless_live};

const REQUESTS: &str = "8000";

/// The first cause of the difference between slow and fast requests, by its kind and name.
fn first_cause(program: &std::path::Path, reason: &str) -> (String, String) {
    // The folder is next to the program, because temporary folders are often in memory and never wait for a disk.
    let folder = tempfile::tempdir_in(program.parent().expect("a folder")).expect("a folder");
    let file = folder.path().join("data");
    let file = file.to_str().expect("a name");
    // `serve` keeps its probes all the time, so that the slow requests are among the recorded calls.
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
fn slow_requests_that_compute_more_name_the_function() {
    check("compute", "computing", "encrypt");
}

#[test]
fn slow_requests_that_wait_for_a_lock_name_it() {
    check("lock", "lock", "mutex table");
}

#[test]
fn slow_requests_that_wait_for_a_disk_name_the_kind_of_wait() {
    check("disk", "disk", "file sync");
}

#[test]
fn slow_requests_in_a_burst_wait_in_the_queue_of_the_workers() {
    check("queue", "queue", "worker");
}

#[test]
fn slow_requests_without_a_cpu_wait_for_the_program_s_own_threads() {
    check("cpu", "no_cpu", "");
}
