//! The meaning of condition variables, pattern by pattern.

use super::script::{CONDITION, MUTEX, OTHER, Script, does, kinds};
use engine::time::Ticks;
use probe_abi::SyncOperation as S;

#[test]
fn a_condition_variable_of_a_queue_becomes_a_count() {
    let mut script = Script::default();
    script.lock(1, 10).waits(1);
    script.lock(2, 20).signal(2).unlock(2).returns(1).unlock(1);
    // Two items are put in, and taken without waiting.
    script.lock(2, 20).signal(2).unlock(2).lock(2, 20).signal(2).unlock(2);
    script.lock(1, 10).unlock(1).lock(1, 10).unlock(1);
    let program = script.program();
    let visit = "take c, lock m, unlock m";
    assert_eq!(does(&program, 1), [visit; 3].join(", "));
    assert_eq!(does(&program, 2), ["lock m, give c, unlock m"; 3].join(", "));
    assert!(kinds(&program).is_empty(), "{:?}", program.findings);
}

#[test]
fn a_queue_s_first_items_are_found_if_a_thread_waited_in_the_end() {
    let mut script = Script::default();
    script.lock(1, 10).unlock(1).lock(1, 10).unlock(1).lock(1, 10).waits(1);
    script.lock(2, 20).unlock(2).signal(2).returns(1).unlock(1);
    let program = script.program();
    assert_eq!(does(&program, 1), format!("init c 2, {}", ["take c, lock m, unlock m"; 3].join(", ")));
    assert_eq!(does(&program, 2), "lock m, unlock m, give c", "also a signal after the mutex");
}

/// A thread that signals only when the queue was empty still gives one item each time.
#[test]
fn a_queue_that_signals_only_when_empty_gives_an_item_each_time() {
    let mut script = Script::default();
    script.lock(1, 10).waits(1);
    script.lock(2, 20).signal(2).unlock(2).lock(2, 20).unlock(2).lock(2, 20).unlock(2);
    script.returns(1).unlock(1).lock(1, 10).unlock(1).lock(1, 10).unlock(1).lock(1, 10).waits(1);
    script.lock(2, 20).signal(2).unlock(2).returns(1).unlock(1);
    let program = script.program();
    assert_eq!(does(&program, 2), ["lock m, give c, unlock m"; 4].join(", "));
    assert_eq!(does(&program, 1), ["take c, lock m, unlock m"; 4].join(", "));
}

/// The last of three workers signals the thread that waits for all of them.
#[test]
fn a_countdown_by_condition_variable_is_waited_for_as_a_whole() {
    let mut script = Script::default();
    script.lock(1, 10).waits(1);
    for worker in 2..5 {
        script.lock(worker, 20);
        if worker == 4 {
            script.signal(worker);
        }
        script.unlock(worker);
    }
    script.returns(1).unlock(1);
    let program = script.program();
    assert_eq!(does(&program, 1), "take c, take c, take c, lock m, unlock m");
    for worker in 2..5 {
        assert_eq!(does(&program, worker), "lock m, give c, unlock m");
    }
}

#[test]
fn a_barrier_made_of_a_condition_variable_becomes_a_barrier() {
    let mut script = Script::default();
    // Each time another thread comes last.
    for [first, second, last] in [[1, 2, 3], [3, 1, 2]] {
        script.lock(first, 10).waits(first).lock(second, 10).waits(second);
        script.lock(last, 10).broadcast(last).unlock(last);
        script.returns(second).unlock(second).returns(first).unlock(first);
    }
    let program = script.program();
    let visit = "lock m, unlock m, meet c 3, lock m, unlock m";
    for tid in 1..4 {
        assert_eq!(does(&program, tid), [visit; 2].join(", "));
    }
    assert!(kinds(&program).is_empty(), "{:?}", program.findings);
}

/// The same barrier at several places of the program, as in SPLASH's Ocean. It must not be a count: then one thread takes its
/// own item, and on one CPU the other waits forever.
#[test]
fn a_barrier_made_of_a_condition_variable_may_be_met_at_several_places() {
    let mut script = Script::default();
    for (place, [first, last]) in [(10, [1, 2]), (20, [2, 1]), (30, [1, 2]), (10, [2, 1])] {
        script.lock(first, place).waits(first).lock(last, place).broadcast(last).unlock(last);
        script.returns(first).unlock(first);
    }
    let program = script.program();
    for tid in 1..3 {
        assert_eq!(does(&program, tid), ["lock m, unlock m, meet c 2, lock m, unlock m"; 4].join(", "));
    }
    assert!(kinds(&program).is_empty(), "{:?}", program.findings);
}

/// Two threads wait for each other in turn, at different places: the one that gives does not wait there.
#[test]
fn threads_that_signal_each_other_at_different_places_are_no_barrier() {
    let mut script = Script::default();
    for (waits, gives) in [((1, 10), (2, 20)), ((2, 20), (1, 10))] {
        script.lock(waits.0, waits.1).waits(waits.0);
        script.lock(gives.0, gives.1).broadcast(gives.0).unlock(gives.0);
        script.returns(waits.0).unlock(waits.0);
    }
    let program = script.program();
    assert!(!does(&program, 1).contains("meet"), "{}", does(&program, 1));
    assert!(!does(&program, 2).contains("meet"), "{}", does(&program, 2));
}

#[test]
fn a_gate_made_of_a_condition_variable_opens_once_for_all() {
    let mut script = Script::default();
    script.lock(1, 10).waits(1).lock(2, 10).waits(2);
    script.lock(4, 40).broadcast(4).unlock(4);
    script.returns(1).unlock(1).returns(2).unlock(2);
    script.lock(3, 10).unlock(3);
    let program = script.program();
    for tid in 1..4 {
        assert_eq!(does(&program, tid), "take c, lock m, unlock m");
    }
    assert_eq!(does(&program, 4), "lock m, give c, give c, give c, unlock m");
}

