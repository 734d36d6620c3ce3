//! Generated recordings whose answer is known, through the whole way: records → merge → timeline → program →
//! report; and what must hold for any recording, however broken.

use engine::event::{
    Facts, GapReason, Merger, Note, NoteKind, Recording, ThreadFact, ThreadState, Window, WindowEnd,
};
use engine::program::{
    EdgeId, Function, FunctionRef, ObjectId, Operation, Program, Thread, ThreadId, from_timeline,
};
use engine::report::{Cpus, Detail, report};
use engine::synth::{Doing, Execution, Generated, generate};
use engine::time::{Ticks, Timestamp};
use engine::timeline::{State, StepKind, Thread as TimelineThread, Timeline, Wake, build};
use probe_abi::{Kind, Record};
use proptest::prelude::*;

const PICK_FUNCTION: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

/// One step of a random thread; numbers are folded into range later.
#[derive(Clone, Debug)]
enum Act {
    Exec(u64),
    Call(u32),
    Return,
    Leaf(u32, u64),
    Signal(u32),
    Wait(u32),
    Create,
    Join(u32),
    Io(u64),
    Sleep(u64),
    Release(u32),
    Await(u32),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0u64..20_000).prop_map(Act::Exec),
        3 => (0u32..4).prop_map(Act::Call),
        3 => Just(Act::Return),
        2 => (0u32..4, 0u64..3_000).prop_map(|(f, ns)| Act::Leaf(f, ns)),
        3 => (0u32..3).prop_map(Act::Signal),
        2 => (0u32..3).prop_map(Act::Wait),
        1 => Just(Act::Create),
        1 => any::<u32>().prop_map(Act::Join),
        1 => (0u64..9_000).prop_map(Act::Io),
        1 => (0u64..9_000).prop_map(Act::Sleep),
        1 => (0u32..6).prop_map(Act::Release),
        1 => (0u32..6).prop_map(Act::Await),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    prop::collection::vec(prop::collection::vec(act(), 0..25), 1..6).prop_map(|threads| {
        let count = threads.len() as u32;
        let (mut next_created, mut released) = (count / 2 + 1, Vec::new());
        let mut list = Vec::new();
        for (index, acts) in threads.into_iter().enumerate() {
            let mut depth = 0;
            let mut operations = Vec::new();
            for act in acts {
                operations.push(match act {
                    Act::Exec(ns) => Operation::Exec(Ticks::from_ns(ns)),
                    Act::Leaf(f, ns) => Operation::ExecIn(FunctionRef(f), Ticks::from_ns(ns)),
                    Act::Call(f) => {
                        depth += 1;
                        Operation::Call(FunctionRef(f))
                    }
                    Act::Return if depth > 0 => {
                        depth -= 1;
                        Operation::Return
                    }
                    Act::Signal(s) => Operation::Signal(ObjectId(s)),
                    Act::Wait(s) => Operation::Wait(ObjectId(s)),
                    Act::Create if next_created < count && next_created as usize > index => {
                        next_created += 1;
                        Operation::Create(ThreadId(next_created - 1))
                    }
                    Act::Join(t) if t % count != index as u32 => Operation::Join(ThreadId(t % count)),
                    Act::Io(ns) => Operation::Io(ObjectId(3), Ticks::from_ns(ns)),
                    Act::Sleep(ns) => Operation::Sleep(Ticks::from_ns(ns)),
                    Act::Release(e) if !released.contains(&e) => {
                        released.push(e);
                        Operation::Release(EdgeId(e))
                    }
                    // One thread awaits each edge.
                    Act::Await(e) if e as usize % count as usize == index => Operation::Await(EdgeId(e)),
                    _ => continue,
                });
            }
            list.push(Thread { name: format!("worker-{index}"), operations });
        }
        Program {
            functions: PICK_FUNCTION
                .map(|name| Function { name: name.to_owned(), ..Function::default() })
                .to_vec(),
            objects: ["x", "y", "z", "disk"].map(str::to_owned).to_vec(),
            edges: (0..6).map(|edge| format!("edge {edge}")).collect(),
            threads: list,
            ..Program::default()
        }
    })
}

