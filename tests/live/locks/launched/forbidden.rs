//! Programs that forbid themselves the clock or system calls, and so forbid them to the library, too. Such programs
//! must end as they would alone, and operations that are not recorded must be counted. docs/safety.md names these
//! tests.

use crate::locks::support::{Program, Recorded, c};
use longpole_tests::skip_unless_live;
use probe_abi::SyncOperation::*;

/// Checks that the recorded program has the same ending and output as the program alone.
fn same(recorded: &Recorded, program: &Program, words: &[&str]) {
    let alone = program.alone(words);
    let (with, without) = (&recorded.ended, &alone);
    assert_eq!((with.code, with.signal), (without.code, without.signal), "{words:?}: {with:?}");
    assert_eq!(with.stdout, without.stdout, "{words:?}");
}

fn forbidden(recorded: &Recorded) -> u64 {
    recorded.recording.facts.end.as_ref().expect("an end").loss.operations_forbidden
}

fn finding(recorded: &Recorded) -> bool {
    let timeline = engine::timeline::build(&recorded.recording);
    timeline.findings.iter().any(|finding| finding.kind() == "operations_forbidden")
}

const SILENT: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void locks(int times) { while (times--) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); } }
static void *works(void *arg) { locks(101); return arg; }
static int tsc(int mode) { return prctl(PR_SET_TSC, mode); }
int main(int count, char **words) {
    const char *how = words[1];
    if (!strcmp(how, "first")) { prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); locks(1009); write(1, "ok\n", 3); syscall(SYS_exit, 12); }
    locks(11);
    if (!strcmp(how, "fails")) {
        errno = 0;
        if (prctl(PR_SET_TSC, 77) != -1 || errno != EINVAL) return 3;
        if (syscall(SYS_prctl, PR_SET_TSC, 77) != -1) return 4;
        locks(13);
        return 5;
    }
    if (!strcmp(how, "tsc") || !strcmp(how, "tsc-number")) {
        pthread_t thread;
        int status;
        if (how[3] ? syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV) : tsc(PR_TSC_SIGSEGV)) return 3;
        locks(1009);
        pthread_create(&thread, 0, works, 0);
        pthread_join(thread, 0);
        int child = fork();
        if (!child) { locks(53); _exit(7); }
        waitpid(child, &status, 0);
        if (tsc(PR_TSC_ENABLE)) return 4;
        locks(17);
        printf("%d\n", WEXITSTATUS(status));
        return 12;
    }
    pthread_mutex_lock(&lock);
    if (!strcmp(how, "prctl")) prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    if (!strcmp(how, "seccomp")) syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, 0);
    if (!strcmp(how, "number")) syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    pthread_mutex_unlock(&lock);
    locks(1009);
    write(1, "ok\n", 3);
    syscall(SYS_exit, 12);
}
"#;

/// The library must then neither read the clock nor wake the ring reader. Otherwise the program would end by SIGSEGV or
/// SIGKILL.
#[test]
fn operations_under_strict_seccomp_are_counted_and_the_program_ends_as_alone() {
    let program = skip_unless_live!(c(SILENT));
    for way in ["first", "prctl", "seccomp", "number"] {
        let recorded = program.record(&[], &[way]);
        same(&recorded, &program, &[way]);
        assert_eq!(recorded.ended.code, Some(12), "{way}");
        let (counts, before) = (recorded.counts(0), if way == "first" { 0 } else { 11 });
        let of = |operation| counts.get(&operation).copied().unwrap_or(0);
        assert_eq!((of(MutexUnlock), of(ThreadSilent)), (before, 1), "{way}: {counts:?}");
        assert_eq!(forbidden(&recorded), 2 * 1009 + u64::from(way != "first"), "{way}");
        assert!(finding(&recorded), "{way}");
        let said = &recorded.ended.stderr;
        assert!(said.contains(" only counted"), "{said}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn operations_without_the_time_stamp_counter_are_only_counted() {
    let program = skip_unless_live!(c(SILENT));
    for way in ["tsc", "tsc-number"] {
        let recorded = program.record(&["--children"], &[way]);
        same(&recorded, &program, &[way]);
        assert_eq!(recorded.ended.code, Some(12), "{way}");
        // Operations are recorded until the clock is taken away, and again when it is back.
        assert_eq!(recorded.counts(0)[&MutexUnlock], 11 + 17, "{way}: {:?}", recorded.counts(0));
        // These are the operations of the main thread, its thread and its child, and the thread's creation and join.
        assert_eq!(forbidden(&recorded), 2 * (1009 + 101 + 53) + 2, "{way}");
    }
    let recorded = program.record(&[], &["fails"]);
    same(&recorded, &program, &["fails"]);
    assert_eq!((recorded.counts(0)[&MutexUnlock], forbidden(&recorded)), (24, 0));
}

/// A program with a filter that ends it for each system call that recording could make in it.
const FILTERED: &str = r#"
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int done;
static void locks(int times) { while (times--) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); } }
static void *works(void *arg) { locks(101); done = 1; for (;;) usleep(1000); return arg; }
static void filter(void) {
    int numbers[] = {SYS_futex, SYS_getpid, SYS_gettid, SYS_clock_gettime, SYS_readlinkat, SYS_faccessat, SYS_prctl};
    enum { N = sizeof numbers / sizeof *numbers };
    struct sock_filter code[N + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < N; i++) code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, numbers[i], N - i, 0);
    code[N + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[N + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {N + 3, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) _exit(9);
}
int main(int count, char **words) {
    const char *how = words[1];
    if (!strcmp(how, "plain")) { locks(103); return 6; }
    filter();
    if (!strcmp(how, "main")) { locks(107); return 7; }
    if (!strcmp(how, "thread")) {
        pthread_t thread;
        pthread_create(&thread, 0, works, 0);
        while (!done) usleep(1000);
        _exit(8);
    }
    if (!strcmp(how, "fork")) {
        int status, child = fork();
        if (!child) { locks(109); _exit(0); }
        waitpid(child, &status, 0);
        locks(3);
        return status ? 1 : 9;
    }
    execl(words[0], words[0], "plain", (char *)0);
    return 2;
}
"#;

#[test]
fn a_seccomp_filter_against_the_library_s_calls_ends_no_program() {
    let program = skip_unless_live!(c(FILTERED));
    for (way, code, unlocks) in [("main", 7, 107), ("thread", 8, 101), ("fork", 9, 109 + 3), ("exec", 6, 0)] {
        let recorded = program.record(&["--children"], &[way]);
        same(&recorded, &program, &[way]);
        assert_eq!(recorded.ended.code, Some(code), "{way}: {:?}", recorded.ended);
        // With glibc, reading the thread's id needs no system call. In a program that is started under a filter, the
        // library stays inactive.
        if cfg!(target_env = "gnu") {
            let counts = recorded.counts(0);
            assert_eq!(counts.get(&MutexUnlock).copied().unwrap_or(0), unlocks, "{way}: {counts:?}");
        }
        let root = recorded.recording.facts.processes[0].pid;
        let others = |operation: &&probe_abi::Operation| operation.header.tid != root;
        let of_others =
            recorded.operations().filter(others).filter(|one| one.operation == MutexUnlock as u16);
        let expected = match way {
            "thread" => 101,
            "fork" => 109,
            _ => 0,
        };
        assert_eq!(of_others.count(), expected, "{way}: under the numbers of who did them");
    }
}
