//! A window that has moved on equals the rest of a recording of everything.

use super::cases::case;
use super::checks::{assert_no_deadlock, assert_tiles};
use engine::event::{Facts, GapReason, Note, NoteKind, Recording};
use engine::time::Timestamp;
use engine::timeline::{State, StepKind, Thread, Timeline, Wake, Window, build};
use engine::translation::from_timeline;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A window that has moved on equals the rest of a recording of everything.
    #[test]
    fn a_window_that_has_moved_on_is_the_rest_of_the_recording(case in case(), parts in prop::collection::vec(0u64..1000, 1..4)) {
        assert_moved_window_is_the_rest(&case.generated.recording(), &parts);
    }

    /// A window that has moved on keeps its gaps, too, as the rest of a recording of everything.
    #[test]
    fn a_window_that_has_moved_on_keeps_its_gaps(case in case(), parts in prop::collection::vec(0u64..1000, 1..4), gaps in prop::collection::vec((0u64..1000, 0u64..300, prop::option::of(0u16..3)), 0..3)) {
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
}

/// What a window and a part of the whole have in common: states over time, functions on the stack over time, and the thread
/// that ended each wait.
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

fn describe(timeline: &Timeline, thread: &Thread, state: State, from: Timestamp) -> String {
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
    format!("blocked, {wake}, timed out: {}", wait.timed_out())
}

/// The functions on the stack at `from` and after each later change.
fn stack_from(thread: &Thread, from: Timestamp) -> Vec<(Timestamp, Vec<u32>)> {
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
            StepKind::Wake(_)
            | StepKind::Create(_)
            | StepKind::Join(_)
            | StepKind::Operated(_)
            | StepKind::Hole(_) => {}
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
    let same = build(&window.ending(end.clone()));
    assert_eq!(same, whole, "a window that never moved is the whole");
    let mut at = start;
    let mut parts = parts.to_vec();
    parts.sort_unstable();
    for part in parts {
        at = start + (end.end_ns - start) * part / 1000;
        window.advance(at);
    }
    let moved = build(&window.ending(end));
    assert_tiles(&moved);
    assert_eq!(view(&moved, Timestamp(at)), view(&whole, Timestamp(at)), "from {at}");
    assert_no_deadlock(&from_timeline(&moved));
}
