//! What happens to probes on C libraries, and to programs under them, when things go wrong.

use crate::support::{LONGPOLE, Recorded, build, live, read};
use engine::event::{GapReason, NoteKind};
use probe_abi::{Record, SyncFamily, SyncOperation};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How many of each operation a process has, 0 for all.
fn counts(recorded: &Recorded, pid: u32) -> BTreeMap<SyncOperation, usize> {
    let mut counts = BTreeMap::new();
    for event in &recorded.recording.events {
        if let Record::Operation(operation) = event
            && (pid == 0 || operation.header.pid == pid)
        {
            *counts.entry(SyncOperation::from_number(operation.operation).expect("known")).or_default() += 1;
        }
    }
    counts
}

fn number(counts: &BTreeMap<SyncOperation, usize>, operation: SyncOperation) -> usize {
    counts.get(&operation).copied().unwrap_or(0)
}

/// How many calls each object has, in order.
fn by_object(recorded: &Recorded, kind: SyncOperation) -> Vec<usize> {
    let mut objects: BTreeMap<u64, usize> = BTreeMap::new();
    for event in &recorded.recording.events {
        if let Record::Operation(operation) = event
            && operation.operation == kind as u16
        {
            *objects.entry(operation.object).or_default() += 1;
        }
    }
    let mut counts: Vec<usize> = objects.into_values().collect();
    counts.sort_unstable();
    counts
}

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
            .args(["record", "--force", "--max-rate", "1000000", "-p", &target.0.id().to_string(), "-o"])
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
            NoteKind::Gap { reason: GapReason::OperationsOff { family }, .. } => Some((note.time_ns, family)),
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

