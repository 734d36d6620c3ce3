//! The numbers of operations must be exact. Each kind has a different prime number.

use crate::locks::support::{c, program, record_in};
use longpole_tests::{skip_unless_built, skip_unless_live, workload};
use probe_abi::OperationFlags;
use probe_abi::SyncOperation::{self, *};
use std::collections::BTreeMap;

fn check(counts: &BTreeMap<SyncOperation, usize>, expected: &[(SyncOperation, usize)]) {
    let expected: BTreeMap<SyncOperation, usize> = expected.iter().copied().collect();
    for operation in SyncOperation::ALL {
        assert_eq!(counts.get(operation), expected.get(operation), "{}: {counts:?}", operation.name());
    }
}

const EVERYTHING: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
#define TIMES(n, what) for (int i = 0; i < (n); i++) { what; }
static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, checked, recursive;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static sem_t semaphore;
static pthread_once_t once[7];
static int ran;
static void run(void) { ran++; }
static struct timespec past = {1, 0};
static void *nothing(void *arg) { return arg; }
static void *leaves(void *arg) { pthread_exit(arg); }
static void *meets(void *arg) { TIMES(29, pthread_barrier_wait(&barrier)); return arg; }
int main(void) {
    pthread_t thread;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    TIMES(2, pthread_mutex_init(&checked, &kind));
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&recursive, &kind);

    TIMES(101, pthread_mutex_lock(&plain); pthread_mutex_unlock(&plain));
    TIMES(3, pthread_mutex_lock(&recursive));
    TIMES(3, pthread_mutex_unlock(&recursive));
    int refused = 0;
    TIMES(5, refused += pthread_mutex_trylock(&plain) == EBUSY);
    if (refused != 4) return 1;
    pthread_mutex_lock(&checked);
    TIMES(11, if (pthread_mutex_lock(&checked) != EDEADLK) return 2);
    TIMES(13, if (pthread_mutex_timedlock(&plain, &past) != ETIMEDOUT) return 3);
    TIMES(17, if (pthread_cond_timedwait(&condition, &plain, &past) != ETIMEDOUT) return 4);
    TIMES(19, pthread_cond_signal(&condition));
    TIMES(23, pthread_cond_broadcast(&condition));
    pthread_mutex_unlock(&plain);

    TIMES(31, pthread_rwlock_rdlock(&rwlock));
    TIMES(37, if (pthread_rwlock_trywrlock(&rwlock) != EBUSY) return 5);
    TIMES(31, pthread_rwlock_unlock(&rwlock));
    pthread_rwlock_wrlock(&rwlock);
    TIMES(41, if (!pthread_rwlock_timedrdlock(&rwlock, &past)) return 6);
    pthread_rwlock_unlock(&rwlock);

    pthread_barrier_init(&barrier, 0, 2);
    pthread_create(&thread, 0, meets, 0);
    meets(0);
    pthread_join(thread, 0);
    pthread_barrier_destroy(&barrier);

    pthread_spin_init(&spin, 0);
    TIMES(43, pthread_spin_lock(&spin); pthread_spin_unlock(&spin));
    TIMES(2, pthread_spin_trylock(&spin));
    pthread_spin_destroy(&spin);

    sem_init(&semaphore, 0, 5);
    TIMES(5, sem_wait(&semaphore));
    errno = 4711;
    TIMES(47, if (sem_trywait(&semaphore) != -1 || errno != EAGAIN) return 7);
    errno = 4711;
    TIMES(53, sem_post(&semaphore));
    if (errno != 4711) return 8;
    sem_destroy(&semaphore);
    sem_t *named = sem_open("/longpole-test", O_CREAT, 0600, 3);
    if (named == SEM_FAILED) return 9;
    TIMES(3, sem_wait(named));
    sem_close(named);
    sem_unlink("/longpole-test");

    TIMES(7 * 3, pthread_once(&once[i % 7], run));
    TIMES(59, pthread_create(&thread, 0, i % 2 ? nothing : leaves, 0); pthread_join(thread, 0));
    pthread_create(&thread, 0, nothing, 0);
    pthread_detach(thread);
    printf("%d\n", ran);
    return 0;
}
"#;

