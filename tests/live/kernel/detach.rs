//! Probes must exist as long as they should, and must be removed afterwards, in all cases.

use std::{
    io::BufRead as _,
    process::{Command, Stdio},
    time::Duration,
};

use capture::probe::Capture;
use engine::event::NoteKind;
use probe_abi::Record;

use super::support::{Program, Target, compile, drain, options, record_with};
use longpole_tests::workload::Problem;
use longpole_tests::{skip_unless_built, skip_unless_live, until};

const BREAKPOINT: u8 = 0xcc;

const WORK: &str = r#"
#include <stdio.h>
volatile long sink;
__attribute__((noinline)) void work(long x) { sink += x; }
int main(void) {
    gate();
    for (int i = 0; i < 503; i++) work(i);
    gate();
    for (int i = 0; i < 503; i++) work(i);
    printf("%ld\n", sink);
    return 0;
}
"#;

fn worker() -> Result<Program, Problem> {
    compile("c", WORK, &["-no-pie"])
}

/// After a capture, the target's code must be the same as before, byte for byte, and the target must continue.
#[test]
fn code_is_unchanged_after_a_capture() {
    let program = skip_unless_live!(worker());
    let plain = {
        let mut target = program.start();
        target.open_gate();
        target.finish()
    };
    let code = program.code("work");
    let mut target = program.start();
    assert_eq!(target.memory(code.address, code.bytes.len()), code.bytes);
    let mut options = options(target.pid());
    options.functions = program.functions(&["work"]);
    let exits = options.functions[0].exit_offsets.len();
    let capture = Capture::start(options).expect("capture");
    let probed = target.memory(code.address, code.bytes.len());
    assert_eq!(probed[0], BREAKPOINT);
    let changed = probed.iter().zip(&code.bytes).filter(|(now, then)| now != then).count();
    assert_eq!(changed, 1 + exits, "one byte for the entry and for each exit");
    target.open_gate();
    until("half done", || capture.calls(0) == Some(503));
    drop(capture);
    assert_eq!(target.memory(code.address, code.bytes.len()), code.bytes);
    assert_eq!(target.finish(), plain);
}

/// Runs as a separate process for [`a_killed_capture_leaves_no_breakpoint`]: captures the process that its environment
/// names, until it is killed.
#[test]
#[ignore = "started by a_killed_capture_leaves_no_breakpoint"]
fn capture_until_killed() {
    let variable = |name| std::env::var(name).expect("set by the other test");
    let pid = variable("LONGPOLE_TEST_PID").parse().expect("a number");
    let mut options = options(pid);
    options.functions = super::support::functions(variable("LONGPOLE_TEST_PROGRAM").as_ref(), &["work"]);
    let _capture = Capture::start(options).expect("capture");
    println!("captures");
    std::thread::sleep(Duration::from_secs(60));
}

/// `kill -9` must remove every probe, too.
#[test]
fn a_killed_capture_leaves_no_breakpoint() {
    let program = skip_unless_live!(worker());
    let code = program.code("work");
    let mut target = program.start();
    let mut other = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "kernel::detach::capture_until_killed", "--ignored", "--nocapture"])
        .env("LONGPOLE_TEST_PID", target.pid().to_string())
        .env("LONGPOLE_TEST_PROGRAM", &program.path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let lines = std::io::BufReader::new(other.stdout.take().expect("piped")).lines();
    let captures = lines.map_while(Result::ok).any(|line| line.contains("captures"));
    assert!(captures, "the other process could not capture");
    assert_eq!(target.memory(code.address, 1), [BREAKPOINT]);
    target.open_gate();
    other.kill().expect("own child");
    other.wait().expect("own child");
    until("restored", || target.memory(code.address, code.bytes.len()) == code.bytes);
    let outcome = target.finish();
    assert_eq!(outcome.stdout, format!("{}\n", 502 * 503));
    assert_eq!(outcome.code, Some(0));
}

