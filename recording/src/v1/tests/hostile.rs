//! Tests with files of a hostile writer: all checksums are right and everything else is wrong.

use super::{facts, likely_record, notes, opened, session};
use crate::v1::chunk::{ChunkHeader, ChunkKind, Unpacker};
use crate::v1::index::{self, Entry};
use crate::v1::reader::payload;
use crate::v1::room::Room;
use crate::v1::{self, FileHeader, FileLimits, columns, cut};
use crate::{DamageKind, SessionInfo, outline};
use engine::event::NoteKind;
use probe_abi::Record;
use proptest::prelude::*;
use std::io::Cursor;

proptest! {
    #[test]
    fn random_columns_never_panic(payload in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut records = Vec::new();
        if columns::decode(&payload, &mut records).is_err() {
            prop_assert!(records.is_empty());
        }
        prop_assert!(records.len() <= payload.len());
    }
}

/// A chunk as a hostile writer makes it: the checksums are right and everything else is wrong.
fn chunk(kind: u16, flags: u16, raw_bytes: u32, items: u32, payload: &[u8]) -> Vec<u8> {
    let header = ChunkHeader {
        kind,
        flags,
        stored_bytes: payload.len() as u32,
        raw_bytes,
        items,
        first_ns: 0,
        last_ns: 0,
        payload_crc: crc32fast::hash(payload),
    };
    [&header.encode()[..], payload].concat()
}

fn hostile(chunks: &[Vec<u8>]) -> SessionInfo {
    let mut bytes = FileHeader::CURRENT.encode().to_vec();
    bytes.extend(chunks.concat());
    opened(&bytes).expect("damage is no error").1
}

