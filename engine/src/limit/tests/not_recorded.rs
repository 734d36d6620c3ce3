//! Recordings in which something is missing.

use super::*;
use crate::event::SyncObject;
use crate::limit::NotSimulated;
use crate::program::ObjectKind;

/// Two threads that wake each other in turn.
fn ping_pong() -> Program {
    let ping = alike("p", 1, 100, r#"["exec","f",100],["sem_post","there"],["sem_wait","back"]"#);
    let pong = alike("q", 1, 100, r#"["sem_wait","there"],["exec","g",100],["sem_post","back"]"#);
    program(&format!("{ping},{pong}"))
}

/// Unrecorded locks limit, not hand-overs or CPUs, if mutexes had no probes.
#[test]
fn unrecorded_locks_that_threads_wait_for_are_the_limit() {
    let word = |wait_ns, put_back| RecordedObject {
        name: "futex registry.gate".into(),
        kind: ObjectKind::Futex,
        waits: 1_000,
        wait_ns,
        put_back,
        ..RecordedObject::default()
    };
    let kind = |family: &str, object: RecordedObject| {
        let mut program = recorded(ping_pong(), &[]);
        let family = family.into();
        let tried = Some(OperationsTried { calls: Some(20_000), cost_ppm: 390_000 });
        program.findings.push(Finding::OperationsOff { family, processes: 1, after_ns: None, tried });
        program.recorded.objects.push(object);
        let model = Model { wake_latency_ns: Some(2_000), ..Model::default() };
        let found = limits(&program, &[Cpus::count(2).expect("2")], &model);
        (found.at[0].kind.clone(), found.fixes.len())
    };
    let mutexes = "mutexes and condition variables";
    let expected = |is_lock| LimitKind::LocksNotRecorded {
        word: "futex registry.gate".into(),
        waiting: 1.5,
        is_lock,
        why: NotSimulated::NotRecorded,
        cost: Some(0.39),
    };
    assert_eq!(kind(mutexes, word(3_000_000_000, None)), (expected(false), 0));
    // Threads that wait for the word end each other's waits, as with a lock.
    let passed_on = RecordedObject { by_waiters: 900, ..word(3_000_000_000, None) };
    assert_eq!(kind(mutexes, passed_on), (expected(true), 0));
    let is_hand_over = |found: (LimitKind, usize)| matches!(found.0, LimitKind::HandOver { .. });
    assert!(is_hand_over(kind(mutexes, word(1_000_000, None))), "hardly anybody waits");
    assert!(
        is_hand_over(kind(mutexes, word(3_000_000_000, Some(PutBackUses::default())))),
        "it is simulated"
    );
    // A few long waits, as of Java's service threads, are for work.
    let for_work = RecordedObject { waits: 4, ..word(3_000_000_000, None) };
    assert!(is_hand_over(kind(mutexes, for_work)), "they wait for work");
    assert!(is_hand_over(kind("semaphores", word(3_000_000_000, None))), "mutexes were recorded");
}

/// Four workers wait for a lock of their own, as in Node.js, after OpenSSL's operations filled the rings.
#[test]
fn locks_whose_operations_were_lost_are_the_limit() {
    let mut program = recorded(ping_pong(), &[]);
    let families = vec![probe_abi::SyncFamily::Mutex.name().to_owned()];
    program.findings.push(Finding::OperationsLost { families });
    let condition = |number: u32| RecordedObject {
        name: format!("condition first used in wait #{number}"),
        kind: ObjectKind::Sync(SyncObject::Condition),
        group: Some("first used in wait".into()),
        waits: 1_000,
        wait_ns: 1_000_000_000,
        ..RecordedObject::default()
    };
    program.recorded.objects = (1..=4).map(condition).collect();
    let model = Model { wake_latency_ns: Some(2_000), ..Model::default() };
    let found = limits(&program, &[Cpus::count(2).expect("2")], &model);
    let expected = LimitKind::LocksNotRecorded {
        word: "condition first used in wait".into(),
        waiting: 2.0,
        is_lock: false,
        why: NotSimulated::Lost,
        cost: None,
    };
    assert_eq!(found.at[0].kind, expected);
}

/// A recording that lost nearly everything has an unknown limit.
#[test]
fn a_recording_that_lost_nearly_everything_has_no_known_limit() {
    let program = program(&alike("w", 2, 10, r#"["exec","f",100],["io",900,"unknown"]"#));
    let LimitKind::NotKnown { missing } = kind(&program, 2) else { panic!("{:?}", on(&program, 2)) };
    assert!((missing - 0.9).abs() < 0.01, "{missing}");
    assert!(on(&program, 2).fixes.is_empty());
}

/// Four workers behind a lock of Java are limited by that lock, not by handing over; who ends the waits shows it.
#[test]
fn java_s_unrecorded_locks_are_known_by_who_ends_the_waits() {
    let parked = |waits, by_waiters| RecordedObject {
        name: "condition in LockSupport.park #3".into(),
        kind: ObjectKind::Sync(SyncObject::Condition),
        group: Some("in LockSupport.park".into()),
        waits,
        by_waiters,
        wait_ns: 1_200_000_000,
        ..RecordedObject::default()
    };
    let kind = |words: &[(u64, u64)]| {
        let mut program = recorded(ping_pong(), &[]);
        program.recorded.objects.extend(words.iter().map(|&(waits, by_waiters)| parked(waits, by_waiters)));
        let model = Model { wake_latency_ns: Some(2_000), ..Model::default() };
        limits(&program, &[Cpus::count(2).expect("2")], &model).at[0].kind.clone()
    };
    // The two waits of a service thread are for work.
    let found = kind(&[(1_000, 990), (900, 880), (2, 0)]);
    let LimitKind::LocksNotRecorded { word, waiting, is_lock: true, .. } = found else { panic!("{found:?}") };
    assert_eq!(word, "condition in LockSupport.park");
    assert!((waiting - 1.2).abs() < 0.01, "{waiting}");
    // Another thread gives work to the workers.
    let found = kind(&[(1_000, 10), (900, 0)]);
    assert!(matches!(found, LimitKind::HandOver { .. }), "{found:?}");
}

/// If operations are missing, Python's lock cannot be recognized from its mutex and condition; the condition then names
/// the lock.
#[test]
fn python_s_lock_is_named_by_its_condition_if_operations_are_missing() {
    let condition = RecordedObject {
        name: "condition _PyRuntime.ceval.gil.cond".into(),
        kind: ObjectKind::Sync(SyncObject::Condition),
        // Most waits end by their timeout, and start again.
        waits: 1_800,
        by_waiters: 550,
        wait_ns: 3_000_000_000,
        ..RecordedObject::default()
    };
    let found = |objects: &[&str]| {
        let mut program = recorded(ping_pong(), &[]);
        program.objects.extend(objects.iter().map(|name| (*name).to_owned()));
        program.recorded.objects.push(condition.clone());
        let model = Model { wake_latency_ns: Some(2_000), ..Model::default() };
        let found = limits(&program, &[Cpus::count(2).expect("2")], &model);
        (found.at[0].kind.clone(), found.more_threads)
    };
    let (kind, more) = found(&[]);
    assert!(
        matches!(&kind, LimitKind::LocksNotRecorded { word, is_lock: true, .. } if word == "lock GIL"),
        "{kind:?}"
    );
    assert!(more.is_none_or(|more| more.gain < 0.05), "behind it one more thread waits");
    assert!(matches!(found(&["lock GIL"]).0, LimitKind::HandOver { .. }), "then it is simulated");
}
