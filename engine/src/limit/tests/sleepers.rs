//! Tests of pools whose threads sleep during their work.

use super::*;

const GET: &str = r#"["sleep",2000000],["exec","get_object",50000]"#;

fn sleepers(found: &Limits) -> Option<(usize, f64)> {
    let kinds =
        found.at.iter().flat_map(|limit| limit.others.iter().map(|row| &row.kind).chain([&limit.kind]));
    kinds.into_iter().find_map(|kind| match kind {
        LimitKind::Sleepers { threads, asleep, .. } => Some((*threads, *asleep)),
        _ => None,
    })
}

/// In an executor whose four threads sleep in the network for each request, more threads help; the advice is not to
/// sleep less.
#[test]
fn a_pool_whose_threads_all_sleep_in_their_tasks_has_too_few() {
    let found = on(&program(&alike("w", 4, 25, GET)), 2);
    let LimitKind::Sleepers { threads: 4, asleep, function, answers: None } = &found.at[0].kind else {
        panic!("{found:?}")
    };
    assert!(*asleep > 0.9 && function.as_deref() == Some("get_object"), "{found:?}");
    let gain = |of: usize| {
        let is_it = |fix: &&Fix| matches!(&fix.edit, Edit::MoreSleepers { threads, more } if threads.len() + more == of);
        found.fixes.iter().find(is_it).map(|fix| (fix.gain * 10.0).round() / 10.0)
    };
    assert_eq!((gain(8), gain(16)), (Some(0.5), Some(0.7)), "{found:?}");
}

#[test]
fn threads_that_sleep_once_or_under_a_lock_or_are_fed_are_not_too_few() {
    let once = alike("w", 4, 1, r#"["sleep",40000000],["exec","f",1000000]"#);
    let locked = alike("w", 4, 25, r#"["lock","m"],["sleep",2000000],["exec","f",50000],["unlock","m"]"#);
    let feeder = alike("main", 1, 100, r#"["exec","f",1000000],["signal","work"]"#);
    let fed = alike("w", 4, 25, &format!(r#"["wait","work"],{GET}"#));
    for threads in [once, locked, format!("{feeder},{fed}")] {
        let found = on(&program(&threads), 2);
        assert_eq!(sleepers(&found), None, "{found:?}");
    }
}

/// Workers of a proxy that each wait for the upstream server are too few, as in the public report aether#1755.
#[test]
fn a_pool_whose_threads_all_wait_for_answers_has_too_few() {
    let wait = |of: &str| format!(r#"["io",2000000,"{of}"],["exec","handle",50000]"#);
    let found = on(&program(&alike("w", 4, 25, &wait("answers of 10.0.0.7:5432"))), 2);
    let LimitKind::Sleepers { threads: 4, answers: Some(of), .. } = &found.at[0].kind else {
        panic!("{found:?}")
    };
    assert_eq!(of, "answers of 10.0.0.7:5432");
    assert!(matches!(found.fixes.first().map(|fix| &fix.edit), Some(Edit::MoreSleepers { .. })), "{found:?}");
    // Threads that wait in `recv` may wait for requests.
    let found = on(&program(&alike("w", 4, 25, &wait("socket receive"))), 2);
    assert_eq!(sleepers(&found), None, "{found:?}");
}

/// Nothing may say that more threads do not help if all of them wait outside of the program, whether for work or in it.
#[test]
fn of_a_pool_that_waits_outside_of_the_program_it_is_not_known_what_more_threads_bring() {
    let waits =
        |ns: u32| alike("w", 4, 25, &format!(r#"["io",{ns},"socket receive"],["exec","handle",50000]"#));
    assert_eq!(on(&program(&waits(2_000_000)), 2).more_threads, None);
    assert!(on(&program(&waits(2_000)), 2).more_threads.is_some(), "they compute");
}

/// Two workers of a Python executor: the function that each computes most differs by chance, and each takes a lock of its own.
fn workers(second: &str, creates: &str) -> Program {
    let work = |name: &str, function: &str, lock: &str| {
        let round = format!(
            r#"["sem_wait","{lock}"],["sem_post","{lock}"],["sleep",4000000],["exec","{function}",90000],["exec","eval",60000]"#
        );
        format!(r#"{{"name":"{name}","ops":[{}]}}"#, vec![round; 50].join(","))
    };
    // The main thread computes the same function as one of the workers.
    let main = format!(
        r#"{{"name":"main","ops":[["exec","hash",400000],["sem_init","a",1],["sem_init","b",1],["sem_init","items",0],["create","w1"]{creates}]}}"#
    );
    let first = work("w1", "hash", "a");
    program(&format!("{main},{first},{}", work(second, "parse", "b")))
}

#[test]
fn workers_that_were_started_alike_and_sleep_alike_are_a_pool() {
    let found = on(&workers("w2", r#",["create","w2"]"#), 2);
    assert!(matches!(found.at[0].kind, LimitKind::Sleepers { threads: 2, .. }), "{found:?}");
    let first = found.fixes.first().expect("a change");
    assert!(matches!(first.edit, Edit::MoreSleepers { .. }), "more of them, in place of no sleep: {found:?}");
    // A thread with another name does something else.
    let found = on(&workers("flusher", r#",["create","flusher"]"#), 2);
    assert_eq!(sleepers(&found), None, "{found:?}");
}

/// Both stages sleep equally long for each item, and the second stage gets the item from the first one.
#[test]
fn stages_that_sleep_alike_are_no_pool() {
    let stage = |name: &str, own: &str, operations: &str| {
        let round = format!(r#"{operations}["sleep",4000000],["exec","{own}",90000]"#);
        let round = if operations.is_empty() { format!(r#"{round},["sem_post","items"]"#) } else { round };
        format!(r#"{{"name":"{name}","ops":[{}]}}"#, vec![round; 50].join(","))
    };
    let main = r#"{"name":"main","ops":[["sem_init","items",0],["create","s1"],["create","s2"]]}"#;
    let threads = [main.to_owned(), stage("s1", "read", ""), stage("s2", "send", r#"["sem_wait","items"],"#)];
    let found = on(&program(&threads.join(",")), 2);
    assert_eq!(sleepers(&found), None, "{found:?}");
}
