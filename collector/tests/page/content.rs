//! The content of the page's file.

use super::document;
use crate::command_line::session::write;
use crate::command_line::{FIGURE_4, Folder, longpole};
use crate::exports::{RECORDINGS, hostile::hostile, recording};
use engine::synth::{Execution, generate, sampled_recording};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

const CPUS: &str = "1,2,4,inf";

/// Writes the page of an input and returns its document.
fn page_of(folder: &Folder, input: &str, options: &[&str]) -> (Value, Vec<u8>) {
    let out = folder.path("page.html");
    let run = longpole(&[&["view", input, "-o", &out, "--no-open", "--cpus", CPUS], options].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    document(&std::fs::read_to_string(out).expect("UTF-8"))
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(longpole(arguments).works()).expect("JSON")
}

fn column(of: &(Value, Vec<u8>), name: &str) -> Vec<u64> {
    let place = &of.0["columns"][name];
    let at = |number: usize| place[number].as_u64().expect("a place") as usize;
    let mut values = Vec::new();
    let (mut value, mut shift) = (0, 0);
    for byte in &of.1[at(0)..at(0) + at(1)] {
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            values.push(value);
            (value, shift) = (0, 0);
        }
    }
    values
}

/// Writes a recording whose only function was sampled at this `file:line`; returns its path.
pub(super) fn sampled_at(folder: &Folder, line: &str) -> String {
    let text = r#"{"format":"longpole-program","version":1,"threads":[{"name":"T1","ops":[["exec","f",20000000]]}]}"#;
    let program = engine::program::json::read(text).expect("a program");
    let generated = generate(&program, &Execution::default()).expect("computing");
    let mut recording = sampled_recording(generated.recording(), &generated.truth, |_| false, 1_000, 1_000);
    for code in &mut recording.facts.code {
        code.line = Some(line.to_owned());
    }
    let path = folder.path("sampled.lp");
    write(&path, &recording);
    path
}

#[test]
fn tables_lanes_and_path_of_a_page_are_those_of_other_commands() {
    let folder = Folder::new();
    for name in RECORDINGS {
        let input = recording(name).to_str().expect("UTF-8").to_owned();
        let page = page_of(&folder, &input, &[]);
        tables_are_the_documents_of_the_other_commands(&page.0, &input);
        lanes_hold_what_tables_export(&page, &input);
        the_path_is_as_long_as_the_predicted_time(&page, name);
    }
}

fn tables_are_the_documents_of_the_other_commands(page: &Value, input: &str) {
    assert_eq!(page["report"], json(&["report", input, "--json", "--cpus", CPUS]), "{input}");
    assert_eq!(page["parallelism"], json(&["parallelism", input, "--json"]), "{input}");
    assert_eq!(page["slack"], json(&["slack", input, "--json"]), "{input}");
    assert_eq!(page["paths"], json(&["paths", input, "--json"]), "{input}");
    let predicted = json(&["predict", input, "--json", "--cpus", CPUS]);
    assert_eq!(page["predict"]["results"], predicted["results"], "{input}");
}

/// The sliders' steps have the times of `what-if`.
#[test]
fn the_page_s_sliders_have_the_times_of_what_if() {
    let folder = Folder::new();
    let input = recording("pipeline").to_str().expect("UTF-8").to_owned();
    let (page, _) = page_of(&folder, &input, &[]);
    let curves = page["curves"].as_array().expect("curves");
    assert!(curves.iter().any(|curve| curve["kind"] == "lock") && curves.len() <= 20, "{curves:?}");
    for curve in curves
        .iter()
        .filter(|curve| ["transform", "mutex parsed.lock"].contains(&curve["name"].as_str().expect("a name")))
    {
        for stop in &curve["stops"].as_array().expect("stops")[1..] {
            let name = curve["name"].as_str().expect("a name");
            let edit = format!("{name}={}", stop["value"].as_f64().expect("a number"));
            let option = if curve["kind"] == "lock" { "--split-lock" } else { "--scale" };
            let told = json(&["what-if", &input, option, &edit, "--json", "--cpus", CPUS]);
            for (place, row) in told["results"].as_array().expect("results").iter().enumerate() {
                let number = |value: &Value| value.as_f64().expect("a number");
                assert_eq!(number(&stop["times_ns"][place]), number(&row["after_ns"]), "{edit}");
                assert_eq!(number(&curve["stops"][0]["times_ns"][place]), number(&row["before_ns"]));
            }
        }
    }
}

