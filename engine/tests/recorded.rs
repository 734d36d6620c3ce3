//! Recorded objects and waits, independent of the number of CPUs.

use engine::event::SyncObject;
use engine::event::{AddressFact, FunctionFact, FutexFact};
use engine::program::{ObjectKind, Program, RecordedWait, json};
use engine::report::Finding;
use engine::time::Timestamp;
use engine::timeline::{
    Counts, External, FirstUse, Interval, Lock, LockOperation, NO_OBJECT, State, Step, StepKind, Thread,
    Timeline, Wait, WaitReason, Wake, Wakeup,
};
use engine::translation::from_timeline;
use probe_abi::{Call, Descriptor, SyncFamily, SyncOperation};

const PID: u32 = 7;
const RUNNING: State = State::Running { cpu: Some(0) };

fn thread(tid: u32, states: &[(u64, State)], waits: Vec<Wait>) -> Thread {
    let interval = |&(start, state)| Interval { start: Timestamp(start), state, first_step: 0 };
    Thread {
        pid: PID,
        tid,
        comm: format!("T{tid}"),
        start: Timestamp(states[0].0),
        end: Timestamp(100),
        intervals: states.iter().map(interval).collect(),
        waits,
        ..Thread::default()
    }
}

fn wait(reason: WaitReason, wake: Wake) -> Wait {
    Wait { reason, wake, cut_at_start: false, moved_to: None, from_now: false }
}

fn futex(word: u64, operation: u32) -> WaitReason {
    WaitReason::Futex(FutexFact { word, operation, words: 0 })
}

fn kernel(number: u32, descriptor: Descriptor) -> WaitReason {
    let call = Call { number, argument1: 0, argument0: 3 };
    WaitReason::Kernel { task_state: 1, call, descriptor }
}

fn program(threads: Vec<Thread>, wakeups: Vec<Wakeup>) -> Program {
    from_timeline(&Timeline {
        end: Timestamp(100),
        threads,
        wakeups,
        addresses: vec![AddressFact {
            pid: PID,
            address: 0x40,
            name: Some("queue_state".to_owned()),
            ..AddressFact::default()
        }],
        counts: Counts { events: 10, spurious: 3, ..Counts::default() },
        ..Timeline::default()
    })
}

