//! `firefox`, loaded by the Firefox Profiler's own code: its command line, a package on npm.

use super::{CPUS, RECORDINGS, export, recording, tools};
use crate::command_line::{FIGURE_4, Folder};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// How often the profiler's daemon may start too late.
const LATE: usize = 10;

/// A loaded profile. The profiler's daemon keeps it until this is dropped.
struct Loaded<'p> {
    program: &'p Path,
    folder: &'p Folder,
}

impl Loaded<'_> {
    fn run(&self, arguments: &[&str]) -> String {
        // The daemon has half a second to start, which may be too little on a busy machine.
        for _ in 0..LATE {
            match self.asked(arguments) {
                Err(wrong) if wrong.contains("did not become ready") => {
                    drop(self.asked(&["stop", "--all"]));
                }
                said => return said.unwrap_or_else(|wrong| panic!("{arguments:?}: {wrong}")),
            }
        }
        panic!("{arguments:?}: its daemon was late {LATE} times");
    }

    fn asked(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new("node");
        command.arg(self.program).args(arguments).env("PROFILER_CLI_SESSION_DIR", self.folder.path("s"));
        let output = command.output().expect("node");
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(String::from_utf8(output.stdout).expect("UTF-8"))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[arguments, &["--json"]].concat())).expect("JSON")
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        self.run(&["stop", "--all"]);
    }
}

#[test]
fn firefox_s_profiler_loads_an_export_with_the_report_s_numbers() {
    if !tools::has("node", "--version") || !tools::has("npm", "--version") {
        longpole_tests::skip!("there is no node with npm");
    }
    let program = match tools::profiler_cli() {
        Ok(program) => program,
        Err(reason) => longpole_tests::skip!("{reason}"),
    };
    let files = Folder::new();
    let by_hand = files.file("figure-4.json", FIGURE_4);
    for input in RECORDINGS.map(|name| recording(name).display().to_string()).iter().chain([&by_hand]) {
        let folder = Folder::new();
        let (profile, report) = export(&folder, input, "firefox", &["--cpus", CPUS]);
        let report: Value =
            serde_json::from_str(&std::fs::read_to_string(report).expect("a report")).expect("JSON");
        let loaded = Loaded { program: &program, folder: &folder };
        loaded.run(&["load", &profile]);
        let threads = loaded.json(&["thread", "list", "--limit", "0"]);
        let threads = threads["threads"].as_array().expect("threads");
        let results = report["results"].as_array().expect("results");
        for result in results {
            let name = match result["cpus"].as_u64() {
                Some(1) => "critical path on 1 CPU".to_owned(),
                Some(cpus) => format!("critical path on {cpus} CPUs"),
                None => "critical path on unlimited CPUs".to_owned(),
            };
            let thread = threads.iter().find(|thread| thread["name"] == name.as_str());
            let thread = thread.unwrap_or_else(|| panic!("{input}: no {name}: {threads:?}"));
            let handle = thread["threadHandle"].as_str().expect("a handle");
            let markers = loaded.json(&["thread", "markers", "--thread", handle, "--list", "--limit", "0"]);
            let markers = markers["flatMarkers"].as_array().expect("markers");
            let end = |marker: &Value| {
                marker["start"].as_f64().expect("a time") + marker["duration"].as_f64().expect("a time")
            };
            let end_ms = markers.iter().map(end).fold(0.0, f64::max);
            let time_ms = result["time_ns"].as_f64().expect("a time") / 1e6;
            if input != &by_hand {
                assert!((end_ms - time_ms).abs() < 1e-3, "{input} {name}: {end_ms}, not {time_ms}");
            }
            assert!(!markers.is_empty(), "{input}: {name}");
        }
        let measured = threads.iter().filter(|thread| thread["pid"] != "0");
        assert_eq!(measured.count() > 0, input != &by_hand, "{input}");
    }
}
