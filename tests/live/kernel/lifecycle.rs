//! Tests of the beginning, change and end of threads and processes.

use capture::probe::{Capture, ProbeErrorKind, Since, now_ns};
use engine::event::{GapReason, Note, NoteKind};
use probe_abi::Record;

use super::support::{compile, drain, options, record, record_with};
use longpole_tests::{skip_unless_built, skip_unless_live};

/// The beginnings, names and ends of threads must be recorded, each once and in order.
#[test]
fn births_names_and_ends_of_threads_are_recorded_once_in_order() {
    skip_unless_live!();
    let source = r#"
        #include <pthread.h>
        static void *body(void *argument) {
            pthread_setname_np(pthread_self(), argument ? "second" : "first");
            return 0;
        }
        int main(void) {
            gate();
            for (long i = 0; i < 2; i++) {
                pthread_t thread;
                pthread_create(&thread, 0, body, (void *)i);
                pthread_join(thread, 0);
            }
            return 0;
        }"#;
    let program = skip_unless_built!(compile("c", source, &[]));
    let recorded = record(&program, &[]);
    let mut told = Vec::new();
    for record in &recorded.records {
        match record {
            Record::Fork(fork) => {
                assert_eq!((fork.header.tid, fork.child_pid), (recorded.pid, recorded.pid));
                assert!(fork.child_start_ns.abs_diff(fork.header.time_ns) < 1_000_000_000);
                assert!(fork.comm.starts_with(b"target\0"));
                told.push(("fork", fork.child_tid));
            }
            Record::Rename(rename) => {
                let name = std::str::from_utf8(&rename.comm).expect("text").trim_end_matches('\0');
                assert_eq!(rename.renamed_pid, recorded.pid);
                told.push((if name == "first" { "first" } else { "second" }, rename.renamed_tid));
            }
            Record::Exit(exit) => {
                assert_eq!(exit.last_of_process == 1, exit.header.tid == recorded.pid);
                told.push(("exit", exit.header.tid));
            }
            _ => {}
        }
    }
    let one = told[0].1;
    let two = told[3].1;
    assert_ne!(one, two);
    assert_eq!(
        told,
        [
            ("fork", one),
            ("first", one),
            ("exit", one),
            ("fork", two),
            ("second", two),
            ("exit", two),
            ("exit", recorded.pid)
        ]
    );
}

const CHILD: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
volatile long sink;
__attribute__((noinline)) void work(long x) { sink += x; }
int main(int count, char **arguments) {
    if (count > 1) {
        printf("%s\n", arguments[1]);
        fflush(stdout);
        for (int i = 0; i < 211; i++) work(i);
        return 5;
    }
    gate();
    int status;
    pid_t child = fork();
    if (child == 0) {
        gate();
        for (int i = 0; i < 101; i++) work(i);
        execl("/proc/self/exe", "target", "again", (char *)0);
        _exit(9);
    }
    waitpid(child, &status, 0);
    printf("%d %d\n", (int)child, WEXITSTATUS(status));
    return 0;
}
"#;

fn child_of(stdout: &str) -> u32 {
    let last = stdout.lines().last().expect("a line");
    let (child, code) = last.split_once(' ').expect("two numbers");
    assert_eq!(code, "5");
    child.parse().expect("process id")
}

/// With `children`, a child process must be recorded from its first instant to its last. Without, it must not be
/// recorded at all.
#[test]
fn child_processes_are_recorded_with_children_only() {
    let program = skip_unless_live!(compile("c", CHILD, &[]));
    for children in [true, false] {
        let recorded = record_with(&program, |options| {
            options.children = children;
            options.functions = program.functions(&["main"]);
            options.functions.clear();
        });
        let child = child_of(&recorded.outcome.stdout);
        let by_child: Vec<_> =
            recorded.records.iter().filter(|record| record.header().pid == child).collect();
        let forks = recorded.records.iter().filter(|r| matches!(r, Record::Fork(f) if f.child_pid == child));
        assert_eq!(forks.count(), 1, "the fork itself is the parent's");
        if !children {
            // The CPU goes from the child to a tracked thread and back. Apart from these switches, no record may be
            // about the child.
            assert!(
                by_child.iter().all(|r| matches!(r, Record::Switch(_) | Record::Waking(_))),
                "{by_child:?}"
            );
            continue;
        }
        let is_exec = |r: &&&Record| matches!(r, Record::Exec(e) if e.comm.starts_with(b"exe\0"));
        assert_eq!(by_child.iter().filter(is_exec).count(), 1);
        let is_exit = |r: &&&Record| matches!(r, Record::Exit(e) if e.last_of_process == 1);
        assert_eq!(by_child.iter().filter(is_exit).count(), 1);
        let first_run = recorded
            .records
            .iter()
            .find(|r| matches!(r, Record::Switch(s) if s.next_tid == child))
            .expect("ran");
        let fork = recorded.records.iter().find(|r| matches!(r, Record::Fork(_))).expect("above");
        assert!(fork.header().time_ns < first_run.header().time_ns);
        // The child's last switch comes after its exit. So the kernel programs must not forget its process id before.
        let last =
            recorded.records.iter().rposition(|r| matches!(r, Record::Switch(s) if s.header.tid == child));
        let exit =
            recorded.records.iter().position(|r| matches!(r, Record::Exit(e) if e.header.tid == child));
        assert!(exit.expect("above") < last.expect("left the CPU"));
    }
}

