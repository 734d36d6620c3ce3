//! Locks and semaphores, case by case.

use super::script::{MUTEX, OTHER, Script, does, kinds};
use engine::program::{ObjectId, Operation, Program, Thread, ThreadId};
use engine::report::{Cpus, Detail, Finding, ReplayReason, WaitsFor, report};
use engine::synth::{Execution, generate};
use engine::time::Ticks;
use engine::timeline::build;
use engine::translation::from_timeline;
use probe_abi::{OperationFlags, SyncOperation as S};
use std::num::NonZeroU32;

const EBUSY: i32 = 16;
const ETIMEDOUT: i32 = 110;
const EOWNERDEAD: i32 = 130;
const SEMAPHORE: u64 = 0x800;

#[track_caller]
fn assert_ends(script: &Script) {
    let answer = report(&script.program(), &[Cpus::Infinite], Detail::Functions);
    let bad = ["deadlock", "unlock_not_held", "invalid_program"];
    let found: Vec<_> = answer.findings.iter().filter(|f| bad.contains(&f.kind())).collect();
    assert!(found.is_empty(), "{found:?}");
}

/// Two threads take two locks in opposite orders. On one CPU one was finished before the other began.
#[test]
fn a_deadlock_that_did_not_happen_is_a_finding_and_not_simulated() {
    let exec = Operation::Exec(Ticks::from_ns(6_400));
    let pair = |name: &str, first: u32, second: u32| {
        let (first, second) = (ObjectId(first), ObjectId(second));
        let mut operations = vec![exec, Operation::Lock(first), exec, Operation::Lock(second), exec];
        operations.extend([Operation::Unlock(second), Operation::Unlock(first), exec]);
        Thread { name: name.to_owned(), operations, ..Thread::default() }
    };
    // A third, unrelated lock is still simulated.
    let mut other = pair("C", 2, 2);
    other.operations = vec![exec, Operation::Lock(ObjectId(2)), exec, Operation::Unlock(ObjectId(2)), exec];
    let program = Program {
        objects: ["m", "n", "o"].map(str::to_owned).to_vec(),
        threads: vec![pair("A", 0, 1), pair("B", 1, 0), other],
        ..Program::default()
    };
    let execution = Execution { cpus: 1, operations: true, ..Execution::default() };
    let generated = generate(&program, &execution).expect("supported");
    let translated = from_timeline(&build(&generated.recording()));
    assert_eq!(kinds(&translated), ["replayed", "simulated_deadlock"], "{:?}", translated.findings);
    let Finding::SimulatedDeadlock { stuck } = &translated.findings[1] else { unreachable!("by its kind") };
    let is_held = stuck.threads.iter().any(|stuck| {
        let WaitsFor::Lock { holder: Some(holder), .. } = &stuck.waits_for else { return false };
        stuck.thread == "A/1000" && holder.thread == "B/1001"
    });
    assert!(is_held, "{stuck:?}");
    let all: Vec<&Operation> = translated.threads.iter().flat_map(|thread| &thread.operations).collect();
    let count = |is: fn(&Operation) -> bool| all.iter().filter(|operation| is(operation)).count();
    assert_eq!(count(|operation| matches!(operation, Operation::Held(..))), 4);
    assert_eq!(count(|operation| matches!(operation, Operation::Lock(..))), 1);
    let answer = report(&translated, &[Cpus::Infinite], Detail::Functions);
    assert!(answer.findings.iter().all(|finding| finding.kind() != "deadlock"), "{:?}", answer.findings);
}

/// As pigz at its end: it takes the lock of its list of threads, finds one that has finished, and joins it with the lock
/// held. On one CPU the threads had finished before. With more CPUs, a join that comes too early would wait for a thread that
/// waits for the lock.
#[test]
fn a_join_under_a_lock_comes_after_the_joined_thread_s_last_use_of_it() {
    let exec = |ns| Operation::Exec(Ticks::from_ns(ns));
    let lock = ObjectId(0);
    let mut main = vec![
        exec(1_000),
        Operation::Create(ThreadId(1)),
        Operation::Create(ThreadId(2)),
        Operation::Sleep(Ticks::from_ns(900_000)),
    ];
    main.extend([Operation::Lock(lock), Operation::Join(ThreadId(1)), Operation::Join(ThreadId(2))]);
    main.extend([Operation::Unlock(lock), exec(1_000)]);
    let mut threads = vec![Thread { name: "main".to_owned(), operations: main, ..Thread::default() }];
    for ns in [100_000, 200_000] {
        let operations =
            vec![exec(ns), Operation::Lock(lock), exec(5_000), Operation::Unlock(lock), exec(ns)];
        threads.push(Thread { name: format!("worker {ns}"), operations, ..Thread::default() });
    }
    let program = Program { objects: vec!["list".to_owned()], threads, ..Program::default() };
    let execution = Execution { cpus: 1, operations: true, ..Execution::default() };
    let generated = generate(&program, &execution).expect("supported");
    let mut translated = from_timeline(&build(&generated.recording()));
    assert!(kinds(&translated).is_empty(), "{:?}", translated.findings);
    let waits_for_it = translated.threads[0].operations.windows(4).any(|all| {
        use Operation::{Await, Join, Lock, Unlock};
        matches!(all, [Unlock(_), Await(_), Lock(_), Join(_)])
    });
    assert!(waits_for_it, "{:?}", translated.threads[0]);
    // Even if the sleep, which stands for earlier work of the lock's owner, is shorter.
    for operation in translated.threads.iter_mut().flat_map(|thread| &mut thread.operations) {
        if let Operation::Sleep(_) | Operation::Io(..) = operation {
            *operation = exec(1_000);
        }
    }
    let answer = report(&translated, &[Cpus::Count(NonZeroU32::MIN), Cpus::Infinite], Detail::Functions);
    assert!(answer.findings.iter().all(|finding| finding.kind() != "deadlock"), "{:?}", answer.findings);
}

