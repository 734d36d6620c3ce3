//! Programs of Go's, whose waits are not visible.

use super::*;
use crate::program::{GoroutineWaits, OtherUse};

fn of_go(waits: &[(&str, u64)]) -> Limits {
    let mut program =
        program(&alike("m", 2, 40, r#"["exec","main.work",1000000],["signal","s"],["wait","s"]"#));
    program.findings.push(Finding::Uncontended { objects: 0, all_locks: false, rust: false, go: true });
    let wait = |(what, count): &(&str, u64)| GoroutineWaits {
        what: (*what).to_owned(),
        function: Some("main.handle".to_owned()),
        count: *count,
    };
    program.recorded.goroutines = waits.iter().map(wait).collect();
    on(&program, 8)
}

/// Goroutines that all wait for a mutex are not "the work itself".
#[test]
fn what_most_samples_show_is_what_goroutines_probably_wait_for() {
    let found = of_go(&[("sync.Mutex", 6), ("channel", 2)]);
    let Kind::Goroutines { what, function, samples, .. } = &found.at[0].kind else { panic!("{found:?}") };
    assert_eq!((what.as_str(), function.as_deref(), *samples), ("sync.Mutex", Some("main.handle"), 6));
    assert!(found.fixes.is_empty(), "nothing simulated says what it would bring: {found:?}");
}

#[test]
fn one_sample_or_no_majority_says_nothing() {
    for waits in [&[("sync.Mutex", 1)][..], &[("channel", 4), ("sync.Mutex", 4), ("sync.Cond", 2)]] {
        let found = of_go(waits);
        assert!(!matches!(found.at[0].kind, Kind::Goroutines { .. }), "{found:?}");
    }
}

/// As memcached with one thread, whose load generator has the other CPU: a second thread may gain nothing.
#[test]
fn what_needs_cpus_that_others_have_may_gain_nothing() {
    let threads = alike("w", 2, 40, r#"["lock","m"],["exec","f",1000000],["unlock","m"]"#);
    let gain = |others: f64| {
        let mut program = program(&threads);
        program.recorded_cpus = Some(2);
        program.overhead =
            Some(Overhead { wall_ns: 80_000_000, target_ns: 80_000_000, ..Overhead::default() });
        program.recorded.others = vec![OtherUse { name: "wrk".to_owned(), processes: 1, cpus: others }];
        let found = on(&program, 2);
        let split = found.fixes.iter().find(|fix| matches!(fix.edit, Edit::SplitLock(..))).expect("a change");
        (split.runs.0, split.runs.1)
    };
    let (free, taken) = (gain(0.0), gain(1.0));
    assert!(free.0 > 0.2 && taken.0 == 0.0 && taken.1 == free.1, "{free:?} {taken:?}");
}
