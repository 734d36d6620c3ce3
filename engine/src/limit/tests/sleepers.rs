//! Threads of a pool that sleep in what they do.

use super::*;

const GET: &str = r#"["sleep",2000000],["exec","get_object",50000]"#;

fn sleepers(found: &Limits) -> Option<(usize, f64)> {
    let kinds =
        found.at.iter().flat_map(|limit| limit.others.iter().map(|row| &row.kind).chain([&limit.kind]));
    kinds.into_iter().find_map(|kind| match kind {
        Kind::Sleepers { threads, asleep, .. } => Some((*threads, *asleep)),
        _ => None,
    })
}

/// An executor of four threads, each of which sleeps in the network for each request, was "sleeping 98 %", with "do not sleep".
#[test]
fn a_pool_whose_threads_all_sleep_in_their_tasks_has_too_few() {
    let found = on(&program(&alike("w", 4, 25, GET)), 2);
    let Kind::Sleepers { threads: 4, asleep, function } = &found.at[0].kind else { panic!("{found:?}") };
    assert!(*asleep > 0.9 && function.as_deref() == Some("get_object"), "{found:?}");
    let gain = |of: usize| {
        let is_it = |fix: &&Fix| matches!(&fix.edit, Edit::MoreSleepers { threads, more } if threads.len() + more == of);
        found.fixes.iter().find(is_it).map(|fix| (fix.gain * 10.0).round() / 10.0)
    };
    assert_eq!((gain(8), gain(16)), (Some(0.5), Some(0.7)), "{found:?}");
}

#[test]
fn threads_that_sleep_once_or_under_a_lock_or_wait_for_work_are_not_too_few() {
    let once = alike("w", 4, 1, r#"["sleep",40000000],["exec","f",1000000]"#);
    let locked = alike("w", 4, 25, r#"["lock","m"],["sleep",2000000],["exec","f",50000],["unlock","m"]"#);
    let feeder = alike("main", 1, 100, r#"["exec","f",1000000],["signal","work"]"#);
    let fed = alike("w", 4, 25, &format!(r#"["wait","work"],{GET}"#));
    for threads in [once, locked, format!("{feeder},{fed}")] {
        let found = on(&program(&threads), 2);
        assert_eq!(sleepers(&found), None, "{found:?}");
    }
}
