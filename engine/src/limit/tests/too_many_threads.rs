//! More threads than CPUs.

use super::*;
use crate::program::ObjectKind;

/// Threads that compute in rounds; the last one ends each round, and the others spin until then.
fn rounds(count: usize, length: u32) -> String {
    uneven_rounds(count, length, length)
}

/// Rounds in which all threads compute for `length`, except the last thread, which computes for `last`.
fn uneven_rounds(count: usize, length: u32, last: u32) -> String {
    let thread = |number: usize| {
        let round = |round: usize| {
            let edge = |of: usize| format!("spinning #{}", round * count + of);
            let ends: Vec<String> = match number + 1 == count {
                true => (0..number).map(|of| format!(r#"["release","{}"]"#, edge(of))).collect(),
                false => vec![format!(r#"["await","{}"]"#, edge(number))],
            };
            let length = if number + 1 == count { last } else { length };
            format!(r#"["exec","crunch",{length}],{}"#, ends.join(","))
        };
        let rounds: Vec<String> = (0..40).map(round).collect();
        format!(r#"{{"name":"w{number}","ops":[{}]}}"#, rounds.join(","))
    };
    (0..count).map(thread).collect::<Vec<_>>().join(",")
}

fn two_of(found: &Limits) -> Option<f64> {
    let is_it = |fix: &&Fix| matches!(fix.edit, Edit::FewerThreads { kept: 2, .. });
    found.fixes.iter().find(is_it).map(|fix| fix.gain)
}

/// A recording of half a second in which threads spin for `spun_ns`.
fn spinning(threads: usize, spun_ns: u64) -> Limits {
    on(&spun(&rounds(threads, 800_000), spun_ns), 2)
}

fn spun(threads: &str, spun_ns: u64) -> Program {
    let mut program = recorded(program(threads), &[]);
    program.overhead = Some(Overhead { wall_ns: 500_000_000, target_ns: 900_000_000, ..Overhead::default() });
    program.recorded_cpus = Some(2);
    program.findings.push(Finding::Spinning { spun_ns, ran_ns: 0, waits: 9, guessed: 0, hand_overs: 0 });
    program
}

fn is_told(found: &Limits) -> bool {
    let kinds =
        found.at.iter().flat_map(|limit| limit.others.iter().map(|row| &row.kind).chain([&limit.kind]));
    kinds.into_iter().any(|kind| matches!(kind, LimitKind::TooManyThreads { .. }))
}

/// Four threads of a spinning barrier on two CPUs are too many; the limit is neither unknown nor CPUs.
#[test]
fn spinning_threads_on_too_few_cpus_are_too_many_threads() {
    let found = spinning(4, 700_000_000);
    let LimitKind::TooManyThreads { threads: 4, then: 2, function } = &found.at[0].kind else {
        panic!("{found:?}")
    };
    assert_eq!(function.as_deref(), Some("crunch"));
    // Each CPU computes for 64 ms of half a second.
    assert!(found.at[0].share > 0.7 && found.at[0].gain() < 0.2, "{found:?}");
    assert!(two_of(&found).is_some_and(|gain| gain >= WORTH), "{found:?}");
    assert!(found.more_threads.is_none_or(|more| more.gain < WORTH), "one more is no advice: {found:?}");
    let other = spinning(4, 10_000_000);
    assert!(matches!(other.at[0].kind, LimitKind::Unexplained { .. }), "something else took it: {other:?}");
    let two = spinning(2, 700_000_000);
    assert!(matches!(two.at[0].kind, LimitKind::Unexplained { .. }), "each has a CPU: {two:?}");
}

/// As many threads as CPUs are not too many, nor are threads that only compute, or that rarely wait for each other and
/// sleep then.
#[test]
fn threads_that_hardly_wait_for_each_other_are_not_too_many() {
    let rarely = alike("w", 4, 10, r#"["exec","f",4000000],["barrier","b",4]"#);
    let alone = alike("w", 4, 1, r#"["exec","f",40000000]"#);
    for threads in [rounds(2, 800_000), alone, rarely] {
        let found = on(&recorded(program(&threads), &[]), 2);
        assert!(!is_told(&found) && two_of(&found).is_none(), "{found:?}");
    }
}

/// Threads that wait at one monitor of Java, whose waits are replayed, are not too many.
#[test]
fn threads_that_wait_for_an_unrecorded_lock_are_not_too_many() {
    // A CPU is idle for a part of the time: threads may wait for the lock then.
    let mut program = spun(&uneven_rounds(4, 800_000, 4_800_000), 700_000_000);
    assert!(is_told(&on(&program, 2)), "without the lock");
    let family = "mutexes and condition variables".to_owned();
    program.findings.push(Finding::OperationsOff { family, processes: 1, after_ns: None, tried: None });
    program.recorded.objects.push(RecordedObject {
        name: "futex gate".to_owned(),
        kind: ObjectKind::Futex,
        waits: 1_000,
        wait_ns: 1_000_000_000,
        by_waiters: 900,
        ..RecordedObject::default()
    });
    let found = on(&program, 2);
    assert!(!is_told(&found) && two_of(&found).is_none(), "{found:?}");
}

#[test]
fn what_if_with_fewer_threads_takes_any_smaller_number() {
    let program = recorded(program(&rounds(4, 800_000)), &[]);
    let search = Search::new(&program, &[], &Model::default()).expect("a program");
    let workers = search.workers().expect("workers");
    let with = |kept| search.with_fewer(&workers, kept, Cpus::count(2).expect("2"));
    let (before, after) = with(2).expect("known");
    assert!(after <= before * 1.01, "{before} to {after}");
    let (_, one) = with(1).expect("known");
    assert!(one > after, "one CPU is idle");
    assert_eq!((with(4), with(0)), (None, None));
}
