//! Bounded resources whose semaphores were not recorded.

use super::*;

/// Eight threads and two connections in a queue: each request computes, takes a connection, sleeps 3 ms with it, and passes it
/// to the thread that waits longest. Waits are replayed wake-ups. `all`: as many connections as threads.
fn clients(all: bool) -> Program {
    let (threads, rounds) = (8usize, 30usize);
    let mut operations: Vec<String> = Vec::new();
    for thread in 0..threads {
        let mut own = Vec::new();
        for round in 0..rounds {
            let turn = round * threads + thread;
            own.push(r#"["exec","build",100000]"#.to_owned());
            if !all && turn >= 2 {
                own.push(format!(r#"["wait","e{}"]"#, turn - 2));
            }
            own.push(r#"["sleep",3000000]"#.to_owned());
            if !all && turn + 2 < threads * rounds {
                own.push(format!(r#"["signal","e{turn}"]"#));
            }
        }
        operations.push(format!(r#"{{"name":"w{thread}","ops":[{}]}}"#, own.join(",")));
    }
    Program { recorded_cpus: Some(2), ..recorded(program(&operations.join(",")), &[]) }
}

/// Connections in a queue, as in Python's, or behind an inlined semaphore, limit as permits, not as sleeping.
#[test]
fn connections_in_a_queue_are_permits() {
    let found = on(&clients(false), 2);
    let first = &found.at[0];
    let Kind::Permits { permits: 2, threads: 8, waiting, .. } = &first.kind else { panic!("{first:?}") };
    assert!((4.5..6.5).contains(waiting) && (0.65..0.8).contains(&first.gain()), "{first:?}");
    let more = |fix: &Fix| matches!(fix.edit, Edit::Permits { now: 2, then: 8, .. });
    assert!(found.fixes.iter().any(more), "{found:?}");
    assert!(found.fixes.iter().all(|fix| fix.edit != Edit::NoSleeps), "{found:?}");
}

#[test]
fn threads_that_do_not_wait_for_connections_use_no_pool() {
    let is_pool = |found: &Limits| matches!(found.at[0].kind, Kind::Permits { .. });
    assert!(!is_pool(&on(&clients(true), 2)), "enough for all");
    // Each computes 3 ms in turn and sleeps 6: two of four sleep at a time, while one computes and one waits.
    let turn = |thread: usize, round: usize| round * 4 + thread;
    let threads = (0..4usize).map(|thread| {
        let own = (0..30usize).map(|round| {
            let turn = turn(thread, round);
            let wait = if turn > 0 { format!(r#"["wait","e{}"],"#, turn - 1) } else { String::new() };
            let give = if turn < 119 { format!(r#"["signal","e{turn}"],"#) } else { String::new() };
            format!(r#"{wait}["exec","f",3000000],{give}["sleep",6000000]"#)
        });
        format!(r#"{{"name":"w{thread}","ops":[{}]}}"#, own.collect::<Vec<_>>().join(","))
    });
    let locked = program(&threads.collect::<Vec<_>>().join(","));
    let locked = Program { recorded_cpus: Some(2), ..recorded(locked, &[]) };
    assert!(!is_pool(&on(&locked, 2)), "a lock");
    // A dispatcher keeps two of four workers at work.
    let worker = |thread: usize| {
        let own = (0..30usize).map(|round| {
            let turn = round * 4 + thread;
            format!(r#"["wait","job{turn}"],["sleep",3000000],["exec","f",50000],["signal","done"]"#)
        });
        format!(r#"{{"name":"w{thread}","ops":[{}]}}"#, own.collect::<Vec<_>>().join(","))
    };
    let jobs = (0..120usize).map(|turn| {
        let wait = if turn >= 2 { r#"["wait","done"],"# } else { "" };
        format!(r#"{wait}["exec","dispatch",1000],["signal","job{turn}"]"#)
    });
    let dispatcher = format!(r#"{{"name":"d","ops":[{}]}}"#, jobs.collect::<Vec<_>>().join(","));
    let fed = (0..4).map(worker).chain([dispatcher]).collect::<Vec<_>>().join(",");
    let fed = Program { recorded_cpus: Some(2), ..recorded(program(&fed), &[]) };
    assert!(!is_pool(&on(&fed, 2)), "who gives them work limits");
}
