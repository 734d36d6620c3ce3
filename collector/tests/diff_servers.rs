//! `longpole diff` of two recordings of a server, whose requests take known times.

use crate::command_line::session::write;
use engine::synth::{Service, server_recording};
use longpole_tests::{Ended, Longpole, check_golden};
use serde_json::Value;
use tempfile::TempDir;

/// Writes the recordings `a.lp` and `b.lp`.
fn recorded(before: &Service, after: &Service) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, service) in [("a.lp", before), ("b.lp", after)] {
        let path = folder.path().join(name);
        write(path.to_str().expect("UTF-8"), &server_recording(service).expect("a server"));
    }
    folder
}

fn diff(folder: &TempDir, options: &[&str]) -> Longpole {
    let mut call = Longpole::with(["diff", "a.lp", "b.lp"].iter().chain(options));
    call.command().current_dir(folder.path());
    call
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).expect("JSON")
}

/// Half the load, and a function that takes twice as long.
fn slower() -> Service {
    Service {
        functions: vec![("parse", 100_000), ("answer", 600_000)],
        pause_ns: 1_300_000,
        requests: 500,
        seed: 2,
        ..Service::default()
    }
}

#[test]
fn a_slower_server_under_less_load_is_told_by_request() {
    let folder = recorded(&Service::default(), &slower());
    check_golden("diff/servers.txt", &diff(&folder, &[]).ok().stdout);
    let told = json(&diff(&folder, &["--json"]).ok());
    let near = |value: &Value, expected: f64| {
        let value = value.as_f64().expect("a number");
        assert!((value - expected).abs() < 0.06 * expected, "{value} instead of {expected}");
    };
    let requests = &told["requests"];
    for (name, before, after) in [("cpu", 400_000.0, 700_000.0), ("time", 600_000.0, 900_000.0)] {
        near(&requests[name]["before_ns"], before);
        near(&requests[name]["after_ns"], after);
        assert_eq!(requests[name]["clear"], true, "{requests}");
    }
    near(&requests["per_second"]["before"], 1_000.0);
    near(&requests["per_second"]["after"], 500.0);
    assert_eq!(requests["functions"][0]["name"], "answer", "{requests}");
    let warning = &told["warnings"][0];
    assert_eq!(warning["kind"], "rate", "{told}");
    assert!(warning["text"].as_str().expect("text").starts_with("the load differs: "), "{warning}");
}

#[test]
fn two_recordings_of_one_server_have_no_difference() {
    let folder = recorded(&Service::default(), &Service { seed: 2, ..Service::default() });
    let told = diff(&folder, &[]).ok().stdout;
    assert!(told.starts_with("No difference beyond noise: a request takes "), "{told}");
    assert!(told.contains("(±") && !told.contains("\n! the load"), "{told}");
    assert!(told.contains("in noise"), "{told}");
    let requests = &json(&diff(&folder, &["--json"]).ok())["requests"];
    assert_eq!([&requests["time"]["within_noise"], &requests["per_second"]["within_noise"]], [true; 2]);
}

#[test]
fn fail_on_is_about_the_time_of_a_request_and_not_about_the_time_of_the_window() {
    let twice = Service { requests: 2_000, seed: 2, ..Service::default() };
    let folder = recorded(&Service::default(), &twice);
    diff(&folder, &["--fail-on", "+5%"]).ok();
    let folder = recorded(&Service::default(), &slower());
    let failed = json(&diff(&folder, &["--json", "--fail-on", "+5%", "--fail-on", "answer=+5%"]).code(3));
    let failures = failed["failures"].as_array().expect("failures");
    assert!(
        failures[0].as_str().expect("text").starts_with("the time of a request grows by "),
        "{failures:?}"
    );
    assert!(failures[1].as_str().expect("text").starts_with("answer grows by "), "{failures:?}");
}

#[test]
fn recordings_of_different_programs_are_refused_without_force() {
    let other = Service { name: "other", functions: vec![("draw", 300_000)], ..Service::default() };
    let folder = recorded(&Service::default(), &other);
    let refused = diff(&folder, &[]).fails(2, "different programs: server and other");
    assert!(refused.stderr.contains("hint: ") && refused.stderr.contains("--force"), "{}", refused.stderr);
    let told = diff(&folder, &["--force"]).ok().stdout;
    assert!(told.contains("\n! other programs: server before, other after"), "{told}");
    let renamed = Service { name: "renamed", ..Service::default() };
    diff(&recorded(&Service::default(), &renamed), &[]).ok();
}

#[test]
fn several_recordings_of_each_give_the_noise_between_them() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, answer) in
        [("a1.lp", 300_000), ("a2.lp", 400_000), ("b1.lp", 330_000), ("b2.lp", 380_000), ("c.lp", 900_000)]
    {
        let functions = vec![("parse", 100_000), ("answer", answer)];
        let service = Service { functions, seed: answer, ..Service::default() };
        let path = folder.path().join(name);
        write(path.to_str().expect("UTF-8"), &server_recording(&service).expect("a server"));
    }
    let diff = |arguments: &[&str]| {
        let mut call = Longpole::with(["diff"].iter().chain(arguments));
        call.command().current_dir(folder.path());
        call
    };
    let told = json(&diff(&["--json", "a1.lp", "a2.lp", "--", "b1.lp", "b2.lp"]).ok());
    assert_eq!([&told["recordings_before"], &told["recordings_after"]], [2, 2]);
    assert_eq!(told["requests"]["time"]["within_noise"], true, "{told}");
    let told = diff(&["a1.lp", "a2.lp", "--", "b1.lp", "b2.lp"]).ok().stdout;
    let first = told.lines().take(4).collect::<Vec<_>>().join(" ");
    assert!(first.starts_with("No difference beyond noise: "), "{told}");
    assert!(first.contains("Noise is from 2 recordings before and 2 after."), "{told}");
    let told = json(&diff(&["--json", "a1.lp", "a2.lp", "b1.lp", "b2.lp", "--", "c.lp"]).ok());
    assert_eq!(told["requests"]["time"]["within_noise"], false, "{told}");
    diff(&["a1.lp", "a2.lp", "b1.lp"]).fails(2, "diff compares A with B");
    diff(&["a1.lp", "a1.lp", "--", "b1.lp"]).fails(2, "a1.lp is given twice");
    diff(&["-", "--", "-"]).fails(2, "standard input can be read only once");
}
