//! Tests of the ring that keeps the last stretch of a recording in memory.

use super::{end, facts, likely_record, meta, opened};
use crate::v1::{Disk, EventChunks, Ring, Writer};
use engine::event::{Facts, Note, NoteKind, Recording, ThreadFact, WindowEnd};
use probe_abi::{Header, Kind, Record, Sample};
use proptest::prelude::*;
use std::io;

const MIB: u64 = 1 << 20;

fn begin() -> Facts {
    Facts { start_ns: 1_000_000_000, ..facts() }
}

/// Adds records to the ring, with `per_chunk` records in a chunk.
fn push(ring: &mut Ring, records: &[Record], per_chunk: usize) {
    for records in records.chunks(per_chunk) {
        let mut chunks = EventChunks::default();
        for record in records {
            if let Some(full) = chunks.push(record).expect("of its kind") {
                ring.events(full).expect("packed");
            }
        }
        if let Some(rest) = chunks.take() {
            ring.events(rest).expect("packed");
        }
    }
}

fn ends_at(end_ns: u64) -> WindowEnd {
    WindowEnd { end_ns, ..end() }
}

fn saved(ring: &Ring, end_ns: u64) -> Recording {
    let mut bytes = Vec::new();
    let writer = Writer::new(&mut bytes, &meta()).expect("started");
    let summary = ring.save(writer, None, ends_at(end_ns)).expect("saved");
    let (recording, info) = opened(&bytes).expect("read");
    assert_eq!((info.damage, info.events), (None, summary.events));
    assert_eq!(summary.bytes, bytes.len() as u64);
    recording
}

fn time(record: &Record) -> u64 {
    record.header().time_ns
}

#[test]
fn a_ring_has_exactly_the_last_stretch_and_can_be_saved_again() {
    let records: Vec<Record> = (0..20_000).map(likely_record).collect();
    let span_ns = 5_000_000;
    let mut ring = Ring::new(&begin(), span_ns, MIB).expect("begun");
    for (number, part) in records.chunks(4_000).enumerate() {
        push(&mut ring, part, 700);
        let end_ns = part.last().map_or(0, time);
        let start_ns = end_ns - span_ns;
        let recording = saved(&ring, end_ns);
        let expected: Vec<Record> = records[..(number + 1) * 4_000]
            .iter()
            .filter(|record| time(record) >= start_ns)
            .copied()
            .collect();
        assert_eq!((recording.facts.start_ns, ring.start_ns(end_ns)), (start_ns, start_ns));
        assert!(recording.events == expected, "{} of {}", recording.events.len(), expected.len());
        assert_eq!(recording.facts.functions, facts().functions);
        assert!(!ring.is_cut(end_ns));
    }
}

#[test]
fn a_ring_longer_than_the_recording_has_all_of_it() {
    let mut ring = Ring::new(&begin(), u64::MAX, MIB).expect("begun");
    let recording = saved(&ring, 1_000_000_001);
    assert_eq!((recording.events.len(), recording.facts.start_ns), (0, 1_000_000_000));
    assert_eq!(recording.facts.threads, facts().threads);
    let records: Vec<Record> = (0..3_000).map(likely_record).collect();
    push(&mut ring, &records, 700);
    let recording = saved(&ring, u64::MAX);
    assert_eq!(recording.events, records);
    assert_eq!(recording.facts.threads, facts().threads);
}

#[test]
fn records_that_are_not_in_a_chunk_yet_are_saved_with_the_ring() {
    let records: Vec<Record> = (0..1_000).map(likely_record).collect();
    let mut ring = Ring::new(&begin(), 500_000, MIB).expect("begun");
    push(&mut ring, &records[..600], 100);
    let mut chunks = EventChunks::default();
    records[600..].iter().for_each(|record| assert_eq!(chunks.push(record), Ok(None)));
    let end_ns = time(&records[999]);
    let mut bytes = Vec::new();
    let writer = Writer::new(&mut bytes, &meta()).expect("started");
    ring.save(writer, chunks.draft(), ends_at(end_ns)).expect("saved");
    let (recording, _) = opened(&bytes).expect("read");
    assert_eq!(recording.facts.start_ns, end_ns - 500_000);
    assert_eq!(recording.events.last(), records.last());
    assert!(recording.events.iter().all(|record| time(record) >= end_ns - 500_000));
}

/// A file that begins at a snapshot looks as if recording had begun at that instant.
#[test]
fn a_saved_ring_begins_at_a_snapshot() {
    let records: Vec<Record> = (0..10_000).map(likely_record).collect();
    let mut ring = Ring::new(&begin(), 1, MIB).expect("begun");
    let thread = |tid| ThreadFact { tid, pid: 7, ..ThreadFact::default() };
    for (number, part) in records.chunks(1_000).enumerate() {
        let seen =
            Facts { start_ns: time(&part[500]), threads: vec![thread(number as u32)], ..Facts::default() };
        ring.snapshot(&seen);
        push(&mut ring, part, 300);
    }
    let start_ns = time(&records[9_500]);
    let recording = saved(&ring, start_ns + 1);
    assert_eq!(recording.facts.start_ns, start_ns);
    assert_eq!(recording.facts.threads, [thread(9)]);
    assert_eq!(recording.events, records[9_500..]);
    assert!(ring.bytes() < 20_000, "what is older is gone: {} bytes", ring.bytes());
}

