//! `longpole predict` on programs that need no recording.

use super::{FIGURE_4, longpole, longpole_with};

/// Three threads that compute under one lock; one of them also computes without it.
const LOCKED: &str = r#"{"format":"longpole-program","version":1,"threads":[
    {"name":"A","ops":[["lock","m"],["exec","under",90000],["unlock","m"]]},
    {"name":"B","ops":[["lock","m"],["exec","under",90000],["unlock","m"]]},
    {"name":"C","ops":[["lock","m"],["exec","under",90000],["unlock","m"],["exec","alone",10000]]}]}"#;

fn predicted(arguments: &[&str], program: &str) -> serde_json::Value {
    let run = longpole_with(&[&["predict", "-", "--json"], arguments].concat(), program.as_bytes());
    serde_json::from_str(run.works()).expect("JSON")
}

#[test]
fn predict_json_has_one_result_for_each_cpu_count() {
    let json = predicted(&["--cpus", "1-3,8"], LOCKED);
    assert_eq!(json["schema"], "longpole-predict/1");
    let results = json["results"].as_array().expect("a list");
    let cpus: Vec<u64> = results.iter().map(|result| result["cpus"].as_u64().expect("a count")).collect();
    assert_eq!(cpus, [1, 2, 3, 8]);
    assert_eq!(results[0]["time_ns"], 280_000);
    assert_eq!(results[3]["time_ns"], 280_000);
    assert_eq!(results[3]["speedup"], 1);
    for result in results {
        let number = |name: &str| result[name].as_f64().expect("a number");
        assert!(number("low_ns") <= number("time_ns") && number("time_ns") <= number("high_ns"), "{result}");
    }
    let limits = json["limit"]["at"].as_array().expect("what limits");
    assert!(limits.iter().all(|limit| limit["kind"] == "lock" && limit["lock"] == "m"), "{limits:?}");
    assert_eq!(json["inflation"], "not modelled");
}

#[test]
fn predict_with_the_same_seed_gives_the_same_bytes() {
    let call = |seed: &str| predicted(&["--cpus", "1-4", "--seed", seed], FIGURE_4).to_string();
    assert_eq!(call("7"), call("7"));
}

#[test]
fn predict_text_names_the_limit_and_fits_80_columns() {
    // A program that more CPUs do not help has no curve.
    let alone = r#"{"format":"longpole-program","version":1,"threads":[
        {"name":"A","ops":[["exec","f",90000]]},{"name":"B","ops":[["exec","f",90000]]}]}"#;
    let cases = [
        ("C.UTF-8", LOCKED, None),
        ("C", LOCKED, None),
        ("C.UTF-8", alone, Some('●')),
        ("C", alone, Some('*')),
    ];
    for (locale, program, dot) in cases {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_longpole"));
        command.args(["predict", "-", "--cpus", "1-40"]);
        command.env("LC_ALL", locale).env_remove("COLUMNS").env_remove("CLICOLOR_FORCE");
        let text = {
            use std::io::Write;
            use std::process::Stdio;
            let mut child =
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("longpole starts");
            child.stdin.take().expect("a pipe").write_all(program.as_bytes()).expect("written");
            String::from_utf8(child.wait_with_output().expect("longpole ends").stdout).expect("UTF-8")
        };
        let limit =
            if dot.is_some() { "LIMIT  too few threads: the 2 that run f" } else { "LIMIT  lock m: " };
        assert!(text.starts_with(limit), "{text}");
        assert!(text.contains("not modelled"), "{text}");
        assert_eq!(text.contains(['●', '*']), dot.is_some(), "{text}");
        assert!(dot.is_none_or(|dot| text.contains(dot)), "{text}");
        assert!(text.lines().count() <= 40, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.is_ascii() == (locale == "C"), "{text}");
    }
}

#[test]
fn predict_options_change_the_simulated_machine() {
    let time = |arguments: &[&str], program: &str| {
        predicted(&[&["--cpus", "1"], arguments].concat(), program)["results"][0]["time_ns"].clone()
    };
    assert_eq!(time(&[], LOCKED), 280_000);
    assert_eq!(time(&["--wake-latency", "1us", "--runs", "1"], LOCKED), 281_000);
    assert_eq!(time(&["--switch-cost", "1us"], LOCKED), 282_000);
    assert_eq!(time(&["--model", "ideal", "--quota", "50%"], LOCKED), 560_000);
    let devices = r#"{"format":"longpole-program","version":1,"threads":[
        {"name":"A","ops":[["io",1000,"disk"]]},{"name":"B","ops":[["io",1000,"disk"]]}]}"#;
    assert_eq!(time(&[], devices), 1_000);
    assert_eq!(time(&["--io", "serial"], devices), 2_000);
    assert_eq!(time(&["--devices", "disk=1"], devices), 2_000);
    assert_eq!(time(&["--io", "serial", "--devices", "disk=2"], devices), 1_000);
}

