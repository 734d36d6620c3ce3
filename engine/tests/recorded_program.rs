//! How parts of a timeline become operations, names and findings.

use engine::event::{FunctionFact, FutexFact};
use engine::program::{EdgeId, Move, Operation, Program, ThreadId};
use engine::report::{Finding, Names};
use engine::time::{Ticks, Timestamp};
use engine::timeline::{
    BaseStack, Birth, Counts, External, Hit, Interval, State, Step, StepKind, Thread, Timeline,
    UnknownReason, Wait, WaitReason, Wake, Wakeup,
};
use engine::translation::from_timeline;
use probe_abi::{Call, Descriptor};

pub(super) const RUNNING: State = State::Running { cpu: Some(0) };

/// A thread with these states, each with its start, until 100.
pub(super) fn thread(tid: u32, states: &[(u64, State)]) -> Thread {
    Thread {
        pid: 1,
        tid,
        comm: "work".to_owned(),
        start: Timestamp(states[0].0),
        end: Timestamp(100),
        intervals: states
            .iter()
            .map(|&(start, state)| Interval { start: Timestamp(start), state, first_step: 0 })
            .collect(),
        base_stacks: vec![BaseStack::default()],
        ..Thread::default()
    }
}

pub(super) fn timeline(threads: Vec<Thread>) -> Timeline {
    Timeline { end: Timestamp(100), threads, ..Timeline::default() }
}

pub(super) fn external(external: External) -> Wait {
    let reason = WaitReason::Kernel { task_state: 1, call: Call::NONE, descriptor: Descriptor::Unknown };
    Wait { reason, wake: Wake::External(external), cut_at_start: false, moved_to: None, from_now: false }
}

/// The first thread's operations, with names of devices.
pub(super) fn operations(program: &Program) -> Vec<String> {
    let ns = |length: Ticks| length.0 / Ticks::PER_NS;
    let words = program.threads[0].operations.iter().map(|operation| match *operation {
        Operation::Exec(length) => format!("exec {}", ns(length)),
        Operation::Io(object, length) => format!("io {} {}", ns(length), program.objects[object.0 as usize]),
        Operation::Sleep(length) => format!("sleep {}", ns(length)),
        Operation::SleepNext(length) => format!("sleep_next {}", ns(length)),
        Operation::Call(function) => format!("call {}", program.functions[function.0 as usize].name),
        Operation::Return => "ret".to_owned(),
        other => format!("{other:?}"),
    });
    words.collect()
}

/// CPUs are kept separately from operations, as offsets in computing, nanoseconds: waiting for a CPU moves nothing.
#[test]
fn a_thread_that_is_moved_keeps_its_cpus_apart_from_its_operations() {
    let on = |cpu| State::Running { cpu };
    let states = [(0, RUNNING), (10, State::Runnable), (30, on(Some(1))), (60, on(None)), (70, on(Some(1)))];
    let mut moved = thread(1, &states);
    // A function entered after the wake-up makes another operation.
    moved.steps = vec![Step { time: Timestamp(40), kind: StepKind::Enter(7) }];
    (3..5).for_each(|late| moved.intervals[late].first_step = 1);
    let mut second = thread(2, &[(50, on(Some(0)))]);
    second.comm = "helper".to_owned();
    let program = from_timeline(&timeline(vec![moved, second]));
    assert_eq!(operations(&program), ["exec 20", "call function #7", "exec 60"]);
    let step = |operation, after, cpu| Move { operation, after: Ticks::from_ns(after), cpu };
    assert_eq!(
        program.threads[0].moves,
        [step(0, 0, Some(0)), step(0, 10, Some(1)), step(2, 20, None), step(2, 30, Some(1))]
    );
    assert_eq!(program.threads[1].moves, [step(0, 0, Some(0))]);
    for thread in &program.threads {
        assert_eq!(thread.process.as_deref(), Some("work/1"));
    }
    let mut text = Vec::new();
    engine::program::json::write(&program, &mut text).expect("a program");
    let read = engine::program::json::read(&String::from_utf8(text).expect("JSON")).expect("a program");
    assert_eq!(read.threads, program.threads);
}

#[test]
fn waiting_for_a_cpu_leaves_nothing_behind() {
    let states = [(0, RUNNING), (10, State::Runnable), (30, State::Running { cpu: Some(1) })];
    assert_eq!(operations(&from_timeline(&timeline(vec![thread(1, &states)]))), ["exec 80"]);
}

#[test]
fn unknown_time_is_no_computing_and_counts_only_if_something_follows() {
    let unknown = State::Unknown(UnknownReason::Gap);
    let states = [(0, RUNNING), (10, unknown), (30, RUNNING), (40, unknown)];
    let program = from_timeline(&timeline(vec![thread(1, &states)]));
    assert_eq!(operations(&program), ["io 20 unknown", "exec 20"]);
}

