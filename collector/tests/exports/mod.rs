//! Exports, read by the formats' own readers: Perfetto's protobuf classes, Go's pprof, speedscope, DuckDB, Graphviz, the
//! Firefox Profiler. The numbers are compared with those of `longpole report --json`, which are computed in another
//! way.

mod firefox;
mod flame_graphs;
mod graphs;
pub(crate) mod hostile;
mod perfetto;
mod pprof;
mod queries;
mod speedscope;
mod streams;
mod tables;
pub(crate) mod tools;
mod traces;

use crate::command_line::{Folder, longpole};
use longpole_tests::data_folder;
use std::path::PathBuf;

/// CPU counts of exports and reports in these tests.
const CPUS: &str = "1,2,4,inf";

/// Path of a kept recording.
pub(crate) fn recording(name: &str) -> PathBuf {
    data_folder().join("recordings").join(format!("{name}.lp"))
}

/// Recordings with all kinds of data: locks, waits, wake-ups, samples, probed functions; launched and attached programs.
pub(crate) const RECORDINGS: [&str; 5] = ["store", "pipeline", "attached", "quicksort", "timers"];

/// Writes an export and its report; returns their paths.
fn export(folder: &Folder, input: &str, format: &str, options: &[&str]) -> (String, String) {
    let (exported, report) = (folder.path(format), folder.path("report.json"));
    let run = longpole(&[&["export", input, "-f", format, "-o", &exported, "--force"], options].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let told = longpole(&["report", input, "--json", "--cpus", CPUS]);
    std::fs::write(&report, told.works()).expect("written");
    (exported, report)
}