/// What is left with `longjmp` was no finished call, and hides nothing that comes after it.
#[test]
fn calls_left_by_longjmp_are_none() {
    let test = "calls_left_by_longjmp_are_none";
    let Some(_turn) = live(test) else { return };
    for flags in [&[][..], &["-static"]] {
        let Some(fixed) = build(test, JUMPS, "cc", flags) else { return };
        let recorded = fixed.launched(&["--interpose", "never"], &[]);
        let counts = counts(&recorded, 0);
        assert_eq!(number(&counts, SyncOperation::SemaphoreWait), 1, "{flags:?}: {counts:?}");
        assert_eq!(number(&counts, SyncOperation::SemaphorePost), 1);
        assert_eq!(number(&counts, SyncOperation::Once), 0);
        // A static program's libc has locks of its own, which nothing tells from others.
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

/// Exceptions go through a probed `pthread_once` as if there were no probes.
#[test]
fn exceptions_pass_through_once() {
    let test = "exceptions_pass_through_once";
    let Some(_turn) = live(test) else { return };
    let Some(program) = build(test, THROWS, "c++", &["-xc++", "-std=c++17"]) else { return };
    let output = Command::new(LONGPOLE)
        .args(["record", "--force", "--interpose", "never", "--max-rate", "1000000", "-o"])
        .arg(program.folder.path().join("throws.lp"))
        .arg("--")
        .arg(&program.path)
        .output()
        .expect("longpole");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "49\n");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let recorded = read(&program.folder.path().join("throws.lp"), String::new());
    let counts = counts(&recorded, 0);
    assert_eq!(number(&counts, SyncOperation::MutexLock), 50, "{counts:?}");
    // The unwinder has one of its own.
    let once = by_object(&recorded, SyncOperation::Once);
    assert_eq!(once.first(), Some(&1), "only the one that came back: {once:?}");
    assert!(once.len() <= 2, "{once:?}");
}

const FAMILY: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void locks(int times) {
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}
int main(int count, char **words) {
    if (count > 1 && !strcmp(words[1], "gate")) {
        puts("up");
        fflush(stdout);
        getchar();
    } else if (count > 1) {
        execl(words[1], words[1], (char *)0);
        return 9;
    }
    locks(13);
    pid_t child = fork();
    if (child == 0) {
        usleep(500000);
        locks(17);
        _exit(0);
    }
    pid_t other = fork();
    if (other == 0) {
        const char *program = getenv("LONGPOLE_TEST_STATIC");
        if (program) execl(program, program, (char *)0);
        _exit(0);
    }
    waitpid(child, 0, 0);
    waitpid(other, 0, 0);
    locks(19);
    return 0;
}
"#;

const ALONE: &str = r#"
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int main(void) {
    usleep(500000);
    for (int i = 0; i < 23; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}
"#;

fn children_of(recorded: &Recorded) -> Vec<u32> {
    let forked = recorded.recording.events.iter().filter_map(|event| match event {
        Record::Fork(fork) if fork.child_pid != fork.header.pid => Some(fork.child_pid),
        _ => None,
    });
    forked.collect()
}

/// Each operation is recorded in one way only: a program that was started with the library inside has no probes, and its
/// children neither, unless they run something that cannot have the library.
#[test]
fn every_process_is_recorded_in_one_way() {
    let test = "every_process_is_recorded_in_one_way";
    let Some(_turn) = live(test) else { return };
    let Some(program) = build(test, FAMILY, "cc", &[]) else { return };
    let Some(alone) = build(test, ALONE, "cc", &["-static"]) else { return };
    let variables = [("LONGPOLE_TEST_STATIC", alone.path.as_os_str())];
    let check = |recorded: &Recorded, inside: bool| {
        let counts_all = counts(recorded, 0);
        assert_eq!(number(&counts_all, SyncOperation::MutexLock), 13 + 17 + 19 + 23, "{}", recorded.said);
        assert_eq!(number(&counts_all, SyncOperation::MutexUnlock), 13 + 17 + 19 + 23);
        let children = children_of(recorded);
        assert_eq!(number(&counts(recorded, children[0]), SyncOperation::MutexLock), 17);
        assert_eq!(number(&counts(recorded, children[1]), SyncOperation::MutexLock), 23);
        // From inside nobody knows the CPU.
        let from_inside = |pid: u32| {
            let mut all = recorded
                .recording
                .events
                .iter()
                .filter(|event| matches!(event, Record::Operation(_)) && event.header().pid == pid);
            all.all(|event| event.header().cpu == probe_abi::Header::NO_CPU)
        };
        assert_eq!(from_inside(children[0]), inside);
        assert!(!from_inside(children[1]), "no library can be in a static program");
    };
    let probed = program.launched_with(&["--interpose", "never", "--children"], &[], &variables);
    check(&probed, false);
    assert!(probed.said.contains("in 3 processes"), "{}", probed.said);
    if collector::interpose::has_library() {
        let inside = program.launched_with(&["--interpose", "always", "--children"], &[], &variables);
        check(&inside, true);
        assert!(inside.said.contains("by probes on the C library of 1 process more"), "{}", inside.said);
    } else {
        println!(
            "SKIP {test}: this longpole was built without the library, so that only probes are looked at"
        );
    }
}

const SPLIT: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
static int (*real_lock)(void *), (*real_unlock)(void *);
static void find(void) {
    real_lock = (int (*)(void *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    real_unlock = (int (*)(void *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
}
__attribute__((noinline)) int pthread_mutex_lock(void *mutex) {
    if (!real_lock) find();
    int result = real_lock(mutex);
    __asm__ volatile("");
    return result;
}
__attribute__((noinline)) int pthread_mutex_unlock(void *mutex) {
    if (!real_unlock) find();
    int result = real_unlock(mutex);
    __asm__ volatile("");
    return result;
}
"#;

/// As glibc was before 2.34: the functions of threads are in a library of their own, and call libc's.
#[test]
fn a_libpthread_of_its_own_counts_once() {
    let test = "a_libpthread_of_its_own_counts_once";
    let Some(_turn) = live(test) else { return };
    let Some(split) = build(test, SPLIT, "cc", &["-shared", "-fPIC", "-Wl,-soname,libpthread.so.0"]) else {
        return;
    };
    let library = split.folder.path().join("libpthread.so.0");
    std::fs::rename(&split.path, &library).expect("renamed");
    let rpath = format!("-Wl,-rpath,{}", split.folder.path().display());
    let library = library.to_string_lossy().into_owned();
    let Some(program) = build(test, FAMILY, "cc", &["-Wl,--no-as-needed", &library, &rpath]) else { return };
    let recorded = program.attached(&[]);
    let counts = counts(&recorded, 0);
    assert_eq!(number(&counts, SyncOperation::MutexLock), 13 + 19, "{}", recorded.said);
    assert_eq!(number(&counts, SyncOperation::MutexUnlock), 13 + 19);
    assert!(recorded.said.contains("libpthread.so.0"), "{}", recorded.said);
}

const NAMESPACE: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void *tries(void *argument) {
    if (pthread_mutex_trylock(&recursive) != EBUSY) _exit(3);
    return argument;
}
int main(void) {
    printf("up\n");
    fflush(stdout);
    getchar();
    pthread_t thread;
    for (int i = 0; i < 3; i++) pthread_mutex_lock(&recursive);
    pthread_create(&thread, 0, tries, 0);
    pthread_join(thread, 0);
    for (int i = 0; i < 3; i++) pthread_mutex_unlock(&recursive);
    return 0;
}
"#;

/// In a PID namespace the mutex's owner has another number than the kernel's: it is no other thread for that.
#[test]
fn owners_in_another_pid_namespace_are_known() {
    let test = "owners_in_another_pid_namespace_are_known";
    let Some(_turn) = live(test) else { return };
    let Some(program) = build(test, NAMESPACE, "cc", &[]) else { return };
    let mut outer = Command::new("unshare")
        .args(["-pf", "--mount-proc", "--kill-child"])
        .arg(&program.path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare");
    std::io::Read::read_exact(outer.stdout.as_mut().expect("piped"), &mut [0; 3]).expect("up");
    let children = format!("/proc/{0}/task/{0}/children", outer.id());
    let inner: u32 = std::fs::read_to_string(children).expect("children").trim().parse().expect("one child");
    let file = program.folder.path().join("inner.lp");
    let mut longpole = Command::new(LONGPOLE)
        .args(["record", "--force", "--max-rate", "1000000", "-p", &inner.to_string(), "-o"])
        .arg(&file)
        .stderr(Stdio::piped())
        .spawn()
        .expect("longpole");
    let said = crate::support::until_recording(&mut longpole);
    std::io::Write::write_all(outer.stdin.as_mut().expect("piped"), b"\n").expect("told");
    assert_eq!(outer.wait().expect("ended").code(), Some(0));
    assert_eq!(longpole.wait().expect("ended").code(), Some(0), "{said}");
    // The number inside is no number of ours: whoever gives it is told which one is.
    assert!(said.contains(&format!("(pid {inner}, 1 in its PID namespace)")), "{said}");
    let info = Command::new(LONGPOLE).arg("info").arg(&file).output().expect("info");
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains(&format!("{inner} (1 in its PID namespace)")), "{info}");
    let recorded = read(&file, said);
    assert_eq!(recorded.recording.facts.processes[0].inner_pids, [1]);
    let contended = |kind: SyncOperation| -> Vec<bool> {
        let of = recorded.recording.events.iter().filter_map(|event| match event {
            Record::Operation(operation) if operation.operation == kind as u16 => {
                Some(operation.flags & 1 != 0)
            }
            _ => None,
        });
        of.collect()
    };
    assert_eq!(contended(SyncOperation::MutexLock), [false, false, false]);
    assert_eq!(contended(SyncOperation::MutexTryLock), [true]);
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
            .args(["record", "--force", "-d", "300ms", "-p", &target.0.id().to_string(), "-o"])
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

/// Who gives the number that a process has in its container is told the one that counts here.
#[test]
fn a_number_from_inside_a_container_gets_a_hint() {
    let test = "a_number_from_inside_a_container_gets_a_hint";
    let Some(_turn) = live(test) else { return };
    // In the new namespace the next process gets a number that nobody has here.
    let free = |number: &u32| !std::path::Path::new(&format!("/proc/{number}")).exists();
    let number = (30_000..32_000).find(free).expect("a number that nobody has");
    let script =
        format!("echo {} > /proc/sys/kernel/ns_last_pid && {{ sleep 100 & echo $!; wait; }}", number - 1);
    let mut outer = Command::new("unshare")
        .args(["-pf", "--mount-proc", "--kill-child", "sh", "-c", &script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare");
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(outer.stdout.as_mut().expect("piped")),
        &mut line,
    )
    .expect("a number");
    if line.trim() != number.to_string() {
        println!("SKIP {test}: ns_last_pid does not work here: {line:?}");
    } else {
        let output = Command::new(LONGPOLE).args(["record", "-p", line.trim()]).output().expect("longpole");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("no process with PID {number}")), "{said}");
        assert!(said.contains(&format!("has the number {number} in its own PID namespace")), "{said}");
        assert!(said.contains("hint: process ") && said.contains("`-p "), "{said}");
    }
    let _ = outer.kill();
    let _ = outer.wait();
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