#[test]
fn a_recursive_mutex_is_taken_once() {
    let mut script = Script::default();
    script.odd(1, S::MutexLock, MUTEX, 0, OperationFlags::RECURSIVE | OperationFlags::KIND_KNOWN);
    script.odd(1, S::MutexLock, MUTEX, 0, OperationFlags::RECURSIVE | OperationFlags::KIND_KNOWN);
    script.unlock(1).unlock(1).lock(2, 1).unlock(2);
    assert_eq!(does(&script.program(), 1), "lock m, unlock m");
    assert_ends(&script);
}

#[test]
fn a_lock_operation_that_failed_changes_nothing() {
    let mut script = Script::default();
    script.lock(1, 1).odd(2, S::MutexTryLock, MUTEX, EBUSY, 0).odd(2, S::MutexTimedLock, MUTEX, ETIMEDOUT, 0);
    script.unlock(1).odd(2, S::MutexTimedLock, MUTEX, EOWNERDEAD, 0).unlock(2);
    let program = script.program();
    assert_eq!(
        (does(&program, 1), does(&program, 2)),
        ("lock m, unlock m".into(), "lock m, unlock m".into())
    );
    assert!(kinds(&program).is_empty());
}

/// A try does not wait, so it must not be simulated as waiting while others wait for its thread.
#[test]
fn a_try_lock_is_a_lock_only_if_its_thread_holds_no_other() {
    let mut script = Script::default();
    script.odd(1, S::MutexTryLock, MUTEX, 0, 0).odd(1, S::MutexTryLock, OTHER, 0, 0);
    script.op(1, S::MutexUnlock, OTHER, 1).unlock(1);
    script.odd(2, S::MutexTryLock, OTHER, 0, 0).odd(2, S::MutexTryLock, MUTEX, 0, 0);
    script.unlock(2).op(2, S::MutexUnlock, OTHER, 1);
    let program = script.program();
    assert_eq!(does(&program, 1), "lock m, held n, freed n, unlock m");
    assert_eq!(does(&program, 2), "lock n, held m, freed m, unlock n");
    assert_ends(&script);
}

#[test]
fn a_mutex_unlocked_by_another_thread_is_replayed() {
    let mut script = Script::default();
    script.lock(1, 1).unlock(2).lock(1, 1).unlock(2);
    let program = script.program();
    assert_eq!(kinds(&program), ["replayed"]);
    assert!(!does(&program, 1).contains("lock m"), "{}", does(&program, 1));
}

#[test]
fn a_lock_that_two_threads_hold_at_once_is_replayed() {
    let mut script = Script::default();
    script.lock(1, 1).lock(2, 1).unlock(2).unlock(1);
    assert_eq!(kinds(&script.program()), ["replayed"]);
}

/// In the simulation, threads may come later to a lock than recorded. A lock still held at the end must not make them
/// wait forever.
#[test]
fn a_lock_still_held_at_the_end_is_released_there() {
    let mut script = Script::default();
    script.lock(2, 1).unlock(2).lock(1, 1);
    assert_eq!(does(&script.program(), 1), "lock m, unlock m");
    assert_ends(&script);
}

#[test]
fn a_lock_taken_before_the_recording_is_not_released_in_it() {
    let mut script = Script::default();
    script.unlock(1).lock(2, 1).unlock(2).lock(1, 1).unlock(1);
    let program = script.program();
    assert_eq!(does(&program, 1), "lock m, unlock m");
    assert!(kinds(&program).is_empty(), "{:?}", program.findings);
}

#[test]
fn locks_of_a_thread_that_lost_operations_are_not_decided_anew() {
    let mut script = Script::default();
    script.lock(1, 1).loses(1).op(1, S::MutexLock, OTHER, 1).op(1, S::MutexUnlock, OTHER, 1);
    script.lock(2, 1).unlock(2);
    let program = script.program();
    assert_eq!(does(&program, 1), "");
    assert!(kinds(&program).contains(&"operations_lost"), "{:?}", program.findings);
}

/// A call returned with the lock after its probes were removed. The lock must not seem held forever, which would be a
/// deadlock in the simulation.
#[test]
fn a_lock_acquired_after_its_probes_were_removed_is_released() {
    let mut script = Script::default();
    script.lock(1, 1).unlock(1).loses_probes();
    script.op(2, S::SemaphorePost, SEMAPHORE, 1);
    script.record(1, S::MutexLock, MUTEX, 25, 1, 0);
    script.op(1, S::SemaphorePost, SEMAPHORE, 1);
    assert_eq!(does(&script.program(), 1), "lock m, unlock m, lock m, unlock m, give s");
    assert_ends(&script);
}

