//! Tests of keeping the newest part of a recording on disk, never larger than allowed.

use super::{end, facts, likely_record, meta, opened};
use crate::v1::{Disk, EventChunks, Generations, Kept, Older, Shelf};
use crate::{DamageKind, Overwrite, TwoFiles, create_file};
use engine::event::{Facts, FunctionFact, LossCounts, Note, NoteKind, STACKS_AT_ONCE, ThreadFact, WindowEnd};
use probe_abi::Record;
use std::cell::RefCell;
use std::io::{self, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Two files in memory, on a disk with `room` bytes.
#[derive(Default)]
struct State {
    newer: Vec<u8>,
    older: Option<Vec<u8>>,
    room: usize,
    largest: usize,
    turns: usize,
}

#[derive(Clone)]
struct Memory(Rc<RefCell<State>>);

impl Memory {
    fn with_room(room: usize) -> Memory {
        Memory(Rc::new(RefCell::new(State { room, ..State::default() })))
    }
}

impl Disk for Memory {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let state = &mut *self.0.borrow_mut();
        let room = state.room.saturating_sub(state.older.as_ref().map_or(0, Vec::len));
        let fits = bytes.len().min(room.saturating_sub(at as usize));
        state.newer.write_at(at, &bytes[..fits])?;
        state.largest = state.largest.max(state.newer.len());
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn cut(&mut self, at: u64) -> io::Result<()> {
        self.0.borrow_mut().newer.cut(at)
    }

    fn has_name(&self) -> io::Result<bool> {
        Ok(true)
    }
}

impl Shelf for Memory {
    type Disk = Memory;

    fn turn(&mut self) -> io::Result<Memory> {
        let state = &mut *self.0.borrow_mut();
        state.older = Some(std::mem::take(&mut state.newer));
        state.turns += 1;
        Ok(self.clone())
    }

    fn read(&self, newer_from: u64) -> io::Result<(Box<dyn Read>, Box<dyn Read>)> {
        let state = self.0.borrow();
        let newer = state.newer[newer_from as usize..].to_vec();
        Ok((Box::new(Cursor::new(state.older.clone().unwrap_or_default())), Box::new(Cursor::new(newer))))
    }

    fn replace(&mut self, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut new = Vec::new();
        write(&mut new)?;
        let state = &mut *self.0.borrow_mut();
        let there = state.newer.len() + state.older.as_ref().map_or(0, Vec::len);
        if new.len() + there > state.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.largest = state.largest.max(new.len());
        (state.newer, state.older) = (new, None);
        Ok(())
    }

    fn older(&self) -> Option<PathBuf> {
        self.0.borrow().older.as_ref().map(|_| PathBuf::from("older"))
    }
}

fn begin() -> Facts {
    Facts { start_ns: 1_000_000_000, ..facts() }
}

fn time(record: &Record) -> u64 {
    record.header().time_ns
}

/// Records `records`, with a snapshot whenever one is wanted, or without any snapshot. Calls `look` after each chunk
/// that was written.
fn recorded(
    disk: &Memory,
    most_bytes: u64,
    records: &[Record],
    has_snapshots: bool,
    mut look: impl FnMut(usize),
) -> io::Result<Kept> {
    let mut generations = Generations::new(disk.clone(), disk.clone(), &meta(), &begin(), most_bytes)?;
    for (number, part) in records.chunks(100).enumerate() {
        let id = number as u32 + 1;
        let kind = NoteKind::Stack { id, pid: 7, frames: vec![u64::from(id)], cut: id.is_multiple_of(2) };
        generations.note(&Note { time_ns: time(&part[0]), kind })?;
        let functions = vec![FunctionFact { id, name: format!("f{id}"), ..FunctionFact::default() }];
        generations.facts(&Facts { functions, ..Facts::default() })?;
        let loss = LossCounts { dropped: u64::from(id), ..LossCounts::default() };
        generations.so_far(loss, None);
        if has_snapshots && generations.wants_snapshot() {
            let threads = vec![ThreadFact { tid: id, pid: 7, ..ThreadFact::default() }];
            // The snapshot is in the middle of the next chunk.
            generations.snapshot(&Facts { start_ns: time(&part[50]), threads, ..Facts::default() })?;
        }
        let mut chunks = EventChunks::default();
        part.iter().for_each(|record| assert_eq!(chunks.push(record), Ok(None)));
        generations.draft(chunks.draft())?;
        if let Some(chunk) = chunks.take() {
            generations.events(chunk)?;
        }
        look((number + 1) * 100);
    }
    let loss = LossCounts { dropped: records.len() as u64 / 100, ..LossCounts::default() };
    generations.finish(WindowEnd { end_ns: records.last().map_or(0, time), loss, ..end() })
}

#[test]
fn a_recording_with_max_size_is_one_whole_file_below_it() {
    let records: Vec<Record> = (0..20_000).map(likely_record).collect();
    for (most_bytes, has_snapshots) in [(40_000, true), (40_000, false), (60_001, true), (90_000, true)] {
        let disk = Memory::with_room(usize::MAX);
        let kept = recorded(&disk, most_bytes, &records, has_snapshots, |_| {}).expect("recorded");
        let state = disk.0.borrow();
        assert!(state.largest as u64 <= most_bytes, "{} of {most_bytes} bytes", state.largest);
        assert!(state.turns > 1 && state.older.is_none());
        assert_eq!((kept.is_cut, kept.older), (true, Older::Joined));
        let (recording, info) = opened(&state.newer).expect("read");
        assert_eq!(info.damage, None);
        assert_eq!((kept.summary.events, kept.summary.bytes), (info.events, state.newer.len() as u64));
        assert!(records.ends_with(&recording.events), "what is kept is without a hole");
        assert!(recording.events.len() > 1_200, "{} records", recording.events.len());
        let first_ns = recording.events.first().map_or(0, time);
        assert!(recording.facts.start_ns <= first_ns && recording.facts.start_ns > 1_000_000_000);
        assert_eq!(recording.facts.functions.len(), 200, "all that is known by then");
        assert_eq!(recording.facts.threads.len(), usize::from(has_snapshots), "those of its start");
        // The losses must be those of this part only.
        let end = recording.facts.end.expect("ended");
        let chunks = (recording.events.len() as u64).div_ceil(100);
        assert!(end.loss.dropped.abs_diff(chunks) <= 1, "{} of {chunks}", end.loss.dropped);
        assert_eq!(end.threads, super::end().threads);
        // A part of the recording has no counts for the complete recording.
        assert_eq!((end.samples, end.kernel_locks, end.requests), (None, None, None));
        // The part must have all stacks to which a record may refer, without duplicates. Each stack must be marked if
        // it is cut.
        let stacks: Vec<(u32, bool)> = recording
            .notes
            .iter()
            .filter_map(|note| match note.kind {
                NoteKind::Stack { id, cut, .. } => Some((id, cut)),
                _ => None,
            })
            .collect();
        assert_eq!(stacks, (1..=200u32).map(|id| (id, id.is_multiple_of(2))).collect::<Vec<_>>());
    }
}

#[test]
fn a_recording_that_fits_its_max_size_is_complete() {
    let records: Vec<Record> = (0..2_000).map(likely_record).collect();
    let disk = Memory::with_room(usize::MAX);
    let kept = recorded(&disk, 1 << 20, &records, true, |_| {}).expect("recorded");
    assert_eq!((kept.is_cut, kept.summary.events, disk.0.borrow().turns), (false, 2_000, 0));
    // There are two files, but nothing has been removed.
    let mut turned = 0;
    for count in (100..=2_000).step_by(300) {
        let disk = Memory::with_room(usize::MAX);
        let kept = recorded(&disk, 40_000, &records[..count], true, |_| {}).expect("recorded");
        let state = disk.0.borrow();
        let (recording, info) = opened(&state.newer).expect("read");
        assert_eq!((kept.is_cut, info.damage), (state.turns > 1, None));
        if state.turns <= 1 {
            assert!(recording.events == records[..count]);
            assert_eq!(recording.facts.threads, facts().threads);
            assert_eq!(recording.facts.start_ns, 1_000_000_000);
            let found = recording.facts.end.expect("ended");
            assert_eq!((found.samples, found.kernel_locks), (end().samples, end().kernel_locks));
            assert_eq!(found.requests, end().requests);
        }
        turned += usize::from(state.turns == 1);
    }
    assert!(turned > 0);
}

/// Whenever the process is killed, the older file is complete, and the newer file has everything that was written.
#[test]
fn both_files_of_a_recording_can_be_read_at_any_moment() {
    let records: Vec<Record> = (0..12_000).map(likely_record).collect();
    let disk = Memory::with_room(usize::MAX);
    let looked = disk.clone();
    let look = |written: usize| {
        let state = looked.0.borrow();
        let (newer, info) = opened(&state.newer).expect("read");
        assert_eq!(info.damage.expect("no end").kind, DamageKind::NoEnd);
        assert!(records[..written].ends_with(&newer.events));
        let Some(older) = &state.older else { return };
        let (older, info) = opened(older).expect("read");
        assert_eq!(info.damage, None);
        assert!(records[..written - newer.events.len()].ends_with(&older.events));
        assert!(!older.events.is_empty());
    };
    recorded(&disk, 40_000, &records, true, look).expect("recorded");
}

/// Reading /proc may take longer than writing the records. Even then, no file may end before its last record, and the
/// next file may not begin before that end.
#[test]
fn a_late_snapshot_leaves_no_hole_between_two_files() {
    let records: Vec<Record> = (0..12_000).map(likely_record).collect();
    let disk = Memory::with_room(usize::MAX);
    let mut generations =
        Generations::new(disk.clone(), disk.clone(), &meta(), &begin(), 40_000).expect("begun");
    let mut late = None;
    for part in records.chunks(100) {
        let mut chunks = EventChunks::default();
        part.iter().for_each(|record| assert_eq!(chunks.push(record), Ok(None)));
        generations.events(chunks.take().expect("some")).expect("written");
        if let Some(seen) = late.take() {
            generations.snapshot(&seen).expect("written");
        }
        // The snapshot arrives after the records around it have been written.
        late = generations.wants_snapshot().then(|| Facts { start_ns: time(&part[50]), ..Facts::default() });
        let state = disk.0.borrow();
        let Some(older) = &state.older else { continue };
        let ((older, _), (newer, _)) = (opened(older).expect("read"), opened(&state.newer).expect("read"));
        let end_ns = older.facts.end.expect("ended").end_ns;
        assert!(older.events.iter().all(|record| time(record) <= end_ns));
        assert!(newer.events.iter().all(|record| time(record) >= end_ns));
        assert_eq!(newer.facts.start_ns, end_ns);
    }
    assert!(disk.0.borrow().turns > 2);
}

/// After the disk is full, everything that was written can be read. Joining needs space for both files once more.
/// Without that space both files stay.
#[test]
fn a_disk_that_fills_leaves_the_records_written_before() {
    let records: Vec<Record> = (0..8_000).map(likely_record).collect();
    let (mut failed, mut in_two, mut joined) = (0, 0, 0);
    for room in (3_000..100_000).step_by(487) {
        let disk = Memory::with_room(room);
        let result = recorded(&disk, 40_000, &records, true, |_| {});
        let state = disk.0.borrow();
        match result {
            Ok(Kept { older: Older::Joined, .. }) => joined += 1,
            Ok(_) => in_two += 1,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::StorageFull, "room {room}");
                failed += 1;
            }
        }
        let mut events: Vec<Record> = Vec::new();
        for file in state.older.iter().chain([&state.newer]).filter(|file| !file.is_empty()) {
            let (recording, info) = opened(file).expect("read");
            assert!(info.damage.is_none_or(|damage| damage.kind == DamageKind::NoEnd), "room {room}");
            events.extend(recording.events);
        }
        let is_part = events.first().is_none_or(|first| {
            let begin = records.iter().position(|record| record == first).unwrap_or(usize::MAX);
            records.get(begin..).is_some_and(|rest| rest.starts_with(&events))
        });
        assert!(is_part, "room {room}: {} records, with holes", events.len());
    }
    assert!(failed > 20 && in_two > 3 && joined > 10, "{failed} {in_two} {joined}");
}

