//! `pprof`, read by Go's own `go tool pprof`.

use super::{CPUS, RECORDINGS, export, recording, tools};
use crate::command_line::{FIGURE_4, Folder};
use serde_json::Value;
use std::collections::HashMap;
use std::process::Command;

/// The output of `go tool pprof` with these options.
fn pprof(options: &[&str], profile: &str) -> String {
    let output = Command::new("go").args(["tool", "pprof"]).args(options).arg(profile).output().expect("go");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Flat and cumulative nanoseconds by function.
fn top(profile: &str, kind: &str) -> HashMap<String, (f64, f64)> {
    let index = format!("-sample_index={kind}");
    let told = pprof(&[&index, "-top", "-unit=ns", "-nodecount=100000", "-nodefraction=0"], profile);
    let rows = told.lines().skip_while(|line| !line.trim_start().starts_with("flat")).skip(1);
    let ns = |word: &str| -> f64 { word.trim_end_matches("ns").parse().expect("a number") };
    rows.map(|row| {
        let mut words = row.split_whitespace();
        let mut next = || words.next().expect("a column");
        let (flat, _, _, cum, _) = (next(), next(), next(), next(), next());
        let name: Vec<&str> = words.collect();
        (name.join(" ").trim_end_matches(" (inline)").to_owned(), (ns(flat), ns(cum)))
    })
    .collect()
}

#[test]
fn go_s_pprof_finds_the_numbers_of_a_report() {
    if !tools::has("go", "version") {
        longpole_tests::skip!("there is no go");
    }
    let folder = Folder::new();
    let by_hand = folder.file("figure-4.json", FIGURE_4);
    let kept = RECORDINGS.map(|name| recording(name).display().to_string());
    for input in kept.iter().chain([&by_hand]) {
        let (profile, report) = export(&folder, input, "pprof", &["--cpus", CPUS]);
        let report: Value =
            serde_json::from_str(&std::fs::read_to_string(report).expect("read")).expect("JSON");
        for result in report["results"].as_array().expect("results") {
            let cpus = result["cpus"].as_str().map_or_else(|| result["cpus"].to_string(), str::to_owned);
            let read = top(&profile, &format!("critical_{cpus}"));
            let time_ns = result["time_ns"].as_f64().expect("a time");
            for row in result["functions"].as_array().expect("functions") {
                let name = row["function"].as_str().expect("a name");
                let (flat, cum) = read.get(name).copied().unwrap_or_default();
                let tet = row["tet_ns"].as_f64().expect("a number");
                let tetid = row["tetid_ns"].as_f64().expect("a number");
                // Each stack is rounded to a nanosecond.
                assert!((flat - tet).abs() <= 2_000.0, "{input}, {name} on {cpus}: {flat}, not {tet}");
                // See read_speedscope.py.
                let off = cum - tetid;
                assert!(
                    off <= 2_000.0 && off >= -0.03 * time_ns,
                    "{input}, {name} on {cpus}: {cum}, not {tetid}"
                );
            }
        }
    }
}

#[test]
fn a_pprof_export_has_build_ids_and_threads() {
    if !tools::has("go", "version") {
        longpole_tests::skip!("there is no go");
    }
    let folder = Folder::new();
    let (profile, _) = export(&folder, &recording("store").display().to_string(), "pprof", &[]);
    let raw = pprof(&["-raw"], &profile);
    let mapping = raw.lines().skip_while(|line| *line != "Mappings").nth(1).expect("a mapping");
    let build_id = mapping.split_whitespace().nth(3).expect("a build-id");
    assert!(build_id.len() == 40 && build_id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{mapping}");
    assert!(raw.contains("thread:[store/"), "{raw}");
    let lines = pprof(&["-lines", "-top", "-sample_index=cpu"], &profile);
    assert!(lines.contains("store.c:"), "{lines}");
}
