//! `csv`, `ndjson` and `parquet`, read by DuckDB.

use super::{CPUS, RECORDINGS, export, recording, tools};
use crate::command_line::{FIGURE_4, Folder, longpole};

const FORMATS: [&str; 3] = ["csv", "ndjson", "parquet"];

#[test]
fn duckdb_finds_the_numbers_of_a_report_in_exported_tables() {
    let python = match tools::python() {
        Ok(python) => python,
        Err(reason) => longpole_tests::skip!("{reason}"),
    };
    for name in RECORDINGS {
        for format in FORMATS {
            let folder = Folder::new();
            let input = recording(name).display().to_string();
            let (tables, report) = export(&folder, &input, format, &["--cpus", CPUS]);
            let told = tools::checked(&python, "read_tables.py", &[&tables, format, &report]);
            assert!(told.starts_with("ok"), "{name} as {format}: {told}");
        }
    }
}

#[test]
fn one_exported_table_goes_to_standard_output() {
    let folder = Folder::new();
    let input = folder.file("figure-4.json", FIGURE_4);
    let run = longpole(&["export", &input, "-f", "csv", "--table", "functions", "--cpus", "2,inf"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines[0].starts_with("recording,cpus,time_ns,function,"), "{}", lines[0]);
    assert!(lines[1].starts_with("\"figure-4.json\",2,"), "{}", lines[1]);
    assert!(lines.iter().any(|line| line.starts_with("\"figure-4.json\",,")), "unlimited CPUs are null");
    longpole(&["export", &input, "-f", "csv"]).fails(2, "only one of the tables", "--table");
    longpole(&["export", &input, "-f", "csv", "--table", "x"]).fails(2, "no table 'x'", "functions");
    longpole(&["export", &input, "-f", "svg", "--table", "functions"]).fails(2, "--table", "csv");
}

#[test]
fn a_folder_of_exported_tables_is_not_replaced_unasked() {
    let folder = Folder::new();
    let input = recording("timers").display().to_string();
    let out = folder.path("tables");
    longpole(&["export", &input, "-f", "csv", "-o", &out]).works();
    let count = || std::fs::read_dir(&out).expect("a folder").count();
    assert_eq!(count(), 11);
    longpole(&["export", &input, "-f", "csv", "-o", &out]).fails(1, "the file exists", "--force");
    longpole(&["export", &input, "-f", "csv", "-o", &out, "--force"]).works();
    assert_eq!(count(), 11, "and nothing else is left");
}
