//! Programs that are killed or interrupted, that fork or execute another program. Written records must stay, and none
//! may be written twice.

use crate::locks::support::{Recorded, c, program, record_in};
use longpole_tests::{skip_unless_live, until};
use probe_abi::SyncOperation::*;

const KILLED: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, never = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static void *waits(void *arg) { pthread_barrier_wait(&barrier); pthread_mutex_lock(&never); return arg; }
int main(int count, char **words) {
    pthread_t thread;
    pthread_barrier_init(&barrier, 0, 2);
    pthread_mutex_lock(&never);
    pthread_create(&thread, 0, waits, 0);
    pthread_barrier_wait(&barrier);
    usleep(50000);
    for (int i = atoi(words[1]); i > 0; i--) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); }
    kill(getpid(), SIGKILL);
}
"#;

#[test]
fn a_killed_program_s_operations_are_all_recorded_with_its_last_wait() {
    let program = skip_unless_live!(c(KILLED));
    // There are fewer records than a ring has room for, and nothing makes longpole empty the ring before the end.
    let recorded = program.record(&[], &["7919"]);
    assert_eq!(recorded.ended.signal, Some(9));
    let counts = recorded.counts(0);
    assert_eq!((counts[&MutexLock], counts[&MutexUnlock]), (7919 + 1, 7919), "{counts:?}");
    let never = recorded.of(MutexLock)[0].object;
    let pending: Vec<(u16, u64)> = recorded.pending().iter().map(|p| (p.operation, p.object)).collect();
    assert_eq!(pending, [(MutexLock as u16, never)]);
}

#[test]
fn a_program_that_outlives_its_recording_is_not_disturbed() {
    const SOURCE: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int main(void) {
    struct timespec pause = {0, 1000000};
    for (int i = 0; i < 1500; i++) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); nanosleep(&pause, 0); }
    puts("done");
    return fflush(stdout);
}
"#;
    let program = skip_unless_live!(c(SOURCE));
    let text = program.folder.path().join("said");
    let path = program.path.to_string_lossy().into_owned();
    let command = format!("exec {path} > {}", text.display());
    let recorded = record_in(program.folder.path(), &["-d", "400ms"], &["sh", "-c", &command], &[]);
    assert_eq!(recorded.ended.code, Some(0));
    let locks = recorded.counts(0)[&MutexLock];
    assert!((50..1500).contains(&locks), "{locks}");
    until("it comes to its end", || !std::fs::read_to_string(&text).is_ok_and(|text| text != "done\n"));
}

const FORKS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void locks(int times) { while (times--) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); } }
static void *works(void *arg) { locks(83); return arg; }
int main(int count, char **words) {
    if (count > 1) { locks(atoi(words[1])); return 0; }
    pthread_t thread;
    locks(11);
    int child = fork();
    if (!child) {
        locks(13);
        pthread_create(&thread, 0, works, 0);
        pthread_join(thread, 0);
        _exit(0);
    }
    int quick = vfork();
    if (!quick) { execl(words[0], words[0], "17", (char *)0); _exit(1); }
    waitpid(child, 0, 0);
    waitpid(quick, 0, 0);
    locks(19);
    execl(words[0], words[0], "23", (char *)0);
    return 1;
}
"#;

