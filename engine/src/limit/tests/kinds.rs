//! A program with a known answer for each kind of limit.

use super::*;

#[test]
fn a_contended_mutex_is_the_limit_with_its_holder_s_function() {
    let program = program(&alike("w", 4, 100, HOT));
    let found = on(&program, 4);
    let limit = found.at.first().expect("a limit");
    let LimitKind::Lock { lock, locks: 1, waiting, threads: 4, holder: Some(holder) } = &limit.kind else {
        panic!("{limit:?}")
    };
    assert_eq!((lock.as_str(), holder.function.as_str()), ("m", "hash"));
    assert!((0.95..0.98).contains(&holder.share) && (2.0..3.1).contains(waiting), "{limit:?}");
    assert!((0.55..0.62).contains(&limit.gain()), "24,840 ns become 10,200: {limit:?}");
    let used = found.locks.first().expect("a lock");
    assert!(used.held_share > 0.98 && used.waits > 290, "{used:?}");
    let threads = found.threads.first().expect("threads");
    assert_eq!((found.threads.len(), threads.names.len()), (1, 4), "all alike");
    assert!(threads.lock > 0.5 && (threads.running + threads.lock - 1.0).abs() < 0.02, "{threads:?}");
    let changes: Vec<&Edit> = found.fixes.iter().map(|fix| &fix.edit).collect();
    assert!(changes.iter().any(|change| matches!(change, Edit::SplitLock(_, 8))), "{changes:?}");
    let moved = found.fixes.iter().find(|fix| matches!(fix.edit, Edit::MoveOut(..))).expect("moved");
    assert_eq!((moved.function.as_deref(), moved.lock.as_deref()), (Some("hash"), Some("m")));
    assert!(moved.gain > 0.5, "{moved:?}");
    assert!(found.fixes.len() <= 3 && found.fixes.is_sorted_by(|a, b| a.gain >= b.gain), "{changes:?}");
}

/// Waiters of a condition variable must not hang without the lock: each thread then uses a lock of its own.
#[test]
fn a_contended_mutex_with_conditions_is_the_limit() {
    let waiter =
        r#"{"name":"W","ops":[["lock","m"],["cond_wait","c","m"],["unlock","m"],["exec","rest",10]]}"#;
    let waker = r#"{"name":"S","ops":[["sleep",9000],["lock","m"],["cond_signal","c"],["unlock","m"]]}"#;
    let program = program(&format!("{},{waiter},{waker}", alike("w", 4, 100, HOT)));
    assert!(matches!(kind(&program, 8), LimitKind::Lock { lock, .. } if lock == "m"));
}

/// A lock of which only the waits are known is replayed as recorded; without the lock its threads run at once.
#[test]
fn a_replayed_lock_is_the_limit_if_threads_take_it_in_turns() {
    let first = r#"["held","g",0],["exec","eval",100],["freed","g",100],["release","e{}"]"#;
    let second = r#"["await","e{}"],["held","g",100],["exec","eval",100],["freed","g",100]"#;
    let rounds = |text: &str| {
        (0..50).map(|round| text.replace("{}", &round.to_string())).collect::<Vec<_>>().join(",")
    };
    let threads = format!(
        "{{\"name\":\"a\",\"ops\":[{}]}},{{\"name\":\"b\",\"ops\":[{}]}}",
        rounds(first),
        rounds(second)
    );
    // One thread delays the other only by the time of a round. The gain of the lock is reported, but the lock is not
    // the limit.
    let program = program(&threads);
    assert!(matches!(kind(&program, 2), LimitKind::Work { .. }));
    let back = r#"["await","f{}"],["held","g",100],["exec","eval",100],["freed","g",100],["release","e{}"]"#;
    let forth =
        r#"["await","e{}"],["held","g",100],["exec","eval",100],["freed","g",100],["release","f{+}"]"#;
    let rounds = |text: &str| {
        let round =
            |round: usize| text.replace("{}", &round.to_string()).replace("{+}", &(round + 1).to_string());
        (0..50).map(round).collect::<Vec<_>>().join(",")
    };
    let program = self::program(&format!(
        "{{\"name\":\"a\",\"ops\":[[\"release\",\"f0\"],{}]}},{{\"name\":\"b\",\"ops\":[{}]}}",
        rounds(back),
        rounds(forth)
    ));
    let found = on(&program, 2);
    let limit = found.at.first().expect("a limit");
    assert!(matches!(&limit.kind, LimitKind::Lock { lock, .. } if lock == "g"), "{limit:?}");
    assert!((limit.gain() - 0.5).abs() < 0.02, "{limit:?}");
}

