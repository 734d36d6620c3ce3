//! The library together with other preloaded libraries and with sanitizers, and programs that cannot have a preloaded
//! library.

use crate::locks::support::{LIMIT, program, record_in};
use longpole_tests::workload::{self, Problem};
use longpole_tests::{Longpole, binary, here, run, shell, skip_unless_built, skip_unless_live};
use probe_abi::SyncOperation::*;

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

/// A library that wraps a function which longpole's library wraps, too, counts its calls, and has an allocator that
/// takes a lock.
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
fn another_preloaded_library_and_longpole_s_both_see_all_operations() {
    let program = skip_unless_live!(program(LOCKS, "cc", &["-O2"]));
    let flags = ["-O2", "-fPIC", "-shared", "-w", "-ldl"];
    let other = skip_unless_built!(workload::compile_text("other.so", "cc", &flags, OTHER));
    let path = program.path.to_string_lossy();
    let preload = [("LD_PRELOAD", other.as_os_str())];
    let recorded = record_in(program.folder.path(), &[], &[&path], &preload);
    assert_eq!(recorded.text(0), "whole\n");
    let stderr = &recorded.ended.stderr;
    assert!(stderr.contains("other saw 122"), "{stderr}");
    let locks = recorded.of(MutexLock);
    let mut objects: std::collections::BTreeMap<u64, usize> = std::collections::BTreeMap::new();
    locks.iter().for_each(|lock| *objects.entry(lock.object).or_default() += 1);
    // The objects are the program's mutex and the allocator's.
    assert!(objects.values().any(|&count| count == 122), "{objects:?}");
    assert!(objects.len() == 2 && objects.values().all(|&count| count >= 122), "{objects:?}");
}

#[test]
fn programs_with_sanitizers_run_as_alone_under_record() {
    skip_unless_live!();
    for sanitizer in ["address", "thread", "undefined", "leak"] {
        let flag = format!("-fsanitize={sanitizer}");
        let program = match program(LOCKS, "cc", &[&flag]) {
            Ok(program) => program,
            Err(Problem::NoCompiler(why)) => {
                println!("SKIP {}: {sanitizer}: {why}", here!());
                continue;
            }
            Err(Problem::Broken(why)) => panic!("{why}"),
        };
        // Some sanitizers do not run on some kernels.
        let alone = program.alone(&[]);
        if alone.code != Some(0) {
            let why = alone.stderr.lines().next().unwrap_or_default();
            println!("SKIP {}: {sanitizer}: {why}", here!());
            continue;
        }
        let recorded = program.record(&[], &[]);
        assert_eq!(recorded.text(0), "whole\n", "{sanitizer}");
        let counts = recorded.counts(0);
        assert!(counts.get(&MutexLock).copied().unwrap_or(0) >= 122, "{sanitizer}: {counts:?}");
        // As a child of the command, the program must load its sanitizer's runtime first, too. Otherwise the runtime
        // ends the program.
        let child = format!("{}; exit $?", program.path.display());
        let folder = tempfile::tempdir().expect("folder");
        let recorded = record_in(folder.path(), &["--children"], &["sh", "-c", &child], &[]);
        assert_eq!(recorded.text(0), "whole\n", "{sanitizer}, in a shell");
    }
}

/// A program that links glibc's condition variables from before 2003. Such a variable is one word that points to the
/// variable's real memory.
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
fn callers_of_old_symbol_versions_get_the_old_functions() {
    let program = skip_unless_live!(program(BEFORE, "cc", &["-O2"]));
    let alone = program.alone(&[]);
    assert_eq!(alone.code, Some(0), "without longpole: {alone:?}");
    let recorded = program.record(&[], &[]);
    recorded.text(0);
    let counts = recorded.counts(0);
    assert_eq!((counts[&ConditionWait], counts[&ConditionSignal]), (1, 1), "{counts:?}");
}

#[test]
fn the_summary_says_how_locks_are_recorded_and_interpose_errors_say_why() {
    let program = skip_unless_live!(program(LOCKS, "cc", &["-static"]));
    let file = program.folder.path().join("test.lp").to_string_lossy().into_owned();
    let path = program.path.to_string_lossy().into_owned();
    let record_with = |options: &[&str], when: &str, command: &[&str]| {
        let mut call = Longpole::with(["record", "--force", "--interpose", when, "-o", &file]);
        call.command().args(options).arg("--").args(command);
        let ended = call.run();
        (ended.code, ended.stderr)
    };
    let record = |when: &str, command: &[&str]| record_with(&[], when, command);
    let (code, said) = record("always", &[&path]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("statically linked") && said.contains("hint: leave out --interpose"), "{said}");
    let (code, said) = record("auto", &[&path]);
    assert_eq!(code, Some(0), "{said}");
    let locks = said.lines().find(|line| line.starts_with("locks ")).unwrap_or_default();
    assert!(!locks.contains("from inside") && locks.contains("the program is statically linked"), "{said}");
    let (code, said) = record("never", &["true"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("locks     known only from waits: --interpose never"), "{said}");
    let (code, said) = record_with(&["--exact"], "never", &["true"]);
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
    Longpole::with(["record", "--interpose", "always", "-p", "1"]).code(2);
}

#[test]
fn a_limit_on_addresses_leaves_the_library_out_and_the_command_runs() {
    skip_unless_live!();
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("test.lp");
    let limited = |when: &str, limits: &str| {
        let script =
            format!("{limits} exec \"$0\" record --force --interpose {when} -o \"$1\" -- sh -c \"$2\"");
        // In KiB. The limit is less than the addresses of the shared memory.
        let mut shell = shell(&script);
        let ended = run(shell.arg(binary()).arg(&file).arg("ulimit -v 4000000; exec echo hello"), LIMIT);
        let ended = ended.expect("a shell");
        (ended.code, ended.stdout, ended.stderr)
    };
    // The command itself sets the limit, and is recorded until then.
    let (code, stdout, stderr) = limited("always", "");
    assert_eq!((code, &*stdout), (Some(0), "hello\n"), "{stderr}");
    // longpole already starts with the limit.
    let (code, stdout, stderr) = limited("auto", "ulimit -v 4000000;");
    assert_eq!((code, &*stdout), (Some(0), "hello\n"), "{stderr}");
    let locks = stderr.lines().find(|line| line.starts_with("locks ")).unwrap_or_default();
    assert!(locks.contains("known only from waits") && locks.contains("cannot prepare"), "{stderr}");
}

#[test]
fn the_library_s_file_is_removed_and_one_descriptor_is_inherited() {
    skip_unless_live!();
    let folder = tempfile::tempdir().expect("folder");
    let recorded = record_in(folder.path(), &[], &["sh", "-c", "echo $LD_PRELOAD; ls -l /proc/self/fd"], &[]);
    let text = recorded.text(0);
    let library = text.lines().next().expect("a line");
    assert!(library.ends_with("/longpole-preload.so"), "{text}");
    assert!(!std::path::Path::new(library).exists(), "{library} is still there");
    // The command has one of longpole's descriptors, the one of the shared memory.
    let of_ours = text.lines().skip(1).filter(|line| line.contains("longpole"));
    assert_eq!(of_ours.count(), 1, "{text}");
    drop(recorded.file);
}
