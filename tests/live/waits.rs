//! Waits whose waker, system call and descriptor are known. Exactly that thread must end each wait, and the wait must
//! have the right name.

use longpole_tests::{Longpole, Program, Recorded, run, skip, skip_unless_live};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const ROUNDS: usize = 23;
const OPTIONS: [&str; 3] = ["--children", "--interpose", "never"];

/// Number of wake-ups of a program by (waker, waiter, kind of wait).
fn edges(program: &Program) -> BTreeMap<(String, String, String), usize> {
    let mut wakers: BTreeMap<&str, &str> = BTreeMap::new();
    let mut waits: Vec<(&str, &str)> = Vec::new();
    for (thread, operation) in program.operations() {
        let comm = thread.split('/').next().unwrap_or_default();
        match operation {
            [kind, edge] if kind == "release" => {
                wakers.insert(edge.as_str().unwrap_or_default(), comm);
            }
            [kind, edge] if kind == "await" => waits.push((edge.as_str().unwrap_or_default(), comm)),
            _ => {}
        }
    }
    let mut edges = BTreeMap::new();
    for (edge, waiter) in waits {
        let waker = wakers.get(edge).copied().unwrap_or("nobody");
        let what = edge.rsplit_once(" #").map_or(edge, |(what, _)| what);
        *edges.entry((waker.to_owned(), waiter.to_owned(), what.to_owned())).or_insert(0) += 1;
    }
    edges
}

/// Number of a thread's waits with this name that no recorded thread ended.
fn waits(program: &Program, comm: &str, kind: &str) -> usize {
    let of_thread = program.operations().filter(|(thread, _)| thread.split('/').next() == Some(comm));
    of_thread.filter(|(_, operation)| operation.get(2).is_some_and(|name| name == kind)).count()
}

/// The row of `report --by wait` with this name.
fn row(recorded: &Recorded, name: &str) -> serde_json::Value {
    let said = Longpole::with(["report", "--json", "--by", "wait"]).and(&recorded.file).ok();
    let report: serde_json::Value = serde_json::from_str(&said.stdout).expect("JSON");
    let rows = report["waits"].as_array().expect("waits");
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}: {report}")).clone()
}

/// Records one kind of wait. Returns the program, and the addresses of the two words.
fn record(program: &std::path::Path, kind: &str, mode: &str) -> (Program, Vec<String>) {
    let recorded = Recorded::good(&OPTIONS, program, &[kind, &ROUNDS.to_string(), mode]);
    let words = recorded.ended.stdout.split_whitespace().map(str::to_owned).collect();
    (recorded.program(), words)
}

fn check(program: &std::path::Path, kind: &str, mode: &str, what: impl Fn(&[String]) -> String) {
    let (recorded, words) = record(program, kind, mode);
    let what = what(&words);
    let edges = edges(&recorded);
    let mut into_waiter: BTreeMap<_, _> = edges
        .iter()
        .filter(|((_, waiter, name), _)| waiter == "waiter" && (name != "accept" || kind == "accept"))
        .map(|((waker, _, name), count)| ((waker.as_str(), name.as_str()), *count))
        .collect();
    // Threads of a process sometimes wait for each other in the kernel, for example for the lock on their memory map.
    if into_waiter.get(&("waker", "wake")).is_some_and(|&count| count <= 2) {
        into_waiter.remove(&("waker", "wake"));
    }
    assert_eq!(into_waiter, BTreeMap::from([(("waker", what.as_str()), ROUNDS)]), "{kind} {mode}: {edges:?}");
}

/// Each wake-up by pipe, eventfd, socket or futex, between threads or processes, must be an edge. There must be as many
/// edges as wake-ups, and none from another thread.
#[test]
fn every_wake_up_through_a_descriptor_is_an_edge_from_its_waker() {
    let program = skip_unless_live!("waits.c");
    for mode in ["threads", "processes"] {
        for (kind, what) in [
            ("pipe", "pipe read"),
            ("eventfd", "eventfd read"),
            ("socketpair", "socket receive"),
            ("unix", "socket receive"),
            ("epoll", "poll"),
            ("accept", "accept"),
            ("connect", "connect"),
        ] {
            check(&program, kind, mode, |_| what.to_owned());
        }
    }
}

/// The kernel interrupts a thread for completions in its own way, which is not a signal's.
#[test]
fn an_io_uring_completion_is_an_edge_from_the_thread_that_caused_it() {
    let program = skip_unless_live!("waits.c");
    let tried = run(Command::new(&program).args(["ring", "1"]), LIMIT).expect("a program that runs");
    if tried.code == Some(77) {
        skip!("{}", tried.stderr.trim());
    }
    for mode in ["threads", "processes"] {
        check(&program, "ring", mode, |_| "io_uring".to_owned());
    }
}

