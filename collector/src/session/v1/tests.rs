//! Whole files: what goes in comes out, and whatever is cut or damaged gives a prefix.

use super::chunk::{ChunkHeader, ChunkKind};
use super::{FileHeader, Limits, MAGIC, Writer};
use crate::session::{ClockAnchor, DamageKind, Meta, SessionError, SessionInfo, is_session, read_from};
use engine::event::{
    Facts, FunctionFact, GapReason, LossCounts, Note, NoteKind, ProcessFact, Recording, ThreadFact,
    ThreadState, WindowEnd,
};
use probe_abi::{Kind, Record};
use proptest::prelude::*;
use std::io::{self, Cursor, Write};

fn meta() -> Meta {
    Meta {
        longpole_version: "0.0.0-test".into(),
        abi_version: probe_abi::ABI_VERSION,
        kernel_release: "6.18.0".into(),
        host: "here".into(),
        clock: ClockAnchor { monotonic_ns: 5, realtime_ns: 1_700_000_000_000_000_000 },
        command: vec!["sort".into(), "-x".into()],
        pids: vec![7],
        ..Meta::default()
    }
}

/// Any record: random bytes of the right length with the right kind byte.
fn record() -> impl Strategy<Value = Record> {
    let kind = proptest::sample::select(Kind::ALL.to_vec());
    (kind, any::<[u8; 64]>()).prop_map(|(kind, mut bytes)| {
        bytes[14] = kind as u8;
        Record::decode(&bytes).expect("64 bytes hold any record")
    })
}

/// A record as a kernel writes them: small numbers, time going on.
fn likely_record(i: u64) -> Record {
    let mut bytes = [0u8; 64];
    let kind = Kind::ALL[(i * 7 % 11) as usize];
    // Not too regular: times never are.
    let jitter = (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 1_500;
    bytes[..8].copy_from_slice(&(1_000_000_000 + i * 1_777 + jitter).to_le_bytes());
    bytes[8..12].copy_from_slice(&((i / 2) as u32).to_le_bytes());
    bytes[12] = (i % 2) as u8;
    bytes[14] = kind as u8;
    bytes[16..20].copy_from_slice(&(4_000 + (i % 5) as u32).to_le_bytes());
    bytes[20..24].copy_from_slice(&4_000u32.to_le_bytes());
    bytes[24..28].copy_from_slice(&(4_000 + (i % 3) as u32).to_le_bytes());
    Record::decode(&bytes).expect("64 bytes hold any record")
}

fn facts() -> Facts {
    Facts {
        start_ns: 99,
        processes: vec![ProcessFact { pid: 7, comm: "sort".into(), executable: "/bin/sort".into() }],
        threads: vec![ThreadFact { tid: 7, pid: 7, state: ThreadState::Running, ..ThreadFact::default() }],
        functions: vec![FunctionFact { id: 1, name: "par_sort".into(), ..FunctionFact::default() }],
        end: None,
    }
}

fn notes() -> Vec<Note> {
    vec![
        Note { time_ns: 3, kind: NoteKind::ProbesOff { functions: vec![1], rates: vec![70_000] } },
        Note {
            time_ns: 4,
            kind: NoteKind::Gap { pid: 0, cpu: Some(1), until_ns: 9, lost: 5, reason: GapReason::RingFull },
        },
    ]
}

fn end() -> WindowEnd {
    WindowEnd {
        end_ns: 1_000,
        threads: facts().threads,
        loss: LossCounts { dropped: 5, ..LossCounts::default() },
    }
}

/// A session of some chunks: a flush after every `per_chunk` records.
fn session(records: &[Record], per_chunk: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &meta()).expect("started");
    writer.facts(&facts()).expect("facts");
    for chunk in records.chunks(per_chunk) {
        for record in chunk {
            writer.push(record).expect("pushed");
        }
        writer.flush().expect("flushed");
    }
    for note in notes() {
        writer.note(&note).expect("noted");
    }
    let summary = writer.finish(end()).expect("finished");
    assert_eq!(summary.bytes, bytes.len() as u64);
    assert_eq!(summary.events, records.len() as u64);
    bytes
}

fn opened(bytes: &[u8]) -> Result<(Recording, SessionInfo), SessionError> {
    read_from(Cursor::new(bytes))
}