#[test]
fn every_libc_operation_is_recorded_exactly_as_often_as_called() {
    let program = skip_unless_live!(c(EVERYTHING));
    let recorded = program.record(&[], &[]);
    assert_eq!(recorded.text(0), "7\n");
    check(
        &recorded.counts(0),
        &[
            (MutexInit, 3),
            (MutexLock, 101 + 3 + 1 + 11),
            (MutexUnlock, 101 + 3 + 1),
            (MutexTryLock, 5),
            (MutexTimedLock, 13),
            (ConditionTimedWait, 17),
            (ConditionSignal, 19),
            (ConditionBroadcast, 23),
            (RwLockRead, 31),
            (RwLockTryWrite, 37),
            (RwLockWrite, 1),
            (RwLockTimedRead, 41),
            (RwLockUnlock, 31 + 1),
            (BarrierInit, 1),
            (BarrierWait, 2 * 29),
            (BarrierDestroy, 1),
            (SpinInit, 1),
            (SpinLock, 43),
            (SpinUnlock, 43),
            (SpinTryLock, 2),
            (SpinDestroy, 1),
            (SemaphoreInit, 1),
            (SemaphoreWait, 5 + 3),
            (SemaphoreTryWait, 47),
            (SemaphorePost, 53),
            (SemaphoreDestroy, 1),
            (SemaphoreOpen, 1),
            (SemaphoreClose, 1),
            // pthread_exit itself calls the function, from libgcc's unwinding.
            (Once, recorded.of(Once).len()),
            (ThreadCreate, 61),
            (ThreadJoin, 60),
            (ThreadDetach, 1),
            (ThreadExit, 30),
        ],
    );
    // Checks outcomes, objects and flags.
    let outcomes = |kind: SyncOperation, outcome: i32| {
        recorded.of(kind).iter().filter(|operation| operation.outcome == outcome).count()
    };
    let (edeadlk, etimedout, ebusy, eagain) = (35, 110, 16, 11);
    assert_eq!((outcomes(MutexLock, edeadlk), outcomes(MutexTimedLock, etimedout)), (11, 13));
    assert_eq!((outcomes(MutexTryLock, 0), outcomes(MutexTryLock, ebusy)), (1, 4));
    assert_eq!((outcomes(SemaphoreTryWait, eagain), outcomes(RwLockTryWrite, ebusy)), (47, 37));
    assert_eq!((outcomes(BarrierWait, -1), outcomes(SpinTryLock, ebusy)), (29, 1));
    let waits = recorded.of(ConditionTimedWait);
    let plain = recorded.of(MutexLock)[0].object;
    assert!(waits.iter().all(|wait| wait.second == plain && wait.object != plain));
    assert_eq!(recorded.of(BarrierInit)[0].second, 2);
    assert_eq!(recorded.of(SemaphoreInit)[0].second, 5);
    let threads = |kind| recorded.of(kind).iter().map(|operation| operation.object).collect::<Vec<u64>>();
    assert_eq!(threads(ThreadCreate)[..60], threads(ThreadJoin)[..]);
    assert_eq!(threads(ThreadCreate)[60], threads(ThreadDetach)[0]);
    if cfg!(target_env = "gnu") {
        let kinds = |operations: Vec<probe_abi::Operation>, bits: u16| {
            operations.iter().filter(|operation| operation.flags & bits == bits).count()
        };
        let robust = OperationFlags::RECURSIVE | OperationFlags::ROBUST | OperationFlags::KIND_KNOWN;
        assert_eq!((kinds(recorded.of(MutexInit), robust), kinds(recorded.of(MutexLock), robust)), (1, 3));
        assert_eq!(kinds(recorded.of(MutexLock), OperationFlags::CONTENDED), 0, "it had them itself");
    }
    let mut once = BTreeMap::new();
    for operation in recorded.of(Once) {
        let (calls, ran): &mut (usize, usize) = once.entry(operation.caller).or_default();
        *calls += 1;
        *ran += usize::from(operation.flags & OperationFlags::RAN != 0);
    }
    assert!(once.values().any(|counts| *counts == (21, 7)), "one call in one line: {once:?}");
    // Callers must be in the program, and times must be plausible.
    for operation in recorded.operations() {
        assert!(operation.caller != 0 && operation.began_ns <= operation.header.time_ns);
        assert!(operation.began_ns >= recorded.recording.facts.start_ns);
    }
}

const C11: &str = r#"
#include <stdio.h>
#include <threads.h>
static mtx_t mutex;
static cnd_t condition;
static once_flag flag = ONCE_FLAG_INIT;
static int turn, ran;
static void run(void) { ran++; }
static int work(void *arg) {
    int me = arg != 0;
    for (int i = 0; i < 103; i++) {
        mtx_lock(&mutex);
        while (turn != me) cnd_wait(&condition, &mutex);
        turn = !me;
        cnd_signal(&condition);
        mtx_unlock(&mutex);
    }
    call_once(&flag, run);
    return me;
}
int main(void) {
    thrd_t threads[2];
    mtx_init(&mutex, mtx_timed);
    cnd_init(&condition);
    for (long i = 0; i < 2; i++) thrd_create(&threads[i], work, (void *)i);
    for (int i = 0; i < 2; i++) { int result; thrd_join(threads[i], &result); if (result != i) return 1; }
    for (int i = 0; i < 5; i++) if (mtx_trylock(&mutex) != (i ? thrd_busy : thrd_success)) return 2;
    mtx_unlock(&mutex);
    cnd_destroy(&condition);
    mtx_destroy(&mutex);
    return ran != 1;
}
"#;