#[test]
fn a_max_size_in_which_nothing_fits_is_an_error() {
    let records: Vec<Record> = (0..3_000).map(likely_record).collect();
    for most_bytes in [0, 1, 100, 1_000, 4_000, 6_000] {
        let disk = Memory::with_room(usize::MAX);
        if let Err(error) = recorded(&disk, most_bytes, &records, true, |_| {}) {
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{most_bytes} bytes: {error}");
        }
        assert!(disk.0.borrow().largest as u64 <= most_bytes);
    }
}

/// The chunk is larger than a file may be.
#[test]
fn a_chunk_larger_than_the_max_size_is_an_error() {
    let disk = Memory::with_room(usize::MAX);
    let mut generations =
        Generations::new(disk.clone(), disk.clone(), &meta(), &begin(), 9_000).expect("begun");
    let mut chunks = EventChunks::default();
    for number in 0..16_000 {
        assert_eq!(chunks.push(&likely_record(number)), Ok(None));
    }
    let error = generations.events(chunks.take().expect("some")).expect_err("no room");
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    assert!(generations.finish(end()).is_err());
    assert_eq!(opened(&disk.0.borrow().newer).expect("read").0.events.len(), 0);
}

fn names_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("folder");
    let mut names: Vec<PathBuf> = entries.map(|entry| entry.expect("entry").path()).collect();
    names.sort();
    names
}

