//! Recorded threads that wait forever: for each other's locks, for their own, for the lock of a thread that has ended.

use engine::event::{AddressFact, AwaitedThread, FutexFact, SyncObject};
use engine::finding::{Finding, Holder, Stuck, StuckThread, WaitsFor};
use engine::limit::{Kind, limits};
use engine::predict::Model;
use engine::report::Cpus;
use engine::time::Timestamp;
use engine::timeline::{
    Counts, FirstUse, Interval, Lock, LockOperation, NO_OBJECT, State, Step, StepKind, Thread, Timeline,
    Wait, WaitReason, Wake,
};
use engine::translation::from_timeline;
use probe_abi::{Call, SyncFamily, SyncOperation as S};

const PID: u32 = 7;
const END: u64 = 1_000_000_000;
const ACCOUNTS: u64 = 0x40;
const JOURNAL: u64 = 0x80;
/// A `pthread_t`, and the word in its memory that the kernel clears when the thread ends.
const HANDLE: u64 = 0x7f00;
const ENDS: u64 = HANDLE + 0x2d0;
/// `FUTEX_WAIT_PRIVATE`, and the futex operation by which the C library joins threads.
const WAIT: u32 = 128;
const JOIN: u32 = 9 | 256;

#[derive(Default)]
struct Script {
    timeline: Timeline,
}

impl Script {
    fn new() -> Script {
        let lock = |address| Lock {
            pid: PID,
            address,
            kind: SyncObject::Mutex,
            first: FirstUse::default(),
            put_back: false,
        };
        let timeline = Timeline {
            end: Timestamp(END),
            locks: vec![lock(ACCOUNTS), lock(JOURNAL)],
            counts: Counts { events: 10, ..Counts::default() },
            ..Timeline::default()
        };
        Script { timeline }
    }

    /// A thread that takes and releases locks (by number) and then waits for a futex from `since` to its end.
    fn thread(mut self, operations: &[(u64, S, u32)], word: u64, futex: u32, since: u64) -> Script {
        let number = self.timeline.threads.len() as u32;
        let interval = |start, state| Interval { start: Timestamp(start), state, first_step: u32::MAX };
        let mut thread = Thread {
            pid: PID,
            tid: 10 + number,
            comm: format!("T{number}"),
            end: Timestamp(END),
            intervals: vec![
                interval(0, State::Running { cpu: Some(number as u16) }),
                interval(since, State::Blocked(0)),
            ],
            waits: vec![Wait {
                reason: WaitReason::Futex(FutexFact { word, operation: futex, words: 0 }),
                wake: Wake::CutAtEnd,
                cut_at_start: false,
                moved_to: None,
                from_now: false,
            }],
            ..Thread::default()
        };
        for &(time, operation, object) in operations {
            let step = StepKind::Operated(self.timeline.lock_operations.len() as u32);
            thread.steps.push(Step { time: Timestamp(time), kind: step });
            self.timeline.lock_operations.push(LockOperation {
                began: Timestamp(time),
                ended: Timestamp(time),
                value: 0,
                caller: 1,
                thread: number,
                object,
                second: NO_OBJECT,
                outcome: 0,
                operation,
                flags: 0,
                after_hole: false,
                times: 1,
            });
        }
        for interval in &mut thread.intervals {
            let before = thread.steps.iter().filter(|step| step.time < interval.start);
            interval.first_step = before.count() as u32;
        }
        self.timeline.threads.push(thread);
        self
    }

    fn found(&self) -> Option<(Stuck, bool)> {
        let program = from_timeline(&self.timeline);
        program.findings.into_iter().find_map(|finding| match finding {
            Finding::Deadlock { stuck, others_ran } => Some((stuck, others_ran.expect("recorded"))),
            _ => None,
        })
    }
}

fn stuck(thread: &str, waits_for: WaitsFor) -> StuckThread {
    StuckThread { thread: thread.to_owned(), waits_for, function: None }
}

