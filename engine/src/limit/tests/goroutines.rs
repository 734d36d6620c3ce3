//! Programs of Go's, whose waits are not visible.

use super::*;
use crate::program::{Endpoint, GoroutineWaits, OtherUse, RecordedWait, Share};

fn of_go(change: impl FnOnce(&mut Program)) -> Limits {
    let mut program =
        program(&alike("m", 2, 40, r#"["exec","main.work",1000000],["signal","s"],["wait","s"]"#));
    program.findings.push(Finding::Uncontended { objects: 0, all_locks: false, rust: false, go: true });
    program.recorded.goroutines = waits(6);
    change(&mut program);
    on(&program, 8)
}

fn waits(count: u64) -> Vec<GoroutineWaits> {
    vec![GoroutineWaits { lock: "sync.Mutex".to_owned(), function: Some("main.handle".to_owned()), count }]
}

/// If all goroutines wait for one mutex, the limit must not be "the work itself".
#[test]
fn a_lock_in_samples_of_goroutines_is_probably_the_limit() {
    let found = of_go(|_| {});
    let LimitKind::Goroutines { lock, function, samples, .. } = &found.at[0].kind else {
        panic!("{found:?}")
    };
    assert_eq!((lock.as_str(), function.as_deref(), *samples), ("sync.Mutex", Some("main.handle"), 6));
    assert!(found.fixes.is_empty(), "nothing simulated says what it would bring: {found:?}");
}

#[test]
fn few_samples_busy_cpus_or_open_requests_are_no_lock_of_goroutines() {
    let is_lock = |change: &dyn Fn(&mut Program)| {
        matches!(of_go(|program| change(program)).at[0].kind, LimitKind::Goroutines { .. })
    };
    assert!(is_lock(&|_| {}));
    assert!(!is_lock(&|program| program.recorded.goroutines = waits(2)));
    let wrk = OtherUse { name: "wrk".to_owned(), processes: 1, cpus: 5.0 };
    assert!(!is_lock(&|program| program.recorded.others = vec![wrk.clone()]), "others have the CPUs");
    let end = |served, name: &str| Endpoint {
        served,
        name: name.to_owned(),
        count: 1_000,
        open: 16.0,
        mean_ns: 1e6,
        load: Some(0.9),
        ..Endpoint::default()
    };
    let traffic = vec![end(true, "port 80"), end(false, "10.0.0.7:8080")];
    assert!(!is_lock(&|program| program.recorded.traffic = traffic.clone()), "it waits for answers");
    // A damaged file.
    let many = [waits(u64::MAX), waits(u64::MAX)].concat();
    assert!(is_lock(&|program| program.recorded.goroutines = many.clone()));
}

/// A second thread for a server with one thread may gain nothing if the load generator uses the other CPU, as with
/// memcached.
#[test]
fn a_fix_that_needs_cpus_used_by_others_may_gain_nothing() {
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

/// A server of goroutines that wait for a mutex was "sleeping: 9 % of the time", since Go's runtime looks after them.
#[test]
fn sleeps_of_go_s_runtime_are_no_limit() {
    let sleeper = alike("m", 1, 40, r#"["sleep",10000000],["exec","runtime.retake",1000000]"#);
    let of = |function: &str| {
        let mut program = program(&sleeper);
        program.findings.push(Finding::Uncontended { objects: 0, all_locks: false, rust: false, go: true });
        let sleepers = vec![Share { name: function.to_owned(), count: 40 }];
        let sleep = RecordedWait { name: "sleep".into(), waits: 40, sleepers, ..RecordedWait::default() };
        program.recorded.waits = vec![sleep];
        on(&program, 2).at[0].kind.clone()
    };
    assert!(!matches!(of("runtime.usleep.abi0"), LimitKind::Timers { .. }));
    assert!(matches!(of("C.nap"), LimitKind::Timers { .. }), "code in C may sleep");
}
