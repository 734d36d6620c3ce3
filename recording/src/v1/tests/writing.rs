//! Tests of the writer: everything can be read again and takes few bytes, and a failure leaves a readable prefix.

use super::{end, facts, likely_record, meta, notes, opened, session};
use crate::DamageKind;
use crate::v1::{FileLimits, Writer, add_facts};
use engine::event::{Facts, FunctionFact, Note, NoteKind};
use probe_abi::{Kind, Record};
use proptest::prelude::*;
use std::io;

/// Any record: random bytes of the right length, with a valid kind byte.
fn record() -> impl Strategy<Value = Record> {
    let kind = proptest::sample::select(Kind::ALL.to_vec());
    (kind, any::<[u8; 64]>()).prop_map(|(kind, mut bytes)| {
        bytes[14] = kind as u8;
        Record::decode(&bytes).expect("64 bytes hold any record")
    })
}

proptest! {
    #[test]
    fn any_records_are_read_back_byte_for_byte(
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
}

#[test]
fn a_dropped_writer_writes_the_records_it_held() {
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
fn a_record_of_the_wrong_kind_is_refused_and_nothing_is_lost() {
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
fn likely_records_take_less_than_a_byte_each() {
    let records: Vec<Record> = (0..50_000).map(likely_record).collect();
    let bytes = session(&records, 50_000);
    let per_event = bytes.len() as f64 / records.len() as f64;
    // Each record has 42 bytes in the ring.
    assert!(per_event < 1.0, "{per_event} bytes per event");
    let (recording, _) = opened(&bytes).expect("read");
    assert_eq!(recording.events, records);
}

/// Long lists in notes and long names must not exceed the size of a chunk or of a draft. Such an error would end the
/// recording.
#[test]
fn large_facts_and_notes_do_not_end_a_recording() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &meta()).expect("started");
    let rates = NoteKind::ProbesOff { functions: vec![u32::MAX; 100_000], rates: vec![u64::MAX; 100_000] };
    let note = Note { time_ns: 9, kind: rates };
    let function =
        |id| FunctionFact { id, name: format!("{:01000}", u64::from(id) << 20), ..Default::default() };
    writer.push(&likely_record(0)).expect("pushed");
    for round in 0..2 {
        // The file has a draft, which the next chunk has to replace.
        writer.push(&likely_record(1 + round)).expect("pushed");
        writer.draft(None).expect("drafted");
        for _ in 0..12 {
            writer.note(&note).expect("noted");
        }
        writer.draft(None).expect("drafted");
        let from = 20_000 * round as u32;
        let functions: Vec<FunctionFact> = (from..from + 20_000).map(function).collect();
        writer.facts(&Facts { functions, ..Facts::default() }).expect("facts");
    }
    let summary = writer.finish(end()).expect("finished");
    assert!(summary.left_out.is_nothing());
    let (recording, info) = opened(&bytes).expect("read");
    assert_eq!((info.damage, recording.events.len()), (None, 3));
    assert_eq!((recording.notes.len(), recording.facts.functions.len()), (24, 40_000));
}

/// No chunk can contain this note.
#[test]
fn a_note_larger_than_a_chunk_is_left_out_and_counted() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &meta()).expect("started");
    let endless = NoteKind::ProbesOn { functions: vec![u32::MAX; 2_000_000], pid: None };
    writer.note(&Note { time_ns: 1, kind: endless }).expect("no error");
    writer.note(&notes()[0]).expect("noted");
    let summary = writer.finish(end()).expect("finished");
    assert_eq!((summary.left_out.notes, summary.left_out.facts), (1, 0));
    let (recording, info) = opened(&bytes).expect("read");
    assert_eq!((info.damage, recording.notes.as_slice()), (None, &notes()[..1]));
}

/// The index of a recording of half a day would be larger than a chunk may be, so the index is written in parts.
#[test]
fn a_very_long_recording_has_its_index_in_parts() {
    let records: Vec<Record> = (0..100).map(likely_record).collect();
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &meta()).expect("started").with_parts_of(7);
    writer.facts(&facts()).expect("facts");
    for record in &records {
        writer.push(record).and_then(|()| writer.flush()).expect("written");
    }
    let summary = writer.finish(end()).expect("finished");
    let parts = bytes.windows(8).filter(|bytes| bytes == b"LPinpart").count();
    assert!(parts > 10, "{parts} parts in {} chunks", summary.chunks);
    let (recording, info) = opened(&bytes).expect("read");
    assert_eq!((info.damage, recording.events.as_slice()), (None, records.as_slice()));
    // The file must still be complete after facts were added.
    let mut more = Vec::new();
    add_facts(bytes.as_slice(), &mut more, &facts(), FileLimits::FILE).expect("added");
    let (recording, info) = opened(&more).expect("read");
    assert_eq!((info.damage, recording.events.as_slice()), (None, records.as_slice()));
    // The next part of the index shows that a chunk is missing. Here the second chunk of events is removed, which looks
    // like many others.
    let starts: Vec<usize> =
        bytes.windows(4).enumerate().filter(|(_, magic)| magic == b"LPck").map(|(at, _)| at).collect();
    let mut cut = bytes.clone();
    cut.drain(starts[30]..starts[31]);
    let (recording, info) = opened(&cut).expect("read");
    let damage = info.damage.expect("a chunk is missing");
    assert!(matches!(damage.kind, DamageKind::Corrupt { .. }), "{damage:?}");
    assert!(recording.events.len() < 40, "{}", recording.events.len());
    // A file that is cut after a part of the index must not look complete.
    let part = bytes.windows(8).position(|bytes| bytes == b"LPinpart").expect("above") + 8;
    let (_, info) = opened(&bytes[..part]).expect("read");
    assert_eq!(info.damage.expect("no end").kind, DamageKind::NoEnd);
}