#[test]
fn a_wait_cut_by_the_end_of_the_window_is_left_out() {
    let mut one = thread(1, &[(0, RUNNING), (10, State::Blocked(0))]);
    one.waits = vec![Wait { wake: Wake::CutAtEnd, ..external(External::Task) }];
    assert_eq!(operations(&from_timeline(&timeline(vec![one]))), ["exec 10"]);
}

#[test]
fn waits_that_nothing_in_the_program_ends_are_called_by_their_end() {
    let call = |number| Call { number, argument1: 0, argument0: 5 };
    let inside = |number, by| Wait { reason: WaitReason::of(1, call(number)), ..external(by) };
    let of = |number, descriptor, by| Wait {
        reason: WaitReason::Kernel { task_state: 1, call: call(number), descriptor },
        ..external(by)
    };
    const MONOTONIC: u64 = 1;
    const PROCESS_TIME: u64 = 2;
    let until = |clock, flags, by| Wait {
        reason: WaitReason::of(1, Call { number: 230, argument1: flags, argument0: clock }),
        ..external(by)
    };
    let polling = |descriptors, by| Wait {
        reason: WaitReason::of(1, Call { number: 7, argument1: descriptors, argument0: 5 }),
        ..external(by)
    };
    let (read, fsync, poll, clock_nanosleep, futex, major_fault) = (0, 74, 7, 230, 202, u32::MAX);
    let cases = [
        (external(External::HardIrq), "io 10 interrupt"),
        (external(External::SoftIrq), "io 10 deferred interrupt"),
        (external(External::Task), "io 10 another process"),
        (external(External::NotSeen), "io 10 wake-up not seen"),
        (inside(major_fault, External::Block), "io 10 disk"),
        (inside(read, External::Device), "io 10 read"),
        (of(read, Descriptor::File, External::Block), "io 10 file read"),
        (of(read, Descriptor::Socket, External::Network), "io 10 socket receive"),
        (of(read, Descriptor::Pipe, External::Task), "io 10 pipe read"),
        (of(read, Descriptor::Pipe, External::Signal), "io 10 signal"),
        (of(read, Descriptor::Timer, External::Timer), "io 10 timerfd read"),
        (of(read, Descriptor::Event, External::Task), "io 10 idle"),
        (of(fsync, Descriptor::File, External::Task), "io 10 file sync"),
        (inside(poll, External::Network), "io 10 idle"),
        (inside(poll, External::Timer), "sleep 10"),
        (polling(2, External::Timer), "io 10 idle"),
        (inside(clock_nanosleep, External::Timer), "sleep 10"),
        (inside(clock_nanosleep, External::Signal), "io 10 signal"),
        (until(MONOTONIC, 1, External::Timer), "sleep_next 10"),
        (until(MONOTONIC, 0, External::Timer), "sleep 10"),
        (until(PROCESS_TIME, 1, External::Timer), "sleep 10"),
        (until(u64::from(-6_i32 as u32), 1, External::Timer), "sleep 10"),
        (until(MONOTONIC, 1, External::Signal), "io 10 signal"),
        (of(read, Descriptor::Deadline, External::Timer), "sleep_next 10"),
        (of(read, Descriptor::Deadline, External::Signal), "io 10 signal"),
        (inside(futex, External::Timer), "sleep 10"),
        (inside(futex, External::Signal), "io 10 signal"),
    ];
    for (wait, wanted) in cases {
        let mut one = thread(1, &[(0, State::Blocked(0)), (10, RUNNING)]);
        one.waits = vec![wait];
        assert_eq!(operations(&from_timeline(&timeline(vec![one]))), [wanted, "exec 90"]);
    }
}

/// A missed deadline leaves no wait: the next one counts from it.
#[test]
fn sleeps_until_a_deadline_count_from_the_deadline_before() {
    let clock = Call { number: 230, argument1: 1, argument0: 1 };
    // Shorter sleeps may be the kernel's timer slack only.
    const UNIT: u64 = 100_000;
    let states = [
        (0, RUNNING),
        (10, State::Blocked(0)),
        (20, RUNNING),
        (37, State::Blocked(1)),
        (40, RUNNING),
        (45, State::Blocked(2)),
        (50, RUNNING),
        (88, State::Blocked(3)),
        (90, RUNNING),
    ];
    let mut one = thread(1, &states.map(|(time, state)| (time * UNIT, state)));
    one.end = Timestamp(100 * UNIT);
    let wait = |call| Wait { reason: WaitReason::of(1, call), ..external(External::Timer) };
    one.waits = vec![wait(clock), wait(clock), wait(Call { argument1: 0, ..clock }), wait(clock)];
    let timeline = Timeline { end: one.end, threads: vec![one], ..Timeline::default() };
    let units = operations(&from_timeline(&timeline)).join(", ").replace("00000", "");
    assert_eq!(
        units,
        "exec 10, sleep_next 10, exec 17, sleep_next 20, exec 5, sleep 5, exec 38, sleep_next 50, exec 10"
    );
}