/// Adds the records as a single chunk.
fn write(generations: &mut Generations<TwoFiles>, records: &[Record]) {
    let mut chunks = EventChunks::default();
    records.iter().for_each(|record| assert_eq!(chunks.push(record), Ok(None)));
    generations.events(chunks.take().expect("some")).expect("written");
}

#[test]
fn other_files_are_kept_and_the_older_file_is_removed_at_the_end() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("a.lp");
    let others = folder.path().join("a-older.lp");
    std::fs::write(&others, "precious").expect("written");
    let file = create_file(&path, Overwrite::Nothing).expect("created");
    let mut generations =
        Generations::new(TwoFiles::new(&path), file, &meta(), &begin(), 40_000).expect("begun");
    let names = || names_in(folder.path());
    let records: Vec<Record> = (0..10_000).map(likely_record).collect();
    for part in records.chunks(100) {
        write(&mut generations, part);
        assert!(names().iter().all(|name| name.metadata().expect("there").len() <= 20_000));
    }
    assert_eq!(names(), [folder.path().join("a-older-2.lp"), others.clone(), path.clone()]);
    let kept = generations.finish(end()).expect("finished");
    assert_eq!(names(), [others.clone(), path.clone()]);
    assert_eq!(std::fs::read_to_string(&others).expect("there"), "precious");
    let (recording, info) = crate::read(&path).expect("read");
    assert_eq!((info.damage, info.events), (None, kept.summary.events));
    assert!(records.ends_with(&recording.events));
}