proptest! {
    #[test]
    fn any_records_come_back_byte_for_byte(
        records in proptest::collection::vec(record(), 0..300),
        per_chunk in 1usize..100,
    ) {
        let bytes = session(&records, per_chunk);
        let (recording, info) = opened(&bytes).expect("read");
        prop_assert_eq!(info.damage.clone(), None);
        prop_assert_eq!(info.meta, Some(meta()));
        prop_assert_eq!(info.events, records.len() as u64);
        prop_assert_eq!(recording.events.len(), records.len());
        for (read, written) in recording.events.iter().zip(&records) {
            prop_assert_eq!(read.as_bytes(), written.as_bytes());
        }
        prop_assert_eq!(recording.facts, Facts { end: Some(end()), ..facts() });
        prop_assert_eq!(recording.notes, notes());
    }

    #[test]
    fn flipped_bits_never_panic_and_never_pass_unnoticed(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..4),
    ) {
        let records: Vec<Record> = (0..40).map(likely_record).collect();
        let whole = session(&records, 8);
        let mut bytes = whole.clone();
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        if let Ok((recording, info)) = opened(&bytes) {
            prop_assert!(recording.events.len() <= records.len());
            prop_assert_eq!(&recording.events[..], &records[..recording.events.len()]);
            prop_assert!(bytes == whole || info.damage.is_some());
        }
    }

    #[test]
    fn random_bytes_behind_a_good_header_never_panic(tail in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut bytes = FileHeader::CURRENT.encode().to_vec();
        bytes.extend_from_slice(&tail);
        let (recording, info) = opened(&bytes).expect("a header is enough to begin");
        prop_assert!(recording.events.is_empty());
        prop_assert!(info.damage.is_some());
    }

    #[test]
    fn random_columns_never_panic(payload in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut records = Vec::new();
        if super::columns::decode(&payload, &mut records).is_err() {
            prop_assert!(records.is_empty());
        }
        prop_assert!(records.len() <= payload.len());
    }
}

#[test]
fn cut_at_every_byte_gives_the_records_before_the_cut() {
    let records: Vec<Record> = (0..60).map(likely_record).collect();
    let whole = session(&records, 9);
    let mut most = 0;
    for length in 0..whole.len() {
        let cut = &whole[..length];
        match opened(cut) {
            Err(SessionError::Empty) => assert_eq!(length, 0),
            Err(SessionError::HeaderCut { bytes }) => {
                assert_eq!(bytes, length as u64);
                assert!(length < FileHeader::BYTES);
            }
            Err(error) => panic!("cut to {length} bytes: {error}"),
            Ok((recording, info)) => {
                assert_eq!(&recording.events[..], &records[..recording.events.len()], "cut to {length}");
                assert!(recording.events.len() >= most, "cut to {length}: fewer events than before");
                most = recording.events.len();
                let damage = info.damage.expect("something is missing");
                assert_eq!(damage.at_byte + damage.unread_bytes, length as u64);
                match damage.kind {
                    DamageKind::NoEnd => assert_eq!(damage.unread_bytes, 0),
                    DamageKind::Cut { missing_bytes } => {
                        assert!(missing_bytes > 0);
                        // What it says is missing is really there in the whole file.
                        assert!(length as u64 + missing_bytes <= whole.len() as u64);
                    }
                    other => panic!("cut to {length}: {other:?}"),
                }
            }
        }
    }
    assert_eq!(most, records.len());
}

#[test]
fn a_damaged_chunk_in_the_middle_ends_the_reading_and_the_rest_is_counted() {
    let records: Vec<Record> = (0..100).map(likely_record).collect();
    let mut bytes = session(&records, 10);
    // The fourth chunk of events: behind meta and facts.
    let mut at = FileHeader::BYTES;
    for _ in 0..5 {
        let header = ChunkHeader::decode(bytes[at..].first_chunk().expect("a header")).expect("a chunk");
        at += ChunkHeader::BYTES + header.stored_bytes as usize;
    }
    bytes[at + ChunkHeader::BYTES + 3] ^= 0x40;
    let (recording, info) = opened(&bytes).expect("read");
    assert_eq!(recording.events, &records[..30]);
    let damage = info.damage.expect("damage");
    assert_eq!(damage.at_byte, at as u64);
    assert_eq!(damage.unread_bytes, (bytes.len() - at) as u64);
    // Six chunks of events, notes, end and index.
    assert_eq!((damage.unread_chunks, damage.unread_events), (9, 60));
    let text = damage.to_string();
    assert!(text.contains("9 whole chunks with 60 events"), "{text}");
}

