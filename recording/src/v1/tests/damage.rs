//! Tests of cut and damaged files: the reader reads a prefix, and reports what is missing.

use super::{likely_record, opened, session};
use crate::v1::chunk::ChunkHeader;
use crate::v1::{FileHeader, MAGIC};
use crate::{DamageKind, SessionError, is_session};
use probe_abi::Record;
use proptest::prelude::*;

proptest! {
    #[test]
    fn flipped_bits_in_a_session_never_panic_and_are_noticed(
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
    fn random_bytes_after_a_valid_header_never_panic(tail in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut bytes = FileHeader::CURRENT.encode().to_vec();
        bytes.extend_from_slice(&tail);
        let (recording, info) = opened(&bytes).expect("a header is enough to begin");
        prop_assert!(recording.events.is_empty());
        prop_assert!(info.damage.is_some());
    }
}

#[test]
fn a_session_cut_at_any_byte_gives_the_records_before_the_cut() {
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
                        // The missing bytes do exist in the complete file.
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
fn a_damaged_chunk_ends_the_reading_and_the_rest_is_counted() {
    let records: Vec<Record> = (0..100).map(likely_record).collect();
    let mut bytes = session(&records, 10);
    // The fourth chunk of events, after meta and facts.
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
    // Six chunks of events, stacks, cut stacks, notes, end and index.
    assert_eq!((damage.unread_chunks, damage.unread_events), (11, 60));
    let text = damage.to_string();
    assert!(text.contains("11 whole chunks with 60 events"), "{text}");
}

#[test]
fn a_missing_chunk_is_noticed_by_the_index() {
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
fn bytes_that_are_no_session_give_different_errors() {
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