/// The time limit ended the condition wait, so the thread takes no item.
#[test]
fn a_condition_wait_that_timed_out_takes_no_item() {
    let mut script = Script::default();
    script.lock(1, 10).waits(1);
    script.lock(2, 20).signal(2).unlock(2).returns(1).unlock(1);
    script.lock(1, 10).waits(1).ends(1, S::ConditionTimedWait, 110).unlock(1);
    let program = script.program();
    assert_eq!(does(&program, 1), "take c, lock m, unlock m, lock m, unlock m, lock m, unlock m");
}

/// A thread takes from two queues and gives to one of them only sometimes: the meaning of its count is unknown.
#[test]
fn a_condition_variable_that_is_not_understood_is_replayed_with_a_finding() {
    let mut script = Script::default();
    script.lock(1, 10).waits(1);
    script.lock(2, 20).signal(2).unlock(2);
    script.returns(1).unlock(1);
    // The thread continues although nothing was given.
    script.lock(1, 10).unlock(1);
    script.lock(1, 10).waits(1);
    script.lock(2, 20).signal(2).unlock(2);
    script.returns(1).unlock(1);
    let program = script.program();
    assert_eq!(
        does(&program, 1),
        "lock m, unlock m, lock m, unlock m, lock m, unlock m, lock m, unlock m, lock m, unlock m"
    );
    assert_eq!(does(&program, 2), ["lock m, unlock m"; 2].join(", "), "no signal to be lost");
    assert_eq!(kinds(&program), ["conditions_replayed"]);
}

#[test]
fn a_signal_that_no_thread_ever_waited_for_is_a_finding() {
    let mut script = Script::default();
    script.lock(2, 20).op(2, S::ConditionSignal, OTHER, 98).unlock(2);
    assert_eq!(kinds(&script.program()), ["never_awaited"]);
}

/// Threads that wait at the end have no record of that wait.
#[test]
fn a_thread_that_waits_to_the_end_takes_no_item() {
    let mut script = Script::default();
    script.lock(1, 10).waits(1);
    script.lock(2, 20).signal(2).unlock(2).returns(1).unlock(1);
    script.lock(1, 10);
    let program = script.program();
    assert_eq!(does(&program, 1), "take c, lock m, unlock m, lock m, unlock m");
}

/// Two queues of one type: the meaning of one applies to the other, for which no thread waited.
#[test]
fn a_queue_nobody_waited_for_has_the_meaning_of_another_of_its_kind() {
    let mut script = Script::default();
    script.lock(1, 10).waits(1);
    script.lock(2, 20).signal(2).unlock(2).returns(1).unlock(1);
    let far = 0x1000;
    script.op(2, S::MutexLock, MUTEX + far, 20).op(2, S::ConditionSignal, CONDITION + far, 98);
    script.op(2, S::MutexUnlock, MUTEX + far, 99);
    script.op(1, S::MutexLock, MUTEX + far, 10).op(1, S::MutexUnlock, MUTEX + far, 99);
    let program = script.program();
    assert_eq!(does(&program, 1), ["take c, lock m, unlock m"; 2].join(", "));
    assert_eq!(does(&program, 2), ["lock m, give c, unlock m"; 2].join(", "));
    assert!(kinds(&program).is_empty(), "{:?}", program.findings);
}

/// A mutex, a condition variable and a flag, as CPython's GIL, are reported as one lock with its own hold time.
#[test]
fn a_lock_made_of_a_mutex_and_a_condition_variable_becomes_a_lock() {
    let mut script = Script::default();
    for round in 0..6 {
        let [first, second] = if round % 2 == 0 { [1, 2] } else { [2, 1] };
        // The lock is free for the first thread; the second one waits until it is released.
        script.lock(first, 10).unlock(first).lock(second, 10).waits(second);
        script.lock(first, 20).signal(first).unlock(first).returns(second).unlock(second);
        script.lock(second, 20).signal(second).unlock(second);
    }
    let program = script.program();
    assert!(kinds(&program).is_empty(), "{:?}", program.findings);
    let turn = "lock c, lock m, unlock m, lock m, unlock c, unlock m";
    for tid in [1, 2] {
        assert_eq!(does(&program, tid), [turn; 6].join(", "));
    }
    let lock = program.objects.iter().position(|name| name.starts_with("lock of condition")).expect("a lock");
    let fact =
        program.locks.iter().find(|fact| fact.object.0 as usize == lock).expect("what was recorded of it");
    assert_eq!((fact.acquisitions, fact.contended), (12, 6));
    // Each operation takes 2 ns and begins 10 ns after the last: six waits of 56 ns, and six holds of 36 and of 14 ns.
    assert_eq!((fact.waited, fact.held), (Ticks::from_ns(6 * 56), Ticks::from_ns(6 * (36 + 14))));
}

/// Two threads may hold the resource at once, so it is a pool and not a lock.
#[test]
fn a_pool_of_two_made_of_a_condition_variable_is_no_lock() {
    let mut script = Script::default();
    for _ in 0..6 {
        script.lock(1, 10).unlock(1).lock(2, 10).unlock(2).lock(3, 10).waits(3);
        script.lock(1, 20).signal(1).unlock(1).returns(3).unlock(3);
        script.lock(2, 20).signal(2).unlock(2).lock(3, 20).signal(3).unlock(3);
    }
    let program = script.program();
    assert!(program.objects.iter().all(|name| !name.starts_with("lock ")), "{:?}", program.objects);
    assert!(
        does(&program, 1).starts_with("init c 2, take c, lock m, unlock m, lock m, give c"),
        "{}",
        does(&program, 1)
    );
}
