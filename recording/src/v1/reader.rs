//! Reads a session up to its last complete chunk.

use super::chunk::{ChunkHeader, ChunkKind, Unpacker};
use super::drafts::{self, Behind};
use super::header::FileHeader;
use super::index::{Entry, Fold};
use super::merge::Merger;
use super::room::{FileLimits, Room};
use super::walk::Walk;
use super::{columns, stacks};
use crate::{Damage, DamageKind, SessionError, SessionInfo};
use engine::event::{Note, PendingOperation, Recording, ThreadFact, WindowEnd};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;

/// Largest number of bytes after the end of a session that are searched for chunks. A sparse file may have any number.
const SEARCHED: u64 = 1 << 30;

/// Reads everything after the file header. `file_bytes` is the size of the complete file. Content beyond the limits is
/// reported as [`DamageKind::TooLarge`].
pub fn read<R: Read + Seek>(
    source: R,
    header: &FileHeader,
    file_bytes: u64,
    limits: FileLimits,
) -> Result<(Recording, SessionInfo), SessionError> {
    let mut reader = Reader::new(source, header, file_bytes, limits)?;
    let damage = match reader.chunks()? {
        None => None,
        Some(kind) => reader.behind(kind)?,
    };
    Ok(reader.contents.finish(damage))
}

/// Reads the chunks that the index of a complete file lists, except events, snapshots and the index itself. `None` if a
/// chunk is not where the index lists it.
pub fn read_without_events<R: Read + Seek>(
    source: R,
    (header, file_bytes): (&FileHeader, u64),
    entries: &[Entry],
    limits: FileLimits,
) -> io::Result<Option<(Recording, SessionInfo)>> {
    let mut reader = Reader::new(source, header, file_bytes, limits)?;
    reader.source.seek(SeekFrom::Start(reader.at))?;
    for entry in entries {
        match ChunkKind::from_number(entry.kind) {
            Some(ChunkKind::Events) => {
                reader.contents.info.events =
                    reader.contents.info.events.saturating_add(u64::from(entry.items));
            }
            Some(ChunkKind::Snapshot | ChunkKind::IndexPart) => {}
            _ => {
                // Overlapping chunks are refused, because a small file could list the same bytes many times.
                if entry.offset < reader.at {
                    return Ok(None);
                }
                if reader.at != entry.offset {
                    reader.at = entry.offset;
                    reader.source.seek(SeekFrom::Start(entry.offset))?;
                }
                if !matches!(reader.chunk()?, Step::Next) {
                    return Ok(None);
                }
            }
        }
    }
    // The index lists all chunks except itself, which counts, too.
    reader.contents.info.chunks = entries.len() as u64 + 1;
    Ok(Some(reader.contents.finish(None)))
}

/// The header of the chunk at an offset. `None` if no chunk starts there, or if the file ends in the header.
pub fn header_at<R: Read + Seek>(source: &mut R, offset: u64) -> io::Result<Option<ChunkHeader>> {
    source.seek(SeekFrom::Start(offset))?;
    let bytes = header_bytes(source)?;
    Ok(bytes.and_then(|bytes| ChunkHeader::decode(&bytes).ok()))
}

