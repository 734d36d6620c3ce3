//! Writing a session while it is recorded.

use super::chunk::{ChunkHeader, ChunkKind, MOST_BYTES, Packed, Packer};
use super::event_chunk::{EventChunk, EventChunks};
use super::header::FileHeader;
use super::index::{self, Entry};
use super::{merge, stacks};
use crate::session::{CreateError, Meta, Overwrite, create_file};
use engine::event::{Facts, Note, NoteKind, WindowEnd};
use probe_abi::Record;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Notes per chunk.
const NOTES_PER_CHUNK: usize = 64;

/// Bytes of stacks per chunk.
const STACK_BYTES: usize = 256 << 10;

/// Threads kept of `WindowEnd`: more than this and the chunk could grow too large. They are a second opinion only.
const MOST_END_THREADS: usize = 1 << 16;

/// What a finished session holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Size of the file.
    pub bytes: u64,
    /// Records written.
    pub events: u64,
    /// Size of those records as the kernel wrote them.
    pub raw_bytes: u64,
    /// Chunks written.
    pub chunks: u64,
    /// Time of the earliest record, 0 if there is none (`CLOCK_MONOTONIC` nanoseconds).
    pub first_ns: u64,
    /// Time of the latest record.
    pub last_ns: u64,
}

/// Appends chunks to a file; a chunk is written at once or not at all, as far as the kernel allows. After an
/// error every further call fails: what was written before it stays readable.
pub struct Writer<W: Write = File> {
    out: W,
    packer: Packer,
    /// The open chunk.
    events: EventChunks,
    notes: Vec<Note>,
    stacks: stacks::Encoder,
    /// Chunks that no part of the index lists yet.
    entries: Vec<Entry>,
    most_entries: usize,
    summary: Summary,
    broken: bool,
}

impl Writer<File> {
    /// Creates `path` (mode 0600; under sudo it belongs to the user behind it) and writes the header. See
    /// [`create_file`] for what is refused.
    pub fn create(path: &Path, overwrite: Overwrite, meta: &Meta) -> Result<Writer<File>, CreateError> {
        let file = create_file(path, overwrite)?;
        Writer::new(file, meta).map_err(|error| CreateError::io(path, error))
    }
}

impl<W: Write> Writer<W> {
    /// Writes the header and the description to `out`, which is empty.
    pub fn new(mut out: W, meta: &Meta) -> io::Result<Writer<W>> {
        out.write_all(&FileHeader::CURRENT.encode())?;
        let mut writer = Writer {
            out,
            packer: Packer::new()?,
            events: EventChunks::default(),
            notes: Vec::new(),
            stacks: stacks::Encoder::default(),
            entries: Vec::new(),
            most_entries: index::MOST_ENTRIES,
            summary: Summary { bytes: FileHeader::BYTES as u64, ..Summary::default() },
            broken: false,
        };
        writer.json(ChunkKind::Meta, 1, (meta.clock.monotonic_ns, meta.clock.monotonic_ns), meta)?;
        Ok(writer)
    }

    /// Writes facts at once. May be called again with more of them: see the table in the module's documentation.
    /// `Facts::end` is not written: [`Writer::finish`] does that.
    pub fn facts(&mut self, facts: &Facts) -> io::Result<()> {
        for piece in merge::pieces(facts) {
            let items = u32::try_from(merge::entries(&piece)).unwrap_or(u32::MAX);
            self.json(ChunkKind::Facts, items, (facts.start_ns, facts.start_ns), &piece)?;
        }
        Ok(())
    }

    /// Adds a record. It reaches the file with its chunk: when that is full, a second long, or flushed.
    /// [`io::ErrorKind::InvalidInput`]: the record's kind byte contradicts its type; nothing was added.
    pub fn push(&mut self, record: &Record) -> io::Result<()> {
        self.check()?;
        match self.events.push(record) {
            Ok(None) => Ok(()),
            Ok(Some(full)) => self.whole(full),
            Err(contradiction) => Err(io::Error::new(io::ErrorKind::InvalidInput, contradiction)),
        }
    }

    /// Adds records that somebody else has put together, after all that were added before.
    pub fn events(&mut self, chunk: EventChunk) -> io::Result<()> {
        self.check()?;
        if let Some(open) = self.events.take() {
            self.whole(open)?;
        }
        self.whole(chunk)
    }

    /// Adds a note; it reaches the file with the next chunk of events, or at a flush.
    pub fn note(&mut self, note: &Note) -> io::Result<()> {
        self.check()?;
        if let NoteKind::Stack { id, pid, frames } = &note.kind {
            self.stacks.push(note.time_ns, *id, *pid, frames);
            return if self.stacks.bytes() >= STACK_BYTES { self.flush_stacks() } else { Ok(()) };
        }
        self.notes.push(note.clone());
        if self.notes.len() >= NOTES_PER_CHUNK { self.flush_notes() } else { Ok(()) }
    }

