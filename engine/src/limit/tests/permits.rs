//! Sleeps of threads that hold locks and permits.

use super::*;

/// A request takes `sleep` with a permit, or under a lock, between computing.
fn workers(count: usize, take: &str, give: &str) -> String {
    let operations = format!(r#"["exec","build",100000],{take},["sleep",3000000],{give}"#);
    alike("w", count, 20, &operations)
}

/// Twelve threads use three connections: the permits limit, not the sleep with them.
#[test]
fn a_semaphore_s_permits_that_are_all_in_use_are_the_limit() {
    let set = r#"{"name":"main","ops":[["sem_init","semaphore connections",3]]}"#;
    let take = r#"["sem_wait","semaphore connections"]"#;
    let give = r#"["sem_post","semaphore connections"]"#;
    let found = on(&recorded(program(&format!("{set},{}", workers(12, take, give))), &[]), 2);
    let first = &found.at[0];
    let LimitKind::Permits { semaphore, permits: 3, threads: 12, waiting } = &first.kind else {
        panic!("{first:?}")
    };
    assert_eq!(semaphore, "semaphore connections");
    assert!((8.0..9.5).contains(waiting) && (0.65..0.8).contains(&first.gain()), "{first:?}");
    let gain = |count: u32| {
        let is_it = |fix: &&Fix| matches!(fix.edit, Edit::Permits { then, .. } if then == count);
        found.fixes.iter().find(is_it).map(|fix| fix.gain)
    };
    assert!(gain(12).is_some_and(|gain| (0.65..0.8).contains(&gain)), "{found:?}");
    assert!(gain(6).is_some_and(|gain| (0.4..0.55).contains(&gain)), "{found:?}");
    assert!(found.fixes.iter().all(|fix| fix.edit != Edit::NoSleeps), "{found:?}");
    // The sleep has a row of its own, below the permits.
    assert!(first.others.iter().any(|row| row.kind == LimitKind::Timers { function: None }), "{first:?}");
}

/// With as many connections as threads no thread waits for one.
#[test]
fn permits_for_all_threads_are_no_limit() {
    let set = r#"{"name":"main","ops":[["sem_init","s",12]]}"#;
    let all = workers(12, r#"["sem_wait","s"]"#, r#"["sem_post","s"]"#);
    let found = on(&recorded(program(&format!("{set},{all}")), &[]), 2);
    assert_eq!(found.at[0].kind, LimitKind::Timers { function: None }, "{found:?}");
}

/// Four threads sleep under a lock: the lock limits, although removing the sleep gains more.
#[test]
fn a_lock_is_the_limit_before_the_sleep_of_its_holder() {
    let found = on(&recorded(program(&workers(4, r#"["lock","m"]"#, r#"["unlock","m"]"#)), &[]), 2);
    assert!(matches!(&found.at[0].kind, LimitKind::Lock { lock, .. } if lock == "m"), "{found:?}");
}