/// A child must get probes of its own. The time until then must be a gap.
#[test]
fn a_child_gets_probes_of_its_own_and_a_gap_before_them() {
    let program = skip_unless_live!(compile("c", CHILD, &[]));
    let functions = program.functions(&["work"]);
    let mut target = program.start();
    let mut capture = {
        let mut options = options(target.pid());
        options.children = true;
        options.functions = functions.clone();
        Capture::start(options).expect("capture")
    };
    target.open_gate();
    let (mut records, mut bad) = (Vec::new(), 0);
    let fork = loop {
        drain(&mut capture, &mut records, &mut bad);
        let fork = records.iter().find_map(|record| match record {
            Record::Fork(fork) => Some(*fork),
            _ => None,
        });
        if let Some(fork) = fork {
            break fork;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    let since = Since { missing_ns: fork.header.time_ns, looked_ns: now_ns() };
    capture.attacher().add_process(fork.child_pid, since, &functions).expect("the child waits");
    target.open_gate();
    while !target.has_ended() {
        drain(&mut capture, &mut records, &mut bad);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    drain(&mut capture, &mut records, &mut bad);
    let outcome = target.finish();
    assert_eq!(child_of(&outcome.stdout), fork.child_pid);
    assert_eq!(bad, 0);
    let entries = records.iter().filter(|record| match record {
        Record::FunctionEnter(enter) => {
            assert_eq!(enter.header.pid, fork.child_pid, "the parent does not work");
            true
        }
        _ => false,
    });
    // There are 101 calls, and 211 after the process executed the same file. The probes stay with the process and the
    // file.
    assert_eq!(entries.count(), 101 + 211);
    let notes = capture.take_notes();
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0].time_ns, fork.header.time_ns);
    match &notes[0].kind {
        NoteKind::Gap { pid, until_ns, reason: GapReason::ProbesNotYetAttached, lost: 0, .. } => {
            assert_eq!(*pid, fork.child_pid);
            assert!(*until_ns > notes[0].time_ns);
        }
        other => panic!("{other:?}"),
    }
}

/// There must be no record of this process, which captures itself.
#[test]
fn longpole_s_own_events_are_never_recorded() {
    skip_unless_live!();
    let mut capture = Capture::start(options(std::process::id())).expect("capture");
    for _ in 0..50 {
        std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_micros(100)))
            .join()
            .expect("sleeps");
    }
    let (mut records, mut bad) = (Vec::new(), 0);
    drain(&mut capture, &mut records, &mut bad);
    assert_eq!((records.len(), bad), (0, 0), "{records:?}");
}

/// If a child has ended before it gets probes, its parent must still be captured, and the failure must be noted.
#[test]
fn a_child_that_ended_before_its_probes_is_noted_as_not_probed() {
    let program = skip_unless_live!(compile("c", CHILD, &[]));
    let (first, gone) = (program.start(), program.start());
    let gone_pid = gone.pid();
    gone.finish();
    let mut options = options(first.pid());
    options.pids.push(gone_pid);
    options.optional_pids = 1;
    options.functions = program.functions(&["work"]);
    let mut capture = Capture::start(options).expect("capture");
    let unprobed: Vec<_> = capture.unprobed().iter().map(|(pid, error)| (*pid, error.kind)).collect();
    assert_eq!(unprobed, [(gone_pid, ProbeErrorKind::Target)]);
    let notes = capture.take_notes();
    assert!(
        matches!(notes[..], [Note { kind: NoteKind::Gap { pid, reason: GapReason::NotProbed, .. }, .. }] if pid == gone_pid),
        "{notes:?}"
    );
    drop(capture);
    first.finish();
}

/// The error about a missing process must contain its number.
#[test]
fn capturing_a_missing_process_is_a_target_error_with_its_number() {
    let program = skip_unless_live!(compile("c", CHILD, &[]));
    let target = program.start();
    let pid = target.pid();
    let mut options = options(pid);
    options.functions = program.functions(&["work"]);
    target.finish();
    let Err(error) = Capture::start(options) else { panic!("process {pid} has ended") };
    assert_eq!(error.kind, ProbeErrorKind::Target, "{error}");
    assert!(error.message.contains(&pid.to_string()), "{error}");
}