/// As in a recording of pigz: probes are removed one after the other, and a lock is taken in between, whose release is not
/// recorded. It must not count as held to the end.
#[test]
fn a_lock_taken_while_its_probes_are_removed_is_released() {
    let mut script = Script::default();
    script.lock(1, 1).unlock(1).loses_probes();
    script.lock(2, 1).unlock(2).op(1, S::MutexLock, MUTEX, 1);
    script.op(1, S::SemaphorePost, SEMAPHORE, 1);
    let program = script.program();
    assert_eq!(does(&program, 1), "lock m, unlock m, lock m, unlock m, give s");
    assert_eq!(does(&program, 2), "lock m, unlock m");
    assert_ends(&script);
}

/// As sqlite3's 25 million locks without waiters, of which 16,000 were recorded. The release of the last one was not: it must
/// not count as held to the end.
#[test]
fn a_lock_whose_release_was_left_out_is_released() {
    let mut script = Script::default();
    script.lock(1, 1).unlock(1).lock(1, 1).leaves_out(1_000);
    script.op(1, S::SemaphorePost, SEMAPHORE, 1);
    assert_eq!(does(&script.program(), 1), "lock m, unlock m, lock m, unlock m, give s");
    assert_ends(&script);
}

#[test]
fn a_semaphore_s_first_count_is_what_the_recording_needs_or_unknown() {
    // Posted before it is taken: the initial count is 0.
    let mut script = Script::default();
    script.op(1, S::SemaphorePost, SEMAPHORE, 1).op(2, S::SemaphoreWait, SEMAPHORE, 1);
    let program = script.program();
    assert_eq!((does(&program, 1), does(&program, 2)), ("give s".into(), "take s".into()));
    // Taken first without any wait: the initial count is unknown.
    let mut script = Script::default();
    script.op(1, S::SemaphoreWait, SEMAPHORE, 1).op(2, S::SemaphoreWait, SEMAPHORE, 1);
    let program = script.program();
    assert_eq!((kinds(&program), does(&program, 1)), (vec!["replayed"], String::new()));
}

/// The reason why each object is replayed.
fn reasons(script: &Script) -> Vec<ReplayReason> {
    let program = script.program();
    let replayed = program.findings.iter().filter_map(|finding| match finding {
        Finding::Replayed { objects, .. } => Some(objects),
        _ => None,
    });
    replayed.flatten().map(|object| object.reason).collect()
}

#[test]
fn a_replayed_lock_has_its_reason_had_twice_or_given_by_another() {
    let mut script = Script::default();
    script.lock(1, 1).lock(2, 1).unlock(2).unlock(1);
    assert_eq!(reasons(&script), [ReplayReason::HadTwice]);
    let mut script = Script::default();
    script.lock(1, 1).unlock(2);
    assert_eq!(reasons(&script), [ReplayReason::GivenByAnother]);
}

#[test]
fn a_barrier_that_a_thread_leaves_before_all_have_come_is_replayed() {
    const SERIAL: i32 = -1;
    let mut script = Script::default();
    script.odd(1, S::BarrierWait, OTHER, SERIAL, 0).op(2, S::BarrierWait, OTHER, 1);
    assert_eq!(reasons(&script), [ReplayReason::OddBarrier]);
    // One thread fewer than its count.
    let mut script = Script::default();
    script.makes(1, S::BarrierInit, OTHER, 2).odd(1, S::BarrierWait, OTHER, SERIAL, 0);
    assert_eq!(reasons(&script), [ReplayReason::OddBarrier]);
}

#[test]
fn a_semaphore_that_gives_more_than_its_first_count_is_replayed() {
    let taken_twice = |count: u64| {
        let mut script = Script::default();
        script.makes(1, S::SemaphoreInit, SEMAPHORE, count).op(1, S::SemaphoreWait, SEMAPHORE, 1);
        script.op(2, S::SemaphoreWait, SEMAPHORE, 1);
        script
    };
    assert_eq!(reasons(&taken_twice(1)), [ReplayReason::CountTooSmall]);
    assert_eq!(does(&taken_twice(2).program(), 1), "init s 2, take s");
    let mut script = Script::default();
    script.op(1, S::SemaphoreWait, SEMAPHORE, 1);
    assert_eq!(reasons(&script), [ReplayReason::CountNotKnown]);
}

#[test]
fn a_mutex_init_or_destroy_that_failed_changes_nothing() {
    let mut script = Script::default();
    script.odd(1, S::MutexInit, MUTEX, 22, 0).lock(1, 1).odd(1, S::MutexDestroy, MUTEX, EBUSY, 0).unlock(1);
    let program = script.program();
    assert_eq!(program.objects.iter().filter(|name| name.starts_with("mutex")).count(), 1);
    assert_eq!(does(&program, 1), "lock m, unlock m");
}
