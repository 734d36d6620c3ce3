//! Threads that sleep again and again.

use super::*;

/// JSON of a thread that sleeps before each of these stretches of computing; all times in nanoseconds.
fn sleeper(name: &str, sleep: u32, computes: &[u32]) -> String {
    let operations = computes.iter().map(|ns| format!(r#"["sleep",{sleep}],["exec","f",{ns}]"#));
    let operations: Vec<String> = operations.cycle().take(40).collect();
    format!(r#"{{"name":"{name}","ops":[{}]}}"#, operations.join(","))
}

fn of(threads: &[String]) -> Limits {
    on(&recorded(program(&threads.join(",")), &[]), 2)
}

/// Workers that sleep 5 ms, check for work and mostly find none are limited by polling, not by sleeping.
#[test]
fn threads_that_sleep_and_find_no_work_are_limited_by_polling() {
    let found = of(&[
        sleeper("a", 5_000_000, &[10_000, 600_000, 12_000]),
        // The second worker finds work each time, and sleeps about as long.
        sleeper("b", 5_050_000, &[700_000]),
    ]);
    let LimitKind::Polling { threads: 2, every_ns, .. } = found.at[0].kind else { panic!("{found:?}") };
    assert!((4.9e6..5.1e6).contains(&every_ns), "{every_ns}");
    let first = found.fixes.first().expect("a change");
    assert!(matches!(first.edit, Edit::NoPolling(_)) && first.edit.is_at_best(), "{first:?}");
    assert!(first.gain > 0.7, "{first:?}");
    assert!(found.fixes.iter().all(|fix| fix.edit != Edit::NoSleeps), "one sentence is enough: {found:?}");
}

/// A thread that waits for an answer by sleeping finds it after each sleep; a thread that slows itself down always has work.
#[test]
fn threads_that_do_the_same_after_each_sleep_do_not_poll() {
    let always = |sleep| of(&[sleeper("a", sleep, &[150_000, 160_000, 140_000])]).at[0].kind.clone();
    assert_eq!(always(3_000_000), LimitKind::Timers { function: None });
    let little = of(&[sleeper("a", 8_000_000, &[60_000, 90_000, 40_000, 130_000])]);
    assert_eq!(little.at[0].kind, LimitKind::Timers { function: None });
    // At its start a thread finds no work once.
    let mut first = vec![600_000; 39];
    first.insert(0, 1_000);
    assert_eq!(of(&[sleeper("a", 5_000_000, &first)]).at[0].kind, LimitKind::Timers { function: None });
}

#[test]
fn threads_that_sleep_for_different_lengths_do_not_poll() {
    let sleeps = (0..40).map(|round| {
        let ns = 1_000_000 * (1 + round % 7);
        format!(r#"["sleep",{ns}],["exec","f",{}]"#, if round % 2 == 0 { 10_000 } else { 500_000 })
    });
    let thread = format!(r#"{{"name":"a","ops":[{}]}}"#, sleeps.collect::<Vec<_>>().join(","));
    assert_eq!(of(&[thread]).at[0].kind, LimitKind::Timers { function: None });
}

/// A lock that is tried again after 10 ms was "too few threads", since each request sleeps for 8 ms, too (public report:
/// RustCFML, issue 401).
#[test]
fn a_thread_may_sleep_for_something_else_between_its_checks() {
    let request = r#"["sleep",8000000],["exec","f",2000],["sleep",10000000],["exec","f",1000],["sleep",10000000],["exec","f",600000]"#;
    let thread = |name: &str| format!(r#"{{"name":"{name}","ops":[{}]}}"#, [request; 12].join(","));
    let found = of(&[thread("a"), thread("b"), thread("c")]);
    let LimitKind::Polling { threads: 3, every_ns, .. } = found.at[0].kind else { panic!("{found:?}") };
    assert_eq!(every_ns, 1e7);
    let gain = found.fixes.first().expect("a change").gain;
    assert!((0.6..0.75).contains(&gain), "20 of 28.6 ms: {gain}");
}

/// SQLite's busy handler sleeps 1, 2, 5, 10 ms and so on: that was "sleeping" or "too few threads".
#[test]
fn retries_after_sleeps_that_grow_are_polling() {
    let request = r#"["sleep",1000000],["exec","f",3000],["sleep",2000000],["exec","f",2000],["sleep",5000000],["exec","f",90000]"#;
    let thread =
        |name: &str, request: &str| format!(r#"{{"name":"{name}","ops":[{}]}}"#, [request; 12].join(","));
    let found = of(&[thread("a", request), thread("b", request)]);
    let LimitKind::Polling { threads: 2, longest_ns: Some(5e6), .. } = found.at[0].kind else {
        panic!("{found:?}")
    };
    // Sleeps that become shorter are no retries, and a check that finds something ends a retry.
    let shorter = r#"["sleep",5000000],["exec","f",3000],["sleep",2000000],["exec","f",2000],["sleep",1000000],["exec","f",90000]"#;
    let found = of(&[thread("a", shorter)]);
    assert!(!matches!(found.at[0].kind, LimitKind::Polling { longest_ns: Some(_), .. }), "{found:?}");
    let work = r#"["sleep",1000000],["exec","f",80000],["sleep",2000000],["exec","f",85000],["sleep",5000000],["exec","f",90000]"#;
    let found = of(&[thread("a", work)]);
    assert!(!matches!(found.at[0].kind, LimitKind::Polling { .. }), "{found:?}");
}
