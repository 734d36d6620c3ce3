//! Several processes, and what one of them is: statically linked, with a `libpthread` of its own, in a PID namespace.

use crate::support::{LONGPOLE, Recorded, build, counts, live, number, read};
use probe_abi::{Record, SyncOperation};
use std::process::{Command, Stdio};

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

/// Each operation is recorded in one way only: a program that was started with the library inside has no probes, and its
/// children neither, unless they run something that cannot have the library.
#[test]
fn every_process_is_recorded_in_one_way() {
    let test = "every_process_is_recorded_in_one_way";
    let Some(_turn) = live(test) else { return };
    let Some(program) = build(test, FAMILY, "cc", &[]) else { return };
    let Some(alone) = build(test, ALONE, "cc", &["-static"]) else { return };
    let variables = [("LONGPOLE_TEST_STATIC", alone.path.as_os_str())];
    let check = |recorded: &Recorded, inside: bool| {
        let counts_all = counts(recorded, 0);
        assert_eq!(number(&counts_all, SyncOperation::MutexLock), 13 + 17 + 19 + 23, "{}", recorded.said);
        assert_eq!(number(&counts_all, SyncOperation::MutexUnlock), 13 + 17 + 19 + 23);
        let children = children_of(recorded);
        assert_eq!(number(&counts(recorded, children[0]), SyncOperation::MutexLock), 17);
        assert_eq!(number(&counts(recorded, children[1]), SyncOperation::MutexLock), 23);
        // From inside nobody knows the CPU.
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
    assert!(probed.said.contains("in 3 processes"), "{}", probed.said);
    if collector::interpose::has_library() {
        let inside = program.launched_with(&["--interpose", "always", "--children"], &[], &variables);
        check(&inside, true);
        assert!(inside.said.contains("by probes on the C library of 1 process more"), "{}", inside.said);
    } else {
        println!(
            "SKIP {test}: this longpole was built without the library, so that only probes are looked at"
        );
    }
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

/// As glibc was before 2.34: the functions of threads are in a library of their own, and call libc's.
#[test]
fn a_libpthread_of_its_own_counts_once() {
    let test = "a_libpthread_of_its_own_counts_once";
    let Some(_turn) = live(test) else { return };
    let Some(split) = build(test, SPLIT, "cc", &["-shared", "-fPIC", "-Wl,-soname,libpthread.so.0"]) else {
        return;
    };
    let library = split.folder.path().join("libpthread.so.0");
    std::fs::rename(&split.path, &library).expect("renamed");
    let rpath = format!("-Wl,-rpath,{}", split.folder.path().display());
    let library = library.to_string_lossy().into_owned();
    let Some(program) = build(test, FAMILY, "cc", &["-Wl,--no-as-needed", &library, &rpath]) else { return };
    let recorded = program.attached(&[]);
    let counts = counts(&recorded, 0);
    assert_eq!(number(&counts, SyncOperation::MutexLock), 13 + 19, "{}", recorded.said);
    assert_eq!(number(&counts, SyncOperation::MutexUnlock), 13 + 19);
    assert!(recorded.said.contains("libpthread.so.0"), "{}", recorded.said);
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

/// In a PID namespace the mutex's owner has another number than the kernel's: it is no other thread for that.
#[test]
fn owners_in_another_pid_namespace_are_known() {
    let test = "owners_in_another_pid_namespace_are_known";
    let Some(_turn) = live(test) else { return };
    let Some(program) = build(test, NAMESPACE, "cc", &[]) else { return };
    let mut outer = Command::new("unshare")
        .args(["-pf", "--mount-proc", "--kill-child"])
        .arg(&program.path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare");
    std::io::Read::read_exact(outer.stdout.as_mut().expect("piped"), &mut [0; 3]).expect("up");
    let children = format!("/proc/{0}/task/{0}/children", outer.id());
    let inner: u32 = std::fs::read_to_string(children).expect("children").trim().parse().expect("one child");
    let file = program.folder.path().join("inner.lp");
    let mut longpole = Command::new(LONGPOLE)
        .args([
            "record",
            "--force",
            "--functions",
            "*",
            "--max-rate",
            "1000000",
            "-p",
            &inner.to_string(),
            "-o",
        ])
        .arg(&file)
        .stderr(Stdio::piped())
        .spawn()
        .expect("longpole");
    let said = crate::support::until_recording(&mut longpole);
    std::io::Write::write_all(outer.stdin.as_mut().expect("piped"), b"\n").expect("told");
    assert_eq!(outer.wait().expect("ended").code(), Some(0));
    assert_eq!(longpole.wait().expect("ended").code(), Some(0), "{said}");
    // The number inside is no number of ours: whoever gives it is told which one is.
    assert!(said.contains(&format!("(pid {inner}, 1 in its PID namespace)")), "{said}");
    let info = Command::new(LONGPOLE).arg("info").arg(&file).output().expect("info");
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains(&format!("{inner} (1 in its PID namespace)")), "{info}");
    let recorded = read(&file, said);
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

/// Who gives the number that a process has in its container is told the one that counts here.
#[test]
fn a_number_from_inside_a_container_gets_a_hint() {
    let test = "a_number_from_inside_a_container_gets_a_hint";
    let Some(_turn) = live(test) else { return };
    // In the new namespace the next process gets a number that nobody has here.
    let free = |number: &u32| !std::path::Path::new(&format!("/proc/{number}")).exists();
    let number = (30_000..32_000).find(free).expect("a number that nobody has");
    let script =
        format!("echo {} > /proc/sys/kernel/ns_last_pid && {{ sleep 100 & echo $!; wait; }}", number - 1);
    let mut outer = Command::new("unshare")
        .args(["-pf", "--mount-proc", "--kill-child", "sh", "-c", &script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare");
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(outer.stdout.as_mut().expect("piped")),
        &mut line,
    )
    .expect("a number");
    if line.trim() != number.to_string() {
        println!("SKIP {test}: ns_last_pid does not work here: {line:?}");
    } else {
        let output = Command::new(LONGPOLE).args(["record", "-p", line.trim()]).output().expect("longpole");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("no process with PID {number}")), "{said}");
        assert!(said.contains(&format!("has the number {number} in its own PID namespace")), "{said}");
        assert!(said.contains("hint: process ") && said.contains("`-p "), "{said}");
    }
    let _ = outer.kill();
    let _ = outer.wait();
}
