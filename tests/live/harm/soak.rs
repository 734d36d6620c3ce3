//! Attaches and detaches many times, to programs in seven languages that work meanwhile and check their own results.
//! `LONGPOLE_SOAK_ROUNDS` is the number of rounds; `./x soak` sets it.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use longpole_tests::{Background, Longpole, run, skip_if, skip_unless_live, workload};

const LIMIT: Duration = Duration::from_secs(180);
/// Default number of rounds: enough to find a program that longpole harms each time.
const ROUNDS: u32 = 2;

fn rounds() -> u32 {
    std::env::var("LONGPOLE_SOAK_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS)
}

/// Attaches this many times for a short while each, and ends the recordings in all possible ways.
fn soak(name: &str, command: &mut Command) {
    let mut target = Background::must_start(command);
    assert_eq!(target.line(LIMIT).expect("a program that runs"), "ready", "{name}");
    let folder = tempfile::tempdir().expect("a program that runs");
    let file = folder.path().join("soak.lp");
    let pid = target.pid().to_string();
    for round in 0..rounds() {
        let milliseconds = 30 + 37 * (round % 7);
        let mut call = Longpole::with(["record", "--force", "-p", &pid, "-o"]).and(&file);
        match round % 5 {
            1 => drop(call.command().args(["--exact", "--overhead", "none", "--max-functions", "300"])),
            2 => drop(call.command().arg("--exact")),
            3 => {}
            _ => drop(call.command().args(["--functions", "*"])),
        }
        if round % 5 == 4 {
            // longpole is killed in the middle of its work, so it cannot clean up.
            let record = call.start();
            std::thread::sleep(Duration::from_millis(u64::from(milliseconds)));
            record.signal("KILL").expect("a program that runs");
            record.wait(LIMIT).expect("a program that runs");
        } else {
            call.command().args(["-d", &format!("{milliseconds}ms")]);
            let ended = call.run();
            assert_eq!(ended.code, Some(0), "{name}, round {round}: {}", ended.stderr);
        }
        assert!(target.is_running().expect("a program that runs"), "{name} is gone after round {round}");
    }
    target.close_stdin();
    let ended = target.wait(LIMIT).expect("a program that runs");
    assert_eq!((ended.code, ended.signal), (Some(0), None), "{name}: {}{}", ended.stdout, ended.stderr);
    let said = ended.stdout.lines().last().unwrap_or_default().to_owned();
    assert!(said.ends_with(" rounds, 0 wrong") && !said.starts_with("0 "), "{name}: {said}");
    println!("{name}: attached {} times; {said}", rounds());
}

fn source(name: &str) -> PathBuf {
    workload::source("soak").join(name)
}

/// Why this machine cannot run the program; `None` if it can.
fn missing(program: &str, question: &str) -> Option<String> {
    match run(Command::new(program).arg(question), LIMIT) {
        Ok(ended) if ended.code == Some(0) => None,
        Ok(ended) => Some(format!("{program} {question} ends with {:?}", ended.code)),
        Err(error) => Some(format!("no {program} here: {error}")),
    }
}

#[test]
fn a_c_program_survives_recording_again_and_again() {
    soak("C", &mut Command::new(skip_unless_live!("soak/soak.c")));
}

#[test]
fn a_cpp_program_survives_recording_again_and_again() {
    soak("C++", &mut Command::new(skip_unless_live!("soak/soak.cpp")));
}

#[test]
fn a_rust_program_survives_recording_again_and_again() {
    soak("Rust", &mut Command::new(skip_unless_live!("soak/soak.rs")));
}

#[test]
fn a_go_program_survives_recording_again_and_again() {
    soak("Go", &mut Command::new(skip_unless_live!("soak/soak.go")));
}

#[test]
fn a_java_program_survives_recording_again_and_again() {
    skip_unless_live!();
    skip_if!(missing("java", "-version").or_else(|| missing("javac", "-version")));
    let folder = tempfile::tempdir().unwrap();
    let built =
        run(Command::new("javac").arg("-d").arg(folder.path()).arg(source("Soak.java")), LIMIT).unwrap();
    assert_eq!(built.code, Some(0), "{}", built.stderr);
    soak("Java", Command::new("java").arg("-cp").arg(folder.path()).arg("Soak"));
}

#[test]
fn a_node_program_survives_recording_again_and_again() {
    skip_unless_live!();
    skip_if!(missing("node", "--version"));
    soak("Node", Command::new("node").arg(source("soak.js")));
}

#[test]
fn a_python_program_survives_recording_again_and_again() {
    skip_unless_live!();
    skip_if!(missing("python3", "--version"));
    // The interpreter itself, because a launcher script would be another process.
    let which = "import sys; print(sys.executable)";
    let found = run(Command::new("python3").args(["-c", which]), LIMIT).unwrap();
    soak("Python", Command::new(found.stdout.trim()).arg(source("soak.py")));
}
