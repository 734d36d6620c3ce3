//! Encodes records into chunks of events, in any thread. The decoder thread does this, because it has the records in
//! its cache. The writer thread then gets a twentieth of the bytes.

use super::chunk::{ChunkHeader, ChunkKind, Packed, Packer, Unpacker};
use super::columns::{Encoder, decode};
use probe_abi::Record;
use std::io;

/// Largest number of records in a chunk: enough to pack well, and few enough that losing one chunk matters little.
const RECORDS_PER_CHUNK: u32 = 1 << 14;

/// Longest recorded time of a chunk, in nanoseconds. A quiet program may not fill a chunk in this time, so a timer also
/// takes the open chunk.
const NS_PER_CHUNK: u64 = 1_000_000_000;

/// The error for a record whose header names another kind than the record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record whose kind byte is wrong")]
pub struct Contradiction;

/// Records that are encoded as in the file but not packed yet.
#[derive(Clone, PartialEq, Eq)]
pub struct EventChunk {
    /// Number of records.
    pub records: u32,
    /// Size of the records in the kernel's format, in bytes.
    pub raw_bytes: u64,
    /// Time of the earliest record (`CLOCK_MONOTONIC` nanoseconds).
    pub first_ns: u64,
    /// Time of the latest record.
    pub last_ns: u64,
    /// The encoded columns: see [`super::columns`].
    pub(super) payload: Vec<u8>,
}

impl std::fmt::Debug for EventChunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} records, {} to {} ns", self.records, self.first_ns, self.last_ns)
    }
}

impl EventChunk {
    /// Packs the chunk as in the file.
    pub(super) fn pack(self, packer: &mut Packer) -> io::Result<PackedEvents> {
        let EventChunk { records, raw_bytes, first_ns, last_ns, payload } = self;
        Ok(PackedEvents { records, raw_bytes, first_ns, last_ns, packed: packer.pack(payload)? })
    }

    /// Size before packing, in bytes.
    pub(super) fn payload_bytes(&self) -> u64 {
        self.payload.len() as u64
    }

    /// Splits the records at the time `at_ns`: those before it, and all others. Each of the two lists may have any
    /// number of chunks.
    pub(super) fn split(self, at_ns: u64) -> io::Result<(Vec<EventChunk>, Vec<EventChunk>)> {
        if self.last_ns < at_ns {
            return Ok((vec![self], Vec::new()));
        }
        if self.first_ns >= at_ns {
            return Ok((Vec::new(), vec![self]));
        }
        let mut records = Vec::new();
        decode(&self.payload, &mut records).map_err(|_| io::Error::other(NO_RECORDS))?;
        let (before, after): (Vec<Record>, Vec<Record>) =
            records.into_iter().partition(|record| record.header().time_ns < at_ns);
        Ok((chunks_of(&before)?, chunks_of(&after)?))
    }
}

/// Error text for memory that does not decode. The same process has encoded the records, so this means broken memory.
const NO_RECORDS: &str = "records in memory do not decode";

fn chunks_of(records: &[Record]) -> io::Result<Vec<EventChunk>> {
    let (mut open, mut chunks) = (EventChunks::default(), Vec::new());
    for record in records {
        chunks.extend(open.push(record).map_err(io::Error::other)?);
    }
    chunks.extend(open.take());
    Ok(chunks)
}

/// Records encoded and packed as in the file.
pub(super) struct PackedEvents {
    /// See [`EventChunk`].
    pub records: u32,
    pub raw_bytes: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    pub packed: Packed,
}

impl PackedEvents {
    /// Size in the file, in bytes.
    pub fn bytes(&self) -> u64 {
        (ChunkHeader::BYTES + self.packed.bytes.len()) as u64
    }

    /// Appends the records to `records`.
    pub fn unpack(&self, unpacker: &mut Unpacker, records: &mut Vec<Record>) -> io::Result<()> {
        let Packed { flags, raw_bytes, bytes } = &self.packed;
        let times = (self.first_ns, self.last_ns);
        let header = ChunkHeader::of(ChunkKind::Events, self.records, times, (*flags, *raw_bytes), bytes)?;
        let payload = unpacker.unpack(&header, bytes.clone()).map_err(io::Error::other)?;
        decode(&payload, records).map_err(|_| io::Error::other(NO_RECORDS))?;
        Ok(())
    }
}

/// Encodes records into chunks, one after the other. One chunk is always open.
#[derive(Default)]
pub struct EventChunks {
    events: Encoder,
    open: Option<Open>,
}

#[derive(Clone, Copy)]
struct Open {
    opened_ns: u64,
    first_ns: u64,
    last_ns: u64,
    raw_bytes: u64,
}

impl EventChunks {
    /// Adds a record. Returns the chunk if it is now full or a second long.
    ///
    /// # Errors
    /// [`Contradiction`]; the record was not added.
    pub fn push(&mut self, record: &Record) -> Result<Option<EventChunk>, Contradiction> {
        if !self.events.push(record) {
            return Err(Contradiction);
        }
        let time = record.header().time_ns;
        let open =
            self.open.get_or_insert(Open { opened_ns: time, first_ns: time, last_ns: time, raw_bytes: 0 });
        open.first_ns = open.first_ns.min(time);
        open.last_ns = open.last_ns.max(time);
        open.raw_bytes += record.as_bytes().len() as u64;
        let long = open.last_ns.saturating_sub(open.opened_ns) >= NS_PER_CHUNK;
        Ok(if long || self.events.records() >= RECORDS_PER_CHUNK { self.take() } else { None })
    }

    /// A copy of the open chunk, if it has records. The chunk itself stays open.
    pub fn draft(&self) -> Option<EventChunk> {
        let Open { first_ns, last_ns, raw_bytes, .. } = self.open?;
        let records = self.events.records();
        Some(EventChunk { records, raw_bytes, first_ns, last_ns, payload: self.events.payload() })
    }

    /// Closes the open chunk and returns it, if it has records.
    pub fn take(&mut self) -> Option<EventChunk> {
        let Open { first_ns, last_ns, raw_bytes, .. } = self.open.take()?;
        let records = self.events.records();
        Some(EventChunk { records, raw_bytes, first_ns, last_ns, payload: self.events.finish() })
    }
}
