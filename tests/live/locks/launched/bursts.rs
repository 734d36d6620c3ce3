//! Mutexes, and read-write locks for reading, that are taken many times in a row become bursts ([`probe_abi::Burst`]).
//! Their counts must be exact, however the program ends.

use crate::locks::support::{Recorded, c};
use longpole_tests::skip_unless_live;
use probe_abi::{Burst, Record, SyncOperation};

/// A program that takes and releases a mutex: in the first thread as often as the first argument says, and 999,983
/// times in a thread that ends. A child that is forked between an acquisition and its release does so 13 times. The
/// second argument says how the program ends.
const MANY: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static volatile long sum;
static void times(pthread_mutex_t *lock, long n) {
    for (long i = 0; i < n; i++) {
        pthread_mutex_lock(lock);
        sum++;
        pthread_mutex_unlock(lock);
    }
}
static void *other(void *arg) { times(&b, 999983); return arg; }
static void *idle(void *arg) { for (;;) pause(); return arg; }
int main(int argc, char **argv) {
    long n = atol(argv[1]);
    int how = atoi(argv[2]);
    pthread_t thread, beside;
    pthread_create(&beside, 0, idle, 0);
    pthread_create(&thread, 0, other, 0);
    times(&a, n);
    pthread_join(thread, 0);
    times(&a, 11);
    pthread_mutex_lock(&a);
    if (fork() == 0) {
        pthread_mutex_unlock(&a);
        times(&a, 13);
        _exit(0);
    }
    pthread_mutex_unlock(&a);
    wait(0);
    times(&a, 17);
    printf("%d\n", getpid());
    fflush(stdout);
    times(&a, 100003);
    if (how == 1)
        kill(getpid(), SIGKILL);
    if (how == 2) {
        pthread_mutex_lock(&b);
        usleep(50000);
        kill(getpid(), SIGKILL);
    }
    return argc - argc;
}
"#;

fn bursts(recorded: &Recorded) -> Vec<Burst> {
    let events = recorded.recording.events.iter();
    events
        .filter_map(|event| match event {
            Record::Burst(burst) => Some(*burst),
            _ => None,
        })
        .collect()
}

#[test]
fn folded_mutex_operations_are_counted_exactly_in_every_kind_of_process() {
    let many = skip_unless_live!(c(MANY));
    for (how, more_locks) in [("0", 0), ("1", 0), ("2", 1)] {
        // An operation is either counted instead of recorded or part of a burst, and never both. Without a budget all
        // operations are recorded.
        let recorded = many.record(&["--overhead", "none", "--children"], &["1000003", how]);
        let words = &recorded.ended.stdout;
        let pid: u32 = words.trim().parse().expect("a number");
        let counts = recorded.counts(pid);
        let pairs = 1_000_003 + 999_983 + 11 + 1 + 17 + 100_003;
        assert_eq!(counts.get(&SyncOperation::MutexLock), Some(&(pairs + more_locks)), "{how}");
        assert_eq!(counts.get(&SyncOperation::MutexUnlock), Some(&pairs), "{how}");
        let all = recorded.counts(0);
        assert_eq!(all.get(&SyncOperation::MutexLock), Some(&(pairs + more_locks + 13)), "{how}: the child");
        assert_eq!(all.get(&SyncOperation::MutexUnlock), Some(&(pairs + 14)), "{how}: the child");
        let bursts = bursts(&recorded);
        let folded: u64 = bursts.iter().map(Burst::operations).sum();
        assert!(folded > pairs as u64, "more than half of {} are folded: {folded}", 2 * pairs);
        let records = recorded.recording.events.len();
        assert!(records < 200_000, "{records} records");
        for burst in bursts {
            assert!(burst.held_ns <= burst.span_ns && burst.count > 0, "{burst:?}");
            assert!(
                u64::from(burst.held_least_ns) * u64::from(burst.count) <= u64::from(burst.held_ns),
                "{burst:?}"
            );
            assert!(burst.released_at().abs_diff(burst.caller) < 256, "{burst:?}");
        }
    }
}

