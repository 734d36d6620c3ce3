//! The rows of THREADS.

use super::*;

/// Time spent spinning is shown as its own state, whether the lock is known or only the thread that ended the wait.
#[test]
fn a_thread_that_waits_by_spinning_is_shown_as_spinning() {
    let ends = r#"{"name":"a","ops":[["exec","f",1000],["release","spinning #0"]]}"#;
    let spins = r#"{"name":"b","ops":[["await","spinning #0"],["exec","g",10]]}"#;
    let found = on(&program(&format!("{ends},{spins}")), 2);
    let of = found.threads.iter().find(|of| of.names == ["b"]).expect("b");
    assert!(of.spinning > 0.9 && of.lock == 0.0 && of.other < 0.05, "{of:?}");
}

/// The main thread does not share a row with its workers, nor does a thread that the limit names.
#[test]
fn threads_share_a_row_only_if_they_do_the_same() {
    let workers =
        [alike("w/", 3, 1, r#"["exec","f",900]"#), alike("io/", 2, 1, r#"["exec","f",300]"#)].join(",");
    let creates = r#"["create","w/0"],["create","w/1"],["create","w/2"],["create","io/0"],["create","io/1"]"#;
    let main = format!(r#"{{"name":"w/9","ops":[["exec","f",9000],{creates},["exec","f",1000]]}}"#);
    let found = on(&program(&format!("{main},{workers}")), 8);
    assert!(
        matches!(&found.at[0].kind, LimitKind::Serial { thread, .. } if thread == "w/9"),
        "{:?}",
        found.at
    );
    let mut rows: Vec<Vec<&str>> =
        found.threads.iter().map(|of| of.names.iter().map(String::as_str).collect()).collect();
    rows.sort_unstable();
    assert_eq!(rows, [vec!["io/0", "io/1"], vec!["w/0", "w/1", "w/2"], vec!["w/9"]]);
}

/// `what-if --threads` finds any cohort that THREADS names, not only the threads that do most of the work.
#[test]
fn what_if_finds_a_group_of_threads_by_its_shown_name() {
    let threads = [alike("w/", 3, 1, r#"["exec","f",900]"#), alike("io-1", 2, 1, r#"["exec","g",300]"#)];
    let search = Search::new(&program(&threads.join(",")), &[], &Model::default()).expect("a program");
    assert_eq!(search.cohort_names(), ["w", "io-10"]);
    assert_eq!(search.cohort("w"), Some(vec![0, 1, 2]));
    assert_eq!(search.cohort("io-*"), Some(vec![3, 4]));
    assert_eq!(search.cohort("io-11"), Some(vec![3, 4]), "one of them stands for all");
    assert_eq!(search.cohort("main"), None);
    let (before, after) = search.with_workers(&[3, 4], 1, Cpus::count(8).expect("8")).expect("known");
    assert_eq!(before, after, "the others take longer");
}

/// A main thread that computes most of the time is the limit, not the lock, although a pool computes at the same time.
#[test]
fn one_thread_that_computes_most_of_the_time_is_the_limit_busy_thread() {
    let main = [r#"["lock","gil"],["exec","render",60],["unlock","gil"],["exec","select",1]"#; 20].join(",");
    let worker = |cost: u32| {
        alike(
            "w",
            2,
            20,
            &format!(r#"["exec","hash",{cost}],["lock","gil"],["exec","hash",1],["unlock","gil"]"#),
        )
    };
    let with = |cost| program(&format!("{{\"name\":\"main\",\"ops\":[{main}]}},{}", worker(cost)));
    let found = on(&with(10), 2);
    let LimitKind::BusyThread { thread, function, busy } = &found.at[0].kind else {
        panic!("{:?}", found.at)
    };
    assert_eq!((thread.as_str(), function.as_deref()), ("main", Some("render")));
    assert!(*busy > 0.9, "{busy}");
    let divided = found.fixes.iter().find(|fix| matches!(fix.edit, Edit::Divide(..))).expect("divided");
    assert!((0.2..0.5).contains(&divided.gain), "{divided:?}");
    // If the other threads compute equally long, the main thread is one of several busy threads.
    assert!(!matches!(kind(&with(50), 2), LimitKind::BusyThread { .. }));
    assert!(!matches!(kind(&with(8), 1), LimitKind::BusyThread { .. }), "one CPU");
    // Two threads do the same work, and one of them has more of it.
    let uneven = r#"{"name":"main","ops":[["exec","row",100],["barrier","end",2]]},{"name":"w","ops":[["exec","row",40],["barrier","end",2]]}"#;
    assert!(!matches!(kind(&program(uneven), 2), LimitKind::BusyThread { .. }));
}
