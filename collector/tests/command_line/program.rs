//! Programs: reports as text and JSON, deadlocks, exports.

use super::{FIGURE_4, Folder, longpole, longpole_with};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn the_json_report_of_figure_4_has_the_paper_s_times_and_weights() {
    let folder = Folder::new();
    let path = folder.file("figure.json", FIGURE_4);
    let run = longpole(&["report", &path, "--cpus", "1,2,inf", "--json", "--segments"]);
    let report = json(run.works());
    assert_eq!(report["schema"], "longpole-report/1");
    let results = report["results"].as_array().expect("results");
    let times: Vec<(&Value, &Value)> =
        results.iter().map(|result| (&result["cpus"], &result["time_ns"])).collect();
    assert_eq!(
        times,
        [(&json("1"), &json("20000")), (&json("2"), &json("12000")), (&json("\"inf\""), &json("11000"))]
    );
    assert_eq!(results[0]["speedup"], 1);
    let g = results[1]["functions"].as_array().expect("functions").iter().find(|row| row["function"] == "g");
    let g = g.expect("g is critical on 2 CPUs");
    assert_eq!((&g["calls"], &g["tet_ns"], &g["tetid_ns"]), (&json("2"), &json("1500"), &json("1500")));
    let segment = &results[1]["segments"].as_array().expect("segments")[6];
    assert_eq!(
        *segment,
        json(r#"{"thread":"T2","op":3,"function":"g","start_ns":2000,"end_ns":3000,"weight":0.5}"#)
    );
    assert_eq!(
        report["trust"],
        json(r#"{"events":0,"wakes":0,"lost":0,"unmatched":0,"unknown_ns":0,"censored":0}"#)
    );
    assert_eq!(report["findings"], json("[]"));
}

#[test]
fn the_text_report_of_figure_4_has_the_paper_s_times() {
    let run = longpole_with(&["report", "-", "--wide", "--cpus", "1,2,inf"], FIGURE_4.as_bytes());
    let text = run.works();
    assert!(text.starts_with("LIMIT  one stage of a pipeline: f on T3 is busy most"), "{text}");
    assert!(
        text.contains("predicted time                       20.0 µs           12.0 µs           11.0 µs"),
        "{text}"
    );
    assert!(
        text.contains("predicted speed-up                     1.00×             1.67×             1.82×"),
        "{text}"
    );
    assert!(text.contains("Trust: 0 events"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_program_with_a_deadlock_has_a_result_up_to_it_and_a_note() {
    let program = r#"{"format":"longpole-program","version":1,"threads":[
        {"name":"T1","ops":[["lock","left"],["exec","f",1000],["lock","right"],["exec","g",9]]},
        {"name":"T2","ops":[["lock","right"],["exec","f",1000],["lock","left"],["exec","g",9]]}]}"#;
    let run = longpole_with(&["report", "-", "--cpus", "2", "--json"], program.as_bytes());
    let report = json(run.works());
    let finding = &report["findings"][0];
    assert_eq!(finding["kind"], "deadlock");
    let text = finding["text"].as_str().expect("text");
    for name in ["T1", "T2", "left", "right"] {
        assert!(text.contains(name), "{text}");
    }
    assert_eq!(report["results"][0]["time_ns"], 1000);
    let run = longpole_with(&["report", "-", "--wide", "--cpus", "2"], program.as_bytes());
    let text = run.works();
    assert!(text.starts_with("LIMIT  a deadlock: "), "{text}");
    assert!(text.contains("! nothing more happens"), "{text}");
}

#[test]
fn an_exported_program_has_the_same_report_and_is_not_replaced_unasked() {
    let folder = Folder::new();
    let first = folder.file("first.json", FIGURE_4);
    let second = folder.path("second.json");
    longpole(&["export", &first, "--format", "program", "-o", &second]).works();
    let report = |path: &str| longpole(&["report", path, "--json", "--segments"]).works().to_owned();
    assert_eq!(report(&first), report(&second));
    // An existing export is replaced only with --force, and standard output gets the same bytes.
    longpole(&["export", &first, "--format", "program", "-o", &second]).fails(
        1,
        "the file exists",
        "--force",
    );
    longpole(&["export", &first, "--format", "program", "--force", "-o", &second]).works();
    let written = std::fs::read_to_string(&second).expect("read");
    assert_eq!(longpole(&["export", &first, "--format", "program"]).works(), written);
}

#[test]
fn info_of_a_program_counts_threads_and_operations() {
    let run = longpole_with(&["info", "-", "--json"], FIGURE_4.as_bytes());
    let info = json(run.works());
    assert_eq!(info["kind"], "program");
    assert_eq!((&info["program"]["threads"], &info["program"]["operations"]), (&json("3"), &json("23")));
    assert!(longpole_with(&["info", "-"], FIGURE_4.as_bytes()).works().contains("operations      23"));
}

#[test]
fn doctor_exits_with_0_or_77_and_checks_every_requirement() {
    let run = longpole(&["doctor", "--json"]);
    let doctor = json(&run.stdout);
    assert_eq!(doctor["schema"], "longpole-doctor/1");
    let ok = doctor["ok"].as_bool().expect("a verdict");
    assert!(ok || longpole_tests::cannot_record().is_some(), "the live tests can run: {doctor}");
    let all = run.stdout.to_lowercase();
    for word in
        ["btf", "cap", "uprobe", "tracepoint", "perf_event_paranoid", "lockdown", "container", "kernel"]
    {
        assert!(all.contains(word), "doctor says nothing about {word}: {doctor}");
    }
    assert_eq!(run.code, if ok { 0 } else { 77 });
    for check in doctor["checks"].as_array().expect("checks") {
        let missing = check["status"] == "missing";
        assert_eq!(missing, check["fix"].is_string(), "{check}");
        assert!(check["why"].as_str().is_some_and(|why| !why.is_empty()), "{check}");
    }
    let text = longpole(&["doctor"]);
    assert_eq!(text.code, run.code);
    assert_eq!(text.stderr, "");
}

/// Three quarters of the 1 ms in `main` were sampled in `leaf`: a change of `leaf` applies to that much.
#[test]
fn what_if_and_slack_apply_to_functions_known_from_samples() {
    let folder = Folder::new();
    let samples: Vec<String> = (0..64).map(|n| format!("[1,{}]", u32::from(n % 4 == 0))).collect();
    let path = folder.file(
        "sampled.json",
        format!(
            r#"{{"format":"longpole-program","version":1,"functions":[{{"name":"leaf","sampled":true}}],
            "samples":{{"rate_hz":499,"places":[{{"function":"leaf"}},{{"function":"main"}}],"stacks":[[0,1],[1]],"threads":[[{}]]}},
            "threads":[{{"name":"T1","ops":[["call","main"],["exec",1000000],["ret"]]}}]}}"#,
            samples.join(",")
        ),
    );
    let halved = |more: &[&str]| {
        longpole(&[&["what-if", &path, "--scale", "leaf=0", "--cpus", "1", "--json"], more].concat())
    };
    let result = json(halved(&[]).works());
    assert_eq!(result["results"][0]["before_ns"], 1_000_000, "{result}");
    assert_eq!(result["results"][0]["after_ns"], 250_000, "{result}");
    assert_eq!(result["results"][0]["first_before"], "leaf");
    assert_eq!(result["findings"][0]["kind"], "spelled_out", "{result}");
    let result = json(halved(&["--probed-only"]).works());
    assert_eq!(result["results"][0]["after_ns"], 1_000_000, "{result}");
    let slack = json(longpole(&["slack", &path, "--json"]).works());
    assert_eq!(slack["functions"][0]["function"], "leaf");
    assert_eq!(slack["functions"][0]["zeroing_ns"], 750_000);
    let report = json(longpole(&["report", &path, "--json", "--probed-only"]).works());
    let rows = report["results"][0]["functions"].as_array().expect("functions");
    assert_eq!(rows.iter().map(|row| &row["function"]).collect::<Vec<_>>(), ["main"], "{report}");
}