/// Two threads take one mutex in turns. An acquisition ends the other thread's burst, so the threads must never seem to
/// hold the mutex at the same time.
#[test]
fn bursts_of_two_threads_on_one_mutex_never_overlap() {
    let shared = skip_unless_live!(c(SHARED));
    let recorded = shared.record(&["--overhead", "none"], &["300000"]);
    recorded.text(0);
    assert_eq!(recorded.counts(0).get(&SyncOperation::MutexLock), Some(&600_000));
    let mut spans: Vec<(u64, u64, u32)> = Vec::new();
    for event in &recorded.recording.events {
        match event {
            Record::Burst(burst) => spans.push((burst.began_ns(), burst.header.time_ns, burst.header.tid)),
            Record::Operation(operation) if operation.operation == SyncOperation::MutexLock as u16 => {
                spans.push((operation.header.time_ns, operation.header.time_ns, operation.header.tid));
            }
            _ => {}
        }
    }
    spans.sort_unstable();
    for pair in spans.windows(2) {
        assert!(pair[0].1 <= pair[1].0 || pair[0].2 == pair[1].2, "{pair:?}");
    }
    let threads: std::collections::BTreeSet<u32> = spans.iter().map(|span| span.2).collect();
    assert_eq!(threads.len(), 2);
}

const SHARED: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long sum;
static long n;
static void *work(void *arg) {
    for (long i = 0; i < n; i++) {
        pthread_mutex_lock(&lock);
        sum++;
        pthread_mutex_unlock(&lock);
        for (volatile int j = 0; j < 100; j++);
    }
    return arg;
}
int main(int argc, char **argv) {
    pthread_t threads[2];
    n = atol(argv[argc - 1]);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return sum != 2 * n;
}
"#;

/// A program in which two threads read under a lock all the time, and each writes now and then. A reader takes the lock
/// twice, and another thread waits for a lock that a reader holds.
const READERS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static volatile long sum;
static long n;
static void *work(void *arg) {
    for (long i = 0; i < n; i++) {
        pthread_rwlock_rdlock(&lock);
        long seen = sum;
        pthread_rwlock_unlock(&lock);
        for (volatile int j = 0; j < 20; j++);
        if (i % 1000 == 500) {
            pthread_rwlock_rdlock(&lock);
            pthread_rwlock_rdlock(&lock);
            pthread_rwlock_unlock(&lock);
            pthread_rwlock_unlock(&lock);
            if (pthread_rwlock_trywrlock(&lock) != 0)
                pthread_rwlock_wrlock(&lock);
            sum += seen >= 0;
            pthread_rwlock_unlock(&lock);
        }
    }
    return arg;
}
int main(int argc, char **argv) {
    pthread_t threads[2];
    n = atol(argv[argc - 1]);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return sum != 2 * (n / 1000);
}
"#;

/// Read-write locks without a writer become bursts. OpenSSL's operations come faster than a ring takes records: node
/// once lost half of them.
#[test]
fn read_locks_are_folded_while_no_thread_writes() {
    let readers = skip_unless_live!(c(READERS));
    let recorded = readers.record(&["--overhead", "none"], &["400000"]);
    recorded.text(0);
    let counts = recorded.counts(0);
    let count = |operation| counts.get(&operation).copied().unwrap_or(0);
    assert_eq!(count(SyncOperation::RwLockRead), 2 * 400_000 + 4 * 400);
    assert_eq!(count(SyncOperation::RwLockUnlock), 2 * 400_000 + 6 * 400);
    let bursts = bursts(&recorded);
    let folded: u64 = bursts.iter().map(Burst::operations).sum();
    assert!(folded > 800_000, "more than half of them are folded: {folded}");
    // The times in which a thread holds the lock for writing, from the end of the acquisition to the beginning of the
    // release.
    let mut writers: Vec<(u64, u64, u32)> = Vec::new();
    for event in &recorded.recording.events {
        let Record::Operation(operation) = event else { continue };
        let is = |what: SyncOperation| operation.operation == what as u16 && operation.outcome == 0;
        if is(SyncOperation::RwLockWrite) || is(SyncOperation::RwLockTryWrite) {
            writers.push((operation.header.time_ns, u64::MAX, operation.header.tid));
        } else if is(SyncOperation::RwLockUnlock)
            && let Some(writer) = writers.iter_mut().rev().find(|writer| writer.2 == operation.header.tid)
            && writer.1 == u64::MAX
        {
            writer.1 = operation.began_ns;
        }
    }
    assert_eq!(writers.len(), 2 * 400);
    writers.sort_unstable();
    for burst in &bursts {
        let next = writers.partition_point(|writer| writer.1 <= burst.began_ns());
        let during = writers.get(next).filter(|writer| writer.0 < burst.header.time_ns);
        assert_eq!(during, None, "{burst:?}");
    }
    let timeline = engine::timeline::build(&recorded.recording);
    let program = engine::translation::from_timeline(&timeline);
    assert_eq!(program.findings.iter().find(|finding| finding.kind() == "replayed"), None);
}