fn reason(info: SessionInfo) -> &'static str {
    match info.damage.expect("damage").kind {
        DamageKind::Corrupt { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn impossible_sizes_of_chunks_are_refused_before_allocating() {
    let events = ChunkKind::Events as u16;
    let bomb = zstd::bulk::compress(&vec![0; 16 << 20], 19).expect("packed");
    assert!(bomb.len() < 4_000);
    let cases = [
        (chunk(events, 1, u32::MAX, 1, b"x"), "a chunk claims to be larger than any chunk may be"),
        (chunk(events, 1, 16 << 20, 1, &bomb), "a chunk claims to unpack to more than any chunk may"),
        (chunk(events, 1, 4 << 10, 1, &bomb), "a chunk does not unpack"),
        (chunk(events, 0, 99, 1, b"x"), "a chunk's sizes contradict each other"),
        (chunk(events, 0, 1, u32::MAX, b"x"), "a chunk claims more records than any chunk may hold"),
        (chunk(events, 0, 1, 5, &[5]), "a chunk of events does not decode"),
        (chunk(events, 0, 1, 5, &[0]), "a chunk holds another number of events than it says"),
        // 2^63 records.
        (
            chunk(events, 0, 10, 5, b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
            "a chunk's sizes contradict each other",
        ),
        (
            chunk(events, 0, 9, 5, b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
            "a chunk of events does not decode",
        ),
        (chunk(ChunkKind::Facts as u16, 0, 2, 1, b"42"), "a chunk does not hold what its kind says"),
        (chunk(ChunkKind::Index as u16, 0, 3, 1, b"abc"), "the index does not decode"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(reason(hostile(&[bytes])), expected);
    }
}

#[test]
fn deeply_nested_json_is_refused() {
    let nested = "[".repeat(1 << 20);
    let info = hostile(&[chunk(ChunkKind::Notes as u16, 0, 1 << 20, 1, nested.as_bytes())]);
    assert_eq!(reason(info), "a chunk does not hold what its kind says");
}

#[test]
fn a_million_empty_chunks_are_skipped() {
    let one = chunk(900, 0, 0, 0, b"");
    let info = hostile(&[one.repeat(1_000_000)]);
    assert_eq!((info.chunks, info.unknown_chunks), (1_000_000, 1_000_000));
}

#[test]
fn a_million_chunks_after_a_damaged_one_are_counted() {
    let mut bad = chunk(900, 0, 1, 0, b"x");
    bad[44] = b'y';
    let one = chunk(900, 0, 0, 0, b"");
    let info = hostile(&[bad, b"LPckLPck".repeat(500_000), one.repeat(500_000)]);
    assert_eq!(info.damage.expect("damage").unread_chunks, 500_000);
}

#[test]
fn chunks_of_unknown_kinds_are_skipped() {
    let records: Vec<Record> = (0..10).map(likely_record).collect();
    let whole = session(&records, 10);
    let first = FileHeader::BYTES;
    let mut bytes = whole[..first].to_vec();
    bytes.extend(chunk(4_711, 0, 5, 3, b"later"));
    bytes.extend(&whole[first..]);
    let (recording, info) = opened(&bytes).expect("read");
    assert_eq!((recording.events.len(), info.unknown_chunks), (10, 1));
}

#[test]
fn records_of_unknown_kinds_are_counted() {
    // One record of kind 200 with 0 in all other fields: one byte in each of the header's columns.
    let mut payload = vec![1];
    for column in 0..7u8 {
        match column {
            0 => payload.extend([0, 2, 200, 1]),
            5 => payload.extend([5, 2, 1, 0]),
            _ => payload.extend([column, 1, 0]),
        }
    }
    let length = payload.len() as u32;
    let info = hostile(&[chunk(ChunkKind::Events as u16, 0, length, 1, &payload)]);
    assert_eq!((info.events, info.unknown_records), (0, 1));
    assert_eq!(info.damage.expect("no end").kind, DamageKind::NoEnd);
}

#[test]
fn events_beyond_the_limit_are_left_out_and_counted() {
    let records: Vec<Record> = (0..100).map(likely_record).collect();
    let bytes = session(&records, 10);
    let mut source = Cursor::new(&bytes);
    source.set_position(FileHeader::BYTES as u64);
    let size = bytes.len() as u64;
    let limits = FileLimits { events: 35, ..FileLimits::FILE };
    let (recording, info) = v1::read(source, &FileHeader::CURRENT, size, limits).expect("read");
    assert_eq!(recording.events, &records[..30]);
    let damage = info.damage.expect("something is left out");
    assert_eq!(damage.kind, DamageKind::TooLarge);
    // Seven chunks of events, stacks, cut stacks, notes, end and index.
    assert_eq!((damage.unread_chunks, damage.unread_events), (12, 70));
}

/// The lists in notes must count, too. Otherwise a file of 64 MB could take more than 32 GB of memory.
#[test]
fn notes_with_endless_lists_are_refused_as_too_large() {
    let zeros = |count: usize| "0,".repeat(count) + "0";
    let note = format!(
        r#"[{{"time_ns":1,"kind":{{"probes_off":{{"functions":[{}],"rates":[{}]}}}}}}]"#,
        zeros(100),
        zeros(100_000)
    );
    let raw_bytes = note.len() as u32;
    let one = chunk(ChunkKind::Notes as u16, 0, raw_bytes, 1, note.as_bytes());
    let mut bytes = FileHeader::CURRENT.encode().to_vec();
    bytes.extend(one.repeat(5));
    let mut source = Cursor::new(&bytes);
    source.set_position(FileHeader::BYTES as u64);
    let limits = FileLimits { events: 1, bytes: 2 * u64::from(raw_bytes), ..FileLimits::FILE };
    let (recording, info) = v1::read(source, &FileHeader::CURRENT, bytes.len() as u64, limits).expect("read");
    assert_eq!(recording.notes.len(), 2);
    let damage = info.damage.expect("damage");
    assert_eq!((damage.kind, damage.unread_chunks), (DamageKind::TooLarge, 3));
}

#[test]
fn facts_stacks_and_notes_share_one_limit() {
    let bytes = session(&[likely_record(0)], 1);
    let read = |bytes_limit| {
        let mut source = Cursor::new(&bytes);
        source.set_position(FileHeader::BYTES as u64);
        let limits = FileLimits { events: 1, bytes: bytes_limit, ..FileLimits::FILE };
        v1::read(source, &FileHeader::CURRENT, bytes.len() as u64, limits).expect("read")
    };
    let size = |json: Vec<u8>| json.len() as u64;
    let mut facts_bytes = 0;
    let mut room = Room::of(FileLimits::FILE);
    cut::facts(&facts(), &mut room, &mut |_, json| {
        facts_bytes += size(json);
        Ok(())
    })
    .expect("JSON");
    let (stacks, others): (Vec<_>, Vec<_>) =
        notes().into_iter().partition(|note| matches!(note.kind, NoteKind::Stack { .. }));
    let stack_bytes: u64 = stacks.iter().map(|_| 64 + 8 * 3).sum();
    let all_bytes = facts_bytes + stack_bytes + size(serde_json::to_vec(&others).expect("JSON"));
    for (limit, functions, notes, whole) in [
        (all_bytes, 1, 4, true),
        (all_bytes - 1, 1, 2, false),
        (facts_bytes + stack_bytes - 1, 1, 0, false),
        (facts_bytes - 1, 0, 0, false),
    ] {
        let (recording, info) = read(limit);
        let counts = (recording.facts.functions.len(), recording.notes.len());
        assert_eq!(counts, (functions, notes), "{limit} bytes");
        assert_eq!(info.damage.map(|damage| damage.kind), (!whole).then_some(DamageKind::TooLarge));
    }
}

/// A file whose index lists `others` after the first chunk. The listed chunks may be anywhere in `bytes`.
fn listed(bytes: Vec<u8>, others: &[Entry]) -> Vec<u8> {
    let begin = FileHeader::BYTES as u64;
    let first = Entry { kind: 900, offset: begin, ..Entry::default() };
    let mut file = [&FileHeader::CURRENT.encode()[..], &chunk(900, 0, 0, 0, b""), &bytes].concat();
    let payload = index::encode(ChunkKind::Index, &[&[first], others].concat(), file.len() as u64);
    file.extend(chunk(ChunkKind::Index as u16, 0, payload.len() as u32, 0, &payload));
    file
}

/// Overlapping chunks must be refused. Otherwise the bytes that they share would be read once for each of them.
#[test]
fn overlapping_chunks_in_an_index_are_refused() {
    let begin = (FileHeader::BYTES + ChunkHeader::BYTES) as u64;
    let inner = chunk(900, 0, 0, 0, b"");
    let outer = chunk(900, 0, inner.len() as u32, 0, &inner);
    let at = |offset| Entry { kind: 900, offset, ..Entry::default() };
    let over = [at(begin), at(begin + ChunkHeader::BYTES as u64)];
    for (entries, expected) in [(&over[..1], true), (&over[1..], true), (&over[..], false)] {
        let mut found =
            outline(Cursor::new(listed(outer.clone(), entries))).expect("a session").expect("an index");
        assert_eq!(found.without_events().expect("read").is_some(), expected, "{entries:?}");
    }
}

/// A listed chunk beyond the end of the file is not reported as an error of the system: the file is then read from its
/// start.
#[test]
fn a_listed_chunk_beyond_the_end_of_the_file_is_none() {
    let header = ChunkHeader::of(ChunkKind::Events, 0, (0, 0), (0, 1), b"x").expect("small");
    let file = [&header.encode()[..], b"x"].concat();
    let mut unpacker = Unpacker::new().expect("memory");
    for bytes in 0..=file.len() {
        let mut source = Cursor::new(&file[..bytes]);
        let found = payload(&mut source, &Entry::new(0, &header), &mut unpacker).expect("no error");
        assert_eq!(found.is_some(), bytes == file.len(), "{bytes} bytes");
    }
}
