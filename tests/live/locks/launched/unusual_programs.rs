//! Programs that do unusual things with their memory, threads, descriptors, limits and file systems. Each program must
//! end as it does alone, with the same output. docs/safety.md names these tests.

use crate::locks::support::{LIMIT, Program, Recorded, c, record_in};
use longpole_tests::{Ended, binary, must_run, run, shell, skip, skip_unless_live};
use probe_abi::SyncOperation::*;
use std::process::Command;

const ODD: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t semaphore;
static void locks(int times) { while (times--) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); } }
static void *works(void *arg) { locks(101); return arg; }
static int shares(void *arg) { locks(1009); return 0; }
static void handles(int number) { int kept = errno; sem_post(&semaphore); errno = kept; }
static void run(size_t stack) {
    pthread_attr_t small;
    pthread_t thread;
    pthread_attr_init(&small);
    if (stack) pthread_attr_setstacksize(&small, stack);
    if (pthread_create(&thread, &small, works, 0) || pthread_join(thread, 0)) _exit(70);
}
int main(int count, char **words) {
    const char *how = words[1];
    int status;
    if (!strcmp(how, "stack")) { run(PTHREAD_STACK_MIN); return 3; }
    if (!strcmp(how, "altstack")) {
        static char memory[16384];
        stack_t other = {memory, 0, sizeof memory};
        struct sigaction action = {.sa_handler = handles, .sa_flags = SA_ONSTACK};
        int value;
        sem_init(&semaphore, 0, 0);
        sigaltstack(&other, 0);
        sigaction(SIGUSR1, &action, 0);
        for (int i = 0; i < 101; i++) { errno = 4711; raise(SIGUSR1); if (errno != 4711) return 9; }
        sem_getvalue(&semaphore, &value);
        return value == 101 ? 4 : 8;
    }
    if (!strcmp(how, "daemon")) {
        /* Closes what it does not know, sees other files, and becomes nobody before its first lock. */
        closefrom(3);
        if (chroot("/proc/self") || setgid(65534) || setuid(65534)) return 9;
        locks(101);
        return 5;
    }
    if (!strcmp(how, "closes")) { for (int i = 3; i < 4096; i++) close(i); locks(101); return 6; }
    if (!strcmp(how, "environment")) { clearenv(); locks(101); return 7; }
    if (!strcmp(how, "files")) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_FSIZE, &none);
        setrlimit(RLIMIT_NOFILE, &none);
        locks(4001);
        return 10;
    }
    if (!strcmp(how, "data")) {
        struct rlimit small = {64 << 20, 64 << 20};
        setrlimit(RLIMIT_DATA, &small);
        setrlimit(RLIMIT_STACK, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
        run(0);
        return 11;
    }
    if (!strncmp(how, "addresses", 9)) {
        /* A thread and 100 MB, as without what longpole has mapped. */
        struct rlimit most = {1UL << 30, 1UL << 30}, now;
        locks(11);
        if (how[9] ? prlimit(0, RLIMIT_AS, &most, 0) : setrlimit(RLIMIT_AS, &most)) return 9;
        if (getrlimit(RLIMIT_AS, &now) || now.rlim_cur != most.rlim_cur) return 8;
        run(0);
        return malloc(100 << 20) ? 18 : 7;
    }
    if (!strcmp(how, "locked")) {
        /* Without the right to lock as much as it likes: with all of ours it was refused. */
        locks(3);
        if (setuid(65534)) return 9;
        if (mlockall(MCL_CURRENT | MCL_FUTURE)) return 8;
        locks(101);
        return 12;
    }
    if (!strcmp(how, "clone")) {
        /* A task that shares memory and even the thread's own storage. */
        char *stack = malloc(1 << 16);
        locks(11);
        int child = clone(shares, stack + (1 << 16), CLONE_VM | SIGCHLD, 0);
        if (waitpid(child, &status, 0) != child || status) return 9;
        locks(11);
        return 13;
    }
    if (!strcmp(how, "vfork")) {
        /* The first operation of all is a vfork child's. */
        int child = vfork();
        if (!child) { locks(7); _exit(0); }
        waitpid(child, &status, 0);
        locks(101);
        return status ? 9 : 14;
    }
    if (!strcmp(how, "raw")) {
        /* Forked without libc's knowing. */
        locks(11);
        int child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (!child) { locks(13); _exit(0); }
        waitpid(child, &status, 0);
        locks(11);
        return status ? 9 : 15;
    }
    if (!strcmp(how, "second")) {
        /* A second C library in the process. */
        void *other = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
        int (*second)(pthread_mutex_t *) = other ? dlsym(other, "pthread_mutex_trylock") : 0;
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        if (!second) return 16;
        locks(101);
        return second(&mutex) == 0 ? 16 : 9;
    }
    if (!strcmp(how, "shell")) {
        char line[32] = "";
        FILE *from = popen("echo out; exit 3", "r");
        if (!from || !fgets(line, sizeof line, from) || WEXITSTATUS(pclose(from)) != 3) return 9;
        status = system("exit 5");
        printf("%s%d\n", line, WEXITSTATUS(status));
        fflush(stdout);
        execlp("sh", "sh", "-c", "echo $0 $1; exit 17", "a", "b", (char *)0);
    }
    return 1;
}
"#;

/// Records the program, and checks that ending and output are the same as alone.
fn both(program: &Program, way: &str) -> Recorded {
    let recorded = program.record(&["--children"], &[way]);
    let alone = program.alone(&[way]);
    let with = &recorded.ended;
    assert_eq!((with.code, with.signal), (alone.code, alone.signal), "{way}: {with:?}");
    assert_eq!(recorded.ended.stdout, alone.stdout, "{way}");
    recorded
}

