//! `top` on a program that nobody knows: functions are seen by samples first, and those that are long get probes.

use super::skip;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program, computing; `None` if it cannot be built here.
fn running(folder: &Path) -> Option<Running> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sampling_live/mix.c");
    let program = folder.join("mix");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-g", "-pthread", "-o"]).arg(&program).arg(source);
    gcc.status().ok()?.success().then_some(())?;
    let mut child = Command::new(&program).stdout(Stdio::piped()).spawn().expect("the program runs");
    let mut line = String::new();
    let output = child.stdout.take().expect("its output");
    let running = Running(child);
    BufReader::new(output).read_line(&mut line).expect("a line");
    assert_eq!(line, "started\n");
    Some(running)
}

/// Rows of the first number of CPUs, by name.
fn row<'a>(report: &'a serde_json::Value, name: &str) -> Option<&'a serde_json::Value> {
    let rows = report["results"][0]["functions"].as_array().expect("functions");
    rows.iter().find(|row| row["function"] == name)
}

/// Samples cannot tell a long call from many short ones; the choice must.
#[test]
fn a_long_function_gets_probes_and_one_called_often_never() {
    let test = "a_long_function_gets_probes_and_one_called_often_never";
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = running(folder.path()) else { return skip(test, "no gcc") };
    let pid = program.0.id().to_string();
    // Where everything else on the machine computes, too, the threads may not run enough to be tried in the first windows.
    for attempt in 1.. {
        let output = Command::new(env!("CARGO_BIN_EXE_longpole"))
            .args(["top", "--once", "--json", "--window", "6s", "--cpus", "2", "-p", &pid])
            .output()
            .expect("longpole runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() == Some(77) {
            return skip(test, said.lines().next().unwrap_or("not allowed"));
        }
        assert!(output.status.success(), "{said}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let often = row(&report, "often").expect("samples see it");
        assert_eq!((&often["uncounted"], &often["exact"]), (&true.into(), &false.into()), "{often}");
        let seldom = row(&report, "seldom").expect("samples see it");
        if seldom["calls"].as_u64() > Some(3) {
            return;
        }
        assert!(attempt < 10, "{seldom}");
    }
}
