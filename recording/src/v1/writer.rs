//! Writes a session file during recording.

use super::chunk::{ChunkHeader, ChunkKind, MOST_BYTES, Packed, Packer};
use super::disk::Disk;
use super::event_chunk::{EventChunk, EventChunks, PackedEvents};
use super::header::FileHeader;
use super::index::{self, Entry};
use super::object::{Growing, List, MOST_ENTRY_BYTES};
use super::room::{FileLimits, Room};
use super::tail::Tail;
use super::{cut, stacks};
use crate::{CreateError, Meta, Overwrite, create_file, create_unused};
use engine::event::{Facts, LeftOut, Note, NoteKind, WindowEnd};
use probe_abi::Record;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Number of notes in a chunk.
const NOTES_PER_CHUNK: u32 = 64;

/// Number of bytes of stacks in a chunk.
const STACK_BYTES: usize = 256 << 10;

/// Largest size of complete chunks that wait for the next chunk of events, in bytes.
const MOST_HELD: usize = 1 << 20;

/// Counts of a session's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionSummary {
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Number of records written.
    pub events: u64,
    /// Size of the records in the kernel's format, in bytes.
    pub raw_bytes: u64,
    /// Number of chunks written.
    pub chunks: u64,
    /// Time of the earliest record, 0 if there is none (`CLOCK_MONOTONIC` nanoseconds).
    pub first_ns: u64,
    /// Time of the latest record.
    pub last_ns: u64,
    /// Entries that had no room in the file.
    pub left_out: LeftOut,
}

/// Appends chunks to a file, and after them drafts of chunks that are not full yet: see [`super::tail`]. After an
/// error, every further call fails, and everything that was written before stays readable. Entries beyond a reader's
/// limits ([`FileLimits::FILE`]) are omitted and counted, which is not an error.
pub struct Writer<D: Disk = File> {
    tail: Tail<D>,
    packer: Packer,
    /// The open chunk of events.
    events: EventChunks,
    /// Notes that wait for their chunk to be full, and the times of the earliest and latest one.
    notes: Growing,
    note_times: (u64, u64),
    stacks: stacks::Encoder,
    /// Complete chunks that are written together with the next chunk of events.
    held: Vec<u8>,
    /// The content of the last draft: bytes of complete chunks, and numbers of records, stacks and notes.
    drafted: (usize, u32, u32, u32),
    /// Chunks that no index, or part of an index, lists yet.
    entries: Vec<Entry>,
    most_entries: usize,
    summary: SessionSummary,
    room: Room,
    broken: bool,
}

impl Writer<File> {
    /// Creates `path` (mode 0600; under sudo it belongs to the user who called sudo) and writes the header.
    /// [`create_file`] says which paths are refused.
    pub fn create(path: &Path, overwrite: Overwrite, meta: &Meta) -> Result<Writer<File>, CreateError> {
        Writer::begin(create_file(path, overwrite)?, path, meta)
    }

    /// Like [`Writer::create`], but takes the first free name ([`create_unused`]), and returns it.
    pub fn create_unused(path: &Path, meta: &Meta) -> Result<(Writer<File>, PathBuf), CreateError> {
        let (file, path) = create_unused(path)?;
        Ok((Writer::begin(file, &path, meta)?, path))
    }

    fn begin(file: File, path: &Path, meta: &Meta) -> Result<Writer<File>, CreateError> {
        Writer::new(file, meta).map_err(|error| {
            // The new file is empty. If it stayed, a second attempt would find the name in use.
            let _ = std::fs::remove_file(path);
            CreateError::io(path, error)
        })
    }
}

impl<D: Disk> Writer<D> {
    /// Writes the header and the description to `disk`, which must be empty.
    pub fn new(disk: D, meta: &Meta) -> io::Result<Writer<D>> {
        let mut writer = Writer {
            tail: Tail::new(disk),
            packer: Packer::new()?,
            events: EventChunks::default(),
            notes: Growing::default(),
            note_times: (u64::MAX, 0),
            stacks: stacks::Encoder::default(),
            held: FileHeader::CURRENT.encode().to_vec(),
            drafted: (0, 0, 0, 0),
            entries: Vec::new(),
            most_entries: index::MOST_ENTRIES,
            summary: SessionSummary { bytes: FileHeader::BYTES as u64, ..SessionSummary::default() },
            room: Room::of(FileLimits::FILE),
            broken: false,
        };
        let times = (meta.clock.monotonic_ns, meta.clock.monotonic_ns);
        writer.chunk(ChunkKind::Meta, 1, times, serde_json::to_vec(meta)?)?;
        writer.keep()?;
        Ok(writer)
    }

