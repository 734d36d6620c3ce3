//! Tests of limits: the reader reads everything that the writer writes, and content beyond the limits is omitted,
//! counted and reported.

use super::{end, facts, likely_record, meta, opened};
use crate::SessionInfo;
use crate::v1::chunk::{ChunkHeader, ChunkKind};
use crate::v1::{self, FileHeader, FileLimits, Writer, add_facts};
use engine::event::{
    Facts, FunctionFact, GapReason, LeftOut, MOST_FRAMES, Note, NoteKind, PendingOperation, Recording,
    ThreadFact, WindowEnd,
};
use proptest::prelude::*;
use std::io::Cursor;

fn read(bytes: &[u8], limits: FileLimits) -> (Recording, SessionInfo) {
    let mut source = Cursor::new(bytes);
    source.set_position(FileHeader::BYTES as u64);
    v1::read(source, &FileHeader::CURRENT, bytes.len() as u64, limits).expect("read")
}

/// Kinds of the chunks in a complete file, in order.
fn kinds(bytes: &[u8]) -> Vec<u16> {
    let (mut at, mut kinds) = (FileHeader::BYTES, Vec::new());
    while let Some(header) = bytes[at..].first_chunk() {
        let header = ChunkHeader::decode(header).expect("a chunk");
        kinds.push(header.kind);
        at += ChunkHeader::BYTES + header.stored_bytes as usize;
    }
    kinds
}

/// Twenty thousand threads that may each run on 256 CPUs make the end larger than a chunk may be.
#[test]
fn many_threads_on_many_cpus_are_written_in_parts_and_read_back() {
    let cpus: Vec<u32> = (1_000..1_256).collect();
    let thread = |tid: u32| ThreadFact { tid, pid: 1, cpus: cpus.clone(), ..ThreadFact::default() };
    let threads: Vec<ThreadFact> = (1..=20_000).map(thread).collect();
    let operation = |tid| PendingOperation { tid, began_ns: u64::MAX, ..PendingOperation::default() };
    let pending: Vec<PendingOperation> = (1..=20_000).map(operation).collect();
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &meta()).expect("started");
    let all = Facts { threads: threads.clone(), ..facts() };
    writer.facts(&all).expect("facts");
    writer.push(&likely_record(0)).expect("pushed");
    // The final chunks have to replace a draft.
    writer.draft(None).expect("drafted");
    let last = WindowEnd { threads, pending, ..end() };
    let summary = writer.finish(last.clone()).expect("finished");
    assert!(summary.left_out.is_nothing());
    let (recording, info) = opened(&bytes).expect("read");
    assert_eq!(info.damage, None);
    assert!(recording.facts == Facts { end: Some(last), ..all }, "what goes in comes out");
    let parts = kinds(&bytes).into_iter().filter(|&kind| kind == ChunkKind::EndPart as u16).count();
    assert!(parts > 10, "{parts} parts");
    // Adding names later must not change this.
    let mut more = Vec::new();
    assert_eq!(add_facts(bytes.as_slice(), &mut more, &facts(), FileLimits::FILE).expect("added"), 0);
    let (again, info) = opened(&more).expect("read");
    assert_eq!(info.damage, None);
    assert!(again.facts.end == recording.facts.end);
}

/// A reader that does not know parts of the end finds an end without threads, and a complete file.
#[test]
fn without_its_parts_the_end_of_a_recording_is_still_one_chunk() {
    let thread = |tid: u32| ThreadFact { tid, pid: 1, ..ThreadFact::default() };
    let threads: Vec<ThreadFact> = (1..=20_000).map(thread).collect();
    let mut bytes = Vec::new();
    let writer = Writer::new(&mut bytes, &meta()).expect("started");
    writer.finish(WindowEnd { threads, ..end() }).expect("finished");
    let (mut at, mut ends) = (FileHeader::BYTES, Vec::new());
    while let Some(header) = bytes[at..].first_chunk() {
        let header = ChunkHeader::decode(header).expect("a chunk");
        let next = at + ChunkHeader::BYTES + header.stored_bytes as usize;
        if header.kind == ChunkKind::End as u16 {
            ends.push(String::from_utf8_lossy(&bytes[at + ChunkHeader::BYTES..next]).into_owned());
        }
        at = next;
    }
    assert_eq!(ends.len(), 1);
    assert!(ends[0].len() < 2_000, "{}", ends[0]);
}

