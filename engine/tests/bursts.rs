//! Operations recorded as bursts are simulated like operations recorded one by one: same predictions, same counts.

use engine::attribution::Grouping;
use engine::event::SyncObject;
use engine::event::{Facts, Recording, WindowEnd};
use engine::predict::{Model, Scheduler};
use engine::program::Program;
use engine::report::{Cpus, Detail, Report, report, report_by};
use engine::timeline::{Timeline, build};
use engine::translation::from_timeline;
use probe_abi::{
    Burst, Call, Context, Header, Kind, MOST_SPAN_NS, Operation, OperationFlags, Record, Switch, SwitchFlags,
    SyncOperation, Waking, WakingFlags,
};

const PID: u32 = 7;
const SLICE_NS: u64 = 4_000_000;
const SLICES: u64 = 20;
const TAKEN_AT: u64 = 0x5000;
const GIVEN_AT: u64 = 0x5010;

fn header(kind: Kind, time_ns: u64, tid: u32) -> Header {
    Header { time_ns, sequence: 0, cpu: 0, kind: kind as u8, context: Context::Task as u8, tid, pid: PID }
}

fn switch(time_ns: u64, from: u32, to: u32, state: u32) -> Record {
    let mut flags = SwitchFlags::NEXT_TRACKED;
    if from != 0 {
        flags |= SwitchFlags::PREV_TRACKED;
        if state == 0 {
            flags |= SwitchFlags::PREEMPTED;
        }
    }
    let pid = if from == 0 { 0 } else { PID };
    Record::Switch(Switch {
        header: Header { pid, ..header(Kind::Switch, time_ns, from) },
        next_tid: to,
        next_pid: PID,
        prev_state: state,
        flags,
        prev_user_sp: 0,
        prev_call: Call::NONE,
    })
}

/// An acquisition and its release, which the library would write as two records.
#[derive(Clone, Copy)]
struct Pair {
    tid: u32,
    object: u64,
    from_ns: u64,
    to_ns: u64,
}

/// Two threads take turns on one CPU, with some 1,000 pairs of varying length in each slice.
fn pairs(object: impl Fn(u32) -> u64) -> Vec<Pair> {
    let mut random = 12_345u64;
    let mut dice = move |most: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % most
    };
    let mut all = Vec::new();
    for slice in 0..SLICES {
        let (tid, end_ns) = (1 + (slice % 2) as u32, (slice + 1) * SLICE_NS);
        let mut now_ns = slice * SLICE_NS + 1_000;
        while now_ns + 10_000 < end_ns {
            let (held_ns, apart_ns) = (2_000 + dice(1_500), 500 + dice(1_000));
            all.push(Pair { tid, object: object(tid), from_ns: now_ns, to_ns: now_ns + held_ns });
            now_ns += held_ns + apart_ns;
        }
    }
    all
}

fn one_by_one(pairs: &[Pair]) -> Vec<Record> {
    let mut numbers = [0u32; 8];
    let operations = pairs.iter().flat_map(|pair| {
        [(SyncOperation::MutexLock, pair.from_ns), (SyncOperation::MutexUnlock, pair.to_ns)].map(
            |(what, at_ns)| {
                let sequence = numbers[pair.tid as usize];
                numbers[pair.tid as usize] += 1;
                let is_lock = what == SyncOperation::MutexLock;
                Record::Operation(Operation {
                    header: Header {
                        cpu: Header::NO_CPU,
                        sequence,
                        ..header(Kind::Operation, at_ns, pair.tid)
                    },
                    began_ns: at_ns,
                    object: pair.object,
                    second: 0,
                    caller: if is_lock { TAKEN_AT } else { GIVEN_AT },
                    operation: what as u16,
                    flags: if is_lock { OperationFlags::KIND_KNOWN } else { 0 },
                    outcome: 0,
                })
            },
        )
    });
    operations.collect()
}

fn as_bursts(pairs: &[Pair]) -> Vec<Record> {
    let mut numbers = [0u32; 8];
    let mut records = Vec::new();
    let mut rest = pairs;
    while let Some(first) = rest.first() {
        let same = |pair: &&Pair| {
            (pair.tid, pair.object) == (first.tid, first.object)
                && pair.from_ns < first.from_ns + MOST_SPAN_NS.min(SLICE_NS)
        };
        let (own, others) = rest.split_at(rest.iter().take_while(same).count());
        rest = others;
        let to_ns = own.last().map_or(0, |last| last.to_ns);
        let held = own.iter().map(|pair| pair.to_ns - pair.from_ns);
        let sequence = numbers[first.tid as usize];
        numbers[first.tid as usize] += 1;
        records.push(Record::Burst(Burst {
            header: Header { cpu: Header::NO_CPU, sequence, ..header(Kind::Burst, to_ns, first.tid) },
            object: first.object,
            caller: TAKEN_AT,
            span_ns: (to_ns - first.from_ns) as u32,
            held_ns: held.clone().sum::<u64>() as u32,
            held_least_ns: held.min().unwrap_or(0) as u32,
            apart_least_ns: 500,
            release: (GIVEN_AT - TAKEN_AT) as i32,
            count: own.len() as u16,
            flags: OperationFlags::KIND_KNOWN,
        }));
    }
    records
}

