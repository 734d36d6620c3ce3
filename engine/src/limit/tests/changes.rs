//! Changes that a person can make, and the gain of more threads.

use super::*;
use crate::experiment::{ComputePart, edited};

/// A compressor without names that computes alone gets the advice to divide the stretch.
#[test]
fn a_serial_stretch_of_code_without_names_can_be_divided() {
    let main = r#"["exec","[zstd]",3000],["create","w0"],["create","w1"],["join","w0"],["join","w1"]"#;
    let workers = alike("w", 2, 1, r#"["exec","[zstd]",500]"#);
    let program = program(&format!("{{\"name\":\"main\",\"ops\":[{main}]}},{workers}"));
    let fixes = on(&program, 4).fixes;
    let [fix] = &fixes[..] else { panic!("{fixes:?}") };
    assert!(matches!(fix.edit, Edit::Divide(_, 4)) && fix.function.is_none(), "{fix:?}");
    assert!((fix.gain - 3000.0 * 0.75 / 3500.0).abs() < 0.01, "{fix:?}");
}

/// Dividing a stretch leaves what the thread computes before and after it.
#[test]
fn dividing_a_part_of_a_thread_s_computing_leaves_the_rest() {
    let operations = r#"["exec","read",100],["exec","parse",100],["exec","read",200]"#;
    let program = program(&format!("{{\"name\":\"T\",\"ops\":[{operations}]}}"));
    let ns = |ns: u64| crate::time::Ticks::from_ns(ns).0;
    let part = |function| ComputePart { thread: 0, from: ns(50), to: ns(300), function };
    let computed = |function| {
        let divided = edited(&program, &[Edit::Divide(part(function), 2)]).expect("divided");
        divided.compute_times().functions.iter().map(|own| own.0 / ns(1)).collect::<Vec<_>>()
    };
    assert_eq!(computed(None), [50 + 25 + 50 + 100, 50]);
    assert_eq!(computed(Some(FunctionRef(0))), [50 + 25 + 50 + 100, 100]);
}

/// For a busy server without names the advice is fewer system calls: nobody can change its C library, but its author
/// can call the library less often.
#[test]
fn a_server_without_names_is_advised_to_make_fewer_system_calls() {
    let mut program =
        program(&alike("server", 1, 100, r#"["exec","write",40],["exec","[redis]",30],["io",30,"idle"]"#));
    for function in &mut program.functions {
        let module = Some(if function.name == "write" { "libc.so.6" } else { "redis" }.to_owned());
        *function = Function { module, ..function.clone() }.with_origin();
    }
    let place = |number| Place { function: FunctionRef(number), line: None, inlined: false };
    program.samples.places = vec![place(0), place(1)];
    program.samples.stacks = vec![vec![PlaceId(0), PlaceId(1)]];
    program.samples.threads = vec![vec![Sample { operation: 0, stack: 0 }]];
    let found = on(&program, 2);
    assert!(matches!(found.at[0].kind, LimitKind::Idle { .. }), "{found:?}");
    let [fix] = &found.fixes[..] else { panic!("{:?}", found.fixes) };
    assert!(matches!(fix.edit, Edit::FewerCalls(..)) && fix.function.as_deref() == Some("write"), "{fix:?}");
    assert!((fix.gain - 0.2).abs() < 0.01, "{fix:?}");
}

/// A library without names can only be replaced as a whole, so it is named only if it computes most. A function that
/// does all computing under a lock cannot leave the lock.
#[test]
fn fixes_name_only_functions_that_a_user_can_change() {
    let of = |round: &str| {
        let fixes = on(&program(&alike("w", 4, 100, round)), 2).fixes.into_iter();
        fixes.filter_map(|fix| fix.function).collect::<Vec<_>>()
    };
    assert_eq!(of(r#"["exec","[libz.so.1.2.13]",60],["exec","parse",40]"#), ["[libz.so.1.2.13]", "parse"]);
    assert_eq!(of(r#"["exec","[libz.so.1.2.13]",40],["exec","parse",60]"#), ["parse"]);
    assert_eq!(of(r#"["exec","[code without a file]",60],["exec","parse",40]"#), ["parse"]);
    let found = on(&program(&alike("w", 4, 100, r#"["lock","m"],["exec","hash",60],["unlock","m"]"#)), 4);
    let moves = found.fixes.iter().any(|fix| matches!(fix.edit, Edit::MoveOut(..)));
    assert!(!moves && !found.fixes.is_empty(), "{:?}", found.fixes);
}

/// Advice is about what a person can change.
#[test]
fn no_fix_names_a_function_of_a_runtime() {
    let round = r#"["exec","parse",40],["call","digest"],["exec","epoll_wait",60],["exec","start_thread",60],["ret"]"#;
    let found = on(&program(&alike("w", 2, 50, round)), 2);
    let functions: Vec<&str> = found.fixes.iter().filter_map(|fix| fix.function.as_deref()).collect();
    assert!(functions.iter().all(|function| ["parse", "digest"].contains(function)), "{functions:?}");
}

/// The gain of one more thread is known even where too few threads are not the limit.
#[test]
fn the_gain_of_one_more_thread_is_known_for_threads_that_do_the_same() {
    let waiting = on(&program(&alike("w", 4, 100, HOT)), 8).more_threads.expect("known");
    assert!(waiting.threads == 4 && waiting.gain < WORTH, "the lock is full: {waiting:?}");
    let busy = on(&program(&alike("w", 2, 1, r#"["exec","f",1000]"#)), 8).more_threads.expect("known");
    assert!(busy.threads == 2 && (busy.gain - 1.0 / 3.0).abs() < 0.01, "{busy:?}");
    let full = on(&program(&alike("w", 2, 1, r#"["exec","f",1000]"#)), 2).more_threads.expect("known");
    assert!(full.gain.abs() < 0.01, "there is no CPU for it: {full:?}");
    assert_eq!(on(&program(&alike("w", 1, 1, r#"["exec","f",1000]"#)), 8).more_threads, None);
}

/// FIX tries one more thread; a search can try any number.
#[test]
fn any_number_of_more_threads_can_be_tried() {
    let workers = |program: &Program| Search::new(program, &[], &Model::default()).expect("a program");
    let on = |search: &Search, more, cpus| {
        let workers = search.workers()?;
        search.with_workers(&workers, more, Cpus::count(cpus).expect("a count"))
    };
    let busy = program(&alike("w", 2, 1, r#"["exec","f",1000]"#));
    let search = workers(&busy);
    assert_eq!(search.workers().map(|threads| threads.len()), Some(2));
    let near = |found: Option<(f64, f64)>, after: f64| {
        let (before, found) = found.expect("known");
        assert!((before - 1000.0).abs() < 1.0 && (found - after).abs() < 1.0, "{found}, not {after}");
    };
    near(on(&search, 1, 8), 1000.0 * 2.0 / 3.0);
    near(on(&search, 6, 8), 250.0);
    near(on(&search, 6, 4), 500.0);
    near(on(&search, 1, 2), 1000.0);
    // LIMIT has the same number.
    let of_limit = self::on(&busy, 8).more_threads.expect("known").gain;
    assert!((of_limit - 1.0 / 3.0).abs() < 0.01);
    let alone = program(&alike("w", 1, 1, r#"["exec","f",1000]"#));
    assert_eq!((workers(&alone).workers(), on(&workers(&alone), 1, 8)), (None, None), "none does the same");
}

/// The main thread reads for half of the time, then two threads keep both CPUs busy, as in `git pack-objects` on two
/// CPUs. The CPU that is idle during the reading is of no use to a third thread.
#[test]
fn one_more_thread_cannot_use_cpus_that_idle_before_the_workers_start() {
    let main = r#"{"name":"main","ops":[["exec","read",1000],["create","w0"],["create","w1"],["join","w0"],["join","w1"]]}"#;
    let workers = alike("w", 2, 1, r#"["exec","f",1000]"#);
    let program = program(&[main, &workers].join(","));
    let full = on(&program, 2).more_threads.expect("known");
    assert!(full.threads == 2 && full.gain.abs() < 0.01, "both CPUs are busy while they compute: {full:?}");
    // Four CPUs: the 1,000 ns in which they compute become 667 of 2,000.
    let room = on(&program, 4).more_threads.expect("known");
    assert!((room.gain - 1.0 / 6.0).abs() < 0.01, "{room:?}");
    // A main thread that first does the same work alone counts as one of the threads; the work that it does alone is
    // not divided either.
    let first = main.replace("read", "f");
    let same = self::program(&[&first, &workers].map(|threads| threads.to_string()).join(","));
    let search = Search::new(&same, &[], &Model::default()).expect("a program");
    assert_eq!(search.workers().map(|threads| threads.len()), Some(3));
    let full = on(&same, 2).more_threads.expect("known");
    assert!(full.threads == 3 && full.gain.abs() < 0.01, "{full:?}");
}

/// In a compressor whose first job is the largest, one more thread gains nothing during that job.
#[test]
fn one_more_thread_does_not_divide_what_one_thread_does_alone() {
    let threads =
        [alike("w", 1, 1, r#"["exec","f",3000]"#), alike("v", 3, 1, r#"["exec","f",200]"#)].join(",");
    let found = on(&program(&threads), 8);
    assert_eq!(found.more_threads, None);
    assert!(!found.fixes.iter().any(|fix| matches!(fix.edit, Edit::MoreThreads { .. })), "{:?}", found.fixes);
}

/// A Python program gets processes as advice, not "split the lock in 8".
#[test]
fn an_interpreter_s_lock_is_not_split_but_gets_processes() {
    let program = program(&alike("w", 4, 100, &HOT.replace("\"m\"", "\"lock GIL\"")));
    let found = on(&program, 4);
    assert!(
        matches!(&found.at[0].kind, LimitKind::Lock { lock, .. } if lock == "lock GIL"),
        "{:?}",
        found.at
    );
    let is_of_lock = |edit: &Edit| matches!(edit, Edit::SplitLock(..) | Edit::MoveOut(..));
    assert!(!found.fixes.iter().any(|fix| is_of_lock(&fix.edit)), "{:?}", found.fixes);
    // 4 threads on 4 CPUs: 24,840 ns become 10,200 if each has an interpreter of its own.
    let first = found.fixes.first().expect("a change");
    assert!(matches!(first.edit, Edit::Processes(_)) && first.edit.is_at_best(), "{first:?}");
    assert!((0.55..0.62).contains(&first.gain), "{first:?}");
    assert!(found.fixes.len() > 1, "what runs under it can be made faster: {:?}", found.fixes);
}

/// `what-if --threads +1` gives the same gain for a stage as FIX does.
#[test]
fn a_second_thread_of_a_stage_can_be_tried() {
    let program = pipeline();
    let cpus = Cpus::count(4).expect("4");
    let search = Search::new(&program, &[cpus], &Model::default()).expect("a program");
    assert_eq!(search.workers().map(|threads| threads.len()), Some(1));
    let (before, after) = search.with_workers(&search.workers().expect("a stage"), 1, cpus).expect("known");
    let found = on(&program, 4);
    let fix = found
        .fixes
        .iter()
        .find(|fix| matches!(&fix.edit, Edit::MoreThreads { threads, .. } if threads.len() == 1))
        .expect("a second thread");
    assert!((1.0 - after / before - fix.gain).abs() < 1e-9, "{fix:?}, {before} to {after}");
}

/// Eight writers sync a log under its lock: one sync for all waiting threads gains more than splitting the lock.
#[test]
fn syncs_under_a_lock_get_the_fix_of_one_sync_for_all() {
    let round = r#"["exec","burn",20],["lock","log"],["exec","write",2],["io",100,"file sync"],["exec","fsync",10],["unlock","log"]"#;
    let fixes = on(&program(&alike("w", 8, 50, round)), 2).fixes;
    let fix = fixes.iter().find(|fix| matches!(fix.edit, Edit::GroupCommit(..))).expect("a group commit");
    assert!(matches!(fix.edit, Edit::GroupCommit(_, threads) if threads == 8), "{fix:?}");
    // Of 112 ns under the lock, 12 ns and an eighth of the sync's 100 ns remain.
    assert!((0.7..0.85).contains(&fix.gain), "{fix:?}");
    let short = round.replace("\"io\",100", "\"io\",1");
    let fixes = on(&program(&alike("w", 8, 50, &short)), 2).fixes;
    assert!(!fixes.iter().any(|fix| matches!(fix.edit, Edit::GroupCommit(..))), "{fixes:?}");
}
