//! Tests with a writer that is killed between any two bytes, or whose disk is full.

use super::{end, facts, likely_record, meta, notes, opened};
use crate::DamageKind;
use crate::v1::chunk::{ChunkHeader, ChunkKind};
use crate::v1::disk::Disk;
use crate::v1::tail::Tail;
use crate::v1::{EventChunk, EventChunks, FileHeader, Writer};
use engine::event::{Facts, FunctionFact};
use probe_abi::Record;
use proptest::prelude::*;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// A change of a file.
#[derive(Clone)]
enum Done {
    Write(u64, Vec<u8>),
    Cut(u64),
}

/// Records all changes of a file.
#[derive(Clone, Default)]
struct Watched(Rc<RefCell<Vec<Done>>>);

impl Disk for Watched {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().push(Done::Write(at, bytes.to_vec()));
        Ok(())
    }

    fn cut(&mut self, at: u64) -> io::Result<()> {
        self.0.borrow_mut().push(Done::Cut(at));
        Ok(())
    }

    fn has_name(&self) -> io::Result<bool> {
        Ok(true)
    }
}

fn function(id: u32) -> Facts {
    let functions = vec![FunctionFact { id, name: format!("function {id}"), ..FunctionFact::default() }];
    Facts { functions, ..Facts::default() }
}

/// What one step of a recording adds before a draft is written.
#[derive(Clone, Copy, Debug)]
struct Step {
    records: u16,
    fill: bool,
    fact: bool,
    note: bool,
    stack: bool,
}

fn step() -> impl Strategy<Value = Step> {
    (0u16..60, proptest::bool::weighted(0.3), proptest::bool::weighted(0.3), any::<bool>(), any::<bool>())
        .prop_map(|(records, fill, fact, note, stack)| Step { records, fill, fact, note, stack })
}

/// A number of changes of the file, and the numbers of records, functions and notes that the file must have after them.
type Promise = (usize, (usize, usize, usize));

fn recorded(steps: &[Step], by_writer: bool) -> (Vec<Done>, Vec<Promise>, Vec<Record>) {
    let disk = Watched::default();
    let mut writer = Writer::new(disk.clone(), &meta()).expect("started");
    writer.facts(&facts()).expect("facts");
    let mut promises = vec![(disk.0.borrow().len(), (0, 1, 0))];
    let (mut chunks, mut all, mut functions, mut noted) = (EventChunks::default(), Vec::new(), 1, 0);
    for step in steps {
        for note in notes()
            .iter()
            .take(usize::from(step.note))
            .chain(notes().iter().skip(2).take(usize::from(step.stack)))
        {
            writer.note(note).expect("noted");
            noted += 1;
        }
        for _ in 0..step.records {
            let record = likely_record(all.len() as u64);
            all.push(record);
            if by_writer {
                writer.push(&record).expect("pushed");
            } else {
                assert_eq!(chunks.push(&record), Ok(None), "so few fill none");
            }
        }
        if step.fill && by_writer {
            writer.flush().expect("flushed");
        } else if step.fill
            && let Some(full) = chunks.take()
        {
            writer.events(full).expect("written");
        }
        if step.fact {
            functions += 1;
            writer.facts(&function(functions as u32)).expect("facts");
        }
        writer.draft(chunks.draft()).expect("drafted");
        promises.push((disk.0.borrow().len(), (all.len(), functions, noted)));
    }
    if let Some(full) = chunks.take() {
        writer.events(full).expect("written");
    }
    let summary = writer.finish(end()).expect("finished");
    let done = disk.0.borrow().clone();
    assert_eq!(summary.bytes, file(&done, None).len() as u64, "nothing of drafts is left");
    (done, promises, all)
}

/// The file after these changes and the first bytes of one more change.
fn file(done: &[Done], begun: Option<(&Done, usize)>) -> Vec<u8> {
    let mut file: Vec<u8> = Vec::new();
    for done in done {
        match done {
            Done::Write(at, bytes) => file.write_at(*at, bytes).expect("written"),
            Done::Cut(at) => file.cut(*at).expect("cut"),
        }
    }
    if let Some((Done::Write(at, bytes), count)) = begun {
        file.write_at(*at, &bytes[..count]).expect("written");
    }
    file
}

