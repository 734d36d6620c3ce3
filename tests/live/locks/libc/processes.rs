//! Recordings of several processes, and of a process that is statically linked, has a separate `libpthread`, or is in a
//! PID namespace.

use super::support::{LIMIT, Recorded, attach, number, program, read};
use longpole_tests::workload::compile_text;
use longpole_tests::{Background, Longpole, skip, skip_unless_built, skip_unless_live};
use probe_abi::{Record, SyncOperation};
use std::process::Command;

const FAMILY: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void locks(int times) {
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}
int main(int count, char **words) {
    if (count > 1 && !strcmp(words[1], "gate")) {
        puts("up");
        fflush(stdout);
        getchar();
    } else if (count > 1) {
        execl(words[1], words[1], (char *)0);
        return 9;
    }
    locks(13);
    pid_t child = fork();
    if (child == 0) {
        usleep(500000);
        locks(17);
        _exit(0);
    }
    pid_t other = fork();
    if (other == 0) {
        const char *program = getenv("LONGPOLE_TEST_STATIC");
        if (program) execl(program, program, (char *)0);
        _exit(0);
    }
    waitpid(child, 0, 0);
    waitpid(other, 0, 0);
    locks(19);
    return 0;
}
"#;

const ALONE: &str = r#"
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int main(void) {
    usleep(500000);
    for (int i = 0; i < 23; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}
"#;

fn children_of(recorded: &Recorded) -> Vec<u32> {
    let forked = recorded.recording.events.iter().filter_map(|event| match event {
        Record::Fork(fork) if fork.child_pid != fork.header.pid => Some(fork.child_pid),
        _ => None,
    });
    forked.collect()
}

/// Each operation must be recorded in one way only. A program that was started with the library gets no probes on libc.
/// Its children get none either, unless they run a program that cannot have the library.
#[test]
fn every_operation_is_recorded_either_by_probes_or_from_inside() {
    let alone = skip_unless_live!(program(ALONE, "cc", &["-static"]));
    let program = skip_unless_built!(program(FAMILY, "cc", &[]));
    let variables = [("LONGPOLE_TEST_STATIC", alone.path.as_os_str())];
    let check = |recorded: &Recorded, inside: bool| {
        let counts_all = recorded.counts(0);
        assert_eq!(
            number(&counts_all, SyncOperation::MutexLock),
            13 + 17 + 19 + 23,
            "{}",
            recorded.ended.stderr
        );
        assert_eq!(number(&counts_all, SyncOperation::MutexUnlock), 13 + 17 + 19 + 23);
        let children = children_of(recorded);
        assert_eq!(number(&recorded.counts(children[0]), SyncOperation::MutexLock), 17);
        assert_eq!(number(&recorded.counts(children[1]), SyncOperation::MutexLock), 23);
        // Operations that the library records have no CPU.
        let from_inside = |pid: u32| {
            let mut all = recorded
                .recording
                .events
                .iter()
                .filter(|event| matches!(event, Record::Operation(_)) && event.header().pid == pid);
            all.all(|event| event.header().cpu == probe_abi::Header::NO_CPU)
        };
        assert_eq!(from_inside(children[0]), inside);
        assert!(!from_inside(children[1]), "no library can be in a static program");
    };
    let probed = program.launched_with(&["--interpose", "never", "--children"], &[], &variables);
    check(&probed, false);
    assert!(probed.ended.stderr.contains("in 3 processes"), "{}", probed.ended.stderr);
    let inside = program.launched_with(&["--interpose", "always", "--children"], &[], &variables);
    check(&inside, true);
    let said = &inside.ended.stderr;
    assert!(said.contains("by probes on the C library of 1 process more"), "{said}");
}

const SPLIT: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
static int (*real_lock)(void *), (*real_unlock)(void *);
static void find(void) {
    real_lock = (int (*)(void *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    real_unlock = (int (*)(void *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
}
__attribute__((noinline)) int pthread_mutex_lock(void *mutex) {
    if (!real_lock) find();
    int result = real_lock(mutex);
    __asm__ volatile("");
    return result;
}
__attribute__((noinline)) int pthread_mutex_unlock(void *mutex) {
    if (!real_unlock) find();
    int result = real_unlock(mutex);
    __asm__ volatile("");
    return result;
}
"#;

/// As in glibc before 2.34, the functions for threads are in a separate library and call those of libc.
#[test]
fn operations_of_a_separate_libpthread_are_counted_once() {
    skip_unless_live!();
    let flags = ["-g", "-O1", "-w", "-shared", "-fPIC", "-Wl,-soname,libpthread.so.0"];
    let library = skip_unless_built!(compile_text("libpthread.so.0", "cc", &flags, SPLIT));
    let rpath = format!("-Wl,-rpath,{}", library.parent().expect("a folder").display());
    let library = library.to_string_lossy();
    let program = skip_unless_built!(program(FAMILY, "cc", &["-Wl,--no-as-needed", &library, &rpath]));
    let recorded = program.attached(&[]);
    let counts = recorded.counts(0);
    assert_eq!(number(&counts, SyncOperation::MutexLock), 13 + 19, "{}", recorded.ended.stderr);
    assert_eq!(number(&counts, SyncOperation::MutexUnlock), 13 + 19);
    assert!(recorded.ended.stderr.contains("libpthread.so.0"), "{}", recorded.ended.stderr);
}

const NAMESPACE: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void *tries(void *argument) {
    if (pthread_mutex_trylock(&recursive) != EBUSY) _exit(3);
    return argument;
}
int main(void) {
    printf("up\n");
    fflush(stdout);
    getchar();
    pthread_t thread;
    for (int i = 0; i < 3; i++) pthread_mutex_lock(&recursive);
    pthread_create(&thread, 0, tries, 0);
    pthread_join(thread, 0);
    for (int i = 0; i < 3; i++) pthread_mutex_unlock(&recursive);
    return 0;
}
"#;

/// In a PID namespace, a mutex names its owner by another number than the kernel's records do. Both numbers must count
/// as the same thread.
#[test]
fn a_mutex_s_owner_is_known_in_another_pid_namespace() {
    let program = skip_unless_live!(program(NAMESPACE, "cc", &[]));
    let mut outer = Command::new("unshare");
    outer.args(["-pf", "--mount-proc", "--kill-child"]).arg(&program.path);
    let mut outer = Background::must_start(&mut outer);
    assert_eq!(outer.line(LIMIT).expect("a line"), "up");
    let children = format!("/proc/{0}/task/{0}/children", outer.pid());
    let inner: u32 = std::fs::read_to_string(children).expect("children").trim().parse().expect("one child");
    let file = program.folder.path().join("inner.lp");
    let mut longpole = attach(inner, &["--max-rate", "1000000"], &file).start();
    longpole.wait_for_stderr("recording ", LIMIT).expect("a recording");
    outer.say("").expect("it waits");
    assert_eq!(outer.wait(LIMIT).expect("an end").code, Some(0));
    let ended = longpole.wait(LIMIT).expect("an end");
    let said = &ended.stderr;
    assert_eq!(ended.code, Some(0), "{said}");
    // The number inside the container is meaningless outside. So the message must contain the outside number, too.
    assert!(said.contains(&format!("(pid {inner}, 1 in its PID namespace)")), "{said}");
    let info = Longpole::with(["info"]).and(&file).ok().stdout;
    assert!(info.contains(&format!("{inner} (1 in its PID namespace)")), "{info}");
    let recorded = read(&file, ended);
    assert_eq!(recorded.recording.facts.processes[0].inner_pids, [1]);
    let contended = |kind: SyncOperation| -> Vec<bool> {
        let of = recorded.recording.events.iter().filter_map(|event| match event {
            Record::Operation(operation) if operation.operation == kind as u16 => {
                Some(operation.flags & 1 != 0)
            }
            _ => None,
        });
        of.collect()
    };
    assert_eq!(contended(SyncOperation::MutexLock), [false, false, false]);
    assert_eq!(contended(SyncOperation::MutexTryLock), [true]);
}

/// If a user gives the number that a process has in its container, the message must contain the outside number.
#[test]
fn a_pid_from_inside_a_container_gets_a_hint_with_the_outside_one() {
    skip_unless_live!();
    // The test must use a number that no process outside has.
    let free = |number: &u32| !std::path::Path::new(&format!("/proc/{number}")).exists();
    let number = (30_000..32_000).find(free).expect("a number that nobody has");
    let script =
        format!("echo {} > /proc/sys/kernel/ns_last_pid && {{ sleep 100 & echo $!; wait; }}", number - 1);
    let mut outer = Command::new("unshare");
    let mut outer =
        Background::must_start(outer.args(["-pf", "--mount-proc", "--kill-child", "sh", "-c", &script]));
    let line = outer.line(LIMIT).expect("a number");
    if line != number.to_string() {
        skip!("ns_last_pid does not work here: {line:?}");
    }
    let said = Longpole::with(["record", "-p", &line]).code(1).stderr;
    assert!(said.contains(&format!("no process with PID {number}")), "{said}");
    assert!(said.contains(&format!("has the number {number} in its own PID namespace")), "{said}");
    assert!(said.contains("hint: process ") && said.contains("`-p "), "{said}");
}
