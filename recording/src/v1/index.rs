//! The last chunk: the place of every other chunk, so that a reader can jump and can check that none is missing. A recording of
//! many hours also has parts of an index in between. Each lists the chunks since the part before it, that part included.
//!
//! ```text
//! payload = { kind:varint offset_difference:varint items:varint first_ns_difference:varint length_ns:varint }*
//!           index_offset:u64 mark[8]
//! ```
//!
//! Offsets are from the start of the file to a chunk's header; differences are to the entry before, times zigzag. The payload
//! is stored plain, so that the last 16 bytes of a whole file have the index's place. A part has another mark, so that a file
//! cut after it does not look whole.

use super::chunk::{ChunkHeader, ChunkKind};
use super::varint::{put, take, unzigzag, zigzag};

/// The last 8 bytes of a complete file.
const MARK: [u8; 8] = *b"LPindex\n";

/// The last 8 bytes of a part.
const PART_MARK: [u8; 8] = *b"LPinpart";

/// Largest number of chunks in one part of the index: each takes at most 28 bytes, mostly 10, of the 16 MiB that a
/// chunk may have.
pub const MOST_ENTRIES: usize = 1 << 18;

/// The entry for one chunk in the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub kind: u16,
    pub offset: u64,
    pub items: u32,
    pub first_ns: u64,
    pub last_ns: u64,
}

impl Entry {
    pub fn new(offset: u64, header: &ChunkHeader) -> Entry {
        Entry {
            kind: header.kind,
            offset,
            items: header.items,
            first_ns: header.first_ns,
            last_ns: header.last_ns,
        }
    }
}

/// The payload of an index, or of a part, that will lie at `index_offset`.
pub fn encode(kind: ChunkKind, entries: &[Entry], index_offset: u64) -> Vec<u8> {
    let mut payload = Vec::with_capacity(entries.len() * 12 + 16);
    let (mut offset, mut first_ns) = (0, 0u64);
    for entry in entries {
        put(&mut payload, u64::from(entry.kind));
        put(&mut payload, entry.offset.wrapping_sub(offset));
        put(&mut payload, u64::from(entry.items));
        put(&mut payload, zigzag(entry.first_ns.wrapping_sub(first_ns)));
        put(&mut payload, entry.last_ns.wrapping_sub(entry.first_ns));
        (offset, first_ns) = (entry.offset, entry.first_ns);
    }
    payload.extend_from_slice(&index_offset.to_le_bytes());
    payload.extend_from_slice(mark_of(kind));
    payload
}

fn mark_of(kind: ChunkKind) -> &'static [u8; 8] {
    if kind == ChunkKind::IndexPart { &PART_MARK } else { &MARK }
}

/// A checksum of entries. It compares the index with the chunks that were read before the index, so that neither list
/// must be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fold {
    entries: u64,
    crc: u32,
}

impl Fold {
    /// Adds the next entry.
    pub fn add(&mut self, entry: &Entry) {
        let mut hasher = crc32fast::Hasher::new_with_initial(self.crc);
        hasher.update(&entry.kind.to_le_bytes());
        hasher.update(&entry.offset.to_le_bytes());
        hasher.update(&entry.items.to_le_bytes());
        hasher.update(&entry.first_ns.to_le_bytes());
        hasher.update(&entry.last_ns.to_le_bytes());
        self.crc = hasher.finalize();
        self.entries += 1;
    }

    /// The checksum of the entries in the payload of an index or of its part, and the offset in the payload; `None` if
    /// it is not an index.
    pub fn of_index(kind: ChunkKind, payload: &[u8]) -> Option<(Fold, u64)> {
        let mut fold = Fold::default();
        let index_offset = decode(kind, payload, |entry| {
            fold.add(&entry);
            Some(())
        })?;
        Some((fold, index_offset))
    }
}

/// Reads the entries of an index or of a part, as long as `each` returns `Some`. Returns the offset in the payload; `None` if
/// it is no index, or if `each` has stopped.
pub fn decode(kind: ChunkKind, payload: &[u8], mut each: impl FnMut(Entry) -> Option<()>) -> Option<u64> {
    let (rest, mark) = payload.split_last_chunk::<8>()?;
    let (mut rest, index_offset) = rest.split_last_chunk::<8>()?;
    if mark != mark_of(kind) {
        return None;
    }
    let (mut offset, mut first_ns) = (0u64, 0u64);
    while !rest.is_empty() {
        let kind = u16::try_from(take(&mut rest)?).ok()?;
        offset = offset.wrapping_add(take(&mut rest)?);
        let items = u32::try_from(take(&mut rest)?).ok()?;
        first_ns = first_ns.wrapping_add(unzigzag(take(&mut rest)?));
        let last_ns = first_ns.wrapping_add(take(&mut rest)?);
        each(Entry { kind, offset, items, first_ns, last_ns })?;
    }
    Some(u64::from_le_bytes(*index_offset))
}

/// Bytes at the end of an index: its offset and the mark.
pub const END_BYTES: usize = 16;

/// The offset of the index, from the last bytes of a file; `None` if the file is not complete.
pub fn offset_of(end: &[u8; END_BYTES]) -> Option<u64> {
    let (offset, mark) = end.split_first_chunk::<8>()?;
    (mark == MARK).then(|| u64::from_le_bytes(*offset))
}