/// A program in which each of two threads takes two mutexes of its own in turns, a million times, so that each pair is
/// a separate burst. Now and then a thread takes a shared mutex and holds it for a while.
const PRESSED: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
struct own { pthread_mutex_t a, b; char apart[128]; } own[2];
static long times;
static pthread_barrier_t both;
static void *work(void *argument) {
    struct own *mine = argument;
    for (long i = 0; i < times; i++) {
        pthread_mutex_lock(&mine->a);
        pthread_mutex_unlock(&mine->a);
        pthread_mutex_lock(&mine->b);
        pthread_mutex_unlock(&mine->b);
        if (i % (times / 20) == times / 40) {
            pthread_barrier_wait(&both);
            pthread_mutex_lock(&shared);
            usleep(3000);
            pthread_mutex_unlock(&shared);
        }
    }
    return argument;
}
int main(int argc, char **argv) {
    times = atol(argv[1]);
    pthread_t thread[2];
    pthread_barrier_init(&both, 0, 2);
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], 0, work, &own[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], 0);
    return argc - argc;
}
"#;

/// Operations come faster than longpole can read them. Then those without a waiter must only be counted, and those with
/// a waiter must be recorded. Otherwise node would lose half of its operations at its start, and nothing about that
/// time would be known.
#[test]
fn uncontended_operations_are_only_counted_before_any_are_lost() {
    let pressed = skip_unless_live!(c(PRESSED));
    let recorded = pressed.record(&["--ring-size", "64K", "-F", "0"], &["1000000"]);
    recorded.text(0);
    let said = &recorded.ended.stderr;
    let loss = recorded.recording.facts.end.as_ref().expect("an end").loss;
    let counts = recorded.counts(0);
    let [locks, unlocks] = [SyncOperation::MutexLock, SyncOperation::MutexUnlock]
        .map(|operation| *counts.get(&operation).expect("some are there") as u64);
    assert!(loss.operations_counted > 100_000, "{loss:?}: {said}");
    assert_eq!((loss.operations, loss.late, loss.undecodable), (0, 0, 0), "{said}");
    assert_eq!(locks, unlocks, "none without its other half: {said}");
    assert_eq!(locks + unlocks + loss.operations_counted, 2 * (2 * 2_000_000 + 2 * 20), "{loss:?}: {said}");
    let is_gap = |note: &&engine::event::Note| {
        use engine::event::{GapReason::OperationsLost, NoteKind::Gap};
        matches!(note.kind, Gap { reason: OperationsLost, .. })
    };
    assert_eq!(recorded.recording.notes.iter().filter(is_gap).count(), 0, "{said}");
    let contended = recorded.recording.events.iter().filter(|event| {
        matches!(event, Record::Operation(operation)
            if operation.operation == SyncOperation::MutexLock as u16
                && operation.flags & probe_abi::OperationFlags::CONTENDED != 0)
    });
    assert!(contended.count() >= 18, "both come to it at once twenty times: {said}");
    let timeline = engine::timeline::build(&recorded.recording);
    assert_eq!(timeline.lock_holes, 0, "{said}");
    assert!(timeline.findings.iter().any(|finding| finding.kind() == "operations_counted"), "{said}");
}