    /// Writes facts, at once or with the next draft. May be called again with more facts; the table in the module's
    /// documentation says which facts replace earlier ones. `Facts::end` is not written here, but by
    /// [`Writer::finish`].
    pub fn facts(&mut self, facts: &Facts) -> io::Result<()> {
        self.check()?;
        let (times, mut room) = ((facts.start_ns, facts.start_ns), self.room);
        let left_out = cut::facts(facts, &mut room, &mut |items, json| {
            self.chunk(ChunkKind::Facts, items, times, json)?;
            self.keep_or_hold()
        })?;
        self.room = room;
        self.summary.left_out.facts += left_out;
        Ok(())
    }

    /// Writes a snapshot while recording: the processes and threads of an instant (`start_ns`), at which a reader may
    /// begin. Readers ignore its other facts. A snapshot that is too large for a chunk is omitted, and readers begin at
    /// another one.
    pub fn snapshot(&mut self, seen: &Facts) -> io::Result<()> {
        self.check()?;
        let json = serde_json::to_vec(seen)?;
        if json.len() > MOST_BYTES as usize {
            return Ok(());
        }
        let items = u32::try_from(seen.threads.len()).unwrap_or(u32::MAX);
        self.chunk(ChunkKind::Snapshot, items, (seen.start_ns, seen.start_ns), json)?;
        self.keep_or_hold()
    }

    /// Adds a record. The record's chunk is written when it is full, a second long, or flushed; until then drafts
    /// contain the record. [`io::ErrorKind::InvalidInput`]: the record's kind byte contradicts its type, and the record
    /// was not added.
    pub fn push(&mut self, record: &Record) -> io::Result<()> {
        self.check()?;
        match self.events.push(record) {
            Ok(None) => Ok(()),
            Ok(Some(full)) => self.whole(full),
            Err(contradiction) => Err(io::Error::new(io::ErrorKind::InvalidInput, contradiction)),
        }
    }

    /// Adds records that another thread has encoded, after all records before.
    pub fn events(&mut self, chunk: EventChunk) -> io::Result<()> {
        self.check()?;
        if let Some(open) = self.events.take() {
            self.whole(open)?;
        }
        self.whole(chunk)
    }

    /// Adds a note. The note is written together with the next chunk of events, at the latest at a flush.
    pub fn note(&mut self, note: &Note) -> io::Result<()> {
        self.check()?;
        if let NoteKind::Stack { id, pid, frames, cut } = &note.kind {
            if !self.room.take_notes(1, stacks::memory(frames.len())) {
                self.summary.left_out.stacks += 1;
                return Ok(());
            }
            self.stacks.push(note.time_ns, (*id, *pid), frames, *cut);
            if self.stacks.bytes() >= STACK_BYTES {
                self.flush_stacks()?;
                self.keep_or_hold()?;
            }
            return Ok(());
        }
        let json = serde_json::to_vec(note)?;
        let adds = self.notes.adds(List::Alone, json.len()) as u64;
        if json.len() > MOST_ENTRY_BYTES || !self.room.take_notes(1, adds) {
            self.summary.left_out.notes += 1;
            return Ok(());
        }
        self.notes.push(List::Alone, &json);
        self.note_times = (self.note_times.0.min(note.time_ns), self.note_times.1.max(note.time_ns));
        if self.notes.entries() >= NOTES_PER_CHUNK || self.notes.is_full() {
            self.flush_notes()?;
            self.keep_or_hold()?;
        }
        Ok(())
    }