#[test]
fn programs_with_unusual_stacks_limits_or_threads_end_as_alone() {
    let program = skip_unless_live!(c(ODD));
    for (way, code, unlocks) in [
        ("stack", 3, 101),
        ("altstack", 4, 0),
        ("daemon", 5, 101),
        ("closes", 6, 101),
        ("environment", 7, 101),
        ("files", 10, 4001),
        ("data", 11, 101),
        ("raw", 15, 35),
        // With a limit on the address space, a thread and 100 MB of memory must still fit.
        ("addresses", 18, 112),
        ("addresses of", 18, 112),
        ("shell", 17, 0),
    ] {
        let recorded = both(&program, way);
        assert_eq!(recorded.ended.code, Some(code), "{way}: {:?}", recorded.ended);
        let counts = recorded.counts(0);
        assert_eq!(counts.get(&MutexUnlock).copied().unwrap_or(0), unlocks, "{way}: {counts:?}");
        if way == "altstack" {
            assert_eq!(counts[&SemaphorePost], 101);
        }
    }
    // Where the limit is that small, locking all memory fails even in the program alone.
    let recorded = both(&program, "locked");
    let unlocks = recorded.counts(0)[&MutexUnlock];
    assert_eq!(unlocks, if recorded.ended.code == Some(12) { 104 } else { 3 });
    // In these cases not all operations are recorded, so the numbers are lower bounds.
    for (way, code) in [("clone", 13), ("vfork", 14), ("second", 16)] {
        let recorded = both(&program, way);
        assert_eq!(recorded.ended.code, Some(code), "{way}: {:?}", recorded.ended);
        let root = recorded.recording.facts.processes[0].pid;
        let unlocks = recorded.counts(root).get(&MutexUnlock).copied().unwrap_or(0);
        assert!(unlocks >= if way == "clone" { 22 } else { 101 }, "{way}: {unlocks}");
    }
}

/// Runs the command alone. The error says why it does not run on this machine.
fn alone(command: &[&str]) -> Result<Ended, String> {
    match run(Command::new(command[0]).args(&command[1..]), LIMIT) {
        Ok(ended) if ended.code == Some(0) => Ok(ended),
        other => Err(format!("{command:?} does not run here: {other:?}")),
    }
}

/// If a child cannot see the library's file, the loader must not print a complaint to the child's standard error.
#[test]
fn a_child_that_cannot_see_the_library_s_file_prints_no_complaint() {
    skip_unless_live!();
    let script = "mount -t tmpfs none /tmp && mount -t tmpfs none /var/tmp && ls / >/dev/null && sh -c 'true; echo fine >&2'";
    let command = ["unshare", "-m", "sh", "-c", script];
    let alone = match alone(&command) {
        Ok(alone) => alone,
        Err(why) => skip!("{why}"),
    };
    let folder = tempfile::tempdir_in("/dev/shm").expect("folder");
    let recorded = record_in(folder.path(), &["--children"], &command, &[]);
    let said = &recorded.ended.stderr;
    assert!(said.contains("fine\n") && !said.contains("preload"), "{said}");
    assert_eq!(recorded.text(0), alone.stdout);
}

/// In a time namespace, the library's times would be those of another clock. So probes must record the program instead.
#[test]
fn a_program_in_a_time_namespace_is_recorded_by_probes() {
    let program = skip_unless_live!(c(ODD));
    let path = program.path.to_string_lossy().into_owned();
    let command = ["unshare", "-T", "--monotonic", "100000", "sh", "-c", &format!("{path} stack; echo $?")];
    let alone = match alone(&command) {
        Ok(alone) => alone,
        Err(why) => skip!("{why}"),
    };
    let recorded = record_in(program.folder.path(), &["--children"], &command, &[]);
    assert_eq!(recorded.text(0), alone.stdout);
    assert_eq!(recorded.counts(0).get(&MutexUnlock), None, "none with a foreign clock");
    let said = &recorded.ended.stderr;
    assert!(said.contains("with a clock of their own") && said.contains("are recorded by probes"), "{said}");
}

/// A command must have the limits that it would have alone.
#[test]
fn a_command_has_the_same_resource_limits_as_alone() {
    skip_unless_live!();
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("test.lp");
    let longpole = binary().display();
    // The limits are in blocks of 512 bytes, and must leave room for the recording.
    let ask = "ulimit -a; ulimit -Ha";
    let run = |script: String| must_run(&mut shell(&script), LIMIT);
    // Under the second limit, no file may be as large as the shared memory. longpole must not end by SIGXFSZ.
    for (file_limit, interpose) in [("ulimit -S -f 100000", "always"), ("ulimit -f 100000", "auto")] {
        let limits = format!("ulimit -S -n 512; {file_limit};");
        let alone = run(format!("{limits} {ask}"));
        let recorded = run(format!(
            "{limits} exec {longpole} record --interpose {interpose} --force -o {} -- sh -c '{ask}'",
            file.display()
        ));
        assert_eq!(recorded.stdout, alone.stdout, "{file_limit}: {recorded:?}");
        assert_eq!(recorded.code, Some(0), "{file_limit}: {recorded:?}");
    }
}

/// In a program without synchronization operations, only the library's file may be mapped, and not the shared memory.
#[test]
fn a_program_without_lock_operations_does_not_map_the_shared_memory() {
    skip_unless_live!();
    let folder = tempfile::tempdir().expect("folder");
    let command = ["sh", "-c", "cat /proc/self/maps"];
    let recorded = record_in(folder.path(), &["--children"], &command, &[]);
    let maps = recorded.text(0);
    assert!(maps.contains("longpole-preload.so"), "{maps}");
    assert!(!maps.contains("memfd:longpole"), "{maps}");
}
