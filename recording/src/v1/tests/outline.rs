//! Tests that read parts of a file by its index.

use super::*;
use crate::outline;

const CHUNKS: usize = 40;
const PER_CHUNK: usize = 25;

/// A session with a snapshot in every tenth chunk, and with an index of several parts.
fn with_snapshots() -> (Vec<u8>, Vec<Record>) {
    let records: Vec<Record> = (0..(CHUNKS * PER_CHUNK) as u64).map(likely_record).collect();
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &meta()).expect("started").with_parts_of(16);
    writer.facts(&facts()).expect("facts");
    for (number, chunk) in records.chunks(PER_CHUNK).enumerate() {
        if number % 10 == 5 {
            let thread = ThreadFact { tid: number as u32, pid: 7, ..ThreadFact::default() };
            let start_ns = chunk[0].header().time_ns;
            let seen = Facts { start_ns, threads: vec![thread], ..Facts::default() };
            writer.snapshot(&seen).expect("a snapshot");
        }
        chunk.iter().for_each(|record| writer.push(record).expect("pushed"));
        writer.flush().expect("flushed");
    }
    notes().iter().for_each(|note| writer.note(note).expect("noted"));
    writer.finish(end()).expect("finished");
    (bytes, records)
}

#[test]
fn an_index_in_parts_finds_every_chunk_of_events_and_every_snapshot() {
    let (bytes, records) = with_snapshots();
    let mut found = outline(Cursor::new(&bytes)).expect("a session").expect("an index");
    assert_eq!((found.events().len(), found.snapshots().len()), (CHUNKS, 4));
    for (number, chunk) in records.chunks(PER_CHUNK).enumerate() {
        let mut read = Vec::new();
        found.add_records(number, &mut read).expect("memory").expect("there");
        assert_eq!(read, chunk);
        let at = found.events().nth(number).expect("listed");
        let times = chunk.iter().map(|record| record.header().time_ns);
        assert_eq!((at.first_ns, at.last_ns), (times.clone().min().expect("one"), times.max().expect("one")));
    }
    let seen = found.snapshot(2).expect("memory").expect("there");
    assert_eq!((seen.threads[0].tid, Some(seen.start_ns)), (25, found.snapshots().nth(2)));
    assert_eq!(found.add_records(CHUNKS, &mut Vec::new()).expect("memory"), None);
    let (without, info) = found.without_events().expect("memory").expect("whole");
    let (all, all_info) = opened(&bytes).expect("a session");
    assert!(without.events.is_empty());
    assert_eq!((without.facts, without.notes), (all.facts, all.notes));
    assert_eq!(info, all_info, "as if all had been read");
}

/// A file without a complete index has no outline. The reader of complete files then reports the damage.
#[test]
fn a_file_without_its_whole_index_has_no_outline() {
    let (bytes, _) = with_snapshots();
    for cut in [0, 1, 15, 16, 100, bytes.len() / 2] {
        let found = outline(Cursor::new(&bytes[..bytes.len() - cut])).expect("a session");
        assert_eq!(found.is_some(), cut == 0, "{cut} bytes less");
    }
    // After a change of any byte, a reader must not return data that the writer did not write, and must not panic.
    let (all, _) = opened(&bytes).expect("a session");
    for at in (20..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x5a;
        let Ok(Some(mut found)) = outline(Cursor::new(&damaged)) else { continue };
        if let Ok(Some((without, _))) = found.without_events() {
            assert_eq!((&without.facts, &without.notes), (&all.facts, &all.notes), "byte {at}");
        }
        let mut read = Vec::new();
        let chunks = found.events().len();
        let whole = (0..chunks).all(|number| matches!(found.add_records(number, &mut read), Ok(Some(()))));
        assert!(!whole || read == all.events, "byte {at}");
    }
}
