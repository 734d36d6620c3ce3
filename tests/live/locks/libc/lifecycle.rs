//! Tests of probes on C libraries, and of the programs with such probes, when something goes wrong.

use super::support::{attach, ends_well, number, program, read};
use engine::event::{GapReason, NoteKind};
use longpole_tests::{Longpole, skip, skip_unless_live};
use probe_abi::{Record, SyncFamily, SyncOperation};
use std::collections::BTreeMap;
use std::time::Duration;

const BUSY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static long sum;
static volatile int go_on = 1;
static void *body(void *argument) {
    while (go_on) {
        pthread_mutex_lock(&mutex);
        sum++;
        pthread_cond_signal(&condition);
        struct timespec soon;
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += soon.tv_nsec < 999000000 ? 100000 : 0;
        pthread_cond_timedwait(&condition, &mutex, &soon);
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}
int main(void) {
    puts("up");
    fflush(stdout);
    unsigned char *code = dlsym(RTLD_DEFAULT, "pthread_mutex_lock");
    unsigned char first = *code;
    getchar();
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, body, 0);
    /* As long as nobody says that it is enough. */
    getchar();
    go_on = 0;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    printf("%d %d\n", sum > 0, *code == first);
    return 0;
}
"#;

/// If longpole is killed at any moment, the program must continue, and the code of its libc must be unchanged.
#[test]
fn a_program_with_libc_probes_runs_on_after_longpole_is_killed() {
    let program = skip_unless_live!(program(BUSY, "cc", &[]));
    // The delays reach from the first system calls of attaching to the middle of recording.
    for wait_ms in [20, 60, 120, 250, 900] {
        let mut target = program.gated();
        target.say("").expect("it waits");
        let file = program.folder.path().join("killed.lp");
        let longpole = attach(target.pid(), &["--max-rate", "1000000"], &file).start();
        std::thread::sleep(Duration::from_millis(wait_ms));
        drop(longpole);
        // The kernel removes the probes a moment later.
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(ends_well(target), "1 1\n", "killed after {wait_ms} ms");
    }
}

const HOT: &str = r#"
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t semaphore;
static void *more(void *argument) {
    for (int i = 0; i < 200000; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}
int main(void) {
    pthread_t threads[2];
    sem_init(&semaphore, 0, 0);
    for (int i = 0; i < 7; i++) sem_post(&semaphore);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, more, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    usleep(300000);
    for (int i = 0; i < 11; i++) sem_post(&semaphore);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return 0;
}
"#;

/// If a family of functions is called too often, all its functions must lose their probes. Other families keep theirs,
/// and the report says so.
#[test]
fn a_hot_family_of_lock_functions_loses_its_probes_and_a_note_says_so() {
    let program = skip_unless_live!(program(HOT, "cc", &[]));
    let recorded =
        program.launched(&["--interpose", "never", "--max-rate", "10000", "--overhead", "none"], &[]);
    assert!(
        recorded
            .ended
            .stderr
            .contains("lost their probes because of too many uses: mutexes and condition variables"),
        "{}",
        recorded.ended.stderr
    );
    let off: Vec<(u64, u8)> = recorded
        .recording
        .notes
        .iter()
        .filter_map(|note| match note.kind {
            NoteKind::Gap { reason: GapReason::OperationsOff { family, .. }, .. } => {
                Some((note.time_ns, family))
            }
            _ => None,
        })
        .collect();
    assert_eq!(off.len(), 1, "{off:?}");
    assert_eq!(off[0].1, SyncFamily::Mutex as u8);
    let counts = recorded.counts(0);
    assert_eq!(number(&counts, SyncOperation::SemaphorePost), 7 + 11, "{counts:?}");
    assert_eq!(number(&counts, SyncOperation::ThreadCreate), 2);
    assert_eq!(number(&counts, SyncOperation::ThreadJoin), 2);
    let locks = number(&counts, SyncOperation::MutexLock);
    assert!((500..20_000).contains(&locks), "{locks} of 400,002");
    let late = recorded.recording.events.iter().filter(|event| match event {
        // A call that began before that time may return later.
        Record::Operation(operation) => operation.operation < 32 && operation.began_ns > off[0].0,
        _ => false,
    });
    assert_eq!(late.count(), 0);
    let text = Longpole::with(["report", "--wide"]).and(&recorded.file).ok().stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("mutexes and condition variables were used too often and lost their probes"),
        "{text}"
    );
    let missing = "uncontended acquisitions of 1 object are not visible";
    assert_eq!(words.matches("uncontended acquisitions").count(), 1, "{text}");
    assert!(words.contains(missing), "{text}");
    // If a thread held a lock when the probes were removed, the report must not assume that it holds the lock forever.
    assert!(!words.contains("deadlock"), "{text}");
}

/// A recording must leave no probes, and a second recording must work like the first.
#[test]
fn a_second_recording_of_a_program_works_like_the_first() {
    let program = skip_unless_live!(program(BUSY, "cc", &[]));
    let mut target = program.gated();
    target.say("").expect("it waits");
    for _ in 0..2 {
        let file = program.folder.path().join("again.lp");
        let recorded = read(&file, attach(target.pid(), &["-d", "150ms"], &file).ok());
        let counts = recorded.counts(target.pid());
        assert!(number(&counts, SyncOperation::MutexLock) > 0, "{counts:?}");
    }
    assert_eq!(ends_well(target), "1 1\n");
}

const WITHOUT_SYMBOLS: &str = r#"
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int main(int count, char **words) {
    puts("up");
    fflush(stdout);
    if (count > 1) getchar();
    for (int i = 0; i < 1009; i++) { pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); }
    return 0;
}
"#;

/// The libc that the process has loaded lacks section headers, so it has no names of functions. longpole must not probe
/// another file with that name in the usual folder, because the process would never hit such probes.
#[test]
fn a_libc_without_symbols_is_noted_and_gets_no_probes() {
    let mut program = skip_unless_live!(program(WITHOUT_SYMBOLS, "cc", &["-Wl,-rpath,$ORIGIN"]));
    let beside = program.folder.path().join("program");
    std::fs::copy(&program.path, &beside).expect("a copy");
    program.path = beside;
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let own = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let Some(libc) = own.into_iter().find(|path| path.ends_with("/libc.so.6")) else {
        skip!("no libc.so.6 here");
    };
    let mut bytes = std::fs::read(libc).expect("libc");
    // Clears the ELF header's fields for the offset, number and names of sections, which are not needed to run the
    // file.
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    std::fs::write(program.folder.path().join("libc.so.6"), bytes).expect("a copy");
    let recorded = program.attached(&[]);
    assert!(
        recorded.ended.stderr.contains("libc.so.6 has no names of synchronization functions"),
        "{}",
        recorded.ended.stderr
    );
    assert_eq!(recorded.counts(0), BTreeMap::new());
    let report = |words: &[&str]| {
        let said = Longpole::with(words).and(&recorded.file).ok().stdout;
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = "locks that no thread had to wait for leave no trace in the recording";
    assert_eq!(report(&["report", "--wide"]).matches(said).count(), 1);
    assert!(report(&["report", "--by", "lock"]).contains("This recording has no lock operations"));
    // The preloaded library needs no names.
    let inside = program.launched(&[], &[]);
    let locks = number(&inside.counts(0), SyncOperation::MutexLock);
    assert_eq!(
        (locks, inside.ended.stderr.contains("recorded from inside the command")),
        (1009, true),
        "{}",
        inside.ended.stderr
    );
}