/// States cover each thread's life. Samples, wake-ups and lock sections are the same as in exported tables.
fn lanes_hold_what_tables_export(page: &(Value, Vec<u8>), input: &str) {
    assert_eq!(page.0["measured"]["quantum_ns"], 0, "{input}: nothing is summed up");
    let rows = |table: &str| -> Vec<Value> {
        let told = longpole(&["export", input, "-f", "ndjson", "--table", table]);
        told.works().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let intervals = rows("intervals");
    let shown = intervals.iter().filter(|row| row["end_ns"] != row["start_ns"]);
    let length = |row: &Value| row["end_ns"].as_u64().expect("ns") - row["start_ns"].as_u64().expect("ns");
    let lengths: Vec<u64> = shown.clone().map(length).collect();
    assert_eq!(column(page, "measured.lengths"), lengths, "{input}");
    let wakers = column(page, "measured.more").iter().filter(|waker| **waker > 0).count();
    assert_eq!(wakers, shown.filter(|row| !row["waker"].is_null()).count(), "{input}");
    let states = page.0["states"].as_array().expect("states");
    // Barriers, conditions and devices are no locks.
    for state in states.iter().filter(|state| state["state"] == "blocked") {
        let object = state["object"].as_u64().map(|object| &page.0["names"]["objects"][object as usize]);
        let is_lock = object.and_then(Value::as_str).is_some_and(|name| {
            ["mutex ", "rwlock ", "spin lock ", "lock "].iter().any(|kind| name.starts_with(kind))
        });
        assert_eq!(state["lock"] == true, is_lock, "{input}: {state} of {object:?}");
    }
    let running = column(page, "measured.codes");
    let running = running.iter().filter(|code| states[(**code >> 1) as usize]["state"] == "running").count();
    let exported = intervals.iter().filter(|row| row["state"] == "running" && length(row) > 0).count();
    assert_eq!(running, exported, "{input}");
    let sections = rows("sections");
    assert_eq!(column(page, "sections.held").len(), sections.len(), "{input}");
    let waited: u64 = sections.iter().map(|row| row["waited_ns"].as_u64().expect("ns")).sum();
    assert_eq!(column(page, "sections.waited").iter().sum::<u64>(), waited, "{input}");
    assert_eq!(column(page, "calls.lengths").len(), rows("calls").len(), "{input}");
}

/// The critical path takes the whole predicted time on each CPU count, and the predicted run is as long.
fn the_path_is_as_long_as_the_predicted_time(page: &(Value, Vec<u8>), name: &str) {
    for (place, result) in page.0["report"]["results"].as_array().expect("results").iter().enumerate() {
        let time = result["time_ns"].as_f64().expect("a time");
        let on_path: u64 = column(page, &format!("path{place}.lengths")).iter().sum();
        assert!((on_path as f64 - time).abs() <= 1.0, "{name} on {}: {on_path} of {time}", result["cpus"]);
        let run = page.0["predicted"][place]["length_ns"].as_f64().expect("a length");
        assert!((run - time).abs() < 1e-3, "{name}: {run} of {time}");
    }
}

/// A program written by hand has weights instead of a single path; some are negative.
#[test]
fn weights_on_the_page_of_a_program_are_those_of_a_report() {
    let folder = Folder::new();
    let input = folder.file("figure-4.json", FIGURE_4);
    let page = page_of(&folder, &input, &[]);
    assert!(page.0["measured"].is_null());
    let told = json(&["report", &input, "--json", "--segments", "--cpus", CPUS]);
    for (place, result) in told["results"].as_array().expect("results").iter().enumerate() {
        let segments = result["segments"].as_array().expect("segments");
        let weight = |segment: &Value| segment["weight"].as_f64().expect("a weight");
        let sum: f64 = segments
            .iter()
            .map(|segment| {
                let at = |end: &str| segment[end].as_f64().expect("a time");
                weight(segment) * (at("end_ns") - at("start_ns"))
            })
            .sum();
        let weights = page.0["paths_on"][place]["weights"].as_array().expect("weights");
        let lengths = column(&page, &format!("path{place}.lengths"));
        let codes = column(&page, &format!("path{place}.codes"));
        let colours = page.0["path_colours"].as_array().expect("colours");
        let shown: f64 = column(&page, &format!("path{place}.more"))
            .iter()
            .zip(lengths.iter().zip(&codes))
            .filter(|(_, (_, code))| !colours[(**code >> 1) as usize]["thread"].is_null())
            .map(|(weight, (length, _))| {
                weights[*weight as usize].as_f64().expect("a weight") * *length as f64
            })
            .sum();
        assert!((shown - sum).abs() < 1.0, "on {}: {shown} of {sum}", result["cpus"]);
    }
}

#[test]
fn hostile_names_are_only_in_the_page_s_document() {
    let folder = Folder::new();
    let input = hostile(&folder);
    let (page, _) = page_of(&folder, &input, &[]);
    let threads = page["names"]["threads"].as_array().expect("threads");
    assert!(threads.iter().any(|thread| thread["name"] == "</script><script>alert(1)</script>"));
    // The test `document` has compared the other parts of the file with the built page.
}

#[test]
fn cut_and_empty_recordings_have_a_page() {
    let folder = Folder::new();
    let whole = std::fs::read(recording("store")).expect("read");
    for (name, bytes) in [("head", &whole[..4096]), ("half", &whole[..whole.len() / 2])] {
        let input = folder.file(name, bytes);
        assert_eq!(page_of(&folder, &input, &["--force"]).0["format"], "longpole-page/1");
    }
    let nothing = r#"{"format":"longpole-program","version":1,"threads":[]}"#;
    let (page, _) = page_of(&folder, &folder.file("nothing.json", nothing), &[]);
    assert_eq!(page["names"]["threads"], Value::Array(Vec::new()));
}

#[test]
fn view_replaces_pages_only_and_writes_them_for_the_user_alone() {
    let folder = Folder::new();
    let input = folder.file("figure.json", FIGURE_4);
    let out = folder.path("figure.html");
    let quietly = ["view", &input, "--no-open"];
    longpole(&quietly).works();
    assert_eq!(std::fs::metadata(&out).expect("beside it").permissions().mode() & 0o777, 0o600);
    longpole(&quietly).works();
    std::fs::write(&out, "<p>mine</p>").expect("written");
    longpole(&quietly).fails(1, "the file exists", "--force");
    assert_eq!(std::fs::read_to_string(&out).expect("read"), "<p>mine</p>");
    longpole(&["report", &input, "--html", &out]).fails(1, "the file exists", "--force");
    longpole(&["view", &input, "--no-open", "--force"]).works();
    let standard = longpole(&["report", &input, "--html", "-"]);
    assert_eq!(document(standard.works()).0["about"]["file"], "figure.json");
    if std::path::Path::new("/dev/full").exists() {
        longpole(&["report", &input, "--html", "/dev/full"]).fails(1, "/dev/full", "free some space");
    }
    longpole(&["view", "-", "--no-open"]).fails(2, "needs a name", "-o OUT.html");
}

/// The longest paths and the account of processor time must not take the square of the number of threads.
#[test]
fn a_page_of_six_thousand_threads_has_all_tables() {
    let folder = Folder::new();
    let threads: Vec<Value> = (0..6_000)
        .map(|thread| serde_json::json!({"name": format!("t{thread}"), "ops": [["exec", "f", 1_000 + thread]]}))
        .collect();
    let program = serde_json::json!({"format": "longpole-program", "version": 1, "threads": threads});
    let (page, _) = page_of(&folder, &folder.file("many.json", program.to_string()), &[]);
    assert!(page["parallelism"]["rows"].is_array() && page["paths"]["paths"].is_array());
    assert!(page["report"]["results"].is_array() && page["slack"]["functions"].is_array());
}

/// Most of a page is states, 10 bytes or fewer each; if there are too many, they are summed up.
#[test]
fn a_page_of_many_states_stays_small() {
    let folder = Folder::new();
    let threads: Vec<Value> = (0..1_000)
        .map(|thread| {
            let steps = (0..40).flat_map(|step| {
                let length = 1 + (thread * 7_919 + step * 104_729) % 100_000;
                [
                    serde_json::json!(["exec", format!("f{}", step % 7), length]),
                    serde_json::json!(["io", 1 + length % 977, "disk"]),
                ]
            });
            serde_json::json!({"name": format!("worker-{thread}"), "ops": steps.collect::<Vec<_>>()})
        })
        .collect();
    let program = serde_json::json!({"format": "longpole-program", "version": 1, "threads": threads});
    let input = folder.file("threads.json", program.to_string());
    let out = folder.path("threads.html");
    longpole(&["view", &input, "--no-open", "--cpus", "16"]).works();
    let (page, _) = document(&std::fs::read_to_string(&out).expect("UTF-8"));
    let size = std::fs::metadata(&out).expect("written").len();
    assert!(size < 80_000 * 10 + 500_000, "{size} bytes");
    assert_eq!(page["names"]["threads"].as_array().expect("threads").len(), 1_000);
}
