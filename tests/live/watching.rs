//! `longpole top --once`: one report of a running program or of a command, without a terminal.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use longpole_tests::{Background, Longpole, Report, skip_unless_built, skip_unless_live, workload};

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn once_gives_json_and_text_without_a_terminal() {
    skip_unless_live!();
    let program = skip_unless_built!(workload::build("turns.c"));
    let mut target = Background::must_start(Command::new(program).arg("1000000000"));
    assert_eq!(target.line(LIMIT).unwrap(), "started");
    let pid = target.pid().to_string();
    let once = |window: &str| Longpole::with(["top", "--once", "--window", window, "-p", &pid]);
    // Where everything else on the machine computes, too, symbols may not have been read when the first window is over.
    for attempt in 1.. {
        let report = once("3s").and("--json").and("--cpus").and("1,4,inf").ok().stdout;
        let report = Report::parse(&report);
        // Those that were asked for, and that of this machine.
        assert!(report.0["results"].as_array().is_some_and(|all| all.len() >= 3), "{}", report.0);
        if report.at(1).function("locked", "tetid_ns") > Some(0.0) {
            break;
        }
        assert!(attempt < 10, "{}", report.0);
    }
    let text = once("1s").ok().stdout;
    assert!(text.contains("LIMIT") && text.contains("predicted"), "{text}");
    assert!(target.is_running().unwrap());
}

/// `longpole top --once --json -- COMMAND`, with a folder of its own for what the command says.
fn watched(folder: &Path, options: &[&str]) -> Longpole {
    let mut call = Longpole::with(["top", "--once", "--json"]);
    call.command().env("TMPDIR", folder).args(options).arg("--");
    call
}

#[test]
fn the_output_of_a_watched_command_stays_out_of_the_report() {
    skip_unless_live!();
    let program = skip_unless_built!(workload::build("turns.c"));
    let folder = tempfile::tempdir().unwrap();
    let ended = watched(folder.path(), &[]).and(&program).and("20").ok();
    Report::parse(&ended.stdout);
    let (said, sentence) = (&ended.stderr, "the program's output goes to ");
    assert_eq!(said.matches(sentence).count(), 1, "said once: {said}");
    assert!(!said.contains("runs on"), "it has ended: {said}");
    let log = said.lines().find_map(|line| line.strip_prefix(sentence)).expect("said");
    assert_eq!(std::fs::read_to_string(log).unwrap(), "started\n");
}

#[test]
fn a_watched_command_that_runs_on_is_named_once() {
    skip_unless_live!();
    let program = skip_unless_built!(workload::build("turns.c"));
    let folder = tempfile::tempdir().unwrap();
    let said = watched(folder.path(), &["--window", "1s"]).and(&program).and("20000").ok().stderr;
    let pid = said.split("(pid ").nth(1).and_then(|rest| rest.split(')').next()).expect("a pid");
    let was_alive = Path::new(&format!("/proc/{pid}")).exists();
    assert!(Command::new("kill").args(["-KILL", pid]).status().unwrap().success());
    assert!(was_alive, "{said}");
    assert_eq!(said.matches("runs on without longpole").count(), 1, "{said}");
    assert_eq!(said.matches("the program's output goes to ").count(), 1, "{said}");
}

#[test]
fn no_empty_log_stays_behind() {
    skip_unless_live!();
    let folder = tempfile::tempdir().unwrap();
    for (command, code) in [("true", 0), ("/not/there", 127)] {
        watched(folder.path(), &[]).and(command).code(code);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{command}");
    }
}