#[test]
fn c11_thread_functions_are_recorded_like_pthread_ones() {
    let program = skip_unless_live!(c(C11));
    let recorded = program.record(&[], &[]);
    recorded.text(0);
    let counts = recorded.counts(0);
    let waits = counts.get(&ConditionWait).copied().unwrap_or(0);
    assert!(waits > 0);
    check(
        &counts,
        &[
            (MutexInit, 1),
            (MutexLock, 206),
            (MutexUnlock, 207),
            (MutexTryLock, 5),
            (MutexDestroy, 1),
            (ConditionInit, 1),
            (ConditionWait, waits),
            (ConditionSignal, 206),
            (ConditionDestroy, 1),
            (Once, 2),
            (ThreadCreate, 2),
            (ThreadJoin, 2),
        ],
    );
    assert_eq!(recorded.of(MutexTryLock).iter().filter(|lock| lock.outcome == 16).count(), 4);
}

const CPP: &str = r#"
#include <condition_variable>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
static std::mutex mutex;
static std::condition_variable condition;
static std::shared_mutex shared;
static std::once_flag flag;
static int left = 2, ran;
static void work() {
    for (int i = 0; i < 107; i++) { std::lock_guard<std::mutex> guard(mutex); ran++; }
    for (int i = 0; i < 53; i++) { std::shared_lock<std::shared_mutex> guard(shared); }
    std::lock_guard<std::mutex> guard(mutex);
    left--;
    condition.notify_one();
}
int main() {
    std::thread first(work), second(work);
    {
        std::unique_lock<std::mutex> guard(mutex);
        while (left) condition.wait(guard);
    }
    first.join();
    second.join();
    // An exception goes through pthread_once, and through ours.
    for (int i = 0; i < 13; i++)
        try { std::call_once(flag, [&] { if (i < 2) throw std::runtime_error("not yet"); }); } catch (std::runtime_error &) {}
    return ran != 2 * 107;
}
"#;

#[test]
fn a_cpp_program_s_operations_are_counted_exactly_despite_exceptions() {
    let program = skip_unless_live!(program(CPP, "c++", &["-std=c++17"]));
    let recorded = program.record(&[], &[]);
    recorded.text(0);
    let counts = recorded.counts(0);
    let count = |operation| counts.get(&operation).copied().unwrap_or(0);
    // These are main's own lock and unlock, and those of each thread.
    assert_eq!((count(MutexLock), count(MutexUnlock)), (2 * 108 + 1, 2 * 108 + 1), "{counts:?}");
    assert_eq!((count(RwLockRead), count(RwLockUnlock)), (2 * 53, 2 * 53), "{counts:?}");
    assert_eq!((count(ConditionSignal), count(ThreadCreate), count(ThreadJoin)), (2, 2, 2), "{counts:?}");
    // The two calls that an exception left did not return. The C++ library makes calls of its own.
    let mut once = std::collections::BTreeMap::new();
    for operation in recorded.of(Once) {
        let (calls, ran): &mut (usize, usize) = once.entry(operation.object).or_default();
        *calls += 1;
        *ran += usize::from(operation.flags & OperationFlags::RAN != 0);
    }
    assert!(once.values().any(|counts| *counts == (11, 1)), "{once:?}");
    assert_eq!(recorded.pending(), [], "what was left by an exception is not taken for a wait");
}

#[test]
fn a_program_without_libc_locks_has_threads_but_no_mutexes() {
    skip_unless_live!();
    let text = "use std::sync::{Arc, Mutex};
        fn main() {
            let sum = Arc::new(Mutex::new(0));
            let threads: Vec<_> = (0..2).map(|_| { let sum = sum.clone(); std::thread::spawn(move || {
                for i in 0..109 { *sum.lock().unwrap() += i; } }) }).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            println!(\"{}\", sum.lock().unwrap());
        }";
    let program = skip_unless_built!(workload::compile_text("program", "rustc", &["-O"], text));
    let folder = tempfile::tempdir().expect("folder");
    let recorded = record_in(folder.path(), &[], &[&program.to_string_lossy()], &[]);
    assert_eq!(recorded.text(0), "11772\n");
    let counts = recorded.counts(0);
    let count = |operation| counts.get(&operation).copied().unwrap_or(0);
    assert_eq!((count(ThreadCreate), count(ThreadJoin), count(MutexLock)), (2, 2, 0), "{counts:?}");
}