#[test]
fn predict_of_several_recordings_is_their_median_and_range() {
    let folder = tempfile::tempdir().expect("a folder");
    let files: Vec<String> = [900, 1000, 1300]
        .iter()
        .map(|length| {
            let path = folder.path().join(format!("{length}.json"));
            let text = format!(
                r#"{{"format":"longpole-program","version":1,"threads":[{{"name":"A","ops":[["exec",{length}]]}}]}}"#
            );
            std::fs::write(&path, text).expect("written");
            path.display().to_string()
        })
        .collect();
    let arguments = ["predict", "--json", "--cpus", "1", &files[2], &files[0], &files[1]];
    let json: serde_json::Value = serde_json::from_str(longpole(&arguments).works()).expect("JSON");
    let result = &json["results"][0];
    assert_eq!(
        (&result["time_ns"], &result["low_ns"], &result["high_ns"]),
        (&1000.into(), &900.into(), &1300.into())
    );
    assert_eq!(json["recordings"], 3);
}

/// Fig. 4 of the paper needs three processors at once: on one, the first thread takes the signal that another thread
/// waits for.
#[test]
fn predict_reports_a_deadlock_that_only_the_simulation_has() {
    let json = predicted(&["--cpus", "1,3", "--model", "eevdf"], FIGURE_4);
    assert_eq!(json["results"][0]["complete"], false);
    assert_eq!(json["results"][0]["speedup"], 0);
    assert_eq!(json["results"][1]["complete"], true);
    let finding = &json["findings"][0];
    assert_eq!(finding["kind"], "deadlock_in_simulation");
    let text = finding["text"].as_str().expect("text");
    assert!(text.starts_with("on 1 CPU ") && text.contains("T2 waits for a signal \"X\""), "{text}");
    assert!(text.ends_with("(this did not happen in the recording)"), "{text}");
}

#[test]
fn invalid_values_for_predict_are_refused_with_a_hint() {
    for (arguments, message, hint) in [
        (&["--cpus", "0"][..], "CPU count of 0", "1,2,4-8,inf"),
        (&["--cpus", "1-100000"], "more than", "1,2,4-8,inf"),
        (&["--cpus", ""], "empty place", "1,2,4-8,inf"),
        (&["--cpus", "64-1"], "backwards", "1,2,4-8,inf"),
        (&["--model", "cfs"], "--model cannot be 'cfs'", "auto, eevdf or ideal"),
        (&["--slice", "0"], "--slice needs a time", "--slice 10s"),
        (&["--switch-cost", "soon"], "'soon' is not a time", "--switch-cost"),
        (&["--quota", "0%"], "not a share of a CPU", "250%"),
        (&["--quota", "-50%"], "not a share of a CPU", "250%"),
        (&["--quota", "nan%"], "not a share of a CPU", "250%"),
        (&["--quota", "much"], "not a share of a CPU", "250%"),
        (&["--devices", "disk"], "not a device and a count", "disk=4"),
        (&["--devices", "0"], "not a device and a count", "disk=4"),
        (&["--devices", "disk=0"], "not a device and a count", "disk=4"),
        (&["--io", "parallel"], "--io cannot be 'parallel'", "serial"),
        (&["--io", "Serial"], "--io cannot be 'Serial'", "did you mean serial?"),
        (&["--seed", "-1"], "'-1' is not a whole number", "--seed 1"),
        (&["--runs", "1001"], "--runs 1001 is more than 1000", "up to 1000"),
        (&["--runs", "0"], "--runs '0' is not a count", "at least 1"),
    ] {
        let joined: Vec<String> = vec![format!("{}={}", arguments[0], arguments[1])];
        let all: Vec<&str> = ["predict", "x"].into_iter().chain(joined.iter().map(String::as_str)).collect();
        longpole(&all).fails(2, message, hint);
    }
    longpole(&["predict"]).fails(2, "no FILE", "longpole record");
    longpole(&["predict", "-", "-"]).fails(2, "twice", "once");
    longpole(&["predict", "/no/such/file"]).fails(1, "no file /no/such/file", "record");
    for (what, says) in [(&b""[..], "empty"), (b"\n \n", ""), (b"PERFILE2", "")] {
        longpole_with(&["predict", "-"], what).fails(1, says, "");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("recording.lp");
        std::fs::write(&file, what).expect("a file");
        longpole(&["predict", file.to_str().expect("a path")]).fails(1, says, "");
    }
    longpole_with(&["predict", "-"], b"{}").fails(1, "not a longpole program", "\"format\"");
}

/// A ranking lists the same functions as the report: the program's own, not those of the C library.
#[test]
fn what_if_rank_lists_the_same_functions_as_the_report() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/recordings/attached.lp");
    let report = longpole(&["report", file]).works().to_owned();
    let rank = |all: &[&str]| longpole(&[&["what-if", "--rank", file], all].concat()).works().to_owned();
    let of_rank = rank(&[]);
    let names = report.lines().skip_while(|line| !line.starts_with("FUNCTIONS")).skip(1);
    let names: Vec<&str> = names.map_while(|line| line.split_whitespace().next()).collect();
    assert!(!names.is_empty() && names.iter().all(|name| of_rank.contains(name)), "{report}{of_rank}");
    assert!(!of_rank.contains("__lll_lock"), "{of_rank}");
    assert!(rank(&["--all"]).contains("__lll_lock"));
}
