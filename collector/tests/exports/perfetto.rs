//! `perfetto`, read by the protobuf classes of Perfetto's own Python package.

use super::{CPUS, RECORDINGS, export, recording, tools};
use crate::command_line::{FIGURE_4, Folder, longpole};

#[test]
fn a_perfetto_trace_is_complete_and_has_the_report_s_numbers() {
    let python = match tools::python() {
        Ok(python) => python,
        Err(reason) => longpole_tests::skip!("{reason}"),
    };
    for name in RECORDINGS {
        let folder = Folder::new();
        let input = recording(name).display().to_string();
        let (trace, report) = export(&folder, &input, "perfetto", &["--cpus", CPUS]);
        let told = tools::checked(&python, "read_perfetto.py", &[&trace, &report]);
        assert!(told.starts_with("ok"), "{name}: {told}");
        for what in ["states", "paths"] {
            assert!(told.contains(what), "{name}: {told}");
        }
        if name == "store" {
            assert!(told.contains("locks") && told.contains("flows"), "{told}");
        }
    }
}

/// A program JSON has no recorded times.
#[test]
fn a_perfetto_trace_of_a_program_json_has_the_critical_paths_only() {
    let python = match tools::python() {
        Ok(python) => python,
        Err(reason) => longpole_tests::skip!("{reason}"),
    };
    let folder = Folder::new();
    let input = folder.path("figure-4.json");
    std::fs::write(&input, FIGURE_4).expect("written");
    let (trace, report) = export(&folder, &input, "perfetto", &["--cpus", CPUS]);
    let told = tools::checked(&python, "read_perfetto.py", &[&trace, &report, "--weights"]);
    assert!(told.starts_with("ok"), "{told}");
    let run = longpole(&["export", &input, "-f", "perfetto", "-o", &trace, "--force"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    assert!(run.stderr.contains("no recorded times"), "{}", run.stderr);
}