fn execution() -> impl Strategy<Value = Execution> {
    (1u16..5, 1u64..6, 1u64..40, 1usize..4, any::<u32>(), any::<u64>(), any::<bool>(), any::<bool>())
        .prop_map(|(cpus, slice, latency, rings, sequence, seed, noise, fold_recursion)| Execution {
            cpus,
            slice_ns: slice * 1_000,
            latency_ns: latency * 64,
            rings,
            first_sequence: if seed % 2 == 0 { 0 } else { sequence | 0xffff_ff00 },
            seed,
            noise,
            second_wakings: true,
            fold_recursion,
            ..Execution::default()
        })
}

/// A generated recording that prints as what it was generated from.
#[derive(Clone)]
struct Case {
    program: Program,
    execution: Execution,
    generated: Generated,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{:?}", self.execution)?;
        for (index, thread) in self.program.threads.iter().enumerate() {
            writeln!(f, "T{index}: {:?}", thread.operations)?;
        }
        Ok(())
    }
}

fn case() -> impl Strategy<Value = Case> {
    (program(), execution()).prop_map(|(program, execution)| {
        let generated = generate(&program, &execution).expect("supported");
        Case { program, execution, generated }
    })
}

/// The intervals tile each thread's life, and each thread's life lies in the window.
fn assert_tiles(timeline: &Timeline) {
    for thread in &timeline.threads {
        assert!(timeline.start <= thread.start && thread.end <= timeline.end, "{thread:#?}");
        assert_eq!(thread.intervals.is_empty(), thread.start == thread.end, "{thread:#?}");
        let mut now = thread.start;
        let mut steps = 0;
        for (start, end, state) in thread.spans() {
            assert_eq!(start, now, "{thread:#?}");
            let may_be_empty = matches!(state, State::Blocked(_));
            assert!(start < end || (may_be_empty && start == end), "{thread:#?}");
            now = end;
        }
        for interval in &thread.intervals {
            assert!(steps <= interval.first_step && interval.first_step as usize <= thread.steps.len());
            steps = interval.first_step;
        }
        assert_eq!(now, thread.end, "{thread:#?}");
        assert!(thread.steps.is_sorted_by_key(|step| step.time));
        let blocked = thread.intervals.iter().filter(|i| matches!(i.state, State::Blocked(_)));
        assert_eq!(blocked.count(), thread.waits.len());
    }
}

/// A program from a recording can always be scheduled to its end.
fn assert_no_deadlock(program: &Program) {
    program.check().expect("a valid program");
    let answer = report(program, &[Cpus::Infinite], Detail::Functions);
    let bad = ["deadlock", "invalid_program", "never_released", "created_twice", "released_twice"];
    let found: Vec<_> = answer.findings.iter().filter(|f| bad.contains(&f.kind.as_str())).collect();
    assert!(found.is_empty(), "{found:?}\n{program:#?}");
    // Each await has its release before it in some order: release and await are paired one to one.
    let operations = || program.threads.iter().flat_map(|thread| &thread.operations);
    for edge in 0..program.edges.len() as u32 {
        let releases = operations().filter(|o| **o == Operation::Release(EdgeId(edge))).count();
        let awaits = operations().filter(|o| **o == Operation::Await(EdgeId(edge))).count();
        assert_eq!((releases, awaits), (1, 1), "edge {edge} of {program:#?}");
    }
}

fn bare(program: &Program) -> Program {
    Program { edges: Vec::new(), trust: Default::default(), findings: Vec::new(), ..program.clone() }
}

