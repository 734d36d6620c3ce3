//! Tests of `longpole validate`: which commands it runs, and that its figures are those of the runs.

use longpole_tests::{Longpole, Recorded, run, shell, skip, skip_unless_built, skip_unless_live, workload};
use serde_json::Value;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

fn validation(arguments: &[&str]) -> Value {
    let text = Longpole::with(["validate", "--json"].iter().chain(arguments)).ok().stdout;
    serde_json::from_str(&text).expect("JSON")
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("no {name} in {row}"))
}

#[test]
fn validate_has_the_measured_times_and_the_error_computed_from_them() {
    let program = skip_unless_live!("forkjoin.c");
    let program = program.to_str().expect("a path");
    let document = validation(&["--runs", "3", "--cpus", "1", "--", program, "20"]);
    assert_eq!(document["schema"], "longpole-validate/1");
    assert_eq!((document["runs"].as_u64(), document["recorded_cpus"].as_u64()), (Some(3), Some(1)));
    assert_eq!(document["recordings"], 3);
    let rows = document["results"].as_array().expect("rows");
    assert_eq!(rows.len(), 1, "one number of CPUs was asked for");
    let row = &rows[0];
    let measured = ["measured_low_ns", "measured_ns", "measured_high_ns"].map(|name| number(row, name));
    assert!(measured[0] > 0.0 && measured.is_sorted(), "{measured:?}");
    assert_eq!((number(row, "measured_speedup"), number(row, "error")), (1.0, 0.0));
    // One CPU executes everything. So the prediction is the recorded CPU time, which equals the measured time except
    // for what a busy machine adds to either.
    let ratio = number(row, "predicted_ns") / measured[0];
    assert!((0.3..3.0).contains(&ratio), "predicted and measured differ {ratio} times");
}

#[test]
fn validate_on_two_cpus_exits_with_3_if_the_error_is_too_large() {
    skip_unless_live!();
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        skip!("one CPU only");
    }
    let program = skip_unless_built!(workload::build("forkjoin.c"));
    let program = program.to_str().expect("a path");
    let limit = ["--runs", "3", "--cpus", "2", "--max-error", "0%", "--", program, "20"];
    let ended = Longpole::with(["validate", "--json"].iter().chain(&limit)).run();
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let row = &document["results"][1];
    assert_eq!(row["cpus"], 2);
    let (real, predicted) = (number(row, "measured_speedup"), number(row, "predicted_speedup"));
    let error = number(row, "error");
    assert!((error - (real - predicted).abs() / real).abs() < 1e-9, "{row}");
    assert_eq!(ended.code, Some(if error > 0.0 { 3 } else { 0 }), "{}", ended.stderr);
    let range = ["predicted_speedup_low", "predicted_speedup_high"].map(|name| number(row, name));
    assert!(range[0] <= predicted && predicted <= range[1], "{row}");
    // Two CPUs can at most double the speed.
    assert!((0.99..=2.01).contains(&predicted), "{row}");
}

#[test]
fn validate_runs_and_records_the_command_for_each_cpu_count() {
    skip_unless_live!();
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let script = format!("echo {{cpus}} >> {}", log.display());
    let two = std::thread::available_parallelism().map_or(1, usize::from).min(2);
    let cpus = if two == 2 { "1,2" } else { "1" };
    validation(&["--runs", "2", "--cpus", cpus, "--", "sh", "-c", &script]);
    let ran = std::fs::read_to_string(&log).expect("the command has run");
    for count in 1..=two {
        let times = ran.lines().filter(|line| *line == count.to_string()).count();
        assert_eq!(times, 6, "warmed up, recorded three times and measured twice with {count}: {ran}");
    }
}

#[test]
fn validate_of_a_command_that_fails_is_an_error() {
    skip_unless_live!();
    let ended = Longpole::with(["validate", "--runs", "1", "--", "false"]).run();
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("false failed on CPU"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

/// The prediction must include children of the command. Without them, it would be 1.00.
#[test]
fn validate_predicts_a_command_with_its_children() {
    skip_unless_live!();
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        skip!("one CPU only");
    }
    let program = skip_unless_built!(workload::build("forkjoin.c"));
    let one = format!("{} 3 0 10000000 >/dev/null", program.display());
    let document =
        validation(&["--runs", "1", "--cpus", "2", "--", "sh", "-c", &format!("{one} & {one} & wait")]);
    let predicted = number(&document["results"][1], "predicted_speedup");
    assert!((1.5..=2.05).contains(&predicted), "{document}");
    // A recording without children must say so.
    let recorded = Recorded::good(
        &["-F", "0", "--no-children"],
        std::path::Path::new("/bin/sh"),
        &["-c", &format!("{one} & {one} & wait")],
    );
    let said = recorded.report("1,2").findings("children");
    assert!(said.len() == 1 && said[0].starts_with("2 child processes are not recorded"), "{said:?}");
}

/// A run that leaves a daemon behind disturbs all later runs. `validate` must report it at once and with the result,
/// and must not end the daemon.
#[test]
fn validate_notes_a_daemon_that_the_command_left_running() {
    skip_unless_live!();
    let folder = tempfile::tempdir().expect("a folder");
    let pids = folder.path().join("pids");
    // The daemon has a session of its own and shares nothing with its parent. Only its ancestors show where it comes
    // from.
    let script = format!("setsid env -i sleep 60 >/dev/null 2>&1 & echo $! >> {}; true", pids.display());
    let ended = Longpole::with([
        "validate",
        "--json",
        "--recordings",
        "1",
        "--runs",
        "1",
        "--cpus",
        "1",
        "--",
        "sh",
        "-c",
        &script,
    ])
    .run();
    let text = std::fs::read_to_string(&pids).expect("the command has run");
    let pids: Vec<&str> = text.lines().collect();
    let alive: Vec<bool> = pids
        .iter()
        .map(|pid| shell(&format!("kill {pid}")))
        .map(|mut kill| run(&mut kill, LIMIT))
        .map(|ended| ended.is_ok_and(|ended| ended.code == Some(0)))
        .collect();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(
        (pids.len(), alive),
        (3, vec![true; 3]),
        "warmed up, recorded once, measured once; none was killed"
    );
    let said = ended.stderr.lines().filter(|line| line.contains("the command left 1 process running"));
    assert_eq!(said.count(), 1, "{}", ended.stderr);
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let findings = document["findings"].as_array().expect("findings");
    let left: Vec<&Value> = findings.iter().filter(|finding| finding["kind"] == "left_running").collect();
    assert_eq!(left.len(), 1, "{document}");
    let text = left[0]["text"].as_str().unwrap_or_default();
    assert!(
        text.contains("3 processes") && pids.iter().all(|pid| text.contains(&format!("sleep (pid {pid})"))),
        "{text}"
    );
    // A command that waits for its children leaves no process behind.
    let quiet = validation(&["--runs", "1", "--cpus", "1", "--", "sh", "-c", "sleep 0.05 | cat"]);
    let findings = quiet["findings"].as_array().cloned().unwrap_or_default();
    assert!(findings.iter().all(|finding| finding["kind"] != "left_running"), "{quiet}");
}
