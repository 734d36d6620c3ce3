//! The last chunk: where every other chunk lies, so that a reader can jump, and can tell that none is missing. A recording
//! of many hours has parts of it on the way, each for the chunks since the one before, which it lists, too.
//!
//! ```text
//! payload = { kind:varint offset_difference:varint items:varint first_ns_difference:varint length_ns:varint }*
//!           index_offset:u64 mark[8]
//! ```
//!
//! Offsets count from the start of the file to a chunk's header; differences are to the entry before, times
//! zigzag. The payload is stored plain, so that the last 16 bytes of a whole file say where the index is. A
//! part has another mark, so that a file that is cut after it does not look whole.

use super::chunk::{ChunkHeader, ChunkKind};
use super::varint::{put, take, unzigzag, zigzag};

/// The last 8 bytes of a whole file.
const MARK: [u8; 8] = *b"LPindex\n";

/// The last 8 bytes of a part.
const PART_MARK: [u8; 8] = *b"LPinpart";

/// Chunks in one part: each takes at most 28 bytes, mostly 10, of the 16 MiB that a chunk may have.
pub const MOST_ENTRIES: usize = 1 << 18;

/// One chunk.
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

/// The payload of the index chunk, or part of one, that will lie at `index_offset`.
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

/// Checks the index against what was read on the way to it, without keeping either: both sides fold their
/// entries into one number.
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

    /// The fold of the payload of an index, or part of one, and the offset that it claims; `None` if it is
    /// not one.
    pub fn of_index(kind: ChunkKind, payload: &[u8]) -> Option<(Fold, u64)> {
        let mut fold = Fold::default();
        let index_offset = decode(kind, payload, |entry| {
            fold.add(&entry);
            Some(())
        })?;
        Some((fold, index_offset))
    }
}

/// Goes through the entries of an index, or of a part of one, until `each` has seen enough. Returns the offset that it claims;
/// `None` if it is not one, or one that was seen enough of.
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

/// Bytes at the end of an index: its own offset and the mark.
pub const END_BYTES: usize = 16;

/// Where the index lies, by the last bytes of a file; `None`: it is not whole.
pub fn offset_of(end: &[u8; END_BYTES]) -> Option<u64> {
    let (offset, mark) = end.split_first_chunk::<8>()?;
    (mark == MARK).then(|| u64::from_le_bytes(*offset))
}