/// The answer's threads as (state, from, until), empty and equal neighbours joined.
fn true_spans(generated: &Generated, from_ns: u64) -> Vec<(u32, Vec<(Doing, u64)>)> {
    let lives = generated.truth.iter().map(|life| {
        let mut changes: Vec<(Doing, u64)> = Vec::new();
        for (i, &(at, doing)) in life.changes.iter().enumerate() {
            let until = life.changes.get(i + 1).map_or(u64::MAX, |next| next.0);
            if until <= at.max(from_ns)
                || doing == Doing::Ended
                || changes.last().is_some_and(|l| l.0 == doing)
            {
                continue;
            }
            changes.push((doing, at.max(from_ns)));
        }
        (life.tid, changes)
    });
    lives.filter(|(_, changes)| !changes.is_empty()).collect()
}

fn spans(timeline: &Timeline) -> Vec<(u32, Vec<(Doing, u64)>)> {
    let threads = timeline.threads.iter().map(|thread| {
        let mut changes: Vec<(Doing, u64)> = Vec::new();
        for (start, end, state) in thread.spans() {
            let doing = match state {
                State::Running { .. } => Doing::Running,
                State::Runnable => Doing::Runnable,
                State::Blocked(_) => Doing::Blocked,
                State::Unknown(reason) => panic!("unknown: {reason:?} {start:?} {thread:#?}"),
            };
            if start < end && changes.last().is_none_or(|last| last.0 != doing) {
                changes.push((doing, start.0));
            }
        }
        (thread.tid, changes)
    });
    threads.filter(|(_, changes)| !changes.is_empty()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The way there and back: the program comes out as it was executed, and so does its report.
    #[test]
    fn the_executed_program_comes_back(case in case()) {
        let generated = &case.generated;
        let recording = generated.recording();
        let timeline = build(&recording);
        assert_tiles(&timeline);
        prop_assert_eq!(spans(&timeline), true_spans(generated, 0));
        prop_assert_eq!(timeline.counts.contradictions, 0);
        prop_assert_eq!(timeline.counts.unknown.0, 0);
        prop_assert_eq!(timeline.counts.unmatched, 0);
        prop_assert_eq!(timeline.counts.stray_exits, 0);
        prop_assert_eq!(timeline.counts.lost, 0);
        let program = from_timeline(&timeline);
        prop_assert_eq!(bare(&program), generated.expected.clone());
        assert_no_deadlock(&program);
        let cpus = [1, 2, 3].map(|n| Cpus::count(n).expect("not 0"));
        let (got, wanted) =
            (report(&program, &cpus, Detail::Segments), report(&generated.expected, &cpus, Detail::Segments));
        prop_assert_eq!(got.results, wanted.results);
        prop_assert!(!timeline.findings.iter().any(|finding| finding.kind == "cpu_time"), "{:?}", timeline.findings);
    }

    /// Any interleaving of the rings and any batch size gives the same records.
    #[test]
    fn batches_and_interleaving_do_not_matter(case in case(), turns in prop::collection::vec((0usize..4, 1usize..9), 0..40)) {
        let generated = &case.generated;
        let reference = generated.recording();
        let rings = generated.rings.len();
        let mut merger = Merger::new(rings);
        let mut at = vec![0; rings];
        let mut events = Vec::new();
        let all = (0..rings).map(|ring| (ring, usize::MAX));
        for (ring, count) in turns.into_iter().map(|(ring, n)| (ring % rings, n)).chain(all) {
            for record in generated.rings[ring].iter().skip(at[ring]).take(count) {
                merger.push(ring, *record);
                at[ring] += 1;
            }
            events.extend(merger.release());
        }
        events.extend(merger.finish());
        prop_assert_eq!(&events, &reference.events);
        prop_assert!(merger.take_notes().is_empty());
    }

    /// Attached to in the middle: from there on the same intervals as of the whole run.
    #[test]
    fn attached_in_the_middle(case in case(), part in 0u64..1000) {
        // A second waking is told from the first one only by who saw the first one.
        let execution = Execution { second_wakings: false, ..case.execution };
        let generated = generate(&case.program, &execution).expect("supported");
        let start = generated.facts.start_ns;
        let end = generated.facts.end.as_ref().map_or(start, |end| end.end_ns);
        let at = start + (end - start) * part / 1000;
        let cut = generated.clone().attached_at(at);
        let timeline = build(&cut.recording());
        assert_tiles(&timeline);
        prop_assert_eq!(spans(&timeline), true_spans(&generated, at));
        prop_assert_eq!(timeline.counts.contradictions, 0);
        assert_no_deadlock(&from_timeline(&timeline));
        prop_assert!(!timeline.findings.iter().any(|finding| finding.kind == "cpu_time"), "{:?}", timeline.findings);
    }

    /// Whatever is lost, intervals tile the window, the program can be scheduled, and nothing is claimed to have
    /// been computed that was not.
    #[test]
    fn lossy_recordings_claim_nothing_false(case in case(), loss in 1u64..100, seed in any::<u64>()) {
        let generated = &case.generated;
        // A loss shows as a hole in a CPU's sequence; before its first and after its last record there is none.
        let mut edges = std::collections::HashMap::new();
        for header in generated.rings.iter().flatten().map(Record::header) {
            let times = edges.entry(header.cpu).or_insert((header.time_ns, header.time_ns));
            *times = (times.0.min(header.time_ns), times.1.max(header.time_ns));
        }
        let lossy = generated.clone().lossy(|record| {
            let header = record.header();
            let (first, last) = edges[&header.cpu];
            if header.time_ns == first || header.time_ns == last {
                return false;
            }
            // All of an instant or nothing: real records of one CPU are never of the same nanosecond.
            let mixed = (header.time_ns ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) % 100 < loss
        });
        let recording = lossy.recording();
        let timeline = build(&recording);
        assert_tiles(&timeline);
        let program = from_timeline(&timeline);
        assert_no_deadlock(&program);
        for thread in &timeline.threads {
            let Some(truth) = generated.truth.iter().find(|life| life.tid == thread.tid) else { continue };
            for (start, end, state) in thread.spans() {
                if !matches!(state, State::Running { .. }) {
                    continue;
                }
                let doing = truth.changes.iter().take_while(|(at, _)| *at <= start.0).last();
                let next = truth.changes.iter().find(|(at, _)| *at > start.0).map_or(u64::MAX, |change| change.0);
                prop_assert_eq!(doing.map(|(_, doing)| *doing), Some(Doing::Running), "{:?} {:#?}", start, thread);
                prop_assert!(end.0 <= next, "{:?} {:?} {:#?}", start, next, thread);
            }
        }
    }

    /// A window that has moved on is what a recording of everything would show from there on.
    #[test]
    fn a_moved_window_is_the_rest_of_the_whole(case in case(), parts in prop::collection::vec(0u64..1000, 1..4)) {
        assert_moved_window_is_the_rest(&case.generated.recording(), &parts);
    }

    /// The same with gaps.
    #[test]
    fn a_moved_window_keeps_its_gaps(case in case(), parts in prop::collection::vec(0u64..1000, 1..4), gaps in prop::collection::vec((0u64..1000, 0u64..300, prop::option::of(0u16..3)), 0..3)) {
        let mut recording = case.generated.recording();
        let end_ns = recording.facts.end.as_ref().map_or(0, |end| end.end_ns);
        let at = |part: u64| recording.facts.start_ns + (end_ns - recording.facts.start_ns) * part / 1000;
        let mut notes: Vec<Note> = gaps.into_iter().map(|(from, length, cpu)| Note {
            time_ns: at(from),
            kind: NoteKind::Gap { pid: 0, cpu, until_ns: at(from + length), lost: 1, reason: GapReason::RingFull },
        }).collect();
        notes.sort_by_key(|note| note.time_ns);
        recording.notes = notes;
        assert_moved_window_is_the_rest(&recording, &parts);
    }

    /// Records that make no sense at all.
    #[test]
    fn arbitrary_records_never_panic(recording in nonsense(), parts in prop::collection::vec(0u64..120, 0..3)) {
        let timeline = build(&recording);
        assert_tiles(&timeline);
        assert_no_deadlock(&from_timeline(&timeline));
        let mut window = Window::new(recording.facts.clone());
        recording.events.iter().for_each(|event| window.push(*event));
        recording.notes.iter().for_each(|note| window.push_note(note.clone()));
        for part in parts {
            window.advance(part);
            let end = WindowEnd { end_ns: 120, ..WindowEnd::default() };
            let timeline = build(window.recording(end));
            assert_tiles(&timeline);
            assert_no_deadlock(&from_timeline(&timeline));
        }
    }
}

/// Records of few threads and CPUs with times close together, so that they get in each other's way.
fn nonsense() -> impl Strategy<Value = Recording> {
    let small = |bound: u64| (0..bound).prop_map(|n| n as u8);
    let bytes = (
        0u64..100,
        0u32..9,
        0u16..3,
        0usize..Kind::ALL.len(),
        0u8..7,
        0u32..4,
        1u32..3,
        prop::collection::vec(small(5), 32),
    )
        .prop_map(|(time, sequence, cpu, kind, context, tid, pid, body)| {
            let mut bytes = vec![0u8; 64];
            bytes[..8].copy_from_slice(&time.to_le_bytes());
            bytes[8..12].copy_from_slice(&sequence.to_le_bytes());
            bytes[12..14].copy_from_slice(&cpu.to_le_bytes());
            bytes[14] = Kind::ALL[kind] as u8;
            bytes[15] = context;
            bytes[16..20].copy_from_slice(&tid.to_le_bytes());
            bytes[20..24].copy_from_slice(&pid.to_le_bytes());
            // Small numbers in every 32-bit field; a dead state now and then.
            for (field, value) in body.iter().enumerate().take(8) {
                bytes[24 + 4 * field] = *value;
            }
            if Kind::ALL[kind] == Kind::Switch && body[0] == 3 {
                bytes[32] = 0x80;
            }
            Record::decode(&bytes).expect("a whole record")
        });
    let fact = (1u32..4, 1u32..3, 0u64..120, 0u8..4, prop::option::of(0u64..100)).prop_map(
        |(tid, pid, seen_ns, state, cpu_time_ns)| ThreadFact {
            tid,
            pid,
            seen_ns,
            cpu_time_ns,
            state: [ThreadState::Running, ThreadState::Sleeping, ThreadState::Stopped, ThreadState::Unknown]
                [usize::from(state)],
            ..ThreadFact::default()
        },
    );
    let gap = (0u64..120, 0u64..130, prop::option::of(0u16..3), 0u32..3).prop_map(
        |(time_ns, until_ns, cpu, pid)| {
            let kind = NoteKind::Gap { pid, cpu, until_ns, lost: 1, reason: GapReason::RingFull };
            Note { time_ns, kind }
        },
    );
    (
        prop::collection::vec(bytes, 0..60),
        prop::collection::vec(fact.clone(), 0..4),
        prop::collection::vec(fact, 0..4),
        prop::collection::vec(gap, 0..3),
        (0u64..40, any::<bool>(), any::<bool>()),
    )
        .prop_map(|(mut events, threads, at_end, notes, (start_ns, sorted, ended))| {
            if sorted {
                events.sort_by_key(|event| event.header().time_ns);
            }
            let end = ended.then_some(WindowEnd { end_ns: 110, threads: at_end, ..WindowEnd::default() });
            Recording { facts: Facts { start_ns, threads, end, ..Facts::default() }, events, notes }
        })
}

/// What can be compared between a window and a part of the whole: state over time, functions on the stack over
/// time, and who ended each wait.
#[derive(Debug, PartialEq)]
struct View {
    tid: u32,
    spans: Vec<(Timestamp, Timestamp, String)>,
    stack: Vec<(Timestamp, Vec<u32>)>,
}

fn view(timeline: &Timeline, from: Timestamp) -> Vec<View> {
    let views = timeline.threads.iter().map(|thread| View {
        tid: thread.tid,
        spans: thread
            .spans()
            .filter(|(start, end, _)| *end > from && start < end)
            .map(|(start, end, state)| (start.max(from), end, describe(timeline, thread, state, from)))
            .collect(),
        stack: stack_from(thread, from),
    });
    views.filter(|view| !view.spans.is_empty()).collect()
}

fn describe(timeline: &Timeline, thread: &TimelineThread, state: State, from: Timestamp) -> String {
    let State::Blocked(wait) = state else { return format!("{state:?}") };
    let wait = thread.waits[wait as usize];
    let wake = match wait.wake {
        Wake::By(wakeup) => {
            let wakeup = timeline.wakeups[wakeup as usize];
            assert!(wakeup.time >= from);
            format!("by {} at {:?}", timeline.threads[wakeup.waker as usize].tid, wakeup.time)
        }
        other => format!("{other:?}"),
    };
    format!("blocked, {wake}, {:?}", wait.result)
}

/// The functions on the stack at `from` and after each later change.
fn stack_from(thread: &TimelineThread, from: Timestamp) -> Vec<(Timestamp, Vec<u32>)> {
    let mut stack = Vec::new();
    let mut changes: Vec<(Timestamp, Vec<u32>)> = vec![(from, Vec::new())];
    let mut bases = thread.base_stacks.iter().peekable();
    let mut note = |at: Timestamp, stack: &Vec<u32>| {
        let at = at.max(from);
        changes.retain(|(time, _)| *time < at);
        if changes.last().is_none_or(|last| last.1 != *stack) {
            changes.push((at, stack.clone()));
        }
    };
    for (number, step) in (0u32..).zip(&thread.steps) {
        while let Some(base) = bases.next_if(|base| base.first_step <= number) {
            stack.extend(base.functions.iter().rev());
            note(base.time, &stack);
        }
        match step.kind {
            StepKind::Enter(function) => stack.push(function),
            StepKind::Leave => assert!(stack.pop().is_some(), "{thread:#?}"),
            StepKind::Wake(_) | StepKind::Create(_) => {}
        }
        note(step.time, &stack);
    }
    changes
}

#[track_caller]
fn assert_moved_window_is_the_rest(recording: &Recording, parts: &[u64]) {
    let (start, end) = (recording.facts.start_ns, recording.facts.end.clone().expect("an end"));
    let whole = build(recording);
    let mut window = Window::new(Facts { end: None, ..recording.facts.clone() });
    recording.notes.iter().for_each(|note| window.push_note(note.clone()));
    recording.events.iter().for_each(|event| window.push(*event));
    let same = build(window.recording(end.clone()));
    assert_eq!(same, whole, "a window that never moved is the whole");
    let mut at = start;
    let mut parts = parts.to_vec();
    parts.sort_unstable();
    for part in parts {
        at = start + (end.end_ns - start) * part / 1000;
        window.advance(at);
    }
    let moved = build(window.recording(end));
    assert_tiles(&moved);
    assert_eq!(view(&moved, Timestamp(at)), view(&whole, Timestamp(at)), "from {at}");
    assert_no_deadlock(&from_timeline(&moved));
}

/// The generator makes what the tests above are about: hand-overs, pre-emptions, interrupts on busy threads,
/// time-outs, thread creation, spurious wake-ups, holes.
#[test]
fn generated_recordings_hold_what_they_are_meant_to() {
    use engine::program::{FunctionRef as F, ObjectId as S};
    let exec = |ns| Operation::Exec(Ticks::from_ns(ns));
    let busy = |n: u64| (0..n).map(|_| exec(5_000));
    let first =
        [Operation::Create(ThreadId(1)), Operation::Call(F(0)), Operation::Wait(S(0)), Operation::Return];
    let second = [exec(9_000), Operation::Signal(S(0)), Operation::Sleep(Ticks::from_ns(3_000)), exec(100)];
    let third = [Operation::Io(S(1), Ticks::from_ns(4_000))];
    let thread = |name: &str, operations: Vec<Operation>| Thread { name: name.to_owned(), operations };
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
    assert_eq!(count(&|r| matches!(r, Record::FutexExit(f) if f.result == -110)), 1);
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
    assert_eq!(
        lossy.findings.iter().filter(|f| f.kind == "loss" && f.text == "2 records were lost").count(),
        1
    );
}
