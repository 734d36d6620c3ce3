//! `record` and `top` as commands, on a real process. They need root (or the capabilities), a kernel with BPF and a
//! C compiler; elsewhere each says that it is skipped.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

const LONGPOLE: &str = env!("CARGO_BIN_EXE_longpole");

/// Two threads that compute and take turns in a lock; arguments: rounds, exit code (below 0: a signal).
const TARGET: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long sink;
static long rounds;
__attribute__((noinline)) void compute(void) { for (long i = 0; i < 200000; i++) sink += i; }
__attribute__((noinline)) void locked(void) { pthread_mutex_lock(&lock); compute(); pthread_mutex_unlock(&lock); }
static void *work(void *arg) { for (long i = 0; i < rounds; i++) { compute(); locked(); } return arg; }
int main(int count, char **words) {
    rounds = atol(words[1]);
    int code = count > 2 ? atoi(words[2]) : 0;
    printf("started\n");
    fflush(stdout);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    if (code < 0) raise(-code);
    return code;
}
"#;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Place {
    _turn: MutexGuard<'static, ()>,
    folder: tempfile::TempDir,
    target: &'static Path,
}

/// `None`, after saying why, where nothing can be recorded.
fn place(test: &str) -> Option<Place> {
    static BUILT: OnceLock<Result<(tempfile::TempDir, PathBuf), String>> = OnceLock::new();
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let built = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().expect("folder");
        let (source, target) = (folder.path().join("target.c"), folder.path().join("target"));
        std::fs::write(&source, TARGET).expect("source");
        let mut compiler = Command::new("cc");
        compiler.args(["-g", "-O1", "-pthread", "-o"]).arg(&target).arg(&source);
        let output = compiler.output().map_err(|error| format!("no C compiler: {error}"))?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let file = folder.path().join("probe.lp");
        let trial = longpole(&["record", "-o", &file.to_string_lossy(), "--", "true"]);
        match trial.status.code() {
            Some(77) => {
                Err(String::from_utf8_lossy(&trial.stderr).lines().next().unwrap_or_default().to_owned())
            }
            Some(0) => Ok((folder, target)),
            other => panic!("{other:?}: {}", String::from_utf8_lossy(&trial.stderr)),
        }
    });
    match built {
        Ok((_, target)) => Some(Place { _turn: turn, folder: tempfile::tempdir().expect("folder"), target }),
        Err(reason) => {
            println!("SKIP {test}: {reason}");
            None
        }
    }
}

fn longpole(words: &[&str]) -> Output {
    Command::new(LONGPOLE).args(words).stdin(Stdio::null()).output().expect("longpole")
}

impl Place {
    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    /// The target, running for longer than any test.
    fn running(&self) -> Running {
        let mut child =
            Command::new(self.target).arg("1000000000").stdout(Stdio::piped()).spawn().expect("target");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("line");
        assert_eq!(line, "started\n");
        Running(child)
    }
}

struct Running(Child);

impl Running {
    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().expect("status").is_none()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn send(signal: &str, pid: u32) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(status.expect("kill").success());
}

/// Starts recording and comes back when it has begun.
fn recording(words: &[&str]) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut child = Command::new(LONGPOLE)
        .arg("record")
        .args(words)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("longpole");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr"));
    let mut line = String::new();
    while !line.starts_with("recording ") {
        line.clear();
        assert!(lines.read_line(&mut line).expect("line") > 0, "ended: {:?}", child.wait());
    }
    (child, lines)
}

