//! Waits whose waker, call and descriptor are known: each must be ended by exactly that thread, and be called so.

use longpole_tests::{Program, Recorded, skip_unless_built, skip_unless_live, workload};
use std::collections::BTreeMap;

const ROUNDS: usize = 23;

/// Edges of a program: (who woke, who waited, what for) → how many.
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

/// Waits of a thread that no thread of the recording ended, by name.
fn waits(program: &Program, comm: &str, kind: &str) -> usize {
    let of_thread = program.operations().filter(|(thread, _)| thread.split('/').next() == Some(comm));
    of_thread.filter(|(_, operation)| operation.get(2).is_some_and(|name| name == kind)).count()
}

/// Records one kind of wait: the edges into the waiter, and the addresses of the two words.
fn record(program: &std::path::Path, kind: &str, mode: &str) -> (Program, Vec<String>) {
    let options = ["--no-uprobes", "--children", "--interpose", "never"];
    let recorded = Recorded::good(&options, program, &[kind, &ROUNDS.to_string(), mode]);
    let words = recorded.ended.stdout.split_whitespace().map(str::to_owned).collect();
    (recorded.program(), words)
}

fn check(program: &std::path::Path, kind: &str, mode: &str, what: impl Fn(&[String]) -> String) {
    let (recorded, words) = record(program, kind, mode);
    let what = what(&words);
    let edges = edges(&recorded);
    let mut into_waiter: BTreeMap<_, _> = edges
        .iter()
        .filter(|((_, waiter, name), _)| waiter == "waiter" && name != "accept")
        .map(|((waker, _, name), count)| ((waker.as_str(), name.as_str()), *count))
        .collect();
    // Threads of a process sometimes wait for each other within the kernel: for its lock on their memory, say.
    if into_waiter.get(&("waker", "wake")).is_some_and(|&count| count <= 2) {
        into_waiter.remove(&("waker", "wake"));
    }
    assert_eq!(into_waiter, BTreeMap::from([(("waker", what.as_str()), ROUNDS)]), "{kind} {mode}: {edges:?}");
}

/// Pipe, eventfd, socket and futex between threads and between processes are edges: as many as there were wakes, and
/// from nobody else.
#[test]
fn every_wake_through_a_descriptor_is_an_edge_from_its_waker() {
    skip_unless_live!();
    let program = skip_unless_built!(workload::build("waits.c"));
    for mode in ["threads", "processes"] {
        for (kind, what) in [
            ("pipe", "pipe read"),
            ("eventfd", "eventfd read"),
            ("socketpair", "socket receive"),
            ("unix", "socket receive"),
            ("epoll", "poll"),
        ] {
            check(&program, kind, mode, |_| what.to_owned());
        }
    }
}

/// A wait that began on one word and was moved to another is ended by who wakes that one, and is still called by the
/// first; a PI lock is handed over; and of several words it was the one that was woken, where that can be known.
#[test]
fn every_wake_of_a_futex_is_an_edge_and_names_its_word() {
    skip_unless_live!();
    let program = skip_unless_built!(workload::build("waits.c"));
    for mode in ["threads", "processes"] {
        check(&program, "requeue", mode, |words| format!("futex {}", words[0]));
        check(&program, "pi", mode, |words| format!("futex lock pi {}", words[0]));
    }
    check(&program, "waitv", "threads", |words| format!("futex {}", words[1]));
    // Another process has the word at an address of its own.
    check(&program, "waitv", "processes", |words| format!("one of 2 futexes from {}", words[0]));
}

/// What a thread sends over the loopback device it mostly takes in itself, in a soft interrupt during its own system
/// call: it is the waker. Where the kernel leaves that to another thread, the network is.
#[test]
fn a_packet_over_the_loopback_device_is_its_senders_doing() {
    skip_unless_live!();
    let program = skip_unless_built!(workload::build("waits.c"));
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
fn a_futex_at_its_time_limit_is_a_sleep() {
    skip_unless_live!();
    let program = skip_unless_built!(workload::build("waits.c"));
    let (recorded, _) = record(&program, "timeout", "threads");
    let sleeps = |(thread, operation): &(&str, &[serde_json::Value])| {
        thread.starts_with("waiter/") && operation.first().is_some_and(|kind| kind == "sleep")
    };
    assert_eq!(recorded.operations().filter(sleeps).count(), ROUNDS);
}
