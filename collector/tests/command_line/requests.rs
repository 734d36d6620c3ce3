//! `--per`: single requests, and the error if a recording has none.

use super::{FIGURE_4, Folder, longpole};
use serde_json::Value;

fn recording(name: &str) -> String {
    let file = longpole_tests::data_folder().join("recordings").join(name);
    file.to_str().expect("a name").to_owned()
}

#[test]
fn report_per_without_requests_says_how_to_record_them() {
    let folder = Folder::new();
    let program = folder.file("figure4.json", FIGURE_4);
    longpole(&["report", "--per", "f", &program]).fails(
        2,
        "a program has no requests",
        "longpole record --per f",
    );
    let store = recording("store.lp");
    longpole(&["report", "--per", "no such*", &store]).fails(
        2,
        "calls of 'no such*' were not recorded",
        "longpole record --per 'no such*' -- COMMAND",
    );
    longpole(&["export", "--per", "f", &store]).fails(2, "--per is for folded stacks", "-f folded");
    assert_eq!(longpole(&["report", "--per", "f", "--wide", &store]).code, 2);
    assert_eq!(longpole(&["report", "--per", "", &store]).code, 2);
}

/// Text, JSON and folded stacks have the same numbers, and each column adds up to its mean latency.
#[test]
fn causes_of_requests_add_up_to_the_mean_latency_in_every_output() {
    let store = recording("phases.lp");
    let json = longpole(&["report", "--json", "--per", "*", &store]);
    let report: Value = serde_json::from_str(json.works()).expect("JSON");
    assert_eq!(report["schema"], "longpole-requests/1");
    let requests = report["requests"].as_u64().expect("a count")
        + report["unfinished"]["requests"].as_u64().expect("one");
    assert!(requests > 0, "{report}");
    let causes = report["causes"].as_array().expect("causes");
    let folded = longpole(&["export", "-f", "folded", "--per", "*", &store]);
    for (place, (column, group)) in [("fast_ns", "fast"), ("slow_ns", "slow")].into_iter().enumerate() {
        let mean = report[group]["mean_ns"].as_f64().expect("a mean");
        let sum: f64 = causes.iter().filter_map(|cause| cause[column].as_f64()).sum();
        assert!((sum - mean).abs() < 1.0, "{column}: {sum} is not {mean}");
        let numbers =
            folded.works().lines().map(|line| line.rsplitn(3, ' ').nth(1 - place).expect("two numbers"));
        let numbers: Vec<f64> = numbers.map(|number| number.parse().expect("a number")).collect();
        let sum: f64 = numbers.iter().sum();
        assert!((sum - mean).abs() <= numbers.len() as f64, "{column}: {sum} is not {mean}");
    }
    let text = longpole(&["report", "--per", "*", "--top", "1", &store]);
    assert!(text.works().contains("all: its mean latency"), "{}", text.stdout);
}