/// One step of writing a recording.
#[derive(Clone, Debug)]
enum Step {
    Functions(u8, u8),
    Gap,
    Rates(u8),
    Stack(u8),
    Events(u8),
    Draft,
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0u8..20, 0u8..200).prop_map(|(count, length)| Step::Functions(count, length)),
        Just(Step::Gap),
        (0u8..200).prop_map(Step::Rates),
        (0u8..127).prop_map(Step::Stack),
        (1u8..20).prop_map(Step::Events),
        Just(Step::Draft),
        Just(Step::Flush),
    ]
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    functions: u64,
    notes: u64,
    stacks: u64,
    threads: u64,
    events: u64,
}

/// Writes the steps. Returns the items given to the writer, the file, and the writer's count of items that did not fit.
fn written(steps: &[Step], threads: usize, limits: FileLimits) -> (Counts, Vec<u8>, LeftOut) {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &meta()).expect("started").with_limits(limits);
    let mut given = Counts { threads: threads as u64, ..Counts::default() };
    for step in steps {
        let note = |kind| Note { time_ns: 9, kind };
        match *step {
            Step::Functions(count, length) => {
                let function = |id| FunctionFact {
                    id: given.functions as u32 + u32::from(id),
                    name: "\n".repeat(length.into()),
                    ..FunctionFact::default()
                };
                let functions: Vec<_> = (0..count).map(function).collect();
                given.functions += u64::from(count);
                writer.facts(&Facts { functions, ..Facts::default() }).expect("facts");
            }
            Step::Gap => {
                let reason = GapReason::RingFull;
                let gap = NoteKind::Gap { pid: 0, cpu: Some(1), until_ns: 9, lost: 5, reason };
                writer.note(&note(gap)).expect("noted");
                given.notes += 1;
            }
            Step::Rates(count) => {
                let (functions, rates) = (vec![7; count.into()], vec![u64::MAX; count.into()]);
                writer.note(&note(NoteKind::ProbesOff { functions, rates })).expect("noted");
                given.notes += 1;
            }
            Step::Stack(frames) => {
                let (id, frames) = (given.stacks as u32 + 1, vec![5; frames.into()]);
                let stack = NoteKind::Stack { id, pid: 7, frames, cut: id % 3 == 0 };
                writer.note(&note(stack)).expect("noted");
                given.stacks += 1;
            }
            Step::Events(count) => {
                for _ in 0..count {
                    writer.push(&likely_record(given.events)).expect("pushed");
                    given.events += 1;
                }
            }
            Step::Draft => writer.draft(None).expect("drafted"),
            Step::Flush => writer.flush().expect("flushed"),
        }
    }
    let threads = (0..threads as u32).map(|tid| ThreadFact { tid, ..ThreadFact::default() }).collect();
    let summary = writer.finish(WindowEnd { threads, ..WindowEnd::default() }).expect("finished");
    (given, bytes, summary.left_out)
}

fn check(steps: &[Step], threads: usize, limits: FileLimits) -> LeftOut {
    let (given, bytes, left_out) = written(steps, threads, limits);
    // The reader has the same limits.
    let (recording, info) = read(&bytes, limits);
    assert_eq!(info.damage, None, "{limits:?}");
    let is_stack = |note: &&Note| matches!(note.kind, NoteKind::Stack { .. });
    let stacks = recording.notes.iter().filter(is_stack).count() as u64;
    let end = recording.facts.end.as_ref().expect("an end");
    let there = Counts {
        functions: recording.facts.functions.len() as u64 + left_out.facts,
        stacks: stacks + left_out.stacks,
        notes: recording.notes.len() as u64 - stacks + left_out.notes,
        threads: end.threads.len() as u64 + left_out.end,
        events: recording.events.len() as u64,
    };
    assert_eq!(there, given, "what is missing is counted");
    assert_eq!(end.left_out, left_out, "and said");
    for note in &recording.notes {
        let NoteKind::Stack { id, cut, .. } = note.kind else { continue };
        assert_eq!(cut, id % 3 == 0);
    }
    left_out
}

