//! What happens to probes on C libraries, and to programs under them, when things go wrong.

use crate::support::{LONGPOLE, build, counts, live, number, read};
use engine::event::{GapReason, NoteKind};
use probe_abi::{Record, SyncFamily, SyncOperation};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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

/// Killed at any moment, longpole leaves a program that runs on, with its libc's code as it was.
#[test]
fn a_killed_longpole_leaves_a_running_program() {
    let test = "a_killed_longpole_leaves_a_running_program";
    let Some(_turn) = live(test) else { return };
    let Some(program) = build(test, BUSY, "cc", &[]) else { return };
    // From the first system calls of attaching to the middle of recording.
    for wait_ms in [20, 60, 120, 250, 900] {
        let mut target = program.gated();
        target.go();
        let file = program.folder.path().join("killed.lp");
        let mut longpole = Command::new(LONGPOLE)
            .args([
                "record",
                "--force",
                "--functions",
                "*",
                "--max-rate",
                "1000000",
                "-p",
                &target.0.id().to_string(),
                "-o",
            ])
            .arg(&file)
            .stderr(Stdio::null())
            .spawn()
            .expect("longpole");
        std::thread::sleep(Duration::from_millis(wait_ms));
        longpole.kill().expect("killed");
        longpole.wait().expect("waited");
        // The kernel takes the probes off a moment later.
        std::thread::sleep(Duration::from_millis(500));
        target.go();
        let said = target.ends(0);
        assert_eq!(said, "1 1\n", "killed after {wait_ms} ms");
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

/// A family that is used too often loses its probes, and all of them; the others go on; the report says what it means.
#[test]
fn a_hot_family_loses_its_probes_and_the_report_says_so() {
    let test = "a_hot_family_loses_its_probes_and_the_report_says_so";
    let Some(_turn) = live(test) else { return };
    let Some(program) = build(test, HOT, "cc", &[]) else { return };
    let recorded =
        program.launched(&["--interpose", "never", "--max-rate", "10000", "--overhead", "none"], &[]);
    assert!(
        recorded.said.contains("probes were taken off: mutexes and condition variables"),
        "{}",
        recorded.said
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
    let counts = counts(&recorded, 0);
    assert_eq!(number(&counts, SyncOperation::SemaphorePost), 7 + 11, "{counts:?}");
    assert_eq!(number(&counts, SyncOperation::ThreadCreate), 2);
    assert_eq!(number(&counts, SyncOperation::ThreadJoin), 2);
    let locks = number(&counts, SyncOperation::MutexLock);
    assert!((500..20_000).contains(&locks), "{locks} of 400,002");
    let late = recorded.recording.events.iter().filter(|event| match event {
        // One that began before may come back later.
        Record::Operation(operation) => operation.operation < 32 && operation.began_ns > off[0].0,
        _ => false,
    });
    assert_eq!(late.count(), 0);
    let text = String::from_utf8_lossy(
        &Command::new(LONGPOLE).arg("report").arg(&recorded.file).output().expect("report").stdout,
    )
    .into_owned();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("mutexes and condition variables were used too often for probes"), "{text}");
    let missing = "uncontended acquisitions of 1 object are not visible";
    assert_eq!(words.matches("uncontended acquisitions").count(), 1, "{text}");
    assert!(words.contains(missing), "{text}");
    // Who held a lock when its probes went is not taken to hold it for ever.
    assert!(!words.contains("deadlock"), "{text}");
}

/// Probes do not stay on after a recording, and a second one finds everything as it was.
#[test]
fn one_recording_after_another() {
    let test = "one_recording_after_another";
    let Some(_turn) = live(test) else { return };
    let Some(program) = build(test, BUSY, "cc", &[]) else { return };
    let mut target = program.gated();
    target.go();
    for _ in 0..3 {
        let file = program.folder.path().join("again.lp");
        let began = Instant::now();
        let output = Command::new(LONGPOLE)
            .args([
                "record",
                "--force",
                "--functions",
                "*",
                "-d",
                "300ms",
                "-p",
                &target.0.id().to_string(),
                "-o",
            ])
            .arg(&file)
            .output()
            .expect("longpole");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(began.elapsed() < Duration::from_secs(30));
        let recorded = read(&file, said);
        let counts = counts(&recorded, target.0.id());
        assert!(number(&counts, SyncOperation::MutexLock) > 0, "{counts:?}");
    }
    target.go();
    assert_eq!(target.ends(0), "1 1\n");
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

/// A process's own libc has no section that would name its functions. Another file of that name in the usual place got probes
/// instead, of which none was ever hit, and longpole said that operations were recorded.
#[test]
fn a_libc_without_symbols_is_said_to_be_one() {
    let test = "a_libc_without_symbols_is_said_to_be_one";
    let Some(_turn) = live(test) else { return };
    let Some(program) = build(test, WITHOUT_SYMBOLS, "cc", &["-Wl,-rpath,$ORIGIN"]) else { return };
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let own = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let Some(libc) = own.into_iter().find(|path| path.ends_with("/libc.so.6")) else {
        println!("SKIP {test}: no libc.so.6 here");
        return;
    };
    let mut bytes = std::fs::read(libc).expect("libc");
    // The header's place, number and names of sections: nobody needs them to run it.
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    std::fs::write(program.folder.path().join("libc.so.6"), bytes).expect("a copy");
    let recorded = program.attached(&[]);
    assert!(recorded.said.contains("libc.so.6 names no synchronization function"), "{}", recorded.said);
    assert_eq!(counts(&recorded, 0), BTreeMap::new());
    let report = |words: &[&str]| {
        let output = Command::new(LONGPOLE).args(words).arg(&recorded.file).output().expect("report");
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = "locks that nobody had to wait for leave no trace in the recording";
    assert_eq!(report(&["report"]).matches(said).count(), 1);
    assert!(report(&["report", "--by", "lock"]).contains("No lock operations are in this recording"));
    // From inside nothing has to be known about it.
    let inside = program.launched(&[], &[]);
    let locks = number(&counts(&inside, 0), SyncOperation::MutexLock);
    assert_eq!(
        (locks, inside.said.contains("recorded from inside the command")),
        (1009, true),
        "{}",
        inside.said
    );
}