/// A kernel thread passes on what is typed into a terminal. So no recorded thread wakes the reader, and its wait must
/// count as idle.
#[test]
fn a_read_from_a_terminal_is_an_idle_wait() {
    let program = skip_unless_live!("waits.c");
    for mode in ["threads", "processes"] {
        let recorded = Recorded::good(&OPTIONS, &program, &["terminal", &ROUNDS.to_string(), mode]);
        let program = recorded.program();
        let edges = edges(&program);
        let by_waker = edges.get(&("waker".to_owned(), "waiter".to_owned(), "terminal read".to_owned()));
        let outside = waits(&program, "waiter", "idle");
        let all = outside + by_waker.copied().unwrap_or(0);
        // The kernel may wake the reader before it has passed on what was typed. Then the reader sleeps once more.
        assert!((ROUNDS..=2 * ROUNDS).contains(&all), "{mode}: {all} waits, {edges:?}");
        assert!(outside > ROUNDS / 2, "{mode}: {edges:?}");
        assert_eq!(row(&recorded, "terminal read")["idle"], true);
    }
}

/// Reads that bypass the cache and synced writes wait for the disk. Such waits must not count as waits for a thread,
/// even where the disk's interrupt comes while a thread runs.
#[test]
fn reads_and_syncs_of_a_file_are_waits_for_the_disk() {
    const FEWEST: usize = 3;
    let program = skip_unless_live!("disk.c");
    // The folder is next to the program, because temporary folders are often in memory and never wait for a disk.
    let folder = tempfile::tempdir_in(program.parent().expect("a folder")).expect("a folder");
    let file = folder.path().join("data");
    let file = file.to_str().expect("a name");
    let tried = run(Command::new(&program).args([file, "1"]), LIMIT).expect("a program that runs");
    if tried.code == Some(77) {
        skip!("{}", tried.stderr.trim());
    }
    let rounds = ROUNDS.to_string();
    let recorded = Recorded::good(&["--interpose", "never"], &program, &[file, &rounds]);
    let program = recorded.program();
    let (reads, syncs) = (waits(&program, "disk", "file read"), waits(&program, "disk", "file sync"));
    // The disk may have finished before the thread has left its CPU, more often on a busy machine. So fewer waits than
    // reads are no error, but more are.
    assert!((FEWEST..=ROUNDS + 2).contains(&reads), "{reads} reads");
    // In between, the program may wait for the file system's own threads.
    assert!(syncs >= FEWEST, "{syncs} syncs");
    assert_eq!(edges(&program).len(), 0, "{:?}", edges(&program));
    let row = row(&recorded, "file read");
    let by_disk = row["ended_by"].as_array().and_then(|ends| ends.iter().find(|end| end["name"] == "disk"));
    assert!(by_disk.is_some_and(|end| end["count"].as_u64() > Some(reads as u64 / 2)), "{row}");
    let name = folder.path().file_name().expect("a name").to_str().expect("UTF-8");
    let of = |row: &serde_json::Value| row["of"].as_array().cloned().unwrap_or_default();
    let [read] = &of(&row)[..] else { panic!("one file was read: {row}") };
    assert_eq!(read["name"].as_str(), Some(&*format!("{name}/data")));
    assert_eq!(read["waits"], row["waits"], "{row}");
}

/// If a wait is requeued from one word to another, the thread that wakes the second word must end it, and it must keep
/// the first word's name. A PI lock is passed on directly. A wait for several words must be named after the word that
/// was woken, where that can be known.
#[test]
fn every_wake_up_of_a_futex_is_an_edge_and_names_its_word() {
    let program = skip_unless_live!("waits.c");
    for mode in ["threads", "processes"] {
        check(&program, "requeue", mode, |words| format!("futex {}", words[0]));
        check(&program, "pi", mode, |words| format!("futex lock pi {}", words[0]));
    }
    check(&program, "waitv", "threads", |words| format!("futex {}", words[1]));
    // Another process has the word at another address.
    check(&program, "waitv", "processes", |words| format!("one of 2 futexes from {}", words[0]));
}

/// A packet over the loopback device is mostly received in a soft interrupt during the sender's own system call. Then
/// the sender must be the waker. Where the kernel leaves receiving to another thread, the network must be.
#[test]
fn a_packet_over_loopback_is_an_edge_from_its_sender() {
    let program = skip_unless_live!("waits.c");
    for mode in ["threads", "processes"] {
        let (recorded, _) = record(&program, "tcp", mode);
        let edges = edges(&recorded);
        let received = |waker: &str| {
            let key = (waker.to_owned(), "waiter".to_owned(), "socket receive".to_owned());
            edges.get(&key).copied().unwrap_or(0)
        };
        let (by_waker, by_network) = (received("waker"), waits(&recorded, "waiter", "socket receive"));
        assert_eq!(by_waker + by_network, ROUNDS, "{mode}: {edges:?}");
        assert!(by_waker > ROUNDS / 2, "{mode}: {by_waker} of {ROUNDS}");
        let others = edges.keys().filter(|(waker, waiter, _)| waiter == "waiter" && waker != "waker").count();
        assert_eq!(others, 0, "{mode}: {edges:?}");
    }
}

#[test]
fn a_futex_wait_that_times_out_is_a_sleep() {
    let program = skip_unless_live!("waits.c");
    let (recorded, _) = record(&program, "timeout", "threads");
    let sleeps = |(thread, operation): &(&str, &[serde_json::Value])| {
        thread.starts_with("waiter/") && operation.first().is_some_and(|kind| kind == "sleep")
    };
    // If a thread loses its CPU on its way to sleep for longer than the limit, it does not sleep any more.
    let count = recorded.operations().filter(sleeps).count();
    assert!(count > ROUNDS / 2 && count <= ROUNDS, "{count}");
}
