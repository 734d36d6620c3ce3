//! Tests of the generator itself.

use engine::event::FUTEX_CALL;
use engine::program::{Function, Operation, Program, Thread, ThreadId};
use engine::report::Finding;
use engine::synth::{Execution, generate};
use engine::time::Ticks;
use engine::timeline::{State, build};
use probe_abi::Record;

/// Generated recordings contain what the tests need: hand-overs, pre-emptions, interrupts on busy threads, time-outs, thread
/// creation, spurious wake-ups, holes.
#[test]
fn generated_recordings_contain_each_kind_of_event() {
    use engine::program::{FunctionRef as F, ObjectId as S};
    let exec = |ns| Operation::Exec(Ticks::from_ns(ns));
    let busy = |n: u64| (0..n).map(|_| exec(5_000));
    let first =
        [Operation::Create(ThreadId(1)), Operation::Call(F(0)), Operation::Wait(S(0)), Operation::Return];
    let second = [exec(9_000), Operation::Signal(S(0)), Operation::Sleep(Ticks::from_ns(3_000)), exec(100)];
    let third = [Operation::Io(S(1), Ticks::from_ns(4_000))];
    let thread = |name: &str, operations: Vec<Operation>| Thread {
        name: name.to_owned(),
        operations,
        ..Thread::default()
    };
    let program = Program {
        functions: vec![Function { name: "f".to_owned(), ..Function::default() }],
        objects: vec!["s".to_owned(), "disk".to_owned()],
        threads: vec![
            thread("one", first.into_iter().chain(busy(20)).chain([Operation::Join(ThreadId(1))]).collect()),
            thread("two", second.into_iter().chain(busy(20)).collect()),
            thread("three", third.into_iter().chain(busy(20)).collect()),
        ],
        ..Program::default()
    };
    let execution = Execution {
        cpus: 2,
        slice_ns: 2_000,
        noise: true,
        second_wakings: true,
        seed: 5,
        ..Execution::default()
    };
    let generated = generate(&program, &execution).expect("supported");
    let records: Vec<&Record> = generated.rings.iter().flatten().collect();
    let count = |is: &dyn Fn(&Record) -> bool| records.iter().filter(|record| is(record)).count();
    assert!(
        count(&|r| matches!(r, Record::Switch(s) if s.flags & 1 != 0 && s.prev_state == 0)) > 20,
        "pre-emptions"
    );
    let interrupts = |r: &Record| matches!(r, Record::Waking(w) if w.header.context == 1 && w.header.tid != 0 && w.wakee_state != 0);
    assert!(count(&interrupts) > 0, "an interrupt on a busy thread");
    let in_futex = |r: &Record| matches!(r, Record::Waking(w) if w.header.context == 1 && w.wakee_call.number == FUTEX_CALL);
    assert_eq!(count(&in_futex), 1, "a futex wait that times out");
    assert_eq!(count(&|r| matches!(r, Record::Fork(_))), 1);
    assert_eq!(count(&|r| matches!(r, Record::Exit(_))), 3);
    let timeline = build(&generated.recording());
    assert!(timeline.counts.spurious > 0);
    assert_eq!(timeline.wakeups.iter().filter(|wakeup| wakeup.ended.is_some()).count(), 2);
    assert_eq!(timeline.counts.wakes, 4);
    let times = timeline.threads.iter().map(|t| t.time_in(|s| matches!(s, State::Running { .. })).0);
    assert_eq!(times.sum::<u64>(), generated.truth.iter().map(|life| life.cpu_time_ns).sum::<u64>());
    let holes = generated.lossy(|record| record.header().sequence == 7).recording();
    assert_eq!(holes.notes.len(), 2, "{:?}", holes.notes);
    let lossy = build(&holes);
    assert_eq!(lossy.counts.lost, 2);
    assert!(lossy.counts.unknown.0 > 0);
    assert_eq!(lossy.findings.iter().filter(|f| **f == Finding::Loss { records: 2 }).count(), 1);
}