#[test]
fn eight_computing_threads_on_two_cpus_are_limited_by_cpus() {
    let program = program(&alike("w", 8, 1, r#"["exec","f",1000]"#));
    let found = on(&program, 2);
    let limit = found.at.first().expect("a limit");
    assert!(
        matches!(limit.kind, LimitKind::Cpus { wanting, .. } if (7.0..=8.0).contains(&wanting)),
        "{limit:?}"
    );
    assert!((limit.gain() - 0.75).abs() < 0.01, "{limit:?}");
    assert!(found.fixes.iter().any(|fix| fix.edit == Edit::Cpus(Cpus::count(4).expect("4"))));
}

/// In a container that may use 1.2 of two CPUs, the quota limits two busy threads, not their number.
#[test]
fn threads_that_use_up_a_cpu_quota_are_limited_by_it() {
    let program = program(&alike("w", 2, 1, r#"["exec","f",2000000000]"#));
    let machine = crate::program::MachineFacts { cpu_quota: Some(120), ..Default::default() };
    let program = Program { machine: Some(machine), ..program };
    let found = on(&program, 2);
    let limit = found.at.first().expect("a limit");
    assert_eq!(limit.kind, LimitKind::Quota { hundredths: 120 }, "{limit:?}");
    assert!((limit.gain() - 0.4).abs() < 0.03, "3.33 s become 2: {limit:?}");
    assert!(found.fixes.iter().any(|fix| fix.edit == Edit::NoQuota), "{:?}", found.fixes);
    assert!(!found.fixes.iter().any(|fix| matches!(fix.edit, Edit::MoreThreads { .. })), "{:?}", found.fixes);
    // On one CPU the program cannot use up its quota.
    let one = on(&program, 1).at.into_iter().next().expect("a limit");
    assert!(matches!(one.kind, LimitKind::Cpus { .. }), "{one:?}");
}

#[test]
fn two_busy_threads_on_eight_cpus_are_too_few_threads() {
    let program = program(&alike("w", 2, 1, r#"["exec","f",1000]"#));
    let expected = LimitKind::Threads { threads: 2, function: Some("f".into()), busy: 1.0 };
    assert_eq!(kind(&program, 8), expected);
    // On two CPUs these threads are enough.
    assert!(matches!(kind(&program, 2), LimitKind::Work { busy, .. } if (busy - 2.0).abs() < 0.01));
}

/// A parser reads a batch alone, then two threads align it: no single stretch is long.
#[test]
fn serial_stretches_that_come_again_are_the_limit_and_overlapping_them_is_a_fix() {
    let batches = |operations: &str| [operations; 12].join(",");
    let worker = |name: &str| {
        let own = batches(r#"["barrier","begin",3],["exec","align",100000],["barrier","end",3]"#);
        format!(r#"{{"name":"{name}","ops":[{own}]}}"#)
    };
    let own = batches(r#"["exec","parse",90000],["barrier","begin",3],["barrier","end",3]"#);
    let parser = format!(r#"{{"name":"parser","ops":[{own}]}}"#);
    let program = program(&[parser, worker("a"), worker("b")].join(","));
    let LimitKind::Serial { thread, function, times, .. } = kind(&program, 2) else {
        panic!("{:?}", on(&program, 2))
    };
    assert_eq!((thread.as_str(), function.as_deref(), times), ("parser", Some("parse"), 12));
    let fixes = on(&program, 2).fixes;
    let fix = fixes.iter().find(|fix| matches!(fix.edit, Edit::Overlap { .. })).expect("overlap it");
    // 290 of 2 x 190 microseconds are computed in each round.
    assert!((fix.gain - (1.0 - 145.0 / 190.0)).abs() < 0.02 && fix.edit.is_at_best(), "{fix:?}");
}

#[test]
fn a_serial_stretch_is_the_limit_and_dividing_it_is_a_fix() {
    let workers = alike("w", 4, 1, r#"["exec","map",1000]"#);
    let main = r#"["exec","read",1500],["create","w0"],["create","w1"],["create","w2"],["create","w3"],["join","w0"],["join","w1"],["join","w2"],["join","w3"]"#;
    let program = program(&format!("{{\"name\":\"main\",\"ops\":[{main}]}},{workers}"));
    let LimitKind::Serial { thread, function, length_ns, threads, times: 1 } = kind(&program, 4) else {
        panic!("{:?}", on(&program, 4))
    };
    assert_eq!((thread.as_str(), function.as_deref(), threads), ("main", Some("read"), 5));
    assert!((length_ns - 1500.0).abs() < 1.0);
    // If four CPUs share the reading, 1,200 of 2,500 ns are saved; if reading is twice as fast, 750 ns.
    let fixes = on(&program, 4).fixes;
    let gain = |wanted: fn(&Edit) -> bool| {
        let fix = fixes.iter().find(|fix| fix.function.as_deref() == Some("read") && wanted(&fix.edit));
        fix.unwrap_or_else(|| panic!("{fixes:?}")).gain
    };
    let divided = gain(|change| matches!(change, Edit::Divide(_, 5)));
    assert!((divided - 1500.0 * 0.75 / 2500.0).abs() < 0.01, "{divided}");
    let faster = gain(|change| matches!(change, Edit::Scale(..)));
    assert!((faster - 0.3).abs() < 0.01, "{faster}");
}

#[test]
fn one_busy_thread_on_several_cpus_is_a_serial_stretch() {
    let program = program(&alike("w", 1, 10, r#"["exec","f",100]"#));
    assert!(matches!(kind(&program, 4), LimitKind::Serial { threads: 1, .. }));
    assert!(matches!(kind(&program, 1), LimitKind::Work { .. }));
}

#[test]
fn unequal_work_at_a_barrier_or_before_a_join_is_an_imbalance() {
    let less = alike("l", 3, 20, r#"["exec","phase",100],["barrier","b",4]"#);
    let more = alike("m", 1, 20, r#"["exec","phase",500],["barrier","b",4]"#);
    let program = self::program(&format!("{less},{more}"));
    assert_eq!(
        kind(&program, 4),
        LimitKind::Imbalance { function: Some("phase".into()), waits: None, rounds: 0 }
    );
    let main = r#"["create","s0"],["create","s1"],["create","t0"],["join","s0"],["join","s1"],["join","t0"]"#;
    let (short, long) =
        (alike("s", 2, 1, r#"["exec","part",500]"#), alike("t", 1, 1, r#"["exec","part",2000]"#));
    let program = self::program(&format!("{{\"name\":\"main\",\"ops\":[{main}]}},{short},{long}"));
    let found = on(&program, 4);
    let limit = found.at.first().expect("a limit");
    assert_eq!(limit.kind, LimitKind::Imbalance { function: Some("part".into()), waits: None, rounds: 0 });
    assert!((limit.without_ns - 1000.0).abs() < 1.0, "{limit:?}");
    assert!(found.fixes.iter().any(|fix| matches!(fix.edit, Edit::DivideEvenly(_))));
}

#[test]
fn the_busy_stage_of_a_pipeline_is_the_limit() {
    let program = pipeline();
    assert_eq!(kind(&program, 4), LimitKind::Stage { thread: "c0".into(), function: Some("consume".into()) });
}

/// The first and the last stage of a pipeline compute the same function, and are still stages: one of them is always busy and
/// limits.
#[test]
fn stages_that_compute_the_same_function_are_no_pool() {
    let stage = |name: &str, takes: &str, work: u32, gives: &str| {
        let round = format!(r#"["sem_wait","{takes}"],["exec","burn",{work}],["sem_post","{gives}"]"#);
        alike(name, 1, 100, &round)
    };
    let first = alike("first", 1, 100, r#"["exec","burn",60],["sem_post","one"]"#);
    let last = alike("last", 1, 100, r#"["sem_wait","two"],["exec","burn",10]"#);
    let counts = r#"{"name":"i","ops":[["sem_init","one",0],["sem_init","two",0]]}"#;
    let program = program(&format!("{counts},{first},{},{last}", stage("middle", "one", 30, "two")));
    for cpus in [2, 16] {
        let expected = LimitKind::Stage { thread: "first0".into(), function: Some("burn".into()) };
        assert_eq!(kind(&program, cpus), expected, "on {cpus} CPUs");
    }
}

/// The release of a replayed lock may be unknown: what the lock's threads compute later can still be divided, so the pool's
/// limit does not depend on the recording.
#[test]
fn a_replayed_lock_without_a_release_does_not_hide_a_small_pool() {
    let round = r#"["held","g",0],["exec","pack",100],["io",2,"disk"]"#;
    let program = program(&alike("w", 4, 50, round));
    let found = kind(&program, 16);
    let is_pool = |function: &Option<String>, busy: f64| function.as_deref() == Some("pack") && busy > 0.9;
    assert!(
        matches!(&found, LimitKind::Threads { threads: 4, function, busy } if is_pool(function, *busy)),
        "{found:?}"
    );
}

#[test]
fn waits_for_a_device_and_sleeping_limit_unless_they_are_short() {
    let waits = |wait: &str| program(&alike("w", 2, 10, &format!(r#"["exec","f",100],{wait}"#)));
    assert_eq!(
        kind(&waits(r#"["io",900,"disk"]"#), 2),
        LimitKind::Device { device: "disk".into(), of: None }
    );
    // Only one thread sleeps in each task; if several did, there might be too few threads.
    let sleeps = program(&alike("w", 1, 10, r#"["exec","f",100],["sleep",900]"#));
    assert_eq!(kind(&sleeps, 2), LimitKind::Timers { function: None });
    assert!(matches!(kind(&waits(r#"["io",1,"disk"]"#), 2), LimitKind::Work { .. }));
}

/// Sleeping and reading a timer are one limit: neither wait limits by itself if one thread sleeps and another one reads a
/// timer.
#[test]
fn a_read_of_a_timer_counts_as_sleeping() {
    let thread = |name: &str, wait: &str| format!(r#"{{"name":"{name}","ops":[["exec","f",100],{wait}]}}"#);
    let both =
        program(&[thread("a", r#"["sleep",900]"#), thread("b", r#"["io",900,"timerfd read"]"#)].join(","));
    assert_eq!(kind(&both, 2), LimitKind::Timers { function: None });
}

/// Two threads spin for two locks and keep two CPUs from two others: removing one lock is not enough.
#[test]
fn two_spin_locks_that_keep_cpus_busy_are_the_limit_spinning() {
    let holder = |lock: &str| {
        format!(
            r#"{{"name":"h{lock}","ops":[["spin_lock","{lock}"],["exec","f",1000],["spin_unlock","{lock}"]]}}"#
        )
    };
    let waiter = |lock: &str| {
        format!(
            r#"{{"name":"w{lock}","ops":[["exec","g",1],["spin_lock","{lock}"],["spin_unlock","{lock}"]]}}"#
        )
    };
    let program = program(&[holder("a"), holder("b"), waiter("a"), waiter("b")].join(","));
    assert_eq!(kind(&program, 2), LimitKind::Spinning);
}

#[test]
fn waking_between_two_threads_is_the_limit_hand_over() {
    let ping = alike("p", 1, 100, r#"["exec","f",100],["sem_post","there"],["sem_wait","back"]"#);
    let pong = alike("q", 1, 100, r#"["sem_wait","there"],["exec","g",100],["sem_post","back"]"#);
    let model = Model { wake_latency_ns: Some(2_000), ..Model::default() };
    let found = limits(&program(&format!("{ping},{pong}")), &[Cpus::count(2).expect("2")], &model);
    let limit = found.at.first().expect("a limit");
    assert!(matches!(limit.kind, LimitKind::HandOver { .. }) && limit.gain() > 0.9, "{limit:?}");
}

#[test]
fn an_empty_program_has_no_limit_and_a_stuck_one_a_deadlock() {
    assert_eq!(kind(&program(r#"{"name":"T","ops":[]}"#), 2), LimitKind::Nothing);
    assert_eq!(limits(&Program::default(), &[], &Model::default()), Limits::default());
    let stuck = program(r#"{"name":"T","ops":[["exec",5],["sem_wait","never"]]}"#);
    assert!(matches!(kind(&stuck, 2), LimitKind::Deadlock { stuck } if stuck.threads.len() == 1));
    // A recorded program came to its end in reality, so the deadlock is the simulation's.
    let recorded = Program { machine: Some(crate::program::MachineFacts::default()), ..stuck };
    assert_eq!(kind(&recorded, 2), LimitKind::NotKnown { missing: 0.0 });
}

/// The limit on the recorded machine and on the largest, in this order; each machine once.
#[test]
fn limits_are_for_the_recorded_machine_and_the_largest_one() {
    let mut program = program(&alike("w", 4, 100, HOT));
    let counts = [1, 2, 8].map(|count| Cpus::count(count).expect("a count"));
    program.recorded_cpus = Some(2);
    let found = limits(&program, &[counts[0], counts[2], Cpus::Infinite], &Model::default());
    assert_eq!(found.at.iter().map(|limit| limit.cpus).collect::<Vec<_>>(), [counts[1], counts[2]]);
    assert!(found.fixes[0].gain_at_largest.is_some(), "{:?}", found.fixes);
    program.recorded_cpus = Some(8);
    assert_eq!(limits(&program, &counts, &Model::default()).at.len(), 1);
}

/// Random programs: a limit is never worse than the program, and nothing panics.
#[test]
fn without_its_limit_a_program_is_never_slower() {
    for seed in 0..200 {
        let program = crate::synth::random_program(seed, crate::synth::Lengths::Spread);
        for limit in limits(&program, &[Cpus::ONE, Cpus::count(3).expect("3")], &Model::default()).at {
            assert!(limit.without_ns <= limit.time_ns && limit.gain() >= 0.0, "{seed}: {limit:?}");
        }
    }
}

/// Two threads that yield until it is their turn are limited by turns, not by "the work itself".
#[test]
fn threads_that_compute_one_at_a_time_are_limited_by_turns() {
    let ping = alike("p", 1, 100, r#"["exec","ping",200],["sem_post","there"],["sem_wait","back"]"#);
    let pong = alike("q", 1, 100, r#"["sem_wait","there"],["exec","pong",100],["sem_post","back"]"#);
    let program = program(&format!("{ping},{pong}"));
    let found = on(&program, 4);
    let limit = found.at.first().expect("a limit");
    assert_eq!(limit.kind, LimitKind::Turns { threads: 2, processes: false, changes: 199, waits: None });
    assert!((limit.gain() - 1.0 / 3.0).abs() < 0.01, "as long as ping takes: {limit:?}");
    let together = found.fixes.iter().find(|fix| fix.edit == Edit::NoTurns).expect("a change");
    assert!(together.edit.is_at_best() && (together.gain - limit.gain()).abs() < 1e-9, "{together:?}");
    assert!(matches!(kind(&program, 1), LimitKind::Work { .. }), "one CPU lets nobody do otherwise");
}

/// Three threads that meet at an unrecorded barrier are unbalanced on four CPUs; on two CPUs they are not too few.
#[test]
fn an_unrecorded_barrier_with_unequal_work_is_an_imbalance() {
    let round = |own: u32, round: usize| {
        let arrive = |thread: usize| format!(r#"["release","a{thread}-{round}"]"#);
        match own {
            0 => format!(
                r#"["exec","phase",200],["await","a1-{round}"],["await","a2-{round}"],["release","go1-{round}"],["release","go2-{round}"]"#
            ),
            own => format!(r#"["exec","phase",100],{},["await","go{own}-{round}"]"#, arrive(own as usize)),
        }
    };
    let thread = |own: u32| {
        let rounds: Vec<String> = (0..50).map(|at| round(own, at)).collect();
        format!(r#"{{"name":"t{own}","ops":[{}]}}"#, rounds.join(","))
    };
    let program = program(&[thread(0), thread(1), thread(2)].join(","));
    let found = on(&program, 4);
    let limit = found.at.first().expect("a limit");
    assert_eq!(limit.kind, LimitKind::Imbalance { function: Some("phase".into()), waits: None, rounds: 0 });
    assert!((limit.gain() - 1.0 / 3.0).abs() < 0.01, "400 in three parts: {limit:?}");
    assert!(!matches!(kind(&program, 2), LimitKind::Threads { .. }), "two CPUs are full with three threads");
}

/// Threads of a runtime that spin in its own critical section are limited by these waits, not by the work itself.
#[test]
fn waits_by_spinning_that_end_as_recorded_are_the_limit() {
    let first = |at: usize| format!(r#"["exec","f",80],["release","spinning #{at}"]"#);
    let second = |at: usize| format!(r#"["exec","f",60],["await","spinning #{at}"]"#);
    let thread = |name: &str, own: usize| {
        let rounds = (0..50).map(|at| if at % 2 == own { first(at) } else { second(at) });
        format!(r#"{{"name":"{name}","ops":[{}]}}"#, rounds.collect::<Vec<_>>().join(","))
    };
    let program = program(&[thread("a", 0), thread("b", 1)].join(","));
    for cpus in [2, 4] {
        let found = on(&program, cpus);
        let limit = found.at.first().expect("a limit");
        let LimitKind::SpunWaits { waiting, functions } = &limit.kind else { panic!("{limit:?}") };
        assert_eq!(functions[..], ["f"], "it runs meanwhile");
        assert!((waiting - 0.25).abs() < 0.01, "20 of 80, each second time: {waiting}");
        assert!((limit.time_ns - 4000.0).abs() < 1.0 && (limit.without_ns - 3500.0).abs() < 1.0, "{limit:?}");
    }
}