fn wait_for_bytes(file: &str, bytes: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::fs::metadata(file).map_or(0, |metadata| metadata.len()) < bytes {
        assert!(Instant::now() < deadline, "{file} does not grow");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn session(file: &str) -> (engine::event::Recording, collector::session::SessionInfo) {
    collector::session::read(Path::new(file)).expect("session")
}

fn calls(recording: &engine::event::Recording, name: &str) -> usize {
    let id = recording.facts.functions.iter().find(|function| function.name == name).expect("function").id;
    let enters = |event: &&probe_abi::Record| matches!(event, probe_abi::Record::FunctionEnter(enter) if enter.function == id);
    recording.events.iter().filter(enters).count()
}

#[test]
fn a_launched_command_is_recorded_from_its_first_call_and_its_exit_code_is_ours() {
    let Some(place) = place("a_launched_command_is_recorded_from_its_first_call_and_its_exit_code_is_ours")
    else {
        return;
    };
    let file = place.file("launched.lp");
    let target = place.target.to_string_lossy();
    // 97 rounds of two threads.
    let output = longpole(&["record", "--overhead", "none", "-o", &file, "--", &target, "97", "3"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert_eq!(output.stdout, b"started\n");
    let (recording, info) = session(&file);
    assert!(info.whole());
    assert_eq!(recording.facts.end.as_ref().map(|end| end.loss.lost()), Some(0), "{stderr}");
    assert_eq!((calls(&recording, "locked"), calls(&recording, "compute")), (2 * 97, 4 * 97));
    assert_eq!(calls(&recording, "main"), 1);
    let summary: Vec<&str> = stderr.lines().rev().take(9).collect();
    assert_eq!(summary[0], format!("next      longpole report {file}"), "{stderr}");
    for (line, start) in summary.iter().rev().zip([
        "recorded",
        "events",
        "lost      0",
        "probes",
        "samples",
        "overhead",
        "locks",
        "file",
        "next",
    ]) {
        assert!(line.starts_with(start), "{stderr}");
    }
}

#[test]
fn calls_below_the_depth_limit_are_not_recorded() {
    let Some(place) = place("calls_below_the_depth_limit_are_not_recorded") else { return };
    let file = place.file("depth.lp");
    let target = place.target.to_string_lossy();
    let output =
        longpole(&["record", "--overhead", "none", "--depth", "2", "-o", &file, "--", &target, "97"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (recording, _) = session(&file);
    // work → compute, work → locked; not work → locked → compute.
    assert_eq!((calls(&recording, "work"), calls(&recording, "locked")), (2, 2 * 97));
    assert_eq!(calls(&recording, "compute"), 2 * 97);
    let leaves = |event: &&probe_abi::Record| matches!(event, probe_abi::Record::FunctionExit(_));
    let enters = |event: &&probe_abi::Record| matches!(event, probe_abi::Record::FunctionEnter(_));
    let count = |kind: fn(&&probe_abi::Record) -> bool| recording.events.iter().filter(kind).count();
    assert_eq!(count(leaves), count(enters), "every recorded call has its end");
}

/// Losses before a CPU's first record and after its last one were counted, but no gap said when.
#[test]
fn every_lost_record_lies_in_a_gap() {
    let Some(place) = place("every_lost_record_lies_in_a_gap") else { return };
    let file = place.file("lossy.lp");
    let target = place.running();
    let words =
        ["record", "-p", &target.pid(), "-d", "700ms", "--ring-size", "4K", "-o", &file].map(str::to_owned);
    // Writing to small rings faster than they are emptied.
    let words: Vec<&str> =
        words.iter().map(String::as_str).chain(["--max-rate", "1000000", "--functions", "*"]).collect();
    let output = longpole(&words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let (recording, _) = session(&file);
    let loss = recording.facts.end.as_ref().expect("an end").loss;
    let in_gaps: u64 = recording
        .notes
        .iter()
        .filter_map(|note| match note.kind {
            engine::event::NoteKind::Gap { lost, reason: engine::event::GapReason::RingFull, .. } => {
                Some(lost)
            }
            _ => None,
        })
        .sum();
    assert!(loss.dropped > 10, "{stderr}");
    assert_eq!(in_gaps, loss.dropped + loss.late, "{:?}", recording.notes);
}

#[test]
fn a_commands_signal_is_ours() {
    let Some(place) = place("a_commands_signal_is_ours") else { return };
    let file = place.file("signal.lp");
    let target = place.target.to_string_lossy();
    let output = longpole(&["record", "-o", &file, "--", &target, "3", "-15"]);
    assert_eq!(output.status.signal(), Some(15), "{output:?}");
    assert!(session(&file).1.whole());
}

/// It was 0: the time was over before the last of its children ended.
#[test]
fn a_commands_exit_code_is_ours_though_its_children_outlive_it() {
    let Some(place) = place("a_commands_exit_code_is_ours_though_its_children_outlive_it") else { return };
    let file = place.file("outlived.lp");
    let script = "sleep 4 & exit 3";
    let output = Command::new(LONGPOLE)
        .args(["record", "--children", "-d", "1s", "-o", &file, "--", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .expect("longpole");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_command_that_cannot_run_leaves_no_file() {
    let Some(place) = place("a_command_that_cannot_run_leaves_no_file") else { return };
    let file = place.file("none.lp");
    for (command, code) in [("/not/there", 127), ("/etc/passwd", 126)] {
        let output = longpole(&["record", "-o", &file, "--", command]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert_eq!(stderr.lines().count(), 2, "{stderr}");
        assert!(stderr.lines().nth(1).is_some_and(|line| line.starts_with("hint: ")), "{stderr}");
        assert!(!Path::new(&file).exists());
    }
}

#[test]
fn interrupt_and_terminate_end_a_recording_in_order_and_the_target_runs_on() {
    let Some(place) = place("interrupt_and_terminate_end_a_recording_in_order_and_the_target_runs_on") else {
        return;
    };
    let mut target = place.running();
    for signal in ["-INT", "-TERM"] {
        let file = place.file(&format!("{signal}.lp"));
        let (mut child, _lines) = recording(&["--functions", "*", "-p", &target.pid(), "-o", &file]);
        wait_for_bytes(&file, 3_000);
        send(signal, child.id());
        assert_eq!(child.wait().expect("status").code(), Some(0), "{signal}");
        let (recording, info) = session(&file);
        assert!(info.whole(), "{signal}");
        assert!(recording.facts.end.is_some());
        assert!(calls(&recording, "compute") > 10);
        assert!(target.is_alive());
    }
}

#[test]
fn a_killed_longpole_leaves_what_it_had_and_the_target_runs_on() {
    let Some(place) = place("a_killed_longpole_leaves_what_it_had_and_the_target_runs_on") else { return };
    let mut target = place.running();
    let file = place.file("killed.lp");
    let (mut child, _lines) = recording(&["--functions", "*", "-p", &target.pid(), "-o", &file]);
    wait_for_bytes(&file, 6_000);
    send("-KILL", child.id());
    child.wait().expect("status");
    let (recording, info) = session(&file);
    assert!(!info.whole());
    assert!(recording.facts.end.is_none());
    assert!(calls(&recording, "compute") > 10);
    std::thread::sleep(Duration::from_millis(200));
    assert!(target.is_alive());
}

#[test]
fn the_end_of_the_target_ends_a_recording() {
    let Some(place) = place("the_end_of_the_target_ends_a_recording") else { return };
    let target = place.running();
    let file = place.file("ended.lp");
    let (mut child, _lines) = recording(&["-p", &target.pid(), "-o", &file]);
    wait_for_bytes(&file, 3_000);
    drop(target);
    assert_eq!(child.wait().expect("status").code(), Some(0));
    assert!(session(&file).1.whole());
}

#[test]
fn once_gives_json_and_text_without_a_terminal() {
    let Some(place) = place("once_gives_json_and_text_without_a_terminal") else { return };
    let mut target = place.running();
    let output =
        longpole(&["top", "-p", &target.pid(), "--once", "--json", "--window", "1s", "--cpus", "1,2,inf"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["schema"], "longpole-report/1");
    assert_eq!(json["results"].as_array().map(Vec::len), Some(3));
    let functions = json["results"][0]["functions"].as_array().expect("functions");
    assert!(functions.iter().any(|row| row["function"] == "locked" && row["tetid_ns"].as_f64() > Some(0.0)));
    let text = longpole(&["top", "-p", &target.pid(), "--once", "--window", "1s"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("predicted speed-up"));
    assert!(target.is_alive());
}

#[test]
fn the_output_of_a_watched_command_stays_out_of_the_report() {
    let Some(place) = place("the_output_of_a_watched_command_stays_out_of_the_report") else { return };
    let target = place.target.to_string_lossy();
    let output = Command::new(LONGPOLE)
        .args(["top", "--once", "--json", "--", &target, "20"])
        .env("TMPDIR", place.folder.path())
        .output()
        .expect("longpole");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("nothing but JSON");
    let sentence = "the program's output goes to ";
    assert_eq!(stderr.matches(sentence).count(), 1, "said once: {stderr}");
    assert!(!stderr.contains("runs on"), "it has ended: {stderr}");
    let said = stderr.lines().find_map(|line| line.strip_prefix(sentence)).expect("said");
    assert_eq!(std::fs::read_to_string(said).expect("log"), "started\n");
}

#[test]
fn a_watched_command_that_runs_on_is_named_once() {
    let Some(place) = place("a_watched_command_that_runs_on_is_named_once") else { return };
    let target = place.target.to_string_lossy();
    let output = Command::new(LONGPOLE)
        .args(["top", "--once", "--json", "--window", "1s", "--", &target, "20000"])
        .env("TMPDIR", place.folder.path())
        .output()
        .expect("longpole");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let pid = stderr.split("(pid ").nth(1).and_then(|rest| rest.split(')').next()).expect("a pid").to_owned();
    let was_alive = Path::new(&format!("/proc/{pid}")).exists();
    send("-KILL", pid.parse().expect("a number"));
    assert!(output.status.success() && was_alive, "{stderr}");
    assert_eq!(stderr.matches("runs on without longpole").count(), 1, "{stderr}");
    assert_eq!(stderr.matches("the program's output goes to ").count(), 1, "{stderr}");
}

#[test]
fn no_empty_log_stays_behind() {
    let Some(place) = place("no_empty_log_stays_behind") else { return };
    let logs = tempfile::tempdir().expect("folder");
    for (command, code) in [("true", 0), ("/not/there", 127)] {
        let output = Command::new(LONGPOLE)
            .args(["top", "--once", "--json", "--", command])
            .env("TMPDIR", logs.path())
            .output()
            .expect("longpole");
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(std::fs::read_dir(logs.path()).expect("folder").count(), 0, "{command}");
    }
    drop(place);
}

#[test]
fn a_folder_that_is_not_there_is_said_like_everywhere() {
    let Some(place) = place("a_folder_that_is_not_there_is_said_like_everywhere") else { return };
    let file = place.file("no-such-folder/x");
    let output = longpole(&["record", "-o", &file, "--", "true"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(&format!("longpole: cannot write {file}: ")), "{stderr}");
    assert!(stderr.contains("\nhint: make the directory first\n"), "{stderr}");
}

/// The command was started and probed first.
#[test]
fn a_file_that_must_not_be_replaced_is_refused_before_anything_is_started() {
    let Some(place) = place("a_file_that_must_not_be_replaced_is_refused_before_anything_is_started") else {
        return;
    };
    let file = place.file("precious.txt");
    std::fs::write(&file, "precious").expect("written");
    // The command is not there: that would be found out later.
    let output = longpole(&["record", "-o", &file, "--", "/not/there"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("the file exists"), "{stderr}");
    assert_eq!(std::fs::read_to_string(&file).expect("read"), "precious");
}

#[test]
fn children_are_recorded_with_their_own_functions() {
    let Some(place) = place("children_are_recorded_with_their_own_functions") else { return };
    let file = place.file("children.lp");
    let script = format!("{} 4000; true", place.target.display());
    let output = longpole(&["record", "--children", "-o", &file, "--", "sh", "-c", &script]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (recording, _) = session(&file);
    assert!(calls(&recording, "compute") > 100, "{}", String::from_utf8_lossy(&output.stderr));
    let missing = |note: &engine::event::Note| {
        matches!(
            note.kind,
            engine::event::NoteKind::Gap { reason: engine::event::GapReason::ProbesNotYetAttached, .. }
        )
    };
    assert!(recording.notes.iter().any(missing), "the time without probes is a gap");
}

#[test]
fn without_programs_or_rights_it_says_so_in_two_lines() {
    if collector::probe::has_programs() {
        println!(
            "SKIP without_programs_or_rights_it_says_so_in_two_lines: this longpole has kernel programs"
        );
        return;
    }
    for words in [["record", "-p", "1"], ["top", "--once", "-p1"]] {
        let output = longpole(&words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(77), "{stderr}");
        assert_eq!(stderr.lines().count(), 2, "{stderr}");
        assert!(stderr.lines().nth(1).is_some_and(|line| line.starts_with("hint: ")), "{stderr}");
    }
}