/// The bytes of the next chunk's header. `None` if the file ends in the header.
fn header_bytes(source: &mut impl Read) -> io::Result<Option<[u8; ChunkHeader::BYTES]>> {
    let mut bytes = [0; ChunkHeader::BYTES];
    match source.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// The unpacked payload of one chunk. `None` if the chunk is damaged or is not the one that the index lists.
pub fn payload<R: Read + Seek>(
    source: &mut R,
    entry: &Entry,
    unpacker: &mut Unpacker,
) -> io::Result<Option<Vec<u8>>> {
    let Some(header) = header_at(source, entry.offset)? else { return Ok(None) };
    let mut stored = Vec::with_capacity(header.stored_bytes as usize);
    source.by_ref().take(u64::from(header.stored_bytes)).read_to_end(&mut stored)?;
    let is_listed = Entry::new(entry.offset, &header) == *entry;
    let is_good = stored.len() as u64 == u64::from(header.stored_bytes)
        && crc32fast::hash(&stored) == header.payload_crc;
    Ok((is_listed && is_good).then(|| unpacker.unpack(&header, stored).ok()).flatten())
}

struct Reader<R> {
    source: R,
    file_bytes: u64,
    /// Offset of the next chunk.
    at: u64,
    unpacker: Unpacker,
    contents: Contents,
}

enum Step {
    Next,
    /// There is nothing more to read. `None`: the session is complete.
    Stop(Option<DamageKind>),
}

fn corrupt(reason: &'static str) -> Step {
    Step::Stop(Some(DamageKind::Corrupt { reason }))
}

impl<R: Read + Seek> Reader<R> {
    fn new(source: R, header: &FileHeader, file_bytes: u64, limits: FileLimits) -> io::Result<Reader<R>> {
        Ok(Reader {
            source,
            file_bytes,
            at: FileHeader::BYTES as u64,
            unpacker: Unpacker::new()?,
            contents: Contents {
                room: Room::of(limits),
                info: SessionInfo {
                    version: (header.major, header.minor),
                    file_bytes,
                    ..SessionInfo::default()
                },
                ..Contents::default()
            },
        })
    }

    /// Reads what follows the last good chunk: the last draft of a killed writer, if there is one. Returns which data
    /// is missing.
    fn behind(&mut self, kind: DamageKind) -> io::Result<Option<Damage>> {
        let unfinished = Damage {
            kind: DamageKind::NoEnd,
            at_byte: self.file_bytes,
            unread_bytes: 0,
            unread_chunks: 0,
            unread_events: 0,
        };
        let is_broken =
            matches!(kind, DamageKind::NoEnd | DamageKind::Cut { .. } | DamageKind::Corrupt { .. });
        let behind = if is_broken && self.at < self.file_bytes {
            drafts::find(&mut self.source, self.at)?
        } else {
            Behind::Nothing
        };
        let (begin, chunks) = match behind {
            Behind::Nothing => return self.rest(kind).map(Some),
            Behind::Remains => return Ok(Some(unfinished)),
            Behind::Draft { begin, chunks } => (begin, chunks),
        };
        if begin < self.at {
            self.again_up_to(begin)?;
        }
        let mut draft = Reader {
            file_bytes: chunks.len() as u64,
            source: Cursor::new(chunks),
            at: 0,
            unpacker: Unpacker::new()?,
            contents: std::mem::take(&mut self.contents),
        };
        let stopped = draft.chunks()?;
        self.contents = draft.contents;
        Ok(match stopped {
            // The draft contained the end of the recording, so nothing is missing.
            None => None,
            Some(DamageKind::TooLarge) => Some(Damage { kind: DamageKind::TooLarge, ..unfinished }),
            Some(_) => Some(unfinished),
        })
    }

    /// Reads the file again as if it ended at `end`.
    fn again_up_to(&mut self, end: u64) -> io::Result<()> {
        let Contents { info: SessionInfo { version, file_bytes, .. }, room, .. } = &self.contents;
        self.contents = Contents {
            info: SessionInfo { version: *version, file_bytes: *file_bytes, ..SessionInfo::default() },
            room: Room::of(*room.limits()),
            ..Contents::default()
        };
        (self.at, self.file_bytes) = (FileHeader::BYTES as u64, end);
        self.source.seek(SeekFrom::Start(self.at))?;
        self.chunks().map(|_| ())
    }

    /// Reads all good chunks. Returns why reading stopped, or `None` if the session is complete.
    fn chunks(&mut self) -> io::Result<Option<DamageKind>> {
        loop {
            match self.chunk()? {
                Step::Next => {}
                Step::Stop(kind) => return Ok(kind),
            }
        }
    }

    /// Reads the next chunk. `at` moves on only if the chunk is good.
    fn chunk(&mut self) -> io::Result<Step> {
        let left = self.file_bytes.saturating_sub(self.at);
        match (left, self.contents.indexed) {
            (0, true) => return Ok(Step::Stop(None)),
            (0, false) => return Ok(Step::Stop(Some(DamageKind::NoEnd))),
            (_, true) => return Ok(Step::Stop(Some(DamageKind::Trailing))),
            (_, false) => {}
        }
        let Some(bytes) = header_bytes(&mut self.source)? else {
            let missing_bytes = (ChunkHeader::BYTES as u64).saturating_sub(left);
            return Ok(Step::Stop(Some(DamageKind::Cut { missing_bytes })));
        };
        let header = match ChunkHeader::decode(&bytes) {
            Ok(header) => header,
            Err(reason) => return Ok(corrupt(reason)),
        };
        let stored_bytes = u64::from(header.stored_bytes);
        let room = left.saturating_sub(ChunkHeader::BYTES as u64);
        if room < stored_bytes {
            return Ok(Step::Stop(Some(DamageKind::Cut { missing_bytes: stored_bytes - room })));
        }
        let mut stored = Vec::with_capacity(header.stored_bytes as usize);
        self.source.by_ref().take(stored_bytes).read_to_end(&mut stored)?;
        if stored.len() as u64 != stored_bytes {
            // The file has become shorter while it was read.
            return Ok(Step::Stop(Some(DamageKind::Cut {
                missing_bytes: stored_bytes - stored.len() as u64,
            })));
        }
        if crc32fast::hash(&stored) != header.payload_crc {
            return Ok(corrupt("the checksum of a chunk is wrong"));
        }
        let kind = ChunkKind::from_number(header.kind);
        if !self.contents.has_room(kind, &header) {
            return Ok(Step::Stop(Some(DamageKind::TooLarge)));
        }
        if kind == Some(ChunkKind::Draft) {
            return Ok(Step::Stop(Some(DamageKind::NoEnd)));
        }
        let entry = Entry::new(self.at, &header);
        let taken = match kind {
            None => {
                self.contents.info.unknown_chunks += 1;
                Ok(())
            }
            Some(ChunkKind::Stacks) => {
                let room = self.contents.room.bytes_left();
                match self.unpacker.unpack(&header, stored).map(|payload| stacks::decode(&payload, room)) {
                    Ok(Ok((notes, used))) if notes.len() as u64 == u64::from(header.items) => {
                        self.contents.add_stacks(notes, used)
                    }
                    Ok(Err(stacks::NoStacks::TooLarge)) => {
                        return Ok(Step::Stop(Some(DamageKind::TooLarge)));
                    }
                    Ok(_) => Err("a chunk of stacks does not decode"),
                    Err(reason) => Err(reason),
                }
            }
            Some(kind) => self
                .unpacker
                .unpack(&header, stored)
                .and_then(|payload| self.contents.take(kind, &entry, &payload)),
        };
        if let Err(reason) = taken {
            return Ok(corrupt(reason));
        }
        self.contents.seen.add(&entry);
        self.contents.info.chunks += 1;
        self.at += ChunkHeader::BYTES as u64 + stored_bytes;
        Ok(Step::Next)
    }

    /// Describes the bytes after the last good chunk. Chunks there are counted by their headers and not unpacked.
    fn rest(&mut self, kind: DamageKind) -> io::Result<Damage> {
        let mut damage = Damage {
            kind,
            at_byte: self.at,
            unread_bytes: self.file_bytes.saturating_sub(self.at),
            unread_chunks: 0,
            unread_events: 0,
        };
        if damage.kind == DamageKind::Trailing && damage.unread_bytes > SEARCHED {
            return Ok(damage);
        }
        let mut first = self.at;
        if matches!(damage.kind, DamageKind::Corrupt { .. }) {
            // The damaged chunk itself does not count as complete.
            first += 1;
        }
        let mut walk = Walk::from(&mut self.source, first)?;
        while let Some((at, header)) = walk.header()? {
            let end = at + ChunkHeader::BYTES as u64 + u64::from(header.stored_bytes);
            if end > self.file_bytes {
                continue;
            }
            damage.unread_chunks += 1;
            if header.kind == ChunkKind::Events as u16 {
                damage.unread_events = damage.unread_events.saturating_add(u64::from(header.items));
            }
            walk.skip_to(end)?;
        }
        Ok(damage)
    }
}

/// The content of the file that has been read so far.
#[derive(Default)]
struct Contents {
    recording: Recording,
    facts: Merger,
    info: SessionInfo,
    room: Room,
    /// Checksum of the chunks since the last part of the index, to be compared with the next part.
    seen: Fold,
    /// Threads and pending operations that belong to the end, which follows later.
    end_parts: (Vec<ThreadFact>, Vec<PendingOperation>),
    /// Whether there were any stacks.
    stacks: bool,
    /// Indices of the notes that are the stacks of the last chunk of stacks.
    last_stacks: Range<usize>,
    /// Whether the index has been read, so that the session is complete.
    indexed: bool,
}

impl Contents {
    /// Whether there is room for the content of a chunk, according to its header.
    fn has_room(&mut self, kind: Option<ChunkKind>, header: &ChunkHeader) -> bool {
        let bytes = u64::from(header.raw_bytes);
        match kind {
            Some(ChunkKind::Events) => {
                self.info.events.saturating_add(u64::from(header.items)) <= self.room.limits().events
            }
            Some(ChunkKind::Facts) => self.room.take_facts(0, bytes),
            Some(ChunkKind::Notes) => self.room.take_notes(0, bytes),
            Some(ChunkKind::EndPart) => self.room.take_end(0, bytes),
            _ => true,
        }
    }

    fn take(&mut self, kind: ChunkKind, entry: &Entry, payload: &[u8]) -> Result<(), &'static str> {
        const NO_JSON: &str = "a chunk does not hold what its kind says";
        match kind {
            ChunkKind::Meta => {
                let meta = serde_json::from_slice(payload).map_err(|_| NO_JSON)?;
                // If there are several such chunks, only the first one counts.
                self.info.meta.get_or_insert(meta);
            }
            ChunkKind::Facts => {
                let mut facts: engine::event::Facts = serde_json::from_slice(payload).map_err(|_| NO_JSON)?;
                facts.end = None;
                if !self.facts.add(facts, self.room.limits().facts) {
                    return Err("there are more facts than any recording has");
                }
            }
            ChunkKind::Events => {
                let before = self.recording.events.len();
                let unknown = columns::decode(payload, &mut self.recording.events)
                    .map_err(|_| "a chunk of events does not decode")?;
                let records = (self.recording.events.len() - before) as u64;
                if records + unknown != u64::from(entry.items) {
                    self.recording.events.truncate(before);
                    return Err("a chunk holds another number of events than it says");
                }
                self.info.events += records;
                self.info.unknown_records += unknown;
            }
            ChunkKind::Notes => {
                let notes: Vec<Note> = serde_json::from_slice(payload).map_err(|_| NO_JSON)?;
                if !self.room.take_notes(notes.len(), 0) {
                    return Err("there are more notes than any recording has");
                }
                self.recording.notes.extend(notes);
            }
            ChunkKind::CutStacks => {
                let last = self.recording.notes.get_mut(self.last_stacks.clone()).unwrap_or_default();
                if stacks::mark_cut(payload, last) != Some(entry.items) {
                    return Err("a chunk of cut stacks does not decode");
                }
            }
            // Stacks are added where it is known whether they have room. Drafts are read after the last chunk. A reader
            // that begins at the start of the file needs no snapshots.
            ChunkKind::Stacks | ChunkKind::Draft | ChunkKind::Snapshot => {}
            ChunkKind::EndPart => {
                let WindowEnd { threads, pending, .. } =
                    serde_json::from_slice(payload).map_err(|_| NO_JSON)?;
                if !self.room.take_end(threads.len() + pending.len(), 0) {
                    return Err("there are more threads at the end than any machine has");
                }
                self.end_parts.0.extend(threads);
                self.end_parts.1.extend(pending);
            }
            ChunkKind::End => {
                let mut end: WindowEnd = serde_json::from_slice(payload).map_err(|_| NO_JSON)?;
                let (mut threads, mut pending) = std::mem::take(&mut self.end_parts);
                threads.append(&mut end.threads);
                pending.append(&mut end.pending);
                self.recording.facts.end = Some(WindowEnd { threads, pending, ..end });
            }
            ChunkKind::Index | ChunkKind::IndexPart => {
                let (fold, offset) = Fold::of_index(kind, payload).ok_or("the index does not decode")?;
                if offset != entry.offset || fold != self.seen {
                    return Err("chunks are missing: the index lists others than are there");
                }
                self.seen = Fold::default();
                self.indexed = kind == ChunkKind::Index;
            }
        }
        Ok(())
    }

    /// Adds stacks that take this many bytes of memory. The caller has checked that there is room.
    fn add_stacks(&mut self, notes: Vec<Note>, bytes: u64) -> Result<(), &'static str> {
        if !self.room.take_notes(notes.len(), bytes) {
            return Err("there are more stacks than any recording has");
        }
        let first = self.recording.notes.len();
        self.recording.notes.extend(notes);
        self.last_stacks = first..self.recording.notes.len();
        self.stacks = true;
        Ok(())
    }

    fn finish(self, damage: Option<Damage>) -> (Recording, SessionInfo) {
        let mut recording = self.recording;
        if self.stacks {
            // Stacks are in chunks of their own, so they have to be sorted into the notes by time.
            recording.notes.sort_by_key(|note| note.time_ns);
        }
        let end = recording.facts.end.take();
        recording.facts = engine::event::Facts { end, ..self.facts.finish() };
        (recording, SessionInfo { damage, ..self.info })
    }
}
