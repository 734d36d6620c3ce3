//! Programs of Go's, whose waits are not visible.

use super::*;
use crate::limit::GoroutinesWait;
use crate::program::{
    Endpoint, GoroutineGroup, GoroutineWait, GoroutineWaits, GoroutineWork, OtherUse, RecordedWait, Share,
};

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

fn group(function: &str, most: u64, running: u64, wait: Option<GoroutineWait>) -> GoroutineGroup {
    let (there, busy) = (100, running.min(100));
    let waits = wait.into_iter().collect();
    GoroutineGroup {
        function: function.to_owned(),
        most,
        there,
        busy,
        running,
        waits,
        ..GoroutineGroup::default()
    }
}

fn wait(reason: &str, capacity: Option<u64>, count: u64) -> Option<GoroutineWait> {
    let function = Some("main.handle".to_owned());
    Some(GoroutineWait { reason: reason.to_owned(), function, capacity, count, looks: count.min(100) })
}

/// The limit of two CPUs, and the gain of its change, for goroutines at 100 looks.
fn looked_at(groups: Vec<GoroutineGroup>) -> (LimitKind, Option<f64>) {
    let mut program =
        program(&alike("m", 2, 40, r#"["exec","main.work",1000000],["signal","s"],["wait","s"]"#));
    program.findings.push(Finding::Uncontended { objects: 0, all_locks: false, rust: false, go: true });
    program.recorded_cpus = Some(2);
    program.recorded.goroutine_work = vec![GoroutineWork { looks: 100, groups }];
    let found = on(&program, 2);
    let of_goroutines = found.fixes.iter().find(|fix| matches!(fix.edit, Edit::Goroutines(_)));
    (found.at[0].kind.clone(), of_goroutines.map(|fix| fix.runs.1))
}

#[test]
fn a_goroutine_that_is_always_at_work_while_others_wait_for_it_is_a_stage() {
    let stages = vec![
        group("main.compress", 1, 98, None),
        group("main.read", 1, 33, wait("chan send", Some(16), 60)),
        group("main.write", 1, 33, wait("chan receive", Some(16), 60)),
    ];
    let (kind, gain) = looked_at(stages);
    let LimitKind::GoroutinesWait(GoroutinesWait::Stage { function, at_work, waiting }) = kind else {
        panic!("{kind:?}")
    };
    assert_eq!((function.as_str(), at_work, waiting), ("main.compress", 0.98, 1.2));
    // The CPU time of all, 1.64 of 2 CPUs, is what remains.
    assert!(gain.is_some_and(|gain| (gain - (1.0 - 0.82 / 0.98)).abs() < 0.01), "{gain:?}");
}

#[test]
fn goroutines_that_wait_for_a_lock_or_a_place_are_the_limit_while_cpus_are_free() {
    let (kind, gain) = looked_at(vec![group("main.serve", 4, 110, wait("sync.Mutex", None, 200))]);
    let LimitKind::GoroutinesWait(GoroutinesWait::Lock { lock, function, waiting }) = kind else {
        panic!("{kind:?}")
    };
    assert_eq!((lock.as_str(), function.as_deref(), waiting), ("sync.Mutex", Some("main.handle"), 2.0));
    assert!(gain.is_some_and(|gain| (gain - 0.45).abs() < 0.01), "idle CPUs: {gain:?}");
    // 24 goroutines, 4 of which sleep with a place.
    let mut fetch = group("main.fetch", 24, 0, wait("chan send", Some(4), 2_000));
    fetch.waits.extend(wait("sleep", None, 400));
    let (kind, gain) = looked_at(vec![fetch.clone()]);
    let LimitKind::GoroutinesWait(GoroutinesWait::Channel { capacity: 4, waiting, .. }) = kind else {
        panic!("{kind:?}")
    };
    assert!(waiting == 20.0 && gain.is_some_and(|gain| (gain - 5.0 / 6.0).abs() < 0.01), "{gain:?}");
    // A queue of 64: one sender waits for receivers, not for a permit.
    let sender = group("main.send", 1, 20, wait("chan send", Some(64), 80));
    let (kind, _) = looked_at(vec![sender]);
    assert!(matches!(kind, LimitKind::GoroutinesWait(GoroutinesWait::Several { .. })), "{kind:?}");
}

#[test]
fn runnable_goroutines_want_cpus_and_a_long_one_bounds_what_more_cpus_bring() {
    let mut tiles = group("main.tile", 8, 196, None);
    tiles.runnable = 600;
    let (kind, gain) = looked_at(vec![tiles.clone()]);
    assert!(
        matches!(kind, LimitKind::Cpus { goroutines: true, wanting } if (wanting - 7.96).abs() < 0.01),
        "{kind:?}"
    );
    assert!(gain.is_some_and(|gain| (gain - 0.5).abs() < 0.01), "{gain:?}");
    tiles.running = 106;
    let (_, gain) = looked_at(vec![tiles, group("main.main", 1, 90, None)]);
    assert!(
        gain.is_some_and(|gain| (gain - (1.0 - 0.9 / 0.98)).abs() < 0.01),
        "main computes 90 % of the time: {gain:?}"
    );
}

#[test]
fn few_looks_show_nothing_and_hostile_counts_do_no_harm() {
    let waits = || wait("sync.Mutex", None, u64::MAX);
    let mut hostile = group("main.f", u64::MAX, u64::MAX, waits());
    (hostile.runnable, hostile.calls, hostile.there) = (u64::MAX, u64::MAX, 0);
    looked_at(vec![hostile.clone(), hostile]);
    let mut program = program(&alike("m", 2, 40, r#"["exec","main.work",1000000]"#));
    program.findings.push(Finding::Uncontended { objects: 0, all_locks: false, rust: false, go: true });
    program.recorded.goroutine_work =
        vec![GoroutineWork { looks: 3, groups: vec![group("main.f", 1, 0, wait("sync.Mutex", None, 3))] }];
    assert!(matches!(on(&program, 8).at[0].kind, LimitKind::Work { hidden: true, .. }));
}