/// Stacks of a file must not stay in memory until the next file begins.
#[test]
fn stacks_that_no_sample_may_name_any_more_are_forgotten() {
    let disk = Memory::with_room(usize::MAX);
    let mut generations =
        Generations::new(disk.clone(), disk.clone(), &meta(), &begin(), 1 << 30).expect("begun");
    let note = |generations: &mut Generations<Memory>, id: u32| {
        let kind = NoteKind::Stack { id, pid: 7, frames: vec![1], cut: false };
        generations.note(&Note { time_ns: u64::from(id), kind }).expect("noted");
    };
    let most = 2 * STACKS_AT_ONCE;
    (1..=most + 1).for_each(|id| note(&mut generations, id));
    let bytes = generations.carried_bytes();
    (most + 2..2 * most).for_each(|id| note(&mut generations, id));
    assert_eq!(generations.carried_bytes(), bytes);
}

/// It is no failure if someone has removed the older file, or if another program's file has the older file's usual
/// name.
#[test]
fn an_older_file_that_is_gone_or_spoiled_leaves_the_newer_one_whole() {
    for is_gone in [true, false] {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a.lp");
        std::fs::write(folder.path().join("a-older.lp"), "precious").expect("written");
        let file = create_file(&path, Overwrite::Nothing).expect("created");
        let mut generations =
            Generations::new(TwoFiles::new(&path), file, &meta(), &begin(), 40_000).expect("begun");
        let records: Vec<Record> = (0..10_000).map(likely_record).collect();
        records.chunks(100).for_each(|part| write(&mut generations, part));
        let older = folder.path().join("a-older-2.lp");
        assert_eq!(generations.older(), Some(older.clone()));
        let expected = if is_gone {
            std::fs::remove_file(&older).expect("removed");
            Older::Removed
        } else {
            // An empty file cannot be joined.
            std::fs::write(&older, "").expect("emptied");
            Older::Apart(older)
        };
        let kept = generations.finish(end()).expect("no failure");
        assert_eq!((kept.is_cut, kept.older), (true, expected));
        let (recording, info) = crate::read(&path).expect("read");
        assert_eq!((info.damage, info.events), (None, kept.summary.events));
        assert!(records.ends_with(&recording.events));
    }
}

/// The stacks of this program are all different. Stacks that are not written yet must count for the size, and the
/// stacks with which the next file begins must leave room in it.
#[test]
fn many_different_stacks_do_not_end_a_recording_with_max_size() {
    let records: Vec<Record> = (0..3_000).map(likely_record).collect();
    let (disk, mut id) = (Memory::with_room(usize::MAX), 0u32);
    let mut generations =
        Generations::new(disk.clone(), disk.clone(), &meta(), &begin(), 200_000).expect("begun");
    for part in records.chunks(100) {
        for _ in 0..100 {
            id += 1;
            // Frames that do not compress.
            let frame = |n: u64| {
                let mixed = (u64::from(id) << 8 | n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
            };
            let frames = (0..60).map(frame).collect();
            let kind = NoteKind::Stack { id, pid: 7, frames, cut: false };
            generations.note(&Note { time_ns: time(&part[0]), kind }).expect("there is room");
        }
        let mut chunks = EventChunks::default();
        part.iter().for_each(|record| assert_eq!(chunks.push(record), Ok(None)));
        generations.events(chunks.take().expect("some")).expect("there is room");
    }
    let end = WindowEnd { end_ns: records.last().map_or(0, time), ..end() };
    assert_eq!(generations.finish(end).expect("finished").older, Older::Joined);
    let state = disk.0.borrow();
    let (recording, info) = opened(&state.newer).expect("read");
    assert_eq!(info.damage, None);
    assert!(records.ends_with(&recording.events) && state.turns > 3);
    let last = recording.notes.iter().rev().find_map(|note| match note.kind {
        NoteKind::Stack { id, .. } => Some(id),
        _ => None,
    });
    assert_eq!(last, Some(id), "the newest");
}
