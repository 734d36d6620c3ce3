//! Beside other libraries that are put before libc, sanitizers, and programs that cannot have any.

use crate::support::{cannot, program, record_in};
use probe_abi::SyncOperation::*;
use std::process::Command;

const LONGPOLE: &str = env!("CARGO_BIN_EXE_longpole");

const LOCKS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *works(void *arg) { for (int i = 0; i < 61; i++) { pthread_mutex_lock(&lock); free(strdup("x")); pthread_mutex_unlock(&lock); } return arg; }
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, works, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    puts("whole");
    return 0;
}
"#;

/// Wraps a function that we wrap, too, counts its calls, and has an allocator of its own that locks.
const OTHER: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static int calls;
static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;
int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    static int (*real)(pthread_mutex_t *);
    if (!real) real = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    __atomic_fetch_add(&calls, mutex != &heap, __ATOMIC_RELAXED);
    return real(mutex);
}
extern void *__libc_malloc(size_t);
void *malloc(size_t size) {
    pthread_mutex_lock(&heap);
    void *memory = __libc_malloc(size);
    pthread_mutex_unlock(&heap);
    return memory;
}
__attribute__((destructor)) static void say(void) { fprintf(stderr, "other saw %d\n", calls); }
"#;

#[test]
fn another_library_before_libc_stays_and_both_see_all() {
    let test = "another_library_before_libc_stays_and_both_see_all";
    let Some(program) = program(test, LOCKS, "cc", &["-O2"]) else { return };
    let (source, other) = (program.folder.path().join("other.c"), program.folder.path().join("other.so"));
    std::fs::write(&source, OTHER).expect("source");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-fPIC", "-shared", "-w", "-o"]).arg(&other).arg(&source).arg("-ldl");
    assert!(cc.status().expect("cc").success());
    let (path, other) = (program.path.to_string_lossy(), other.to_string_lossy());
    let recorded = record_in(program.folder.path(), &[], &[&path], &[("LD_PRELOAD", &other)]);
    assert_eq!(recorded.text(0), "whole\n");
    let stderr = String::from_utf8_lossy(&recorded.output.stderr);
    assert!(stderr.contains("other saw 122"), "{stderr}");
    let locks = recorded.of(MutexLock);
    let mut objects: std::collections::BTreeMap<u64, usize> = std::collections::BTreeMap::new();
    locks.iter().for_each(|lock| *objects.entry(lock.object).or_default() += 1);
    // The program's mutex, and the allocator's.
    assert!(objects.values().any(|&count| count == 122), "{objects:?}");
    assert!(objects.len() == 2 && objects.values().all(|&count| count >= 122), "{objects:?}");
}

#[test]
fn programs_with_sanitizers_run_as_before() {
    for sanitizer in ["address", "thread", "undefined", "leak"] {
        let test = "programs_with_sanitizers_run_as_before";
        let flag = format!("-fsanitize={sanitizer}");
        let Some(program) = program(test, LOCKS, "cc", &[&flag]) else { continue };
        // Some sanitizers do not run on some kernels.
        let alone = Command::new(&program.path).output().expect("program");
        if !alone.status.success() {
            let why = String::from_utf8_lossy(&alone.stderr);
            println!("SKIP {test}: {sanitizer}: {}", why.lines().next().unwrap_or_default());
            continue;
        }
        let recorded = program.record(&[], &[]);
        assert_eq!(recorded.text(0), "whole\n", "{sanitizer}");
        let counts = recorded.counts(0);
        assert!(counts.get(&MutexLock).copied().unwrap_or(0) >= 122, "{sanitizer}: {counts:?}");
    }
}