#[test]
fn edges_are_called_by_their_futex_word_or_number() {
    let mut waker = thread(1, &[(0, RUNNING)]);
    let step = |time: u64, wakeup| Step { time: Timestamp(time), kind: StepKind::Wake(wakeup) };
    waker.steps = vec![step(20, 0), step(30, 1), step(40, 2)];
    let mut wakee =
        thread(2, &[(0, State::Blocked(0)), (20, RUNNING), (25, State::Blocked(1)), (40, RUNNING)]);
    let futex = WaitReason::Futex(FutexFact { word: 0x7f40, operation: 128, words: 0 });
    wakee.waits = vec![
        Wait { reason: futex, wake: Wake::By(0), ..external(External::Task) },
        Wait { wake: Wake::By(2), ..external(External::Task) },
    ];
    let wakeup = |time, ended| Wakeup { time: Timestamp(time), waker: 0, wakee: 1, ended };
    let mut timeline = timeline(vec![waker, wakee]);
    timeline.wakeups = vec![wakeup(20, Some(0)), wakeup(30, None), wakeup(40, Some(1))];
    let program = from_timeline(&timeline);
    assert_eq!(program.edges, ["futex 0x7f40 #0", "wake #1"]);
    let exec = |ns| Operation::Exec(Ticks::from_ns(ns));
    let (first, second) = (EdgeId(0), EdgeId(1));
    assert_eq!(
        program.threads[0].operations,
        [exec(20), Operation::Release(first), exec(20), Operation::Release(second), exec(60)]
    );
    assert_eq!(
        program.threads[1].operations,
        [Operation::Await(first), exec(5), Operation::Await(second), exec(60)]
    );
}

#[test]
fn a_thread_started_from_outside_waits_for_its_start() {
    let mut one = thread(1, &[(30, RUNNING)]);
    one.birth = Birth::Unknown;
    assert_eq!(operations(&from_timeline(&timeline(vec![one]))), ["io 30 started from outside", "exec 70"]);
}

#[test]
fn thread_names_are_unique_and_threads_that_never_lived_are_left_out() {
    let mut unborn = thread(3, &[(100, RUNNING)]);
    unborn.intervals.clear();
    let threads =
        vec![thread(7, &[(0, RUNNING)]), unborn, thread(7, &[(50, RUNNING)]), thread(8, &[(0, RUNNING)])];
    let mut timeline = timeline(threads);
    timeline.threads[0].steps = vec![
        Step { time: Timestamp(10), kind: StepKind::Create(1) },
        Step { time: Timestamp(50), kind: StepKind::Create(2) },
    ];
    timeline.threads[1].birth = Birth::By(0);
    timeline.threads[2].birth = Birth::By(0);
    let program = from_timeline(&timeline);
    let names: Vec<&str> = program.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["work/7", "work/7#2", "work/8"]);
    assert!(program.threads[0].operations.contains(&Operation::Create(ThreadId(1))));
    let creates = program.threads[0].operations.iter().filter(|o| matches!(o, Operation::Create(_))).count();
    assert_eq!(creates, 1);
}

#[test]
fn function_names_are_unique_and_as_short_as_that_allows() {
    let fact = |id: u32, name: &str, location: Option<&str>| FunctionFact {
        id,
        name: name.to_owned(),
        module: "libx.so".to_owned(),
        offset: 16 * u64::from(id),
        location: location.map(str::to_owned),
        exits_probed: true,
        entry_stepped: false,
        exits_stepped: false,
    };
    let mut one = thread(1, &[(0, RUNNING)]);
    one.steps = (1..=7).map(|id| Step { time: Timestamp(1), kind: StepKind::Enter(id) }).collect();
    let mut timeline = timeline(vec![one]);
    timeline.functions = vec![
        fact(1, "alone", Some("a.c:1")),
        fact(2, "twice", Some("a.c:2")),
        fact(3, "twice", Some("b.c:2")),
        fact(4, "inline", Some("h.h:1")),
        fact(5, "inline", Some("h.h:1")),
        fact(6, "", None),
    ];
    timeline.probes_removed = vec![3];
    timeline.counts = Counts { events: 9, ..Counts::default() };
    let program = from_timeline(&timeline);
    let names: Vec<&str> = program.functions.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "alone",
            "twice (a.c:2)",
            "twice (b.c:2)",
            "inline (libx.so+0x40)",
            "inline (libx.so+0x50)",
            "libx.so+0x60",
            "function #7"
        ]
    );
    let probes_removed: Vec<bool> =
        program.functions.iter().map(|function| function.probes_removed).collect();
    assert_eq!(probes_removed, [false, false, true, false, false, false, false]);
    let found = |kind: &str| program.findings.iter().filter(|finding| finding.kind() == kind).count();
    assert_eq!((found("folded"), found("uncontended")), (1, 1));
    assert!(
        program.findings.contains(&Finding::ProbesRemoved {
            functions: Names { names: vec!["twice".to_owned()], more: 0 }
        })
    );
}