/// A function recorded by its entry only may have ended long before: it must not be named for later wake-ups.
#[test]
fn a_function_with_only_its_entry_recorded_is_not_named_as_the_waker() {
    let fact = |id, name: &str, exits_probed| FunctionFact {
        id,
        name: name.to_owned(),
        module: "program".to_owned(),
        exits_probed,
        ..FunctionFact::default()
    };
    let step = |time, kind| Step { time: Timestamp(time), kind };
    let wakers = |entered: &[u32]| {
        let mut waker = thread(1, &[(0, RUNNING)], vec![]);
        waker.steps = entered.iter().map(|id| step(1, StepKind::Enter(*id))).collect();
        waker.steps.push(step(20, StepKind::Wake(0)));
        let waiter = thread(
            2,
            &[(0, RUNNING), (5, State::Blocked(0)), (20, RUNNING)],
            vec![wait(futex(0x40, 128), Wake::By(0))],
        );
        let program = from_timeline(&Timeline {
            end: Timestamp(100),
            threads: vec![waker, waiter],
            wakeups: vec![Wakeup { time: Timestamp(20), waker: 0, wakee: 1, ended: Some(0) }],
            functions: vec![fact(1, "serve", true), fact(2, "log_line", false)],
            counts: Counts { events: 10, ..Counts::default() },
            ..Timeline::default()
        });
        let object = program.recorded.objects.first().expect("the futex");
        object.wakers.iter().map(|share| share.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(wakers(&[1]), ["serve"]);
    assert_eq!(wakers(&[1, 2]), ["serve"]);
    assert_eq!(wakers(&[2, 1]), ["serve"]);
    assert_eq!(wakers(&[2]), [""; 0]);
}

/// Words without a recorded operation have rows; the end of a thread is not a lock. One finding says how many objects have an
/// unknown count of free acquisitions.
#[test]
fn futex_words_without_operations_are_objects() {
    let mut waker = thread(1, &[(0, RUNNING)], vec![]);
    waker.steps = vec![Step { time: Timestamp(20), kind: StepKind::Wake(0) }];
    let moved = Wait { moved_to: Some(0x80), ..wait(futex(0x40, 128), Wake::By(0)) };
    let waiter = thread(
        2,
        &[(0, RUNNING), (5, State::Blocked(0)), (20, RUNNING), (30, State::Blocked(1)), (40, RUNNING)],
        vec![moved, wait(futex(0x80, 128), Wake::External(External::Task))],
    );
    // This futex is not private and its command is the bitset one: glibc's wait for a thread's end.
    let joiner = thread(
        3,
        &[(0, State::Blocked(0)), (90, RUNNING)],
        vec![wait(futex(0x990, 0x109), Wake::External(External::Task))],
    );
    let wakeups = vec![Wakeup { time: Timestamp(20), waker: 0, wakee: 1, ended: Some(0) }];
    let program = program(vec![waker, waiter, joiner], wakeups);
    let rows: Vec<_> = program
        .recorded
        .objects
        .iter()
        .map(|object| (object.name.as_str(), object.waits, object.wait_ns, object.moved))
        .collect();
    assert_eq!(rows, [("futex queue_state", 1, 15, 1), ("futex 0x80", 1, 10, 0)]);
    let first = &program.recorded.objects[0];
    assert_eq!((&first.kind, first.address.as_str()), (&ObjectKind::Futex, "0x40"));
    assert_eq!(first.first_thread.as_deref(), Some("T2/2"));
    assert!(!first.uncontended_visible);
    let said = Finding::Uncontended { objects: 2, all_locks: false, rust: false, go: false };
    assert!(program.findings.contains(&said), "{:?}", program.findings);
    assert_eq!(program.trust.spurious, 3);

    let mut text = Vec::new();
    json::write(&program, &mut text).expect("written");
    let again = json::read(std::str::from_utf8(&text).expect("text")).expect("a program");
    assert_eq!(again.recorded, program.recorded);
    assert_eq!(again.trust, program.trust);
}

/// Locks that lost their probes count, once, as objects with unknown free uses, even if threads waited for them later.
/// Conditions and barriers are not acquired.
#[test]
fn locks_that_lost_their_probes_are_objects_with_unknown_free_uses() {
    let lock = |address, kind| Lock {
        pid: PID,
        address,
        kind,
        first: FirstUse { time: Timestamp(3), ..FirstUse::default() },
        put_back: false,
    };
    let waiter = |tid, word| {
        let waits = vec![wait(futex(word, 128), Wake::External(External::Task))];
        thread(tid, &[(0, RUNNING), (5, State::Blocked(0)), (20, RUNNING)], waits)
    };
    let timeline = |families_removed: &[(u32, SyncFamily)]| Timeline {
        end: Timestamp(100),
        // The threads wait for the mutex's word, a word inside the condition, and one behind it.
        threads: vec![waiter(1, 0x1000), waiter(2, 0x2004), waiter(3, 0x2030)],
        locks: vec![
            lock(0x1000, SyncObject::Mutex),
            lock(0x2000, SyncObject::Condition),
            lock(0x3000, SyncObject::Mutex),
            lock(0x4000, SyncObject::RwLock),
            Lock { pid: PID + 1, ..lock(0x1000, SyncObject::Mutex) },
        ],
        families_removed: families_removed.to_vec(),
        counts: Counts { events: 10, ..Counts::default() },
        ..Timeline::default()
    };
    let of = |families_removed: &[(u32, SyncFamily)]| {
        let program = from_timeline(&timeline(families_removed));
        let rows: Vec<(String, u64)> =
            program.recorded.objects.iter().map(|object| (object.address.clone(), object.waits)).collect();
        let unseen = |finding: &Finding| match finding {
            Finding::Uncontended { objects, .. } => Some(*objects),
            _ => None,
        };
        let said: Vec<usize> = program.findings.iter().filter_map(unseen).collect();
        assert_eq!(said.len(), 1, "{said:?}");
        (rows, said[0])
    };
    let rows = [("0x1000", 1), ("0x2000", 1), ("0x3000", 0), ("0x4000", 0), ("0x1000", 0), ("0x2030", 1)];
    let rows: Vec<(String, u64)> = rows.map(|(address, waits)| (address.to_owned(), waits)).to_vec();
    let none = of(&[]);
    assert_eq!(none, (rows.clone(), 1));
    let some = of(&[(PID, SyncFamily::Mutex), (PID + 2, SyncFamily::RwLock)]);
    assert_eq!(some, (rows, 3));
}

/// As CPython's threads, which ask for the GIL every 5 ms: such waits are not idle.
#[test]
fn a_wait_that_is_entered_again_at_once_is_not_idle() {
    let limited = || wait(futex(0x40, 128), Wake::External(External::Timer));
    let states = [
        (0, RUNNING),
        (5, State::Blocked(0)),
        (20, RUNNING),
        (21, State::Blocked(1)),
        (40, RUNNING),
        (41, State::Blocked(2)),
        (60, RUNNING),
    ];
    let rows = |last: Wake, word: u64| {
        let waits = vec![limited(), limited(), wait(futex(word, 128), last)];
        let wakeup = Wakeup { time: Timestamp(59), waker: 1, wakee: 0, ended: Some(2) };
        let threads = vec![thread(1, &states, waits), thread(2, &[(0, RUNNING)], vec![])];
        let row = |row: &RecordedWait| (row.waits, row.wait_ns, row.idle);
        program(threads, vec![wakeup]).recorded.waits.iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(rows(Wake::By(0), 0x40), [(3, 53, false)], "one wait, for what another thread did");
    assert_eq!(rows(Wake::By(0), 0x80), [(1, 19, false), (2, 34, true)], "for something else");
    assert_eq!(rows(Wake::External(External::Timer), 0x40), [(3, 53, true)], "nobody had anything for it");
}

/// A debugger stops threads where a system call begins: such a stop is no wait for the call's futex.
#[test]
fn a_stopped_thread_does_not_wait_for_its_call_s_futex() {
    let futex_call = Call { number: 202, argument1: 128, argument0: 0x40 };
    let stop = |state| wait(WaitReason::of(state, futex_call), Wake::External(External::Task));
    // Task states: traced (and killable), stopped, asleep.
    let states = [
        (0, RUNNING),
        (5, State::Blocked(0)),
        (20, RUNNING),
        (30, State::Blocked(1)),
        (40, RUNNING),
        (50, State::Blocked(2)),
        (51, RUNNING),
    ];
    let stopped = thread(1, &states, vec![stop(0x108), stop(4), stop(1)]);
    let program = program(vec![stopped], vec![]);
    let rows: Vec<(&str, u64, u64, bool)> = program
        .recorded
        .waits
        .iter()
        .map(|row| (row.name.as_str(), row.waits, row.wait_ns, row.idle))
        .collect();
    assert_eq!(rows, [("stopped", 2, 25, false), ("futex", 1, 1, false)]);
    let objects: Vec<u64> = program.recorded.objects.iter().map(|object| object.waits).collect();
    assert_eq!(objects, [1]);
}

/// Words of Go's runtime and conditions of other libraries are no locks. Rust's locks without a wait leave no trace, although
/// the C library's operations are recorded.
#[test]
fn locks_whose_free_uses_are_not_visible_are_one_finding_by_kind() {
    let said = |timeline: Timeline| {
        let program = from_timeline(&Timeline {
            end: Timestamp(100),
            counts: Counts { events: 10, ..Counts::default() },
            ..timeline
        });
        let said = program.findings.iter().filter(|finding| finding.kind() == "uncontended");
        let mut said = said.cloned();
        let first = said.next();
        assert_eq!(said.next(), None);
        first
    };
    let waiter = |pid, word| {
        let waits = vec![wait(futex(word, 128), Wake::External(External::Task))];
        Thread { pid, ..thread(pid, &[(0, RUNNING), (5, State::Blocked(0)), (20, RUNNING)], waits) }
    };
    let go = said(Timeline {
        threads: vec![waiter(PID, 0x40), waiter(PID, 0x80)],
        go: vec![PID],
        ..Timeline::default()
    });
    let unseen = |objects, all_locks, rust, go| Finding::Uncontended { objects, all_locks, rust, go };
    assert_eq!(go, Some(unseen(0, false, false, true)));
    let both = vec![waiter(PID, 0x40), waiter(PID + 1, 0x80)];
    let both = said(Timeline { threads: both, go: vec![PID], ..Timeline::default() });
    assert_eq!(both, Some(unseen(1, false, false, true)));
    let with_operations =
        |rust| said(Timeline { lock_operations: vec![some_operation()], rust, ..Timeline::default() });
    assert_eq!(with_operations(false), None);
    assert_eq!(with_operations(true), Some(unseen(0, false, true, false)));
}

fn some_operation() -> LockOperation {
    LockOperation {
        began: Timestamp(1),
        ended: Timestamp(2),
        value: 0,
        caller: 0,
        thread: 0,
        object: NO_OBJECT,
        second: NO_OBJECT,
        outcome: 0,
        operation: SyncOperation::ThreadCreate,
        flags: 0,
        after_hole: false,
        times: 1,
    }
}

/// A wait is idle if the thread waits for anything to do and no thread of the recording ends the wait. A futex that may be a
/// lock is not idle.
#[test]
fn waits_for_anything_to_do_that_no_thread_ends_are_idle() {
    let throughout = |task_state| Wait {
        cut_at_start: true,
        ..wait(WaitReason::of(task_state, Call::NONE), Wake::CutAtEnd)
    };
    let (poll, read, fsync) = (7, 0, 74);
    let cases = [
        (wait(kernel(poll, Descriptor::Unknown), Wake::External(External::Network)), "poll", true),
        (wait(kernel(poll, Descriptor::Unknown), Wake::CutAtEnd), "poll", true),
        (wait(kernel(poll, Descriptor::Unknown), Wake::By(0)), "poll", false),
        (wait(kernel(read, Descriptor::Event), Wake::External(External::Task)), "eventfd read", true),
        (wait(kernel(read, Descriptor::Pipe), Wake::External(External::Task)), "pipe read", false),
        (wait(kernel(read, Descriptor::Socket), Wake::CutAtEnd), "socket receive", false),
        (wait(kernel(fsync, Descriptor::File), Wake::External(External::Task)), "file sync", false),
        (wait(futex(0x40, 128), Wake::External(External::Timer)), "futex", true),
        (wait(futex(0x40, 128), Wake::CutAtEnd), "futex", false),
        (wait(futex(0x40, 128 | 6), Wake::By(0)), "futex, priority inheritance", false),
        // Asleep from before the start to the end: not a wait in the kernel.
        (throughout(1), "never woken", true),
        (throughout(4), "stopped", false),
    ];
    for (wait, name, idle) in cases {
        let waker = thread(1, &[(0, RUNNING)], vec![]);
        let one = thread(2, &[(0, State::Blocked(0)), (60, RUNNING)], vec![wait]);
        let wakeups = vec![Wakeup { time: Timestamp(60), waker: 0, wakee: 1, ended: None }];
        let recorded = program(vec![waker, one], wakeups).recorded;
        let [RecordedWait { name: found, idle: is_idle, waits, wait_ns, threads, .. }] =
            recorded.waits.as_slice()
        else {
            panic!("{:?}", recorded.waits)
        };
        assert_eq!((found.as_str(), *is_idle), (name, idle), "{wait:?}");
        assert_eq!((*waits, *wait_ns, *threads), (1, 60, 1));
    }
}

/// Threads that sleep one after the other are not all asleep at once.
#[test]
fn time_with_all_threads_asleep_is_that_with_none_awake() {
    let asleep = || vec![wait(kernel(7, Descriptor::Unknown), Wake::CutAtEnd)];
    let one = thread(1, &[(0, RUNNING), (20, State::Blocked(0))], asleep());
    let other = thread(
        2,
        &[(0, State::Blocked(0)), (30, State::Runnable), (40, RUNNING), (55, State::Blocked(1))],
        {
            let mut waits = asleep();
            waits.extend(asleep());
            waits
        },
    );
    assert_eq!(program(vec![one, other], vec![]).recorded.asleep_ns, (30 - 20) + (100 - 55));
}
