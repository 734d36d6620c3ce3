//! Tests with threads that sleep with a permit, each on a CPU of its own, as the kernel shows them.

use super::asleep::{ENDS, LATE, PIECE, asleep, runs, time_ns};
use super::{HOT, Run, Shape, WORD, empty};
use crate::event::SyncObject;
use crate::experiment::bounded;
use crate::timeline::model::State;
use crate::timeline::put_back::put_back;
use probe_abi::SyncOperation;

const USERS: usize = 6;

/// Threads that compute for `apart` between two requests, of which `permits` may be under way at a time. Each request returns
/// its permit and wakes the next thread, unless `another` thread does that.
fn run(apart: u64, permits: usize, another: bool) -> Run {
    let shape = Shape { threads: USERS as u32 + 1, waits_in: "sem_wait", ..HOT };
    let mut run = Run { timeline: empty(shape, ENDS), acquisitions: 0, held_ns: 0, ran_ns: 0 };
    let mut comes: Vec<u64> = (0..USERS as u64).map(|n| 1_000 + n * 7_000).collect();
    for thread in 0..=USERS {
        run.state(thread, 10, State::Running { cpu: Some(thread as u16) });
    }
    let mut free = vec![(0, 0); permits];
    loop {
        let (thread, at) = comes.iter().copied().enumerate().min_by_key(|(_, at)| *at).expect("threads");
        let (permit, (free_at, last)) =
            free.iter().copied().enumerate().min_by_key(|(_, free)| *free).expect("permits");
        if at.max(free_at) + 2_000_000 > ENDS {
            return run;
        }
        let mut now = at;
        if at < free_at {
            run.waits(thread, at);
            run.wakes(if another { USERS } else { last }, thread, free_at);
            now = free_at + LATE;
            run.state(thread, now, State::Running { cpu: Some(thread as u16) });
        }
        now = runs(&mut run, thread, now, PIECE, 1);
        now = asleep(&mut run, thread, now);
        now = runs(&mut run, thread, now, PIECE, 1);
        free[permit] = (now, thread);
        run.acquisitions += 1;
        comes[thread] = runs(&mut run, thread, now, apart, 1);
    }
}

/// Six threads share two connections: without permits, their waits would be replayed and count as sleeping.
#[test]
fn permits_all_in_use_while_threads_wait_are_put_back_as_a_semaphore() {
    let mut run = run(20_000, 2, false);
    put_back(&mut run.timeline);
    let [lock] = run.timeline.locks[..] else { panic!("one object: {:?}", run.timeline.locks) };
    assert_eq!((lock.kind, lock.address), (SyncObject::Semaphore, WORD));
    let taken = run.timeline.lock_operations.iter();
    let taken = taken.filter(|used| used.operation == SyncOperation::SemaphoreWait).count() as f64;
    assert!((taken / run.acquisitions as f64 - 1.0).abs() < 0.02, "{taken} of {}", run.acquisitions);
    let program = crate::translation::from_timeline(&run.timeline);
    let [found] = bounded(&program)[..] else { panic!("{:?}", program.findings) };
    assert_eq!((found.permits, found.users), (2, USERS as u32));
    let time = time_ns(&program);
    assert!((time / ENDS as f64 - 1.0).abs() < 0.05, "{time} of {ENDS}");
}

/// A word of Python's runtime was put back so, and the simulation of its threads deadlocked.
#[test]
fn a_word_that_threads_hardly_wait_for_is_not_put_back_as_permits() {
    let mut run = run(20_000, 2, false);
    run.timeline.end.0 *= 1_000;
    let before = run.timeline.clone();
    put_back(&mut run.timeline);
    assert_eq!(run.timeline, before);
}

#[test]
fn locks_and_words_that_hand_over_work_are_not_put_back_as_permits() {
    for (permits, another) in [(2, true), (1, false)] {
        let run = run(20_000, permits, another);
        let mut timeline = run.timeline.clone();
        put_back(&mut timeline);
        assert_eq!(timeline, run.timeline);
    }
}
