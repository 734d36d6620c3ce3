//! Reading a session up to its last whole chunk.

use super::chunk::{CHUNK_MAGIC, ChunkHeader, ChunkKind, Unpacker};
use super::drafts::{self, Behind};
use super::header::FileHeader;
use super::index::{Entry, Fold};
use super::merge::{MOST_ENTRIES, Merger};
use super::{columns, stacks};
use crate::session::{Damage, DamageKind, SessionError, SessionInfo};
use engine::event::{Note, Recording};
use std::io::{self, Cursor, Read, Seek, SeekFrom};

/// Most that is read; what lies behind is damage of the kind [`DamageKind::TooLarge`].
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Events.
    pub events: u64,
    /// Bytes of unpacked JSON in all chunks of facts and notes, and of unpacked stacks, together. Counting entries is not enough, because
    /// their lists and names have any length.
    pub json_bytes: u64,
}

impl Limits {
    /// A recording of a million functions takes about as much. In memory a byte of a list becomes at most 8: `0,`
    /// in a list of rates, in a vector that has just doubled.
    pub const JSON_BYTES: u64 = 256 << 20;
}

/// Reads what follows the file header. `file_bytes` is the size of the whole file.
pub fn read<R: Read + Seek>(
    source: R,
    header: &FileHeader,
    file_bytes: u64,
    limits: Limits,
) -> Result<(Recording, SessionInfo), SessionError> {
    let mut reader = Reader {
        source,
        file_bytes,
        at: FileHeader::BYTES as u64,
        limits,
        json_bytes: 0,
        unpacker: Unpacker::new()?,
        contents: Contents {
            info: SessionInfo { version: (header.major, header.minor), file_bytes, ..SessionInfo::default() },
            ..Contents::default()
        },
    };
    let stopped = loop {
        match reader.chunk()? {
            Step::Next => {}
            Step::Stop(kind) => break kind,
        }
    };
    let damage = match stopped {
        None => None,
        Some(kind) => reader.behind(kind)?,
    };
    Ok(reader.contents.finish(damage))
}

struct Reader<R> {
    source: R,
    file_bytes: u64,
    /// Offset of the next chunk.
    at: u64,
    limits: Limits,
    /// Unpacked JSON of facts and notes so far.
    json_bytes: u64,
    unpacker: Unpacker,
    contents: Contents,
}

enum Step {
    Next,
    /// Nothing more to read: `None` if all is well.
    Stop(Option<DamageKind>),
}

fn corrupt(reason: &'static str) -> Step {
    Step::Stop(Some(DamageKind::Corrupt { reason }))
}