/// The ring is tested with and without snapshots.
#[test]
fn a_ring_never_takes_more_memory_than_its_limit_and_is_cut() {
    let records: Vec<Record> = (0..60_000).map(likely_record).collect();
    for with_snapshots in [false, true] {
        let most_bytes = 20_000;
        let mut ring = Ring::new(&begin(), u64::MAX / 2, most_bytes).expect("begun");
        for part in records.chunks(2_000) {
            push(&mut ring, part, 500);
            if with_snapshots {
                let start_ns = part.last().map_or(0, time) + 1;
                ring.snapshot(&Facts { start_ns, ..Facts::default() });
            }
            assert!(ring.bytes() <= most_bytes, "{} bytes", ring.bytes());
        }
        let end_ns = records.last().map_or(0, time);
        assert!(ring.is_cut(end_ns) && !ring.is_cut(u64::MAX));
        let recording = saved(&ring, end_ns);
        assert!(recording.events.len() > 3_000, "{}", recording.events.len());
        assert!(records.ends_with(&recording.events));
        assert_eq!(recording.facts.start_ns, ring.start_ns(end_ns));
    }
}

#[test]
fn a_ring_without_snapshots_forgets_old_records_too() {
    let mut ring = Ring::new(&begin(), 1_000_000_000, 64 * MIB).expect("begun");
    let mut records: Vec<Record> = Vec::new();
    for second in 1..100u64 {
        let header = Header {
            time_ns: second * 1_000_000_000,
            sequence: second as u32,
            cpu: 0,
            kind: Kind::Sample as u8,
            context: 0,
            tid: 7,
            pid: 7,
        };
        let record = Record::Sample(Sample { header, stack: 0, reason: 0, flags: 0, reserved: 0 });
        records.push(record);
        push(&mut ring, &[record], 1);
    }
    let recording = saved(&ring, 99_000_000_000);
    assert_eq!(recording.events, records[97..]);
    assert!(ring.bytes() < 40 * 200, "{} bytes", ring.bytes());
}

#[test]
fn stacks_of_a_ring_s_samples_are_saved_with_it() {
    let mut ring = Ring::new(&begin(), 10_000, MIB).expect("begun");
    let stack = |id: u32| Note {
        time_ns: 1_000_000_000 + u64::from(id),
        kind: NoteKind::Stack { id, pid: 7, frames: vec![u64::from(id)], cut: false },
    };
    ring.note(&stack(1));
    let records: Vec<Record> = (0..5_000).map(likely_record).collect();
    push(&mut ring, &records, 500);
    ring.note(&stack(2));
    let recording = saved(&ring, time(&records[4_999]));
    assert_eq!(recording.notes, [stack(1), stack(2)], "a sample may name an old one");
}

/// A disk that is full after 2,000 bytes.
struct Full;

impl Disk for Full {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if at + bytes.len() as u64 > 2_000 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn cut(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn has_name(&self) -> io::Result<bool> {
        Ok(true)
    }
}

#[test]
fn a_full_disk_while_saving_leaves_the_ring_as_it_was() {
    let records: Vec<Record> = (0..9_000).map(likely_record).collect();
    let mut ring = Ring::new(&begin(), u64::MAX, MIB).expect("begun");
    push(&mut ring, &records, 500);
    let end_ns = time(&records[8_999]);
    let writer = Writer::new(Full, &meta()).expect("started");
    let error = ring.save(writer, None, ends_at(end_ns)).expect_err("no room");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(saved(&ring, end_ns).events, records);
}

proptest! {
    /// The times jump, chunks are out of order, and snapshots have any time.
    #[test]
    fn a_ring_with_any_times_can_be_saved(
        steps in proptest::collection::vec((any::<u64>(), 0u64..30_000_000_000, any::<bool>()), 1..40),
        span_ns in prop_oneof![Just(1u64), 1u64..100_000_000_000, Just(u64::MAX)],
        most_bytes in 0u64..20_000,
        end_ns in any::<u64>(),
    ) {
        let mut ring = Ring::new(&begin(), span_ns, most_bytes).expect("begun");
        let mut now = 1_000_000_000u64;
        for (number, (jump, step, is_snapshot)) in steps.iter().enumerate() {
            now = if number % 7 == 6 { *jump } else { now.saturating_add(*step) };
            if *is_snapshot {
                ring.snapshot(&Facts { start_ns: now, ..Facts::default() });
            }
            let mut bytes = likely_record(number as u64).as_bytes().to_vec();
            bytes[..8].copy_from_slice(&now.to_le_bytes());
            push(&mut ring, &[Record::decode(&bytes).expect("as long")], 1);
        }
        for end_ns in [now, end_ns] {
            saved(&ring, end_ns);
        }
    }
}