    /// Writes what is held back.
    pub fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        match self.events.take() {
            Some(open) => self.whole(open)?,
            None => {
                self.flush_stacks()?;
                self.flush_notes()?;
            }
        }
        self.out.flush()
    }

    fn whole(&mut self, chunk: EventChunk) -> io::Result<()> {
        let EventChunk { records, raw_bytes, first_ns, last_ns, payload } = chunk;
        // Before the samples that name them.
        self.flush_stacks()?;
        self.chunk(ChunkKind::Events, records, (first_ns, last_ns), payload)?;
        let summary = &mut self.summary;
        summary.first_ns = if summary.events == 0 { first_ns } else { summary.first_ns.min(first_ns) };
        summary.last_ns = summary.last_ns.max(last_ns);
        summary.events += u64::from(records);
        summary.raw_bytes += raw_bytes;
        self.flush_notes()
    }

    fn flush_stacks(&mut self) -> io::Result<()> {
        match self.stacks.finish() {
            Some((stacks, times, payload)) => self.chunk(ChunkKind::Stacks, stacks, times, payload),
            None => Ok(()),
        }
    }

    fn flush_notes(&mut self) -> io::Result<()> {
        if self.notes.is_empty() {
            return Ok(());
        }
        let notes = std::mem::take(&mut self.notes);
        let first = notes.iter().map(|note| note.time_ns).min().unwrap_or_default();
        let last = notes.iter().map(|note| note.time_ns).max().unwrap_or_default();
        let items = u32::try_from(notes.len()).unwrap_or(u32::MAX);
        self.json(ChunkKind::Notes, items, (first, last), &notes)
    }

    /// What has been written so far.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Ends the recording in an orderly way.
    pub fn finish(mut self, mut end: WindowEnd) -> io::Result<Summary> {
        self.flush()?;
        end.threads.truncate(MOST_END_THREADS);
        end.threads.iter_mut().for_each(merge::shorten_thread);
        self.json(ChunkKind::End, 1, (end.end_ns, end.end_ns), &end)?;
        self.index(ChunkKind::Index)?;
        self.out.flush()?;
        Ok(self.summary)
    }

    /// Lists the chunks that no part of the index lists yet.
    fn index(&mut self, kind: ChunkKind) -> io::Result<()> {
        let payload = index::encode(kind, &self.entries, self.summary.bytes);
        let items = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.clear();
        self.stored(kind, items, (0, 0), Packed::plain(payload))
    }

    /// Parts of the index after so many chunks.
    #[cfg(test)]
    pub fn with_parts_of(mut self, most_entries: usize) -> Writer<W> {
        self.most_entries = most_entries;
        self
    }

    fn json(
        &mut self,
        kind: ChunkKind,
        items: u32,
        times: (u64, u64),
        value: &impl serde::Serialize,
    ) -> io::Result<()> {
        self.check()?;
        self.chunk(kind, items, times, serde_json::to_vec(value)?)
    }

    fn chunk(&mut self, kind: ChunkKind, items: u32, times: (u64, u64), raw: Vec<u8>) -> io::Result<()> {
        let packed = self.packer.pack(raw)?;
        self.stored(kind, items, times, packed)?;
        if self.entries.len() >= self.most_entries { self.index(ChunkKind::IndexPart) } else { Ok(()) }
    }

    fn stored(
        &mut self,
        kind: ChunkKind,
        items: u32,
        (first_ns, last_ns): (u64, u64),
        packed: Packed,
    ) -> io::Result<()> {
        self.check()?;
        let size = |bytes: usize| u32::try_from(bytes).ok().filter(|size| *size <= MOST_BYTES);
        let (Some(stored_bytes), Some(raw_bytes)) = (size(packed.bytes.len()), size(packed.raw_bytes)) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a chunk grew too large"));
        };
        let header = ChunkHeader {
            kind: kind as u16,
            flags: packed.flags,
            stored_bytes,
            raw_bytes,
            items,
            first_ns,
            last_ns,
            payload_crc: crc32fast::hash(&packed.bytes),
        };
        let mut bytes = Vec::with_capacity(ChunkHeader::BYTES + packed.bytes.len());
        bytes.extend_from_slice(&header.encode());
        bytes.extend_from_slice(&packed.bytes);
        // One write: a killed writer leaves the chunk whole or cut, never mixed with another.
        if let Err(error) = self.out.write_all(&bytes) {
            self.broken = true;
            return Err(error);
        }
        self.entries.push(Entry::new(self.summary.bytes, &header));
        self.summary.bytes += bytes.len() as u64;
        self.summary.chunks += 1;
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        if self.broken { Err(io::Error::other("writing this session has failed before")) } else { Ok(()) }
    }
}

impl<W: Write> Drop for Writer<W> {
    /// A recording that ends by an error or a panic keeps what was held back; it has no end, so readers call it
    /// unfinished.
    fn drop(&mut self) {
        if !self.broken {
            // Nobody is left to tell; the reader will say what is missing.
            let _ = self.flush();
        }
    }
}
