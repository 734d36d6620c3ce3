//! Calls that do not end by a return: `longjmp` and exceptions.

use super::support::{by_object, number, program};
use longpole_tests::{skip_unless_built, skip_unless_live};
use probe_abi::SyncOperation;

const JUMPS: &str = r#"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static sigjmp_buf out;
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void jump(int number) { siglongjmp(out, number); }
static void leave(void) { siglongjmp(out, 1); }
int main(void) {
    sem_init(&semaphore, 0, 0);
    signal(SIGALRM, jump);
    for (volatile int i = 0; i < 5; i++) {
        if (!sigsetjmp(out, 1)) {
            ualarm(20000, 0);
            sem_wait(&semaphore);
            return 1;
        }
        for (int k = 0; k < 3; k++) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
        }
    }
    if (!sigsetjmp(out, 1)) {
        pthread_once(&once, leave);
        return 2;
    }
    sem_post(&semaphore);
    sem_wait(&semaphore);
    puts("left six times");
    return 0;
}
"#;

/// A call that is left by `longjmp` is not recorded, and must not hide later calls.
#[test]
fn calls_left_by_longjmp_are_not_recorded() {
    skip_unless_live!();
    for flags in [&[][..], &["-static"]] {
        let fixed = skip_unless_built!(program(JUMPS, "cc", flags));
        let recorded = fixed.launched(&["--interpose", "never"], &[]);
        let counts = recorded.counts(0);
        assert_eq!(number(&counts, SyncOperation::SemaphoreWait), 1, "{flags:?}: {counts:?}");
        assert_eq!(number(&counts, SyncOperation::SemaphorePost), 1);
        assert_eq!(number(&counts, SyncOperation::Once), 0);
        // A static program's libc takes locks itself, and nothing distinguishes them from the program's.
        for kind in [SyncOperation::MutexLock, SyncOperation::MutexUnlock] {
            assert_eq!(by_object(&recorded, kind).last(), Some(&15), "{flags:?}: {counts:?}");
        }
    }
}

const THROWS: &str = r#"
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>
static std::once_flag flag;
static std::mutex mutex;
int main() {
    int caught = 0;
    for (int i = 0; i < 50; i++) {
        try {
            std::call_once(flag, [&] { if (i < 49) throw std::runtime_error("not yet"); });
        } catch (const std::runtime_error &) {
            caught++;
            std::lock_guard<std::mutex> guard(mutex);
        }
    }
    std::thread([&] { std::lock_guard<std::mutex> guard(mutex); }).join();
    std::printf("%d\n", caught);
}
"#;

/// Exceptions must pass through a probed `pthread_once` as without probes.
#[test]
fn an_exception_through_a_probed_pthread_once_is_not_recorded() {
    let program = skip_unless_live!(program(THROWS, "c++", &["-std=c++17"]));
    let recorded = program.launched(&["--interpose", "never"], &[]);
    assert_eq!(recorded.ended.stdout, "49\n");
    let counts = recorded.counts(0);
    assert_eq!(number(&counts, SyncOperation::MutexLock), 50, "{counts:?}");
    // The unwinder itself makes such a call, too.
    let once = by_object(&recorded, SyncOperation::Once);
    assert_eq!(once.first(), Some(&1), "only the one that came back: {once:?}");
    assert!(once.len() <= 2, "{once:?}");
}