fn check(steps: &[Step], by_writer: bool, every: usize) {
    let (done, promises, records) = recorded(steps, by_writer);
    let (recording, info) = opened(&file(&done, None)).expect("read");
    assert_eq!((info.damage, recording.events.as_slice()), (None, records.as_slice()));
    // The header and the description are in the file before the first record.
    let began = promises[0].0;
    for number in began..done.len() {
        let promised = promises.iter().rfind(|(count, _)| *count <= number).expect("the first").1;
        let length = match &done[number] {
            Done::Write(_, bytes) => bytes.len(),
            Done::Cut(_) => 1,
        };
        for count in (0..length).step_by(every).chain([length - 1]) {
            let bytes = file(&done[..number], Some((&done[number], count)));
            let (recording, info) = opened(&bytes).expect("read");
            let found = (recording.events.len(), recording.facts.functions.len(), recording.notes.len());
            assert!(
                found.0 >= promised.0 && found.1 >= promised.1 && found.2 >= promised.2,
                "killed at byte {count} of write {number}: {found:?} of {promised:?}, {:?}",
                info.damage
            );
            assert_eq!(recording.events, records[..found.0], "killed at byte {count} of write {number}");
            assert_eq!(info.events, found.0 as u64);
            if let Some(damage) = info.damage {
                assert!(
                    matches!(damage.kind, DamageKind::NoEnd | DamageKind::Cut { .. }),
                    "killed at byte {count} of write {number}: {damage:?}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn wherever_a_writer_is_killed_the_last_draft_is_read(
        steps in proptest::collection::vec(step(), 1..12), by_writer in any::<bool>(), every in 40usize..400,
    ) {
        check(&steps, by_writer, every);
    }
}

/// The writer is killed at every single byte.
#[test]
fn a_writer_killed_at_any_byte_loses_nothing_that_was_drafted() {
    let step = |records, fill, fact| Step { records, fill, fact, note: fact, stack: fill };
    let steps = [
        step(9, false, false),
        step(3, false, true),
        step(5, true, false),
        step(7, false, true),
        step(0, true, true),
    ];
    check(&steps, false, 1);
    check(&steps, true, 1);
}

/// If a program does nothing, the draft of its recording must not be written again and again.
#[test]
fn a_draft_without_new_records_is_not_written_again() {
    let disk = Watched::default();
    let mut writer = Writer::new(disk.clone(), &meta()).expect("started");
    let count = || disk.0.borrow().len();
    let begun = count();
    writer.draft(None).expect("nothing");
    assert_eq!(count(), begun);
    writer.push(&likely_record(0)).expect("pushed");
    for _ in 0..3 {
        writer.draft(None).expect("drafted");
    }
    assert_eq!(count(), begun + 1);
}

/// A disk with `room` bytes.
struct Small {
    bytes: Vec<u8>,
    room: usize,
}

impl Disk for Small {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let fits = bytes.len().min(self.room.saturating_sub(at as usize));
        self.bytes.write_at(at, &bytes[..fits])?;
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn cut(&mut self, at: u64) -> io::Result<()> {
        self.bytes.cut(at)
    }

    fn has_name(&self) -> io::Result<bool> {
        Ok(true)
    }
}

/// A chunk that does not fit must not be left half written, because the file could then be unreadable from its first
/// chunk on. Drafts must not take space that final chunks need.
#[test]
fn a_full_disk_holds_whole_chunks_up_to_its_last_byte() {
    for room in 1_000..4_000 {
        let events = |drafts: bool| {
            let mut disk = Small { bytes: Vec::new(), room };
            let mut writer = Writer::new(&mut disk, &meta()).expect("started");
            let mut failed = None;
            for number in 0..4_000u64 {
                let pushed = writer.push(&likely_record(number));
                let written = pushed.and_then(|()| match number % 70 {
                    69 => writer.flush(),
                    place if drafts && place % 9 == 8 => writer.draft(None),
                    _ => Ok(()),
                });
                if let Err(error) = written {
                    failed = Some(error.kind());
                    break;
                }
            }
            assert_eq!(failed, Some(io::ErrorKind::StorageFull), "room {room}");
            assert!(writer.push(&likely_record(0)).is_err(), "a broken writer stays broken");
            drop(writer);
            let (recording, info) = opened(&disk.bytes).expect("read");
            let expected: Vec<Record> = (0..recording.events.len() as u64).map(likely_record).collect();
            assert_eq!(recording.events, expected);
            assert_eq!(info.damage.expect("no end").kind, DamageKind::NoEnd, "room {room}");
            recording.events.len()
        };
        let (with, without) = (events(true), events(false));
        assert!(with >= without, "room {room}: {with} of {without}");
    }
}

/// A chunk that overwrites drafts may end exactly where a chunk in a draft begins. A reader must not read that chunk,
/// because its records are in the final chunks already.
#[test]
fn remains_of_drafts_are_not_read_as_chunks() {
    let mut chunks = EventChunks::default();
    for number in 0..5 {
        chunks.push(&likely_record(number)).expect("of its kind");
    }
    let EventChunk { records, payload, .. } = chunks.take().expect("some");
    let sizes = (0, payload.len());
    let header = ChunkHeader::of(ChunkKind::Events, records, (0, 0), sizes, &payload).expect("small");
    let events = [&header.encode()[..], &payload].concat();
    // This chunk is exactly as large as the header of a draft.
    let short = ChunkHeader::of(ChunkKind::CutStacks, 0, (0, 0), (0, 0), &[]).expect("small").encode();
    let mut bytes = Vec::new();
    let mut tail = Tail::new(&mut bytes);
    tail.keep(&FileHeader::CURRENT.encode()).expect("kept");
    tail.draft(records, &events).expect("drafted");
    tail.keep(&short).expect("kept");
    assert!(bytes[FileHeader::BYTES + short.len()..].starts_with(&events), "where the next chunk would be");
    let (recording, info) = opened(&bytes).expect("read");
    assert_eq!((recording.events.len(), info.chunks), (0, 1));
    assert_eq!(info.damage.expect("no end").kind, DamageKind::NoEnd);
    // The same case, with more records later.
    let mut tail = Tail::new(&mut bytes);
    tail.keep(&[&FileHeader::CURRENT.encode()[..], &short].concat()).expect("kept");
    tail.draft(records, &[&events[..], &events].concat()).expect("drafted");
    assert_eq!(opened(&bytes).expect("read").0.events.len(), 10);
}