/// Asks for the functions of before 2003, whose condition variables are one word that points elsewhere.
const BEFORE: &str = r#"
#include <pthread.h>
__asm__(".symver pthread_cond_wait, pthread_cond_wait@GLIBC_2.2.5");
__asm__(".symver pthread_cond_signal, pthread_cond_signal@GLIBC_2.2.5");
static struct { long condition, behind[5]; } old;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ready;
static void *works(void *arg) {
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_signal((pthread_cond_t *)&old);
    pthread_mutex_unlock(&lock);
    return arg;
}
int main(void) {
    pthread_t thread;
    pthread_mutex_lock(&lock);
    pthread_create(&thread, 0, works, 0);
    while (!ready) pthread_cond_wait((pthread_cond_t *)&old, &lock);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, 0);
    /* Today's functions would have used what lies behind it, and no pointer. */
    for (int i = 0; i < 5; i++) if (old.behind[i]) return 1;
    return old.condition ? 0 : 2;
}
"#;

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn callers_of_old_versions_get_the_old_functions() {
    let test = "callers_of_old_versions_get_the_old_functions";
    let Some(program) = program(test, BEFORE, "cc", &["-O2"]) else { return };
    let alone = Command::new(&program.path).status().expect("program");
    assert!(alone.success(), "without longpole: {alone}");
    let recorded = program.record(&[], &[]);
    recorded.text(0);
    let counts = recorded.counts(0);
    assert_eq!((counts[&ConditionWait], counts[&ConditionSignal]), (1, 1), "{counts:?}");
}

#[test]
fn what_cannot_be_done_is_said() {
    if cannot("what_cannot_be_done_is_said") {
        return;
    }
    let Some(program) = program("what_cannot_be_done_is_said", LOCKS, "cc", &["-static"]) else { return };
    let file = program.folder.path().join("test.lp").to_string_lossy().into_owned();
    let path = program.path.to_string_lossy().into_owned();
    let record = |when: &str, command: &[&str]| {
        let mut longpole = Command::new(LONGPOLE);
        longpole.args(["record", "--force", "--interpose", when, "-o", &file, "--"]).args(command);
        let output = longpole.output().expect("longpole");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = record("always", &[&path]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("statically linked") && said.contains("hint: leave out --interpose"), "{said}");
    let (code, said) = record("auto", &[&path]);
    assert_eq!(code, Some(0), "{said}");
    let locks = said.lines().find(|line| line.starts_with("locks ")).unwrap_or_default();
    assert!(!locks.contains("from inside") && locks.contains("the program is statically linked"), "{said}");
    let (code, said) = record("never", &["true"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("locks     recorded by probes on the functions of libc.so.6 (--interpose never)"),
        "{said}"
    );
    let (code, said) = record("auto", &["true"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("locks     recorded from inside the command"), "{said}");
    let (code, said) = record("sometimes", &["true"]);
    assert_eq!(code, Some(2), "{said}");
    let mut longpole = Command::new(LONGPOLE);
    let output = longpole.args(["record", "--interpose", "always", "-p", "1"]).output().expect("longpole");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_limit_on_addresses_leaves_it_out_and_hurts_nobody() {
    if cannot("a_limit_on_addresses_leaves_it_out_and_hurts_nobody") {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("test.lp");
    let limited = |when: &str, limits: &str| {
        let mut shell = Command::new("sh");
        let script =
            format!("{limits} exec \"$0\" record --force --interpose {when} -o \"$1\" -- sh -c \"$2\"");
        // In KiB: less than the memory that is shared, which is only addresses.
        let output =
            shell.args(["-c", &script, LONGPOLE]).arg(&file).arg("ulimit -v 4000000; exec echo hello");
        let output = output.output().expect("longpole");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), stderr)
    };
    // The command limits itself: it is recorded until then.
    let (code, stdout, stderr) = limited("always", "");
    assert_eq!((code, &*stdout), (Some(0), "hello\n"), "{stderr}");
    // longpole is limited.
    let (code, stdout, stderr) = limited("auto", "ulimit -v 4000000;");
    assert_eq!((code, &*stdout), (Some(0), "hello\n"), "{stderr}");
    let locks = stderr.lines().find(|line| line.starts_with("locks ")).unwrap_or_default();
    assert!(locks.contains("by probes") && locks.contains("cannot prepare"), "{stderr}");
}

#[test]
fn nothing_is_left_behind() {
    if cannot("nothing_is_left_behind") {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let recorded = record_in(folder.path(), &[], &["sh", "-c", "echo $LD_PRELOAD; ls -l /proc/self/fd"], &[]);
    let text = recorded.text(0);
    let library = text.lines().next().expect("a line");
    assert!(library.ends_with("/longpole-preload.so"), "{text}");
    assert!(!std::path::Path::new(library).exists(), "{library} is still there");
    // One descriptor, the shared memory's; longpole's others are none of the command's business.
    let of_ours = text.lines().skip(1).filter(|line| line.contains("longpole"));
    assert_eq!(of_ours.count(), 1, "{text}");
    drop(recorded.file);
}
