//! Lists all chunks of a complete file by its index, so that a part of a long recording can be read without the rest.

use super::chunk::{ChunkHeader, ChunkKind, Unpacker};
use super::columns;
use super::header::FileHeader;
use super::index::{self, Entry};
use super::reader::{header_at, payload, read_without_events};
use super::room::FileLimits;
use crate::SessionInfo;
use engine::event::{Facts, Recording};
use probe_abi::Record;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// Offset of the first chunk, in bytes.
const BEGIN: u64 = FileHeader::BYTES as u64;

/// Size of a chunk's header, in bytes.
const HEADER: u64 = ChunkHeader::BYTES as u64;

/// A chunk of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventsAt {
    /// Number of records in the chunk.
    pub records: u32,
    /// Time of the earliest record (`CLOCK_MONOTONIC` nanoseconds).
    pub first_ns: u64,
    /// Time of the latest record.
    pub last_ns: u64,
}

/// All chunks of a complete file, according to its index. Methods return `None` if a chunk is not where the index lists
/// it. Then the file must be read from its start, like a damaged one.
pub struct Outline<R> {
    source: R,
    header: FileHeader,
    file_bytes: u64,
    limits: FileLimits,
    entries: Vec<Entry>,
    /// Indices of the entries that are chunks of events, and of those that are snapshots.
    events: Vec<usize>,
    snapshots: Vec<usize>,
    unpacker: Unpacker,
}

impl<R: Read + Seek> Outline<R> {
    /// Reads the index at the end of a file, with all its parts; `None` if the index is not complete.
    pub fn read(
        mut source: R,
        header: FileHeader,
        file_bytes: u64,
        limits: FileLimits,
    ) -> io::Result<Option<Outline<R>>> {
        let mut unpacker = Unpacker::new()?;
        let Some(entries) = entries(&mut source, file_bytes, &mut unpacker)? else { return Ok(None) };
        let of_kind = |kind: ChunkKind| -> Vec<usize> {
            let all = entries.iter().enumerate();
            all.filter(|(_, entry)| entry.kind == kind as u16).map(|(number, _)| number).collect()
        };
        let (events, snapshots) = (of_kind(ChunkKind::Events), of_kind(ChunkKind::Snapshot));
        Ok(Some(Outline { source, header, file_bytes, limits, entries, events, snapshots, unpacker }))
    }

    /// The chunks of events in the order of the file. longpole writes them in the order of time.
    pub fn events(&self) -> impl ExactSizeIterator<Item = EventsAt> + '_ {
        self.events.iter().map(|&number| {
            let Entry { items, first_ns, last_ns, .. } =
                self.entries.get(number).copied().unwrap_or_default();
            EventsAt { records: items, first_ns, last_ns }
        })
    }

    /// Times of the file's snapshots of threads (`CLOCK_MONOTONIC` nanoseconds), in the order of the file.
    pub fn snapshots(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.snapshots.iter().map(|&number| self.entries.get(number).map_or(0, |entry| entry.first_ns))
    }

    /// The largest number of events for which there is memory.
    pub fn most_events(&self) -> u64 {
        self.limits.events
    }

    /// Everything except events and snapshots. [`SessionInfo::events`] counts the events of the complete file.
    pub fn without_events(&mut self) -> io::Result<Option<(Recording, SessionInfo)>> {
        let file = (&self.header, self.file_bytes);
        read_without_events(&mut self.source, file, &self.entries, self.limits)
    }

    /// Appends the records of a chunk of events.
    pub fn add_records(&mut self, number: usize, records: &mut Vec<Record>) -> io::Result<Option<()>> {
        let Some((entry, payload)) = self.payload(self.events.get(number).copied())? else { return Ok(None) };
        let before = records.len();
        let unknown = columns::decode(&payload, records);
        // If there are records of a newer version, this is an error. Only a reader of the complete file counts and
        // skips them.
        let is_whole = unknown == Ok(0) && records.len() - before == entry.items as usize;
        Ok(is_whole.then_some(()))
    }

    /// The processes and threads of a snapshot. [`Facts::start_ns`] is the instant of the snapshot.
    pub fn snapshot(&mut self, number: usize) -> io::Result<Option<Facts>> {
        let Some((_, payload)) = self.payload(self.snapshots.get(number).copied())? else { return Ok(None) };
        let seen: Result<Facts, _> = serde_json::from_slice(&payload);
        Ok(seen.ok().map(|Facts { start_ns, processes, threads, .. }| Facts {
            start_ns,
            processes,
            threads,
            ..Facts::default()
        }))
    }

    fn payload(&mut self, number: Option<usize>) -> io::Result<Option<(Entry, Vec<u8>)>> {
        let Some(entry) = number.and_then(|number| self.entries.get(number)).copied() else {
            return Ok(None);
        };
        let payload = payload(&mut self.source, &entry, &mut self.unpacker)?;
        Ok(payload.map(|payload| (entry, payload)))
    }
}