impl<R: Read + Seek> Reader<R> {
    /// After the last good chunk: what a killed writer had not yet put into a full one, and what is missing.
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
        let payload = match behind {
            Behind::Nothing => return self.rest(kind).map(Some),
            Behind::Remains => return Ok(Some(unfinished)),
            Behind::Draft(payload) => payload,
        };
        let mut draft = Reader {
            file_bytes: payload.len() as u64,
            source: Cursor::new(payload),
            at: 0,
            limits: self.limits,
            json_bytes: self.json_bytes,
            unpacker: Unpacker::new()?,
            contents: std::mem::take(&mut self.contents),
        };
        let stopped = loop {
            match draft.chunk()? {
                Step::Next => {}
                Step::Stop(kind) => break kind,
            }
        };
        self.contents = draft.contents;
        Ok(match stopped {
            // The end of the recording itself was in it.
            None => None,
            Some(DamageKind::TooLarge) => Some(Damage { kind: DamageKind::TooLarge, ..unfinished }),
            Some(_) => Some(unfinished),
        })
    }

    /// Reads the next chunk. `at` moves on only if it was good.
    fn chunk(&mut self) -> io::Result<Step> {
        let left = self.file_bytes.saturating_sub(self.at);
        match (left, self.contents.indexed) {
            (0, true) => return Ok(Step::Stop(None)),
            (0, false) => return Ok(Step::Stop(Some(DamageKind::NoEnd))),
            (_, true) => return Ok(Step::Stop(Some(DamageKind::Trailing))),
            (_, false) => {}
        }
        let Some(bytes) = self.header_bytes()? else {
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
            // The file shrank while it was read.
            return Ok(Step::Stop(Some(DamageKind::Cut {
                missing_bytes: stored_bytes - stored.len() as u64,
            })));
        }
        if crc32fast::hash(&stored) != header.payload_crc {
            return Ok(corrupt("the checksum of a chunk is wrong"));
        }
        let kind = ChunkKind::from_number(header.kind);
        let (events, json_bytes) = match kind {
            Some(ChunkKind::Events) => (u64::from(header.items), 0),
            Some(ChunkKind::Facts | ChunkKind::Notes) => (0, u64::from(header.raw_bytes)),
            _ => (0, 0),
        };
        self.json_bytes = self.json_bytes.saturating_add(json_bytes);
        if self.contents.info.events.saturating_add(events) > self.limits.events
            || self.json_bytes > self.limits.json_bytes
        {
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
                let room = self.limits.json_bytes.saturating_sub(self.json_bytes);
                match self.unpacker.unpack(&header, stored).map(|payload| stacks::decode(&payload, room)) {
                    Ok(Ok((notes, used))) if notes.len() as u64 == u64::from(header.items) => {
                        self.json_bytes = self.json_bytes.saturating_add(used);
                        self.contents.add_stacks(notes)
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

    /// The next chunk's header; `None` if the file ends before.
    fn header_bytes(&mut self) -> io::Result<Option<[u8; ChunkHeader::BYTES]>> {
        let mut bytes = [0; ChunkHeader::BYTES];
        match self.source.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Counts what lies behind the last good chunk by its headers, without unpacking. Goes forward only, so it takes
    /// time in proportion to the file whatever the file holds.
    fn rest(&mut self, kind: DamageKind) -> io::Result<Damage> {
        let mut damage = Damage {
            kind,
            at_byte: self.at,
            unread_bytes: self.file_bytes.saturating_sub(self.at),
            unread_chunks: 0,
            unread_events: 0,
        };
        let mut first = self.at;
        if matches!(damage.kind, DamageKind::Corrupt { .. }) {
            // The damaged chunk itself is none of the whole ones.
            first += 1;
        }
        self.source.seek(SeekFrom::Start(first))?;
        // `window[next..]`, which lies at `window_at + next` in the file, has not been looked at yet.
        let mut window: Vec<u8> = Vec::new();
        let mut window_at = first;
        let mut next = 0;
        loop {
            if window.len() - next < ChunkHeader::BYTES {
                window.drain(..next);
                window_at += next as u64;
                next = 0;
                if self.source.by_ref().take(1 << 16).read_to_end(&mut window)? == 0 {
                    return Ok(damage);
                }
                continue;
            }
            let left = &window[next..];
            match left.windows(CHUNK_MAGIC.len()).position(|bytes| bytes == CHUNK_MAGIC) {
                Some(0) => {}
                Some(skip) => {
                    next += skip;
                    continue;
                }
                None => {
                    next = window.len() - (CHUNK_MAGIC.len() - 1);
                    continue;
                }
            }
            let header = left.first_chunk().and_then(|bytes| ChunkHeader::decode(bytes).ok());
            let Some(header) = header else {
                next += 1;
                continue;
            };
            let start = window_at + next as u64;
            let end = start + ChunkHeader::BYTES as u64 + u64::from(header.stored_bytes);
            if end > self.file_bytes {
                next += 1;
                continue;
            }
            damage.unread_chunks += 1;
            if header.kind == ChunkKind::Events as u16 {
                damage.unread_events = damage.unread_events.saturating_add(u64::from(header.items));
            }
            if end <= window_at + window.len() as u64 {
                next = (end - window_at) as usize;
            } else {
                self.source.seek(SeekFrom::Start(end))?;
                window.clear();
                (window_at, next) = (end, 0);
            }
        }
    }
}

/// What has been read so far.
#[derive(Default)]
struct Contents {
    recording: Recording,
    facts: Merger,
    info: SessionInfo,
    /// The chunks on the way, to be compared with the index.
    seen: Fold,
    /// There were stacks.
    stacks: bool,
    /// The index has been read, so the session is whole.
    indexed: bool,
}

impl Contents {
    fn take(&mut self, kind: ChunkKind, entry: &Entry, payload: &[u8]) -> Result<(), &'static str> {
        const NO_JSON: &str = "a chunk does not hold what its kind says";
        match kind {
            ChunkKind::Meta => {
                let meta = serde_json::from_slice(payload).map_err(|_| NO_JSON)?;
                // Only the first one counts.
                self.info.meta.get_or_insert(meta);
            }
            ChunkKind::Facts => {
                let mut facts: engine::event::Facts = serde_json::from_slice(payload).map_err(|_| NO_JSON)?;
                facts.end = None;
                if !self.facts.add(facts) {
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
                if self.recording.notes.len() + notes.len() > MOST_ENTRIES {
                    return Err("there are more notes than any recording has");
                }
                self.recording.notes.extend(notes);
            }
            // They are taken where the room for them is known, and drafts where no other chunk follows.
            ChunkKind::Stacks | ChunkKind::Draft => {}
            ChunkKind::End => {
                self.recording.facts.end = Some(serde_json::from_slice(payload).map_err(|_| NO_JSON)?);
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

    fn add_stacks(&mut self, notes: Vec<Note>) -> Result<(), &'static str> {
        if self.recording.notes.len() + notes.len() > MOST_ENTRIES {
            return Err("there are more stacks than any recording has");
        }
        self.recording.notes.extend(notes);
        self.stacks = true;
        Ok(())
    }

    fn finish(self, damage: Option<Damage>) -> (Recording, SessionInfo) {
        let mut recording = self.recording;
        if self.stacks {
            // They have chunks of their own.
            recording.notes.sort_by_key(|note| note.time_ns);
        }
        let end = recording.facts.end.take();
        recording.facts = engine::event::Facts { end, ..self.facts.finish() };
        (recording, SessionInfo { damage, ..self.info })
    }
}
