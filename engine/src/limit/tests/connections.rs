//! Servers whose requests wait for connections.

use super::*;
use crate::event::Overhead;
use crate::limit::Meanwhile;
use crate::program::{CauseKind, Endpoint, RecordedWait, TimePart};

fn end(served: bool, open: f64, load: f64) -> Endpoint {
    Endpoint {
        served,
        name: if served { "port 80" } else { "10.0.0.7:5432" }.to_owned(),
        count: 1_000,
        per_second: 100.0,
        open,
        mean_ns: 1e7,
        load: Some(load),
        ..Endpoint::default()
    }
}

/// The limit on 8 CPUs of a server whose threads wait for sockets most of the time.
fn of(traffic: Vec<Endpoint>, dropped: u64) -> LimitKind {
    let mut program = program(&alike("w", 4, 10, r#"["io",90000,"socket receive"],["exec","serve",1000]"#));
    program.recorded.traffic = traffic;
    program.recorded.dropped_connections = dropped;
    on(&program, 8).at[0].kind.clone()
}

/// A pool of four connections was "waiting for answers", or turns (public report: capella, issue 1924).
#[test]
fn a_pool_whose_connections_are_all_in_use_is_the_limit() {
    let LimitKind::Connections { server, connections, waiting, port, probably: false } =
        of(vec![end(true, 16.0, 0.97), end(false, 3.9, 0.98)], 0)
    else {
        panic!("connections");
    };
    assert_eq!((server.as_str(), port.as_deref(), connections), ("10.0.0.7:5432", Some("port 80"), 4));
    assert!((waiting - 12.1).abs() < 0.01, "{waiting}");
}

/// Ten workers that share five connections "waited for socket receive" (public report: email-alert-api, pull request 349).
#[test]
fn threads_that_share_fewer_connections_wait_for_them() {
    let of = |threads: u64, traffic: Vec<Endpoint>| {
        let mut program =
            program(&alike("w", 4, 10, r#"["io",90000,"socket receive"],["exec","serve",1000]"#));
        let wait =
            RecordedWait { name: "socket receive".into(), threads, waits: 9, ..RecordedWait::default() };
        program.recorded.waits.push(wait);
        program.recorded.traffic = traffic;
        on(&program, 8).at[0].kind.clone()
    };
    let asked = || end(false, 4.9, 0.98);
    let LimitKind::Connections { connections: 5, waiting, port: None, .. } = of(10, vec![asked()]) else {
        panic!("connections");
    };
    assert!((4.0..5.2).contains(&waiting), "{waiting}");
    assert!(!matches!(of(5, vec![asked()]), LimitKind::Connections { .. }), "each thread has its own");
    assert!(
        !matches!(of(100, vec![asked(), end(true, 4.9, 0.1)]), LimitKind::Connections { .. }),
        "threads wait for clients"
    );
}

#[test]
fn connections_that_are_free_now_and_then_are_no_limit() {
    let is_pool = |served: Endpoint, asked: Endpoint| {
        matches!(of(vec![served, asked], 0), LimitKind::Connections { .. })
    };
    assert!(is_pool(end(true, 16.0, 0.97), end(false, 3.9, 0.98)));
    assert!(!is_pool(end(true, 16.0, 0.97), end(false, 3.9, 0.6)), "one is free");
    let fewer = Endpoint { per_second: 50.0, ..end(false, 1.0, 0.99) };
    assert!(!is_pool(end(true, 16.0, 0.97), fewer), "it may carry many requests at a time");
    // Public report: node-postgres, issue 660.
    assert!(is_pool(end(true, 16.0, 0.97), end(false, 1.0, 0.99)), "one for each request that is served");
    assert!(!is_pool(end(true, 16.0, 0.1), end(false, 3.9, 0.98)), "the clients set the pace");
    let unread = Endpoint { queued: 0.75, ..end(true, 16.0, 0.97) };
    assert!(!is_pool(unread, end(false, 3.9, 0.98)), "threads are missing, which would read them");
    let damaged = Endpoint { open: f64::NAN, load: Some(f64::NAN), ..end(false, 0.0, 0.0) };
    assert!(!is_pool(end(true, 16.0, 0.97), damaged));
}

/// A server with a short queue of new connections was "idle" (public report: sledge, issue 395).
#[test]
fn dropped_connections_are_the_limit_if_their_clients_lose_much_time() {
    let served = || vec![end(true, 2.0, 0.3)];
    assert_eq!(of(served(), 200), LimitKind::Backlog { dropped: 200 });
    assert!(!matches!(of(served(), 1), LimitKind::Backlog { .. }), "20 s of requests, 1 s lost");
    assert!(!matches!(of(Vec::new(), 200), LimitKind::Backlog { .. }), "another program's connections");
}

/// A pool of four threads that sleep in each request was "sleeping", a single accepting thread, too (public report:
/// geowebcache, issue 1220).
#[test]
fn requests_that_lie_unread_while_all_threads_have_one_need_more_threads() {
    let served = |open: f64, queued: f64, threads: Option<u32>| Endpoint {
        queued,
        threads,
        load: None,
        ..end(true, open, 0.0)
    };
    let few = |end: Endpoint| of(vec![end], 0);
    assert_eq!(
        few(served(32.0, 0.875, Some(4))),
        LimitKind::AnsweringThreads {
            threads: 4,
            port: "port 80".to_owned(),
            unread: 28.0,
            blocked_by: None
        }
    );
    let is_few = |end: Endpoint| matches!(few(end), LimitKind::AnsweringThreads { .. });
    assert!(is_few(Endpoint { load: Some(0.98), ..served(32.0, 0.875, Some(4)) }));
    assert!(!is_few(served(32.0, 0.875, Some(8))), "threads are free");
    assert!(!is_few(served(32.0, 0.875, Some(1))), "an event loop has several requests at a time");
    assert!(!is_few(served(32.0, 0.875, None)) && !is_few(served(4.2, 0.05, Some(4))));
}

/// A blocking call in an event loop was "waiting for answers", as if the other server were slow (public report: ogx, issue
/// 5178).
#[test]
fn an_event_loop_that_waits_for_one_answer_at_a_time_has_too_few_threads() {
    let limit = |open: f64, asked: f64| {
        let mut program =
            program(&alike("w", 1, 10, r#"["io",90000,"answers of 10.0.0.7:5432"],["exec","serve",1000]"#));
        let served = Endpoint { queued: 0.45, threads: Some(1), ..end(true, open, 0.99) };
        program.recorded.traffic = vec![served, Endpoint { load: None, ..end(false, asked, 0.0) }];
        program.overhead = Some(Overhead { wall_ns: 900_000, target_ns: 200_000_000, ..Overhead::default() });
        let wait =
            RecordedWait { name: "answers of 10.0.0.7:5432".into(), wait_ns: 880_000, ..Default::default() };
        program.recorded.waits = vec![wait];
        on(&program, 8).at[0].kind.clone()
    };
    let LimitKind::AnsweringThreads { threads: 1, unread, blocked_by: Some(by), .. } = limit(10.6, 0.97)
    else {
        panic!("another limit: {:?}", limit(10.6, 0.97));
    };
    assert_eq!((by.as_str(), unread), ("answers of 10.0.0.7:5432", 9.6));
    let is_blocked =
        |open, asked| matches!(limit(open, asked), LimitKind::AnsweringThreads { blocked_by: Some(_), .. });
    assert!(!is_blocked(10.6, 5.0), "five answers are awaited together");
    assert!(!is_blocked(1.2, 0.97), "no other request waits");
}

/// Requests that wait for a thread pool's name lookups were "not known" (public report: node, issue 49394).
#[test]
fn open_requests_name_the_largest_known_part_of_their_time() {
    let part =
        |kind: CauseKind, share: f64| TimePart { kind, name: "x".to_owned(), share, under: Vec::new() };
    let spent = |parts: Vec<TimePart>| {
        let mut program = program(&alike("w", 4, 10, r#"["io",90000,"idle"],["exec","serve",1000]"#));
        program.recorded.traffic = vec![Endpoint { spent: parts, ..end(true, 16.0, 0.97) }];
        match on(&program, 8).at[0].kind.clone() {
            LimitKind::OpenRequests { spent, .. } => spent,
            other => panic!("{other:?}"),
        }
    };
    let most = spent(vec![part(CauseKind::Computing, 0.5), part(CauseKind::Process, 0.3)]);
    assert!(matches!(most, Some(Meanwhile { kind: CauseKind::Process, share: 0.3, .. })), "{most:?}");
    assert_eq!(spent(vec![part(CauseKind::Unknown, 0.9)]), None);
}

/// PostgreSQL's row locks were "not known" or "waiting for file sync".
#[test]
fn requests_that_wait_for_each_other_are_the_limit_while_cpus_are_free() {
    let part = |kind: CauseKind, share: f64| TimePart {
        kind,
        name: "poll in wait, ended by wake".to_owned(),
        share,
        under: vec![TimePart { kind: CauseKind::Disk, share: share / 2.0, ..TimePart::default() }],
    };
    let served = |kind: CauseKind, share: f64| Endpoint {
        spent: vec![part(CauseKind::Computing, 0.1), part(kind, share)],
        ..end(true, 8.0, 0.97)
    };
    let LimitKind::OtherRequests { wait, waits, meanwhile, .. } =
        of(vec![served(CauseKind::OtherRequest, 0.7)], 0)
    else {
        panic!("another limit")
    };
    assert_eq!((wait.as_str(), waits), ("poll in wait, ended by wake", 0.7));
    assert!(matches!(&meanwhile[..], [Meanwhile { kind: CauseKind::Disk, share: 0.5, .. }]), "{meanwhile:?}");
    let is_limit = |served: Endpoint| matches!(of(vec![served], 0), LimitKind::OtherRequests { .. });
    assert!(!is_limit(served(CauseKind::OtherRequest, 0.1)) && !is_limit(served(CauseKind::Lock, 0.7)));
    let rare = Endpoint { load: Some(0.1), ..served(CauseKind::OtherRequest, 0.7) };
    assert!(!is_limit(rare), "the clients set the pace");
}

/// HAProxy with maxconn 2 was "not known": it keeps connections that it does not use.
#[test]
fn requests_held_back_from_a_server_are_probably_the_limit() {
    let held = |open: f64, spent: Vec<TimePart>| {
        let served = Endpoint { spent, ..end(true, 30.0, 0.97) };
        matches!(of(vec![served, end(false, open, 0.6)], 0), LimitKind::Connections { probably: true, .. })
    };
    assert!(held(1.8, Vec::new()));
    assert!(!held(9.0, Vec::new()), "many are open");
    let sleeps = TimePart { kind: CauseKind::Timer, share: 0.8, ..TimePart::default() };
    assert!(!held(1.8, vec![sleeps]), "requests wait for time to pass");
}