#[test]
fn a_recursive_function_counts_from_its_outermost_call() {
    let mut one = thread(1, &[(0, RUNNING)]);
    one.base_stacks[0].functions = vec![2, 1];
    let step = |time: u64, kind| Step { time: Timestamp(time), kind };
    one.steps = vec![
        step(10, StepKind::Enter(1)),
        step(20, StepKind::Enter(3)),
        step(30, StepKind::Leave),
        step(40, StepKind::Leave),
        step(50, StepKind::Leave),
        step(60, StepKind::Enter(2)),
        step(70, StepKind::Leave),
    ];
    let program = from_timeline(&timeline(vec![one]));
    let [f1, f2, f3] = ["function #1", "function #2", "function #3"].map(|name| format!("call {name}"));
    let want =
        [&f1, &f2, "exec 20", &f3, "exec 10", "ret", "exec 20", "ret", "exec 10", &f2, "exec 10", "ret"];
    let mut want: Vec<String> = want.map(str::to_owned).to_vec();
    want.push("exec 30".to_owned());
    assert_eq!(operations(&program), want);
}

#[test]
fn lengths_beyond_what_a_program_can_hold_are_a_finding() {
    let mut one = thread(1, &[(0, RUNNING)]);
    one.end = Timestamp(u64::MAX);
    let program = from_timeline(&timeline(vec![one.clone(), one]));
    program.check().expect("a valid program");
    assert!(program.findings.iter().any(|finding| finding.kind() == "too_long"));
}

#[test]
fn functions_open_at_the_start_get_the_time_before_the_first_step() {
    // Pre-empted and blocked before any record of its functions; an exec in the middle of an interval.
    let states = [(0, RUNNING), (20, State::Runnable), (30, RUNNING), (40, State::Blocked(0)), (50, RUNNING)];
    let mut one = thread(1, &states);
    one.waits = vec![external(External::HardIrq)];
    let leave = |time: u64| Step { time: Timestamp(time), kind: StepKind::Leave };
    one.steps = vec![leave(60), leave(90)];
    let base = |first_step, time, function| BaseStack {
        first_step,
        time: Timestamp(time),
        functions: vec![function],
    };
    one.base_stacks = vec![base(0, 0, 1), base(1, 70, 2)];
    let program = from_timeline(&timeline(vec![one]));
    let [f1, f2] = ["function #1", "function #2"].map(|name| format!("call {name}"));
    let device = "io 10 interrupt";
    let want = [&f1, "exec 30", device, "exec 10", "ret", "exec 10", &f2, "exec 20", "ret", "exec 10"];
    assert_eq!(operations(&program), want);
}

/// The cost of probe hits in a program's functions is known, and is no part of the program.
#[test]
fn the_cost_of_probe_hits_is_taken_out_of_computing() {
    let mut one = thread(1, &[(0, RUNNING), (60, State::Runnable), (70, RUNNING)]);
    let step = |time: u64, kind| Step { time: Timestamp(time), kind };
    one.steps = vec![step(20, StepKind::Enter(1)), step(80, StepKind::Leave)];
    let hit = |time: u64, before_ns: u32, after_ns: u32| Hit { time: Timestamp(time), before_ns, after_ns };
    one.intervals[1].first_step = 1;
    one.intervals[2].first_step = 1;
    one.hits = vec![hit(20, 3, 5), hit(80, 20, 4)];
    let program = from_timeline(&timeline(vec![one.clone()]));
    // Of the exit's 20 ns before its record, only the 10 after the pause can belong to it.
    assert_eq!(operations(&program), ["exec 17", "call function #1", "exec 35", "ret", "exec 16"]);
    let share = program.findings.iter().find_map(|finding| match finding {
        Finding::ProbeCost { cost_ns, ran_ns } => Some(*cost_ns as f64 / *ran_ns as f64),
        _ => None,
    });
    assert!(share.is_some_and(|share| (share - 0.244).abs() < 0.0005), "{share:?}");
    one.hits.clear();
    let raw = from_timeline(&timeline(vec![one]));
    assert_eq!(operations(&raw), ["exec 20", "call function #1", "exec 50", "ret", "exec 20"]);
    assert!(raw.findings.iter().all(|finding| finding.kind() != "probe_cost"));
}