fn lock(name: &str, holder: &str, itself: bool, ended: bool) -> WaitsFor {
    WaitsFor::Lock {
        name: name.to_owned(),
        holder: Some(Holder { thread: holder.to_owned(), itself, ended }),
    }
}

fn abba() -> Script {
    let script = Script::new().thread(&[(1_000, S::MutexLock, 0)], JOURNAL, WAIT, 5_000);
    script.thread(&[(2_000, S::MutexLock, 1)], ACCOUNTS, WAIT, 6_000)
}

/// Two threads that hold each other's locks are a deadlock: they do not wait for work.
#[test]
fn two_threads_that_hold_each_other_s_locks_are_a_deadlock() {
    let (found, others_ran) = abba().found().expect("a deadlock");
    let (first, second) = ("0x40", "0x80");
    let threads = vec![
        stuck("T0/10", lock(second, "T1/11", false, false)),
        stuck("T1/11", lock(first, "T0/10", false, false)),
    ];
    assert_eq!((found, others_ran), (Stuck { end_ns: 6_000.0, threads, more: 0 }, false));
    let program = from_timeline(&abba().timeline);
    let limit = limits(&program, &[Cpus::ONE], &Model::default()).at.remove(0);
    assert!(matches!(limit.kind, Kind::Deadlock { stuck } if stuck.threads.len() == 2));
}

#[test]
fn a_lock_taken_again_or_held_by_an_ended_thread_is_a_deadlock() {
    let again = Script::new().thread(&[(1_000, S::MutexLock, 0)], ACCOUNTS, WAIT, 5_000);
    let (found, _) = again.found().expect("a deadlock");
    assert_eq!(found.threads, [stuck("T0/10", lock("0x40", "T0/10", true, false))]);

    let mut left = abba();
    let ended = &mut left.timeline.threads[0];
    (ended.died, ended.end) = (true, Timestamp(5_500));
    let (found, _) = left.found().expect("a deadlock");
    assert_eq!(found.threads, [stuck("T1/11", lock("0x40", "T0/10", false, true))]);
}

/// A thread holds a lock and waits for the end of another thread, which waits for the lock.
#[test]
fn joining_a_thread_that_waits_for_a_lock_held_meanwhile_is_a_deadlock() {
    let mut script = Script::new()
        .thread(&[(1_000, S::ThreadCreate, NO_OBJECT), (2_000, S::MutexLock, 0)], ENDS, JOIN, 5_000)
        .thread(&[], ACCOUNTS, WAIT, 6_000);
    script.timeline.lock_operations[0].value = HANDLE;
    script.timeline.lock_operations[0].began = Timestamp(900);
    script.timeline.threads[0].steps.insert(0, Step { time: Timestamp(950), kind: StepKind::Create(1) });
    script.timeline.threads[0].intervals[1].first_step += 1;
    let (found, _) = script.found().expect("a deadlock");
    let waits = [
        stuck("T0/10", WaitsFor::End { thread: "T1/11".to_owned() }),
        stuck("T1/11", lock("0x40", "T0/10", false, false)),
    ];
    assert_eq!(found.threads, waits);
}

/// Attached after the deadlock: no operation is recorded, no wait has a reason, and only memory names the awaited threads.
#[test]
fn a_deadlock_from_before_the_recording_is_found_in_memory() {
    let stands = |awaited: [(u64, u32); 2]| {
        let mut script = Script::new().thread(&[], 0, WAIT, 0).thread(&[], 0, WAIT, 0);
        script.timeline.locks.clear();
        for (thread, (word, tid)) in script.timeline.threads.iter_mut().zip(awaited) {
            thread.intervals.remove(0);
            thread.waits[0].reason = WaitReason::of(1, Call::NONE);
            let futex = FutexFact { word, operation: WAIT, words: 0 };
            thread.awaits = Some(AwaitedThread { futex, tid });
        }
        let name = Some("journal".to_owned());
        script.timeline.addresses =
            vec![AddressFact { pid: PID, address: JOURNAL, name, ..AddressFact::default() }];
        script
    };
    let (found, others_ran) = stands([(JOURNAL, 11), (ACCOUNTS, 10)]).found().expect("a deadlock");
    let waits = [
        stuck("T0/10", lock("journal", "T1/11", false, false)),
        stuck("T1/11", lock("0x40", "T0/10", false, false)),
    ];
    assert_eq!((found.threads.as_slice(), others_ran), (&waits[..], false));
    // Without a cycle, or with a number of no thread, there is no deadlock.
    assert_eq!(stands([(JOURNAL, 11), (ACCOUNTS, 12)]).found(), None);
    // One thread now waits for another word.
    let mut moved = stands([(JOURNAL, 11), (ACCOUNTS, 10)]);
    let other = FutexFact { word: 0x9999, operation: WAIT, words: 0 };
    moved.timeline.threads[1].waits[0].reason = WaitReason::Futex(other);
    assert_eq!(moved.found(), None);
}