proptest! {
    #[test]
    fn within_any_limits_what_is_written_is_read_and_the_rest_counted(
        steps in proptest::collection::vec(step(), 0..40),
        threads in 0usize..30,
        bytes in prop_oneof![Just(FileLimits::FILE.bytes), 0u64..6_000],
        (facts, notes) in prop_oneof![Just((FileLimits::FILE.facts, FileLimits::FILE.notes)), (0usize..60, 0usize..20)],
    ) {
        check(&steps, threads, FileLimits { bytes, facts, notes, ..FileLimits::FILE });
    }
}

#[test]
fn threads_without_room_at_the_end_are_counted() {
    for (limits, left_out) in [
        (FileLimits::FILE, 0),
        (FileLimits { end_entries: 6_000, ..FileLimits::FILE }, 1_000),
        (FileLimits { end_bytes: 0, ..FileLimits::FILE }, 7_000),
    ] {
        assert_eq!(check(&[], 7_000, limits), LeftOut { end: left_out, ..LeftOut::default() });
    }
    let some = check(&[], 7_000, FileLimits { end_bytes: 100_000, ..FileLimits::FILE });
    assert!((1..7_000).contains(&some.end), "{some:?}");
}

/// A file full of stacks must be read to its end: the threads at its end, names of its code and later events must not
/// be lost.
#[test]
fn a_file_that_is_full_of_stacks_is_read_to_its_end() {
    let deepest: Vec<u64> = (0..MOST_FRAMES as u64).collect();
    let room = FileLimits::FILE.bytes / v1::stack_bytes(MOST_FRAMES);
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &meta()).expect("started");
    for id in 0..room as u32 + 1_000 {
        let kind = NoteKind::Stack { id: id + 1, pid: 7, frames: deepest.clone(), cut: false };
        writer.note(&Note { time_ns: 1, kind }).expect("noted");
    }
    writer.push(&likely_record(0)).expect("pushed");
    let full = LeftOut { stacks: 1_000, ..LeftOut::default() };
    assert_eq!(writer.finish(end()).expect("finished").left_out, full);
    let (recording, info) = opened(&bytes).expect("read");
    assert_eq!((info.damage, recording.notes.len() as u64), (None, room));
    assert_eq!(recording.facts.end.map(|end| end.left_out), Some(full));
    assert_eq!(recording.events, [likely_record(0)]);
}

/// `longpole symbolize` must not turn a full file into a file that cannot be read to its end.
#[test]
fn facts_added_later_are_limited_by_the_room_that_is_left() {
    let steps = [Step::Functions(9, 9), Step::Gap, Step::Stack(9), Step::Stack(20), Step::Flush];
    let (_, bytes, _) = written(&steps, 3, FileLimits::FILE);
    let function = |id| FunctionFact { id, name: "more".into(), ..FunctionFact::default() };
    let more = Facts { functions: (100..150).map(function).collect(), ..Facts::default() };
    let mut kept = Vec::new();
    for room in (0..12_000).step_by(97) {
        for limits in [
            FileLimits { bytes: room, ..FileLimits::FILE },
            FileLimits { facts: room as usize / 100, ..FileLimits::FILE },
        ] {
            if read(&bytes, limits).1.damage.is_some() {
                continue;
            }
            let mut larger = Vec::new();
            let left_out = add_facts(bytes.as_slice(), &mut larger, &more, limits).expect("added");
            let (recording, info) = read(&larger, limits);
            assert_eq!(info.damage, None, "{limits:?}");
            assert_eq!(recording.facts.functions.len() as u64, 9 + 50 - left_out);
            kept.push(left_out);
        }
    }
    assert!(kept.contains(&0) && kept.contains(&50) && kept.iter().any(|left| (1..50).contains(left)));
}