/// All entries of the index, read from its last part back to the first one. Each part must end at or before the start
/// of the part that lists it. So the loop ends for any content, and the chunks that fit into the file bound the memory
/// for entries.
fn entries<R: Read + Seek>(
    source: &mut R,
    file_bytes: u64,
    unpacker: &mut Unpacker,
) -> io::Result<Option<Vec<Entry>>> {
    let mut end = [0; index::END_BYTES];
    let Some(end_at) = file_bytes.checked_sub(end.len() as u64).filter(|at| *at >= BEGIN) else {
        return Ok(None);
    };
    source.seek(SeekFrom::Start(end_at))?;
    source.read_exact(&mut end)?;
    let Some(mut at) = index::offset_of(&end).filter(|at| *at >= BEGIN && *at < end_at) else {
        return Ok(None);
    };
    let (mut kind, mut end, mut parts) = (ChunkKind::Index, file_bytes, Vec::new());
    loop {
        let Some(part) = part(source, at..end, kind, unpacker)? else { return Ok(None) };
        let first = part.first().copied();
        parts.push(part);
        match first {
            Some(first) if first.kind == ChunkKind::IndexPart as u16 => {
                (end, at, kind) = (at, first.offset, ChunkKind::IndexPart);
            }
            Some(first) if first.offset == BEGIN => break,
            _ => return Ok(None),
        }
    }
    Ok(Some(parts.into_iter().rev().flatten().collect()))
}

/// The entries of the index, or of a part of it, at this offset. `None` unless they are in the order of the file and
/// list only chunks before the index.
fn part<R: Read + Seek>(
    source: &mut R,
    at: Range<u64>,
    kind: ChunkKind,
    unpacker: &mut Unpacker,
) -> io::Result<Option<Vec<Entry>>> {
    let Some(header) = header_at(source, at.start)? else { return Ok(None) };
    // An index must be stored unpacked, so that a small file cannot list many chunks.
    if header.kind != kind as u16
        || header.stored_bytes != header.raw_bytes
        || at.end.saturating_sub(at.start) < HEADER + u64::from(header.stored_bytes)
    {
        return Ok(None);
    }
    let Some(payload) = payload(source, &Entry::new(at.start, &header), unpacker)? else { return Ok(None) };
    let (mut entries, mut from) = (Vec::new(), BEGIN);
    // Each entry is checked before the next one is read. Otherwise a hole in a sparse file, which reads as zeros, would
    // list millions of chunks.
    let claimed = index::decode(kind, &payload, |entry: Entry| {
        if entry.offset < from || entry.offset >= at.start {
            return None;
        }
        from = entry.offset.saturating_add(HEADER);
        entries.push(entry);
        Some(())
    });
    Ok((claimed == Some(at.start)).then_some(entries))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A file with a part of an index at offset `at` that lists these entries.
    fn listing(at: u64, entries: &[Entry]) -> Cursor<Vec<u8>> {
        let payload = index::encode(ChunkKind::IndexPart, entries, at);
        let header = ChunkHeader::of(ChunkKind::IndexPart, 0, (0, 0), (0, payload.len()), &payload);
        let mut file = vec![0; at as usize];
        file.extend(header.expect("small").encode());
        file.extend(payload);
        Cursor::new(file)
    }

    fn is_part(file: &mut Cursor<Vec<u8>>, at: Range<u64>) -> bool {
        let mut unpacker = Unpacker::new().expect("memory");
        part(file, at, ChunkKind::IndexPart, &mut unpacker).expect("read").is_some()
    }

    /// Entries must be checked while they are read. The zeros of a sparse file would otherwise take 100 GB of memory.
    #[test]
    fn a_part_of_the_index_must_list_chunks_in_order_before_itself() {
        let of = |offsets: &[u64]| -> Vec<Entry> {
            offsets.iter().map(|&offset| Entry { offset, ..Entry::default() }).collect()
        };
        for (offsets, expected) in [
            (&[20, 64, 500][..], true),
            (&[0], false),
            (&[20, 20], false),
            (&[20, 63], false),
            (&[500, 20], false),
            (&[20, 1_000], false),
            (&[20, u64::MAX], false),
        ] {
            let mut file = listing(1_000, &of(offsets));
            let end = file.get_ref().len() as u64;
            assert_eq!(is_part(&mut file, 1_000..end), expected, "{offsets:?}");
            assert!(!is_part(&mut file, 1_000..end - 1), "it reaches into what lists it");
        }
    }
}