#[test]
fn threads_that_may_go_on_are_no_deadlock() {
    // One thread has released its lock.
    let given = Script::new()
        .thread(&[(1_000, S::MutexLock, 0), (1_500, S::MutexUnlock, 0)], JOURNAL, WAIT, 5_000)
        .thread(&[(2_000, S::MutexLock, 1)], ACCOUNTS, WAIT, 6_000);
    // One thread waits for something else.
    let other = Script::new().thread(&[(1_000, S::MutexLock, 0)], 0x4000, WAIT, 5_000).thread(
        &[(2_000, S::MutexLock, 1)],
        ACCOUNTS,
        WAIT,
        6_000,
    );
    // A wait has a time limit.
    let timed = Script::new().thread(&[(1_000, S::MutexLock, 0)], JOURNAL, 9 | WAIT, 5_000).thread(
        &[(2_000, S::MutexLock, 1)],
        ACCOUNTS,
        WAIT,
        6_000,
    );
    // Another thread may release the mutex, which is used as a semaphore.
    let semaphore = Script::new()
        .thread(&[(1_000, S::MutexLock, 0), (3_000, S::MutexLock, 0)], ACCOUNTS, WAIT, 5_000)
        .thread(&[(2_000, S::MutexUnlock, 0)], 0x4000, WAIT, 6_000);
    // Operations are missing.
    let mut lossy = abba();
    lossy.timeline.lossy = vec![(PID, SyncFamily::Mutex)];
    let mut off = abba();
    off.timeline.families_removed = vec![(PID, SyncFamily::Mutex)];
    let mut hole = abba();
    hole.timeline.lock_operations[1].after_hole = true;
    hole.timeline.locks[0].kind = SyncObject::Semaphore;
    // One thread continued after the wait.
    let mut later = abba();
    let thread = &mut later.timeline.threads[1];
    thread.intervals.push(Interval {
        start: Timestamp(9_000),
        state: State::Running { cpu: Some(1) },
        first_step: u32::MAX,
    });
    // The holder ended at the same time: the process was killed.
    let mut killed = Script::new().thread(&[(1_000, S::MutexLock, 0)], 0x4000, WAIT, 5_000).thread(
        &[],
        ACCOUNTS,
        WAIT,
        6_000,
    );
    for thread in &mut killed.timeline.threads {
        thread.died = true;
    }
    for script in [given, other, timed, semaphore, lossy, off, hole, later, killed] {
        assert_eq!(script.found(), None, "{:?}", script.timeline);
    }
}

/// Other threads compute on: there is a finding, but the limit is something else.
#[test]
fn a_deadlock_of_two_is_not_the_limit_while_another_thread_runs() {
    let mut script = abba().thread(&[], 0x4000, WAIT, END - 1);
    script.timeline.threads[2].intervals.truncate(1);
    let (found, others_ran) = script.found().expect("a deadlock");
    assert!(others_ran && found.threads.len() == 2);
    let program = from_timeline(&script.timeline);
    let limit = limits(&program, &[Cpus::ONE], &Model::default()).at.remove(0);
    assert!(!matches!(limit.kind, Kind::Deadlock { .. }), "{limit:?}");
}
