//! `speedscope`, checked by the schema that speedscope publishes, and opened in its page.

use super::{CPUS, RECORDINGS, export, recording, tools};
use crate::command_line::{FIGURE_4, Folder};
use crate::page::browser;
use serde_json::Value;

#[test]
fn a_speedscope_export_fits_its_schema_and_has_the_report_s_numbers() {
    let (python, schema) = match (tools::python(), tools::speedscope_schema()) {
        (Ok(python), Ok(schema)) => (python, schema),
        (Err(reason), _) | (_, Err(reason)) => longpole_tests::skip!("{reason}"),
    };
    let schema = schema.to_str().expect("UTF-8");
    let folder = Folder::new();
    let by_hand = folder.file("figure-4.json", FIGURE_4);
    let kept = RECORDINGS.map(|name| recording(name).display().to_string());
    for input in kept.iter().chain([&by_hand]) {
        let (profile, report) = export(&folder, input, "speedscope", &["--cpus", CPUS]);
        let told = tools::checked(&python, "read_speedscope.py", &[&profile, &report, schema]);
        assert!(told.starts_with("ok"), "{input}: {told}");
    }
}

/// In Chromium, the table of each profile has a row for each function, with the time in a report.
#[test]
fn speedscope_s_page_shows_the_functions_of_a_report() {
    let (chromium, index) = match (browser::chromium(), tools::speedscope_page()) {
        (Ok(chromium), Ok(index)) => (chromium, index),
        (Err(reason), _) | (_, Err(reason)) => longpole_tests::skip!("{reason}"),
    };
    let index = index.to_str().expect("UTF-8");
    let folder = Folder::new();
    for name in RECORDINGS {
        let input = recording(name).display().to_string();
        let (profile, report) = export(&folder, &input, "speedscope", &["--cpus", CPUS]);
        let report = std::fs::read_to_string(report).expect("a report");
        let report: Value = serde_json::from_str(&report).expect("JSON");
        let shown = browser::drive(&chromium, "speedscope", &[index, &profile]);
        let (cpu, critical) = shown.as_array().and_then(|all| all.split_first()).expect("profiles");
        assert_eq!(cpu["name"], "CPU time", "{name}");
        let results = report["results"].as_array().expect("results");
        assert_eq!(critical.len(), results.len(), "{name}");
        for (shown, result) in critical.iter().zip(results) {
            for function in result["functions"].as_array().expect("functions") {
                let own_ns = function["tet_ns"].as_f64().expect("a time");
                let rows = shown["functions"].as_array().expect("rows").iter();
                let rows: Vec<&Value> = rows.filter(|row| row["symbol"] == function["function"]).collect();
                if own_ns < 1e3 {
                    continue;
                }
                // The page shows two decimals.
                let [row] = rows[..] else { panic!("{name}, {}: {rows:?} of {function}", shown["name"]) };
                let off = row["own_ns"].as_f64().expect("a time") - own_ns;
                assert!(off.abs() <= 0.006 * own_ns + 1e3, "{name}, {}: {row} of {function}", shown["name"]);
            }
        }
    }
}