    /// Writes all data that still waits, in final chunks, even if these have few records.
    pub fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        if let Some(open) = self.events.take() {
            return self.whole(open);
        }
        self.flush_stacks()?;
        self.flush_notes()?;
        self.keep()
    }

    /// Writes all data that still waits as a draft, so that it is in the file even if this process is killed. `open` is
    /// the open chunk of the caller of [`Writer::events`].
    pub fn draft(&mut self, open: Option<EventChunk>) -> io::Result<()> {
        self.check()?;
        let open = open.or_else(|| self.events.draft());
        let records = open.as_ref().map_or(0, |open| open.records);
        let held = (self.held.len(), records, self.stacks.stacks(), self.notes.entries());
        if held == self.drafted || held == (0, 0, 0, 0) {
            return Ok(());
        }
        let mut chunks = self.held.clone();
        let mut add = |kind, items, times, raw: Vec<u8>| -> io::Result<()> {
            let header = ChunkHeader::of(kind, items, times, (0, raw.len()), &raw)?;
            chunks.extend_from_slice(&header.encode());
            chunks.extend_from_slice(&raw);
            Ok(())
        };
        // The draft has its chunks in the same order as the final chunks.
        if let Some(stacks::Packed { stacks, times, payload, cut }) = self.stacks.draft() {
            add(ChunkKind::Stacks, stacks, times, payload)?;
            if cut.stacks > 0 {
                add(ChunkKind::CutStacks, cut.stacks, times, cut.payload)?;
            }
        }
        if let Some(EventChunk { records, first_ns, last_ns, payload, .. }) = open {
            add(ChunkKind::Events, records, (first_ns, last_ns), payload)?;
        }
        if let Some((items, json)) = self.notes.draft() {
            add(ChunkKind::Notes, items, self.note_times, json)?;
        }
        self.drafted = held;
        match self.tail.draft(records, &chunks) {
            // A full disk is no error yet: full chunks are much smaller than drafts, and use the drafts' space. Only
            // chunks without space are an error.
            Err(error) if is_no_room(&error) => Ok(()),
            written => {
                self.broken |= written.is_err();
                written
            }
        }
    }

    fn whole(&mut self, chunk: EventChunk) -> io::Result<()> {
        let EventChunk { records, raw_bytes, first_ns, last_ns, payload } = chunk;
        // Stacks must precede the samples that refer to them.
        self.flush_stacks()?;
        self.chunk(ChunkKind::Events, records, (first_ns, last_ns), payload)?;
        self.count(records, raw_bytes, (first_ns, last_ns));
        self.flush_notes()?;
        self.keep()
    }

    /// Adds packed records, after all records before.
    pub(super) fn packed(&mut self, chunk: &PackedEvents) -> io::Result<()> {
        self.check()?;
        if let Some(open) = self.events.take() {
            self.whole(open)?;
        }
        self.flush_stacks()?;
        let PackedEvents { records, raw_bytes, first_ns, last_ns, packed } = chunk;
        self.stored(ChunkKind::Events, *records, (*first_ns, *last_ns), packed)?;
        self.index_if_long()?;
        self.count(*records, *raw_bytes, (*first_ns, *last_ns));
        self.flush_notes()?;
        self.keep()
    }

    fn count(&mut self, records: u32, raw_bytes: u64, (first_ns, last_ns): (u64, u64)) {
        let summary = &mut self.summary;
        summary.first_ns = if summary.events == 0 { first_ns } else { summary.first_ns.min(first_ns) };
        summary.last_ns = summary.last_ns.max(last_ns);
        summary.events += u64::from(records);
        summary.raw_bytes += raw_bytes;
    }

    fn flush_stacks(&mut self) -> io::Result<()> {
        let Some(stacks::Packed { stacks, times, payload, cut }) = self.stacks.finish() else {
            return Ok(());
        };
        self.chunk(ChunkKind::Stacks, stacks, times, payload)?;
        match cut.stacks {
            0 => Ok(()),
            stacks => self.chunk(ChunkKind::CutStacks, stacks, times, cut.payload),
        }
    }

    fn flush_notes(&mut self) -> io::Result<()> {
        let times = std::mem::replace(&mut self.note_times, (u64::MAX, 0));
        match self.notes.finish() {
            Some((items, json)) => self.chunk(ChunkKind::Notes, items, times, json),
            None => Ok(()),
        }
    }

    /// Writes the complete chunks that waited. These chunks replace all drafts.
    fn keep(&mut self) -> io::Result<()> {
        let written = if self.held.is_empty() { Ok(()) } else { self.tail.keep(&self.held) };
        self.broken |= written.is_err();
        self.held.clear();
        self.drafted = (0, 0, 0, 0);
        written
    }

    /// Writes the complete chunks that waited, unless they are small and a draft exists, which they would replace.
    fn keep_or_hold(&mut self) -> io::Result<()> {
        if self.tail.has_draft() && self.held.len() < MOST_HELD { Ok(()) } else { self.keep() }
    }

    /// Whether the file still has a name. A file without a name is gone as soon as it is closed.
    pub fn has_name(&self) -> io::Result<bool> {
        self.tail.disk().has_name()
    }

    /// Number of bytes that still wait and are not packed yet. [`SessionSummary::bytes`] does not include them.
    pub(super) fn pending_bytes(&self) -> u64 {
        (self.stacks.bytes() + self.notes.bytes()) as u64
    }

    /// The content written so far.
    pub fn summary(&self) -> SessionSummary {
        self.summary
    }

    /// Ends the recording in an orderly way.
    pub fn finish(mut self, end: WindowEnd) -> io::Result<SessionSummary> {
        self.flush()?;
        let (times, mut room) = ((end.end_ns, end.end_ns), self.room);
        let (mut end, left_out) = cut::end(end, &mut room, &mut |items, json| {
            self.chunk(ChunkKind::EndPart, items, times, json)?;
            self.keep()
        })?;
        self.summary.left_out.end += left_out;
        end.left_out = self.summary.left_out;
        self.chunk(ChunkKind::End, 1, times, serde_json::to_vec(&end)?)?;
        self.index(ChunkKind::Index)?;
        self.keep()?;
        self.tail.end()?;
        Ok(self.summary)
    }

    /// Writes an index of the chunks that are not listed yet, or a part of an index.
    fn index(&mut self, kind: ChunkKind) -> io::Result<()> {
        let payload = index::encode(kind, &self.entries, self.summary.bytes);
        let items = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.clear();
        self.stored(kind, items, (0, 0), &Packed::plain(payload))
    }

    /// Sets the number of chunks after which a part of the index is written.
    #[cfg(test)]
    pub fn with_parts_of(mut self, most_entries: usize) -> Writer<D> {
        self.most_entries = most_entries;
        self
    }

    /// Sets the limits of the file.
    #[cfg(test)]
    pub fn with_limits(mut self, limits: FileLimits) -> Writer<D> {
        self.room = Room::of(limits);
        self
    }

    fn chunk(&mut self, kind: ChunkKind, items: u32, times: (u64, u64), raw: Vec<u8>) -> io::Result<()> {
        let packed = self.packer.pack(raw)?;
        self.stored(kind, items, times, &packed)?;
        self.index_if_long()
    }

    fn index_if_long(&mut self) -> io::Result<()> {
        if self.entries.len() >= self.most_entries { self.index(ChunkKind::IndexPart) } else { Ok(()) }
    }

    fn stored(&mut self, kind: ChunkKind, items: u32, times: (u64, u64), packed: &Packed) -> io::Result<()> {
        self.check()?;
        let Packed { flags, raw_bytes, bytes } = packed;
        let header = ChunkHeader::of(kind, items, times, (*flags, *raw_bytes), bytes)?;
        self.held.extend_from_slice(&header.encode());
        self.held.extend_from_slice(bytes);
        self.entries.push(Entry::new(self.summary.bytes, &header));
        self.summary.bytes += (ChunkHeader::BYTES + bytes.len()) as u64;
        self.summary.chunks += 1;
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        if self.broken { Err(io::Error::other("writing this session has failed before")) } else { Ok(()) }
    }
}

/// Whether the error means that the disk is full or that a limit is reached.
fn is_no_room(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), FileTooLarge | QuotaExceeded | StorageFull)
}

impl<D: Disk> Drop for Writer<D> {
    /// After an error or a panic, writes the data that still waits. The file gets no end of the recording, so readers
    /// call it unfinished.
    fn drop(&mut self) {
        if !self.broken {
            // An error cannot be reported here. A reader will show what is missing.
            let _ = self.flush();
        }
    }
}
