//! Tests of the order of rows in the ledger, and of the rows that the screen shows.

use super::*;
use crate::event::SupportSubject;
use crate::limit::Evidence;
use crate::program::{LineFact, LineThread, MachineFacts, Share, SharedLine, SupportWork};
use crate::report::Detail;

/// Two threads that each wait for a device: the wait for one device is most of the path and limits, although nothing is gained
/// without it.
#[test]
fn the_largest_share_of_the_path_limits_where_no_single_wait_does() {
    let reads =
        |name: &str| alike(name, 1, 20, &format!(r#"["exec","f",100000],["io",900000,"{name} disk"]"#));
    let found = on(&recorded(program(&format!("{},{}", reads("a"), reads("b"))), &[]), 2);
    let limit = found.at.first().expect("a limit");
    assert!(matches!(&limit.kind, LimitKind::Device { device, .. } if device.ends_with("disk")), "{limit:?}");
    assert_eq!((limit.evidence, limit.gain()), (Evidence::OnPath, 0.0));
    assert!((0.85..0.95).contains(&limit.share), "{limit:?}");
}

/// If the limit is the work itself, the reported share is the work's share of the path.
#[test]
fn the_limit_work_has_its_share_of_the_path() {
    let found = on(&recorded(program(&alike("w", 2, 20, r#"["exec","f",970000],["sleep",30000]"#)), &[]), 2);
    let limit = found.at.first().expect("a limit");
    assert!(matches!(limit.kind, LimitKind::Work { .. }) && (0.9..0.98).contains(&limit.share), "{limit:?}");
}

/// A stretch that may be divided is longer than a lock's waits, but its gain is only a bound: it is listed below the
/// lock, which is simulated.
#[test]
fn a_bounded_larger_gain_is_listed_below_a_simulated_limit() {
    let stretch =
        r#"{"name":"main","ops":[["exec","read",1500],["create","w0"],["create","w1"],["create","w2"]]}"#;
    let found = on(&program(&format!("{stretch},{}", alike("w", 3, 10, HOT))), 4);
    let limit = found.at.first().expect("a limit");
    assert!(
        matches!(limit.kind, LimitKind::Lock { .. }) && limit.evidence == Evidence::Simulated,
        "{limit:?}"
    );
    let more: Vec<_> = limit.may_be_more().collect();
    assert!(matches!(&more[..], [row] if matches!(row.kind, LimitKind::Serial { .. })), "{more:?}");
    assert_eq!((more[0].least, more[0].evidence), (0.0, Evidence::Bounded));
    assert!(more[0].most > limit.gain(), "{more:?}");
}

/// If the prediction lacks most of the recorded run, this limits, and not a lock in the predicted rest.
#[test]
fn a_prediction_that_lacks_most_of_the_run_is_unexplained() {
    let beside = |wall_ns, others_ns| {
        let hot = r#"["exec","parse",400000],["lock","m"],["exec","hash",600000],["unlock","m"]"#;
        let mut program = recorded(program(&alike("w", 4, 100, hot)), &[]);
        let cost = Overhead { wall_ns, others_ns, target_ns: 200_000_000, ..Overhead::default() };
        (program.overhead, program.recorded_cpus) = (Some(cost), Some(2));
        on(&program, 2)
    };
    let of = |wall_ns| beside(wall_ns, 0);
    let short = of(1);
    let predicted_ns = short.at[0].time_ns;
    assert!(matches!(short.at[0].kind, LimitKind::Lock { .. }), "{short:?}");
    // The lock's gain does not matter.
    let found = of((2.3 * predicted_ns) as u64);
    assert!(matches!(found.at[0].kind, LimitKind::Unexplained { .. }) && found.fixes.is_empty(), "{found:?}");
    assert!(!found.at[0].kind.is_known() && !found.at[0].others.is_empty(), "{found:?}");
    let found = of((1.3 * predicted_ns) as u64);
    assert!(matches!(found.at[0].kind, LimitKind::Lock { .. }), "{found:?}");
    assert!(
        found.at[0].others.iter().any(|row| matches!(row.kind, LimitKind::Unexplained { .. })),
        "{found:?}"
    );
    assert_eq!(found.at[0].may_be_more().count(), 0, "it has a note of its own");
    // Other programs' CPU time explains the difference.
    let found = beside((2.3 * predicted_ns) as u64, (1.4 * predicted_ns) as u64);
    assert!(matches!(found.at[0].kind, LimitKind::Lock { .. }), "{found:?}");
}

/// One thread waits for 20 devices in turn, together for 90 % of the time: the devices are the limit, not the 10 % of
/// computing.
#[test]
fn many_short_waits_for_devices_limit_together() {
    let reads: Vec<String> =
        (0..20).map(|disk| format!(r#"["exec","f",100000],["io",900000,"disk {disk}"]"#)).collect();
    let found = on(&recorded(program(&alike("w", 1, 1, &reads.join(","))), &[]), 2);
    let limit = found.at.first().expect("a limit");
    assert!(
        matches!(&limit.kind, LimitKind::Device { device, .. } if device.ends_with("and 19 other devices")),
        "{limit:?}"
    );
    assert!((0.8..0.95).contains(&limit.share), "{limit:?}");
}

/// One wait of 7 ms for input does not turn a program with a serial stretch of 93 ms into a server that waits for work.
#[test]
fn a_single_wait_for_work_does_not_hide_a_serial_stretch() {
    let found = on(
        &program(
            r#"{"name":"main","ops":[["exec","parse",93],["io",7,"idle"]]},{"name":"w","ops":[["exec","f",5]]}"#,
        ),
        2,
    );
    assert!(matches!(found.at[0].kind, LimitKind::Serial { .. }), "{found:?}");
}

/// Two threads are at one cache line for most of their time: a second CPU gains nothing, nor does one more thread.
#[test]
fn threads_that_change_one_cache_line_gain_nothing_from_cpus() {
    let thread = |number: u32| LineThread { thread: number, at_line: 80, samples: 100 };
    let lines = vec![LineFact { threads: vec![thread(0), thread(1)], samples: 200 }];
    let program = recorded(program(&alike("w", 2, 1, r#"["exec","count",100000000]"#)), &[]);
    let line = SharedLine { variables: vec!["hits".to_owned()], threads: 2, ..SharedLine::default() };
    let program = Program {
        recorded: Recorded { lines: vec![line], ..program.recorded },
        recorded_cpus: Some(2),
        machine: Some(MachineFacts { lines, ..MachineFacts::default() }),
        ..program
    };
    let found = on(&program, 16);
    let first = &found.at[0];
    assert!(
        matches!(&first.kind, LimitKind::CacheLine { line, threads: 2, .. } if line == "hits"),
        "{first:?}"
    );
    assert!((first.share - 0.8).abs() < 0.01, "{first:?}");
    let [fix] = &found.fixes[..] else { panic!("{found:?}") };
    assert!(fix.edit == (Edit::OwnLines { line: 0, is_false: false }) && fix.edit.is_at_best(), "{fix:?}");
    assert!(found.more_threads.is_none_or(|more| more.gain < WORTH), "{found:?}");
    let report = crate::report::report(
        &program,
        &[1, 2, 16].map(|cpus| Cpus::count(cpus).expect("a count")),
        Detail::Functions,
    );
    let times: Vec<f64> = report.results.iter().map(|result| result.time_ns).collect();
    // Threads are at the line for 80 % of the time; on one CPU each visit takes a quarter as long.
    assert!(times[0] < 0.9 * times[1] && (times[1] - times[2]).abs() < 1e-3 * times[1], "{times:?}");
    let rows: f64 = report.results[0].functions.iter().map(|row| row.tet_ns).sum();
    assert!(
        (rows / times[0] - 1.0).abs() < 0.02,
        "what functions compute is of that CPU count: {rows} {times:?}"
    );
}

/// A worker pool waits for jobs in a futex word of its own, which is not a lock: one more worker comes first.
#[test]
fn a_futex_word_that_is_no_lock_comes_after_simulated_limits() {
    let mut program = recorded(program(&alike("w", 2, 10, r#"["exec","f",1000000]"#)), &[]);
    let families = vec![probe_abi::SyncFamily::Mutex.name().to_owned()];
    program.findings.push(Finding::OperationsLost { families });
    program.recorded.objects.push(RecordedObject {
        name: "futex in park".into(),
        kind: crate::program::ObjectKind::Futex,
        waits: 1_000,
        wait_ns: 3_000_000_000,
        ..RecordedObject::default()
    });
    let found = on(&program, 16);
    assert!(matches!(found.at[0].kind, LimitKind::Threads { threads: 2, .. }), "{found:?}");
    let more: Vec<_> = found.at[0].may_be_more().collect();
    assert!(matches!(&more[..], [row] if matches!(row.kind, LimitKind::LocksNotRecorded { .. })), "{more:?}");
}

fn of_kernel(subject: SupportSubject, threads: u64, samples: u64) -> SupportWork {
    let calls = vec![Share { name: "some call".to_owned(), count: samples }];
    let function = Some("fill".to_owned());
    SupportWork { subject, calls, function, threads, samples, all: 100, ..SupportWork::default() }
}

/// The kernel computes 80 % of the threads' time on shared memory, partly for one thread at a time: this row comes
/// before more CPUs.
#[test]
fn kernel_work_on_shared_memory_comes_before_more_cpus() {
    let program = recorded(program(&alike("w", 4, 1, r#"["exec","fill",100000000]"#)), &[]);
    let with = |works: Vec<SupportWork>| Program {
        recorded: Recorded { support: works, ..program.recorded.clone() },
        recorded_cpus: Some(2),
        ..program.clone()
    };
    let found = on(&with(vec![of_kernel(SupportSubject::Memory, 4, 80)]), 2);
    let first = &found.at[0];
    let LimitKind::SupportWork { subject: SupportSubject::Memory, threads: 4, calls, .. } = &first.kind
    else {
        panic!("{first:?}")
    };
    assert_eq!(calls, "some call");
    assert!((first.share - 0.8).abs() < 0.01, "{first:?}");
    let is_kernels = |fix: &&Fix| matches!(fix.edit, Edit::LessSupportWork { .. });
    let fix = found.fixes.iter().find(is_kernels).expect("advice");
    assert!((fix.gain - 0.8).abs() < 0.01 && fix.edit.is_at_best(), "{fix:?}");
    let cpus = first.others.iter().find(|row| matches!(row.kind, LimitKind::Cpus { .. })).expect("a row");
    assert!(cpus.evidence == Evidence::Bounded && (cpus.least - 0.2 * cpus.most).abs() < 0.01, "{cpus:?}");
    // With one thread per process, or with little kernel work, the threads want CPUs.
    for works in
        [vec![of_kernel(SupportSubject::Memory, 1, 9)], vec![of_kernel(SupportSubject::Memory, 4, 3)]]
    {
        let found = on(&with(works), 2);
        assert!(matches!(found.at[0].kind, LimitKind::Cpus { .. }), "{found:?}");
    }
}

/// The kernel's work for a hot lock is a consequence: the lock is the limit.
#[test]
fn kernel_work_of_waiting_for_a_lock_is_no_limit_of_its_own() {
    let section = r#"["lock","m"],["exec","put",900000],["unlock","m"],["exec","f",100000]"#;
    let with = |threads: &str| {
        let program = recorded(program(threads), &[]);
        let support = vec![of_kernel(SupportSubject::Waiting, 4, 95)];
        Program { recorded: Recorded { support, ..program.recorded }, recorded_cpus: Some(2), ..program }
    };
    let found = on(&with(&alike("w", 4, 20, section)), 2);
    assert!(matches!(found.at[0].kind, LimitKind::Lock { .. }), "{found:?}");
    assert!(!found.fixes.iter().any(|fix| matches!(fix.edit, Edit::LessSupportWork { .. })), "{found:?}");
    let found = on(&with(&alike("w", 2, 20, r#"["exec","f",1000000]"#)), 2);
    assert!(matches!(found.at[0].kind, LimitKind::SupportWork { .. }), "no cause was found: {found:?}");
}

/// Four threads want two CPUs, and put each other to sleep for a third of their CPU time, without a lock that is known.
#[test]
fn kernel_work_of_waiting_comes_before_more_cpus_that_are_not_promised() {
    let program = recorded(program(&alike("w", 4, 1, r#"["exec","fill",100000000]"#)), &[]);
    let with = |samples: u64| Program {
        recorded: Recorded {
            support: vec![of_kernel(SupportSubject::Waiting, 4, samples)],
            ..program.recorded.clone()
        },
        recorded_cpus: Some(2),
        ..program.clone()
    };
    let found = on(&with(33), 2);
    let first = &found.at[0];
    assert!(
        matches!(first.kind, LimitKind::SupportWork { subject: SupportSubject::Waiting, .. }),
        "{found:?}"
    );
    let cpus = first.others.iter().find(|row| matches!(row.kind, LimitKind::Cpus { .. })).expect("a row");
    assert!(cpus.least.abs() < 1e-9 && cpus.most > 0.4, "{cpus:?}");
    assert!(matches!(on(&with(9), 2).at[0].kind, LimitKind::Cpus { .. }), "little of it");
}