/// A function that is called too often must lose its probes and be named with its rate; the other function keeps its
/// probes. The records of the hot function must end cleanly: no call after the time in the note.
#[test]
fn a_hot_function_loses_its_probes_and_a_cold_one_keeps_them() {
    skip_unless_live!();
    let source = r#"
        #include <stdio.h>
        #include <time.h>
        volatile long sink;
        __attribute__((noinline)) void hot(long x) { sink += x; }
        __attribute__((noinline)) void cold(long x) { sink -= x; }
        int main(void) {
            gate();
            for (int i = 0; i < 31; i++) {
                struct timespec start, now;
                cold(i);
                clock_gettime(CLOCK_MONOTONIC, &start);
                do {
                    hot(i);
                    clock_gettime(CLOCK_MONOTONIC, &now);
                } while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < 20000000);
            }
            return 0;
        }"#;
    let program = skip_unless_built!(compile("c", source, &["-no-pie"]));
    let recorded = record_with(&program, |options| {
        options.functions = program.functions(&["hot", "cold"]);
        options.max_rate_hz = 2_000;
    });
    assert_eq!(recorded.outcome.code, Some(0));
    assert_eq!(recorded.entries_and_exits(1), (31, 31), "the cold function is complete");
    let offs: Vec<_> = recorded
        .notes
        .iter()
        .filter_map(|note| match &note.kind {
            NoteKind::ProbesOff { functions, rates } => {
                Some((note.time_ns, functions.clone(), rates.clone()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(offs.len(), 1, "{:?}", recorded.notes);
    let (off_ns, functions, rates) = &offs[0];
    assert_eq!(functions, &[0]);
    assert!(rates[0] >= 1_990, "{rates:?}");
    let last_entry = recorded
        .records
        .iter()
        .filter_map(|r| match r {
            Record::FunctionEnter(e) if e.function == 0 && e.silent < probe_abi::SILENT_AT_ONCE => {
                Some(e.header.time_ns)
            }
            _ => None,
        })
        .max()
        .expect("recorded at first");
    assert!(last_entry <= *off_ns, "no calls after the note");
    // Calls are counted only while the function has probes. With probes, calls would have been counted until the end.
    let all_hits_ns = recorded.records.last().expect("some").header().time_ns - off_ns;
    println!(
        "hot: {} calls counted; {} ms recorded after its end",
        recorded.calls[0],
        all_hits_ns / 1_000_000
    );
    // Each window that begins before the probes are removed allows this many calls. On a busy machine, removing takes
    // longer.
    let calls_per_window = 2_000 * 134 / 1000;
    let first_entry = recorded
        .records
        .iter()
        .find_map(|r| match r {
            Record::FunctionEnter(e) if e.function == 0 && e.silent < probe_abi::SILENT_AT_ONCE => {
                Some(e.header.time_ns)
            }
            _ => None,
        })
        .expect("recorded at first");
    let windows = (off_ns - first_entry) / 134_000_000 + 2;
    let entries = recorded.entries_and_exits(0).0 as u64;
    assert!(entries <= windows * calls_per_window + 1, "{entries} in {windows} windows");
}

fn memory_is(target: &Target, program: &Program, name: &str, probed: bool) -> bool {
    let code = program.code(name);
    (target.memory(code.address, 1) == [BREAKPOINT]) == probed
}

/// While a hot function loses its probes, no call of the cold function in the same link may be missed.
#[test]
fn removing_a_hot_function_s_probes_loses_no_call_of_another_function() {
    skip_unless_live!();
    let source = r#"
        #include <pthread.h>
        #include <stdatomic.h>
        volatile long sink;
        static _Atomic int done;
        __attribute__((noinline)) void hot(long x) { sink += x; }
        __attribute__((noinline)) void cold(long x) { sink -= x; }
        static void *heat(void *argument) { while (!atomic_load(&done)) hot(1); return argument; }
        int main(void) {
            gate();
            pthread_t thread;
            pthread_create(&thread, 0, heat, 0);
            for (int i = 0; i < 20011; i++) cold(i);
            gate();
            atomic_store(&done, 1);
            pthread_join(thread, 0);
            return 0;
        }"#;
    let program = skip_unless_built!(compile("c", source, &["-no-pie"]));
    let mut target = program.start();
    let mut options = options(target.pid());
    options.functions = program.functions(&["hot", "cold"]);
    // The cold function is called often, too. So there is no rate limit, and the test removes the hot function's probes
    // itself.
    options.max_rate_hz = 0;
    let mut capture = Capture::start(options).expect("capture");
    target.open_gate();
    let (mut records, mut bad) = (Vec::new(), 0);
    until("warm", || capture.calls(1).is_some_and(|calls| calls > 2_000));
    capture.remove_probes(&[0]).expect("probes removed");
    assert!(memory_is(&target, &program, "cold", true));
    until("restored", || memory_is(&target, &program, "hot", false));
    while capture.calls(1) != Some(20_011) {
        drain(&mut capture, &mut records, &mut bad);
        std::thread::sleep(Duration::from_millis(1));
    }
    drain(&mut capture, &mut records, &mut bad);
    let cold = |r: &&Record| matches!(r, Record::FunctionEnter(e) if e.function == 1);
    assert_eq!(records.iter().filter(cold).count(), 20_011);
    assert_eq!(target.finish().code, Some(0));
}