fn locks_by_process(recorded: &Recorded) -> Vec<usize> {
    let mut pids: Vec<u32> = recorded.operations().map(|operation| operation.header.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids.iter().map(|&pid| recorded.counts(pid).get(&MutexUnlock).copied().unwrap_or(0)).collect()
}

#[test]
fn forked_children_have_their_own_rings_and_exec_starts_new_ones() {
    let program = skip_unless_live!(c(FORKS));
    let with = program.record(&["--children"], &[]);
    with.text(0);
    // Processes in the order of their start: the program before and after exec, and its children.
    assert_eq!(locks_by_process(&with), [11 + 19 + 23, 13 + 83, 17]);
    let without = program.record(&["--no-children"], &[]);
    without.text(0);
    assert_eq!(locks_by_process(&without), [11 + 19 + 23]);
}

#[test]
fn a_program_that_a_shell_execs_records_its_operations() {
    let program = skip_unless_live!(c(FORKS));
    let command = format!("exec {} 31", program.path.display());
    let recorded = record_in(program.folder.path(), &[], &["sh", "-c", &command], &[]);
    recorded.text(0);
    assert_eq!(locks_by_process(&recorded), [31]);
}

#[test]
fn a_program_that_closes_all_descriptors_is_recorded_again_after_exec() {
    let locks = skip_unless_live!(c(FORKS));
    let closing = r#"
#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    int child = fork();
    if (!child) { closefrom(3); execl(words[1], words[1], "37", (char *)0); _exit(1); }
    waitpid(child, 0, 0);
    closefrom(3);
    execl(words[1], words[1], "41", (char *)0);
    return 1;
}
"#;
    let closer = skip_unless_live!(program(closing, "cc", &["-O2"]));
    let inner = locks.path.to_string_lossy();
    let recorded = closer.record(&["--children"], &[&inner]);
    recorded.text(0);
    assert_eq!(locks_by_process(&recorded), [41, 37]);
}

const INTERRUPTED: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
static pthread_spinlock_t spin, own;
static sem_t semaphore, never;
static volatile int posts, jumps;
static sigjmp_buf back;
static void handler(int signal) {
    if (jumps) { jumps--; siglongjmp(back, 1); }
    pthread_spin_lock(&own);
    sem_post(&semaphore);
    pthread_spin_unlock(&own);
    posts++;
}
static void *cancelled(void *arg) { sem_wait(&never); return arg; }
int main(void) {
    pthread_spin_init(&spin, 0);
    pthread_spin_init(&own, 0);
    sem_init(&semaphore, 0, 0);
    sem_init(&never, 0, 0);
    signal(SIGALRM, handler);
    struct itimerval often = {{0, 200}, {0, 200}}, off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, 0);
    int locks = 0;
    while (posts < 997) {
        pthread_spin_lock(&spin);
        pthread_spin_unlock(&spin);
        locks++;
        for (volatile int i = 0; i < 20000; i++);
    }
    setitimer(ITIMER_REAL, &off, 0);
    int value;
    sem_getvalue(&semaphore, &value);
    printf("%d %d %d\n", locks, posts, value);
    /* Left by a jump, and by cancellation: what comes after is recorded all the same. */
    jumps = 1;
    struct itimerval once = {{0, 0}, {0, 20000}};
    if (!sigsetjmp(back, 1)) { setitimer(ITIMER_REAL, &once, 0); sem_wait(&never); }
    pthread_t thread;
    pthread_create(&thread, 0, cancelled, 0);
    pthread_cancel(thread);
    void *result;
    pthread_join(thread, &result);
    for (int i = 0; i < 89; i++) sem_post(&never);
    return result != PTHREAD_CANCELED;
}
"#;

#[test]
fn signal_handlers_longjmp_and_cancellation_leave_the_rings_whole() {
    let program = skip_unless_live!(c(INTERRUPTED));
    let recorded = program.record(&[], &[]);
    let text = recorded.text(0);
    let numbers: Vec<usize> = text.split_whitespace().map(|word| word.parse().expect("number")).collect();
    let [locks, posts, value] = numbers[..] else { panic!("{text}") };
    assert!(posts >= 997 && value == posts, "{text}");
    let counts = recorded.counts(0);
    assert_eq!(counts[&SpinLock], locks + posts, "{counts:?}");
    assert_eq!(counts[&SpinUnlock], locks + posts, "{counts:?}");
    assert_eq!(counts[&SemaphorePost], posts + 89, "{counts:?}");
    assert_eq!(counts.get(&SemaphoreWait), None, "neither came back");
    assert_eq!((counts[&ThreadCreate], counts[&ThreadJoin]), (1, 1));
    let main = recorded.recording.facts.processes[0].pid;
    assert!(recorded.pending().iter().all(|pending| pending.tid != main), "{:?}", recorded.pending());
}