#[test]
fn a_chunk_taken_out_is_noticed_by_the_index() {
    let records: Vec<Record> = (0..30).map(likely_record).collect();
    let mut bytes = session(&records, 10);
    let mut at = FileHeader::BYTES;
    let mut length = 0;
    for _ in 0..4 {
        at += length;
        let header = ChunkHeader::decode(bytes[at..].first_chunk().expect("a header")).expect("a chunk");
        length = ChunkHeader::BYTES + header.stored_bytes as usize;
    }
    bytes.drain(at..at + length);
    let (recording, info) = opened(&bytes).expect("read");
    assert_eq!(recording.events.len(), 20);
    let damage = info.damage.expect("damage").to_string();
    assert!(damage.contains("chunks are missing"), "{damage}");
}

#[test]
fn what_is_no_session_is_told_apart() {
    let newer = FileHeader { major: 2, ..FileHeader::CURRENT }.encode();
    assert!(matches!(opened(&newer), Err(SessionError::Newer { major: 2 })));
    let layout = FileHeader { abi_version: 77, ..FileHeader::CURRENT }.encode();
    assert!(matches!(opened(&layout), Err(SessionError::Layout { found: 77, .. })));
    let mut corrupt = FileHeader::CURRENT.encode();
    corrupt[9] ^= 1;
    assert!(matches!(opened(&corrupt), Err(SessionError::HeaderCorrupt)));
    assert!(matches!(opened(b"{}"), Err(SessionError::Foreign)));
    assert!(matches!(opened(b"\x7fELF and so on, more than a header"), Err(SessionError::Foreign)));
    assert!(matches!(opened(b""), Err(SessionError::Empty)));
    assert!(is_session(&MAGIC) && is_session(&MAGIC[..3]) && !is_session(b"") && !is_session(b"{"));
}

/// A chunk as a hostile writer makes them: checksums right, everything else wrong.
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
fn lies_about_sizes_are_refused_before_anything_is_allocated() {
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
fn a_million_empty_chunks_are_read_in_passing() {
    let one = chunk(900, 0, 0, 0, b"");
    let info = hostile(&[one.repeat(1_000_000)]);
    assert_eq!((info.chunks, info.unknown_chunks), (1_000_000, 1_000_000));
}

#[test]
fn a_million_chunks_behind_a_damaged_one_are_counted_in_passing() {
    let mut bad = chunk(900, 0, 1, 0, b"x");
    bad[44] = b'y';
    let one = chunk(900, 0, 0, 0, b"");
    let info = hostile(&[bad, b"LPckLPck".repeat(500_000), one.repeat(500_000)]);
    assert_eq!(info.damage.expect("damage").unread_chunks, 500_000);
}

#[test]
fn unknown_chunks_are_skipped() {
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
    // One record, kind 200, everything else 0: one byte in each of the header's columns.
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

/// A disk that is full after some bytes.
struct SmallDisk {
    bytes: Vec<u8>,
    room: usize,
}

impl Write for &mut SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(self.room);
        if fits == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(&bytes[..fits]);
        self.room -= fits;
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_leaves_a_readable_prefix() {
    let records: Vec<Record> = (0..200).map(likely_record).collect();
    let mut disk = SmallDisk { bytes: Vec::new(), room: 1_500 };
    let mut writer = Writer::new(&mut disk, &meta()).expect("started");
    let mut failed = None;
    for record in &records {
        if let Err(error) = writer.push(record).and_then(|()| writer.flush()) {
            failed = Some(error.kind());
            break;
        }
    }
    assert_eq!(failed, Some(io::ErrorKind::StorageFull));
    assert!(writer.push(&records[0]).is_err(), "a broken writer stays broken");
    drop(writer);
    assert_eq!(disk.bytes.len(), 1_500, "nothing was written after the failure");
    let (recording, info) = opened(&disk.bytes).expect("read");
    assert!(!recording.events.is_empty());
    assert_eq!(recording.events, &records[..recording.events.len()]);
    assert!(matches!(info.damage.expect("damage").kind, DamageKind::Cut { .. }));
}

#[test]
fn a_dropped_writer_keeps_what_it_held_back() {
    let records: Vec<Record> = (0..20).map(likely_record).collect();
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &meta()).expect("started");
    for record in &records {
        writer.push(record).expect("pushed");
    }
    drop(writer);
    let (recording, info) = opened(&bytes).expect("read");
    assert_eq!(recording.events, records);
    assert_eq!(info.damage.expect("no end").kind, DamageKind::NoEnd);
}

#[test]
fn a_record_that_contradicts_itself_is_refused_and_nothing_is_lost() {
    let good = likely_record(0);
    let Record::Switch(mut switch) = likely_record(0) else { panic!("the first likely record is a switch") };
    switch.header.kind = Kind::Exit as u8;
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &meta()).expect("started");
    writer.push(&good).expect("pushed");
    let error = writer.push(&Record::Switch(switch)).expect_err("refused");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    writer.finish(end()).expect("finished");
    assert_eq!(opened(&bytes).expect("read").0.events, [good]);
}