fn timeline(operations: Vec<Record>) -> Timeline {
    let mut events = operations;
    for slice in 0..SLICES {
        let (from, to) = if slice % 2 == 0 { (2, 1) } else { (1, 2) };
        events.push(switch(slice * SLICE_NS + 10, if slice == 0 { 0 } else { from }, to, 0));
    }
    events.sort_by_key(|event| event.header().time_ns);
    let end = Some(WindowEnd { end_ns: SLICES * SLICE_NS, ..WindowEnd::default() });
    build(&Recording { facts: Facts { end, ..Facts::default() }, events, ..Recording::default() })
}

fn program(operations: Vec<Record>) -> Program {
    from_timeline(&timeline(operations))
}

fn predicted(program: &Program) -> Report {
    let cpus: Vec<Cpus> = [1, 2, 4, 8].into_iter().filter_map(Cpus::count).chain([Cpus::Infinite]).collect();
    report(program, &cpus, Detail::Functions)
}

/// A lock's name, number of acquisitions, number of contended ones, and times waited and held, nanoseconds.
type Row = (String, u64, Option<u64>, Option<f64>, Option<f64>);

fn rows(report: &Report) -> Vec<Row> {
    let locks = report.locks.iter();
    let mut rows: Vec<Row> = locks
        .map(|lock| (lock.lock.clone(), lock.acquisitions, lock.contended, lock.wait_ns, lock.hold_ns))
        .collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows
}

/// The recording has one CPU, where no thread waited for the lock; on two CPUs, in the prediction, the threads contend
/// for it.
#[test]
fn a_lock_of_two_threads_is_predicted_the_same_from_bursts() {
    let pairs = pairs(|_| 0x1000);
    let together = program(as_bursts(&pairs));
    let (one_by_one, in_bursts) = (predicted(&program(one_by_one(&pairs))), predicted(&together));
    assert!(pairs.len() > 10_000);
    assert_eq!(rows(&in_bursts), rows(&one_by_one));
    assert_eq!(rows(&in_bursts).first().map(|row| row.1), Some(pairs.len() as u64));
    assert_eq!(in_bursts.results.len(), 5);
    for (a, b) in in_bursts.results.iter().zip(&one_by_one.results) {
        assert!((a.time_ns / b.time_ns - 1.0).abs() < 0.01, "{:?}: {} and {}", a.cpus, a.time_ns, b.time_ns);
        let (held, as_recorded) = (a.locks_held_ns[0], b.locks_held_ns[0]);
        // Both threads repeat the same work, so their order persists and shifts the weights.
        assert!((held / as_recorded - 1.0).abs() < 0.1, "{:?}: {held} and {as_recorded}", a.cpus);
    }
    let model = Model { scheduler: Some(Scheduler::Ideal), ..Model::default() };
    let cpus = [1, 2].map(|count| Cpus::count(count).expect("a count"));
    let shared_ideally = report_by(&together, &cpus, Detail::Functions, Grouping::Function, &model).results;
    // The lock is held for nearly three quarters of the time, so at most 1.4 CPUs are ever busy.
    let speedup = shared_ideally[0].time_ns / shared_ideally[1].time_ns;
    assert!((1.2..1.5).contains(&speedup), "{speedup}");
    assert_eq!(in_bursts.findings.iter().find(|finding| finding.kind() == "replayed"), None);
}