#[test]
fn twenty_thousand_short_threads_are_recorded_exactly() {
    const SOURCE: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *works(void *arg) { for (int i = 0; i < 3; i++) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); } return arg; }
int main(void) {
    for (int round = 0; round < 2003; round++) {
        pthread_t threads[10];
        for (int i = 0; i < 10; i++) pthread_create(&threads[i], 0, works, 0);
        for (int i = 0; i < 10; i++) pthread_join(threads[i], 0);
    }
    return 0;
}
"#;
    let program = skip_unless_live!(c(SOURCE));
    let recorded = program.record(&[], &[]);
    recorded.text(0);
    let counts = recorded.counts(0);
    // There are more threads than rings.
    assert_eq!(counts[&ThreadCreate], 20_030);
    assert_eq!((counts[&MutexLock], counts[&MutexUnlock]), (60_090, 60_090));
}

#[test]
fn operations_before_and_after_main_are_recorded() {
    const SOURCE: &str = r#"
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void locks(int times) { while (times--) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); } }
__attribute__((constructor)) static void early(void) { locks(41); }
__attribute__((destructor)) static void late(void) { locks(43); }
int main(void) { locks(47); return 0; }
"#;
    let program = skip_unless_live!(program(SOURCE, "cc", &["-O2"]));
    let recorded = program.record(&[], &[]);
    recorded.text(0);
    assert_eq!(recorded.counts(0)[&MutexLock], 41 + 43 + 47);
}

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
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int done;
/* After a while, so that longpole has heard that the program has come up. */
static void locks(int times) { usleep(100000); while (times--) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); } }
static void *works(void *arg) { locks(6000); done = 1; for (;;) usleep(1000); }
static void filter(int by_number) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (by_number ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
                  : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(9);
}
int main(int count, char **words) {
    if (!strcmp(words[1], "prctl") || !strcmp(words[1], "seccomp")) { filter(words[1][0] == 's'); locks(6000); }
    if (!strcmp(words[1], "late")) { locks(1000); filter(1); locks(6000); }
    if (!strcmp(words[1], "thread")) {
        pthread_t thread;
        filter(0);
        pthread_create(&thread, 0, works, 0);
        while (!done) usleep(1000);
        _exit(0);
    }
    if (!strcmp(words[1], "fork")) {
        int status;
        filter(0);
        int child = fork();
        if (!child) { locks(6000); _exit(0); }
        waitpid(child, &status, 0);
        return status != 0;
    }
    if (!strcmp(words[1], "plain")) locks(6000);
    if (!strcmp(words[1], "wait")) { filter(1); syscall(SYS_futex, &done, 1, 1, 0, 0, 0); }
    return 0;
}
"#;

/// When a ring is half full, the library makes a futex call. A program that forbids itself such calls must not be ended
/// by it.
#[test]
fn a_program_whose_seccomp_forbids_futex_wakes_is_recorded() {
    let program = skip_unless_live!(c(FILTERED));
    for way in ["prctl", "seccomp", "late", "thread", "fork", "plain"] {
        // The records fill much more than half of a ring, but not all of it. So none is lost, whenever longpole empties
        // the ring.
        let recorded = program.record(&["--children", "--ring-size", "1M"], &[way]);
        assert_eq!(recorded.ended.code, Some(0), "{way}: {:?}", recorded.ended);
        let (counts, times) = (recorded.counts(0), if way == "late" { 7000 } else { 6000 });
        assert_eq!((counts[&MutexLock], counts[&MutexUnlock]), (times, times), "{way}");
    }
    // Checks the filter itself: a futex call ends the program.
    assert_eq!(program.record(&[], &["wait"]).ended.signal, Some(31));
}