#[test]
fn more_events_than_fit_into_memory_are_left_out_and_counted() {
    let records: Vec<Record> = (0..100).map(likely_record).collect();
    let bytes = session(&records, 10);
    let mut source = Cursor::new(&bytes);
    source.set_position(FileHeader::BYTES as u64);
    let size = bytes.len() as u64;
    let limits = Limits { events: 35, json_bytes: Limits::JSON_BYTES };
    let (recording, info) = super::read(source, &FileHeader::CURRENT, size, limits).expect("read");
    assert_eq!(recording.events, &records[..30]);
    let damage = info.damage.expect("something is left out");
    assert_eq!(damage.kind, DamageKind::TooLarge);
    // Seven chunks of events, notes, end and index.
    assert_eq!((damage.unread_chunks, damage.unread_events), (10, 70));
}

/// Once, notes were counted, but not what they list: a file of 64 MB took more than 32 GB of memory.
#[test]
fn a_few_notes_with_endless_lists_are_too_large() {
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
    let limits = Limits { events: 1, json_bytes: 2 * u64::from(raw_bytes) };
    let (recording, info) =
        super::read(source, &FileHeader::CURRENT, bytes.len() as u64, limits).expect("read");
    assert_eq!(recording.notes.len(), 2);
    let damage = info.damage.expect("damage");
    assert_eq!((damage.kind, damage.unread_chunks), (DamageKind::TooLarge, 3));
}

#[test]
fn facts_and_notes_share_one_limit() {
    let bytes = session(&[likely_record(0)], 1);
    let read = |json_bytes| {
        let mut source = Cursor::new(&bytes);
        source.set_position(FileHeader::BYTES as u64);
        let limits = Limits { events: 1, json_bytes };
        super::read(source, &FileHeader::CURRENT, bytes.len() as u64, limits).expect("read")
    };
    let size = |json: Vec<u8>| json.len() as u64;
    let facts_bytes = size(serde_json::to_vec(&facts()).expect("JSON"));
    let all_bytes = facts_bytes + size(serde_json::to_vec(&notes()).expect("JSON"));
    for (limit, functions, notes, whole) in
        [(all_bytes, 1, 2, true), (all_bytes - 1, 1, 0, false), (facts_bytes - 1, 0, 0, false)]
    {
        let (recording, info) = read(limit);
        let counts = (recording.facts.functions.len(), recording.notes.len());
        assert_eq!(counts, (functions, notes), "{limit} bytes");
        assert_eq!(info.damage.map(|damage| damage.kind), (!whole).then_some(DamageKind::TooLarge));
    }
}

#[test]
fn likely_records_take_few_bytes() {
    let records: Vec<Record> = (0..50_000).map(likely_record).collect();
    let bytes = session(&records, 50_000);
    let per_event = bytes.len() as f64 / records.len() as f64;
    // 42 bytes each in the ring.
    assert!(per_event < 1.0, "{per_event} bytes per event");
    let (recording, _) = opened(&bytes).expect("read");
    assert_eq!(recording.events, records);
}