/// Makes the records those of a read-write lock taken for reading, and if `written` for writing at the end of each slice.
fn of_readers(records: Vec<Record>, written: bool) -> Vec<Record> {
    let reads = |record: Record| match record {
        Record::Burst(burst) => Record::Burst(Burst { flags: OperationFlags::READS, ..burst }),
        Record::Operation(operation) => {
            let is_lock = operation.operation == SyncOperation::MutexLock as u16;
            let what = if is_lock { SyncOperation::RwLockRead } else { SyncOperation::RwLockUnlock };
            Record::Operation(Operation { operation: what as u16, flags: 0, ..operation })
        }
        other => other,
    };
    let mut records: Vec<Record> = records.into_iter().map(reads).collect();
    for slice in 0..if written { SLICES } else { 0 } {
        let (tid, end_ns) = (1 + (slice % 2) as u32, (slice + 1) * SLICE_NS);
        for (what, at_ns) in
            [(SyncOperation::RwLockWrite, end_ns - 5_000), (SyncOperation::RwLockUnlock, end_ns - 2_000)]
        {
            records.push(Record::Operation(Operation {
                header: Header { cpu: Header::NO_CPU, ..header(Kind::Operation, at_ns, tid) },
                began_ns: at_ns,
                object: 0x1000,
                second: 0,
                caller: TAKEN_AT + 0x100,
                operation: what as u16,
                flags: 0,
                outcome: 0,
            }));
        }
    }
    records.sort_by_key(|record| record.header().time_ns);
    let mut numbers = [0u32; 8];
    for record in &mut records {
        let header = match record {
            Record::Burst(burst) => &mut burst.header,
            Record::Operation(operation) => &mut operation.header,
            other => panic!("{other:?}"),
        };
        header.sequence = numbers[header.tid as usize];
        numbers[header.tid as usize] += 1;
    }
    records
}

/// Readers share the lock and wait for writers, whether recorded one by one or as bursts.
#[test]
fn reads_of_a_lock_are_predicted_the_same_from_bursts() {
    let pairs = pairs(|_| 0x1000);
    let one_by_one = predicted(&program(of_readers(one_by_one(&pairs), true)));
    let in_bursts = timeline(of_readers(as_bursts(&pairs), true));
    assert!(in_bursts.locks.iter().all(|lock| lock.kind == SyncObject::RwLock), "{:?}", in_bursts.locks);
    let in_bursts = predicted(&from_timeline(&in_bursts));
    assert_eq!(rows(&in_bursts), rows(&one_by_one));
    assert_eq!(rows(&in_bursts).first().map(|row| row.1), Some(pairs.len() as u64 + SLICES));
    for (a, b) in in_bursts.results.iter().zip(&one_by_one.results) {
        assert!((a.time_ns / b.time_ns - 1.0).abs() < 0.01, "{:?}: {} and {}", a.cpus, a.time_ns, b.time_ns);
    }
    assert!(in_bursts.results[0].time_ns / in_bursts.results[1].time_ns > 1.8, "readers are in nobody's way");
    assert_eq!(in_bursts.findings.iter().find(|finding| finding.kind() == "replayed"), None);
}

/// OpenSSL looks up its algorithms under locks that are only read, millions of times.
#[test]
fn bursts_of_a_lock_that_is_only_read_are_few_pairs_counted_exactly() {
    let pairs = pairs(|_| 0x1000);
    let few = timeline(of_readers(as_bursts(&pairs), false));
    assert!(
        few.lock_operations.len() < 100 && !few.lock_operations.is_empty(),
        "{}",
        few.lock_operations.len()
    );
    let (one_by_one, in_bursts) =
        (predicted(&program(of_readers(one_by_one(&pairs), false))), predicted(&from_timeline(&few)));
    assert_eq!(rows(&in_bursts), rows(&one_by_one));
    for (a, b) in in_bursts.results.iter().zip(&one_by_one.results) {
        assert_eq!(a.time_ns, b.time_ns, "{:?}", a.cpus);
    }
}

/// A lock of only one thread delays no other thread and costs no time in the simulation; its counts are complete.
#[test]
fn bursts_of_locks_of_one_thread_each_are_few_pairs_counted_exactly() {
    let pairs = pairs(|tid| 0x1000 * u64::from(tid));
    let few = timeline(as_bursts(&pairs));
    assert!(
        few.lock_operations.len() < 100 && !few.lock_operations.is_empty(),
        "{}",
        few.lock_operations.len()
    );
    let times: u64 = few.lock_operations.iter().map(|used| u64::from(used.times)).sum();
    assert_eq!(times, 2 * pairs.len() as u64);
    let (one_by_one, in_bursts) = (predicted(&program(one_by_one(&pairs))), predicted(&from_timeline(&few)));
    assert_eq!(rows(&in_bursts), rows(&one_by_one));
    for (a, b) in in_bursts.results.iter().zip(&one_by_one.results) {
        assert_eq!(a.time_ns, b.time_ns, "{:?}", a.cpus);
        assert_eq!(a.locks_held_ns.iter().sum::<f64>(), b.locks_held_ns.iter().sum::<f64>(), "{:?}", a.cpus);
    }
    assert!(in_bursts.results[0].time_ns / in_bursts.results[1].time_ns > 1.7, "one begins a slice later");
}

