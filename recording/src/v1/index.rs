//! The index is the last chunk of a file. The index lists the position of every other chunk, so that a reader can jump
//! and can notice missing chunks. A recording of many hours also has parts of the index between its chunks. Each part
//! lists the chunks since the previous part, and also that part.
//!
//! ```text
//! payload = { kind:varint offset_difference:varint items:varint first_ns_difference:varint length_ns:varint }*
//!           index_offset:u64 mark[8]
//! An offset is the distance of a chunk's header from the start of the file. A difference is relative to the previous
//! entry; a time difference is zigzag-encoded. The payload is stored unpacked, so that the last 16 bytes of a complete
//! file contain the offset of the index. A part ends with another mark, so that a file cut after a part does not look
//! complete.

use super::chunk::{ChunkHeader, ChunkKind};
use super::varint::{put, take, unzigzag, zigzag};

/// The last 8 bytes of a complete file.
const MARK: [u8; 8] = *b"LPindex\n";

/// The last 8 bytes of a part of the index.
const PART_MARK: [u8; 8] = *b"LPinpart";

/// Largest number of chunks in one part of the index. An entry takes at most 28 bytes, mostly 10, and a chunk has at
/// most 16 MiB.
pub const MOST_ENTRIES: usize = 1 << 18;

/// The index's entry for one chunk.
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

/// Encodes the payload of an index, or of a part of one, whose header will be at `index_offset`.
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

/// A checksum of entries. A reader compares the checksum of the index with that of the chunks that it has read, so it
/// needs to keep neither list.
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

    /// The checksum of the entries in the payload of an index or of a part of one, and the offset that the payload
    /// names. `None` if the payload is no index.
    pub fn of_index(kind: ChunkKind, payload: &[u8]) -> Option<(Fold, u64)> {
        let mut fold = Fold::default();
        let index_offset = decode(kind, payload, |entry| {
            fold.add(&entry);
            Some(())
        })?;
        Some((fold, index_offset))
    }
}

/// Decodes the entries of an index or of a part of one, as long as `each` returns `Some`. Returns the offset that the
/// payload names. `None` if the payload is no index, or if `each` returned `None`.
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

/// Number of bytes at the end of an index: its offset and the mark.
pub const END_BYTES: usize = 16;

/// The offset of the index, read from the last bytes of a file. `None` if the file is not complete.
pub fn offset_of(end: &[u8; END_BYTES]) -> Option<u64> {
    let (offset, mark) = end.split_first_chunk::<8>()?;
    (mark == MARK).then(|| u64::from_le_bytes(*offset))
}