/// Every operation lies where its thread ran, in order, and operations are numbered in the order of their ends.
#[test]
fn operations_of_a_burst_lie_where_their_thread_ran() {
    // One burst spans a slice of the other thread: in between its thread was off the CPU for 20 µs.
    let pair = |from_ns: u64| Pair { tid: 1, object: 0x1000, from_ns, to_ns: from_ns + 1_000 };
    let mut own: Vec<Pair> = (0..10).map(|i| pair(10_000 + 2_000 * i)).collect();
    own.extend((0..10).map(|i| pair(50_000 + 2_000 * i)));
    let other = Pair { tid: 2, ..pair(35_000) };
    let mut events = as_bursts(&own);
    events.extend(one_by_one(&[other]));
    events.extend([switch(10, 0, 1, 0), switch(30_000, 1, 2, 0), switch(49_000, 2, 1, 0)]);
    events.sort_by_key(|event| event.header().time_ns);
    let end = Some(WindowEnd { end_ns: 100_000, ..WindowEnd::default() });
    let facts = Facts { end, ..Facts::default() };
    let timeline = build(&Recording { facts, events, ..Recording::default() });
    assert_eq!(timeline.lock_operations.len(), 42);
    assert!(timeline.lock_operations.windows(2).all(|pair| pair[0].ended <= pair[1].ended));
    let of_first: Vec<_> = timeline.lock_operations.iter().filter(|used| used.thread == 0).collect();
    assert_eq!((of_first.len(), of_first[0].ended.0, of_first[39].ended.0), (40, 10_000, 69_000));
    assert!(of_first.iter().all(|used| !(30_001..49_000).contains(&used.ended.0)));
    let held: u64 = of_first.chunks(2).map(|pair| pair[1].ended.0 - pair[0].ended.0).sum();
    assert!((20_000..=39_000).contains(&held), "what lies over the pause is longer by it: {held}");
    for thread in &timeline.threads {
        assert!(thread.steps.windows(2).all(|pair| pair[0].time <= pair[1].time));
        assert!(thread.intervals.windows(2).all(|pair| pair[0].first_step <= pair[1].first_step));
    }
}

/// A thread begins to wait just after a release has checked for waiters. The wake-up follows the release, and the lock is
/// still simulated.
#[test]
fn a_wake_up_just_after_a_release_belongs_to_the_release() {
    let waits = |began_ns: u64, ended_ns: u64| {
        Record::Operation(Operation {
            header: Header { cpu: Header::NO_CPU, ..header(Kind::Operation, ended_ns, 2) },
            began_ns,
            object: 0x1000,
            second: 0,
            caller: TAKEN_AT,
            operation: SyncOperation::MutexLock as u16,
            flags: OperationFlags::CONTENDED | OperationFlags::KIND_KNOWN,
            outcome: 0,
        })
    };
    let waking = Record::Waking(Waking {
        header: header(Kind::Waking, 30_500, 1),
        wakee_tid: 2,
        wakee_pid: PID,
        wakee_state: 1,
        flags: WakingFlags::WAKER_TRACKED,
        waker_call: 0,
        cause: 0,
        wakee_call: futex_wait(),
    });
    let pair = |from_ns: u64| Pair { tid: 1, object: 0x1000, from_ns, to_ns: from_ns + 10_000 };
    let mut events = one_by_one(&[pair(20_000), pair(60_000)]);
    events.extend([switch(10, 0, 1, 0), waking, waits(22_000, 41_000)]);
    let Record::Switch(mut asleep) = switch(23_000, 2, 0, 1) else { panic!("a switch") };
    asleep.header.cpu = 1;
    asleep.flags = SwitchFlags::PREV_TRACKED;
    asleep.next_pid = 0;
    asleep.prev_call = futex_wait();
    let Record::Switch(mut awake) = switch(40_000, 0, 2, 0) else { panic!("a switch") };
    awake.header.cpu = 1;
    events.extend([Record::Switch(asleep), Record::Switch(awake)]);
    events.sort_by_key(|event| event.header().time_ns);
    let end = Some(WindowEnd { end_ns: 100_000, ..WindowEnd::default() });
    let facts = Facts { end, ..Facts::default() };
    let timeline = build(&Recording { facts, events, ..Recording::default() });
    assert_eq!(timeline.wakeups.iter().filter(|wakeup| wakeup.ended.is_some()).count(), 1);
    let report = predicted(&from_timeline(&timeline));
    assert_eq!(report.findings.iter().find(|finding| finding.kind() == "replayed"), None);
}

fn futex_wait() -> Call {
    Call { number: probe_abi::FUTEX_CALL, argument1: 128, argument0: 0x1000 }
}
