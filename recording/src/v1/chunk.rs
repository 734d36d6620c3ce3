//! The header of a chunk, and the packing of its payload.

use std::io;

/// The start of every chunk. A reader searches for it after damage.
pub const CHUNK_MAGIC: [u8; 4] = *b"LPck";

/// Largest size of a payload, packed or unpacked, in bytes.
pub const MOST_BYTES: u32 = 16 << 20;

/// Largest size of a draft's payload, in bytes. A draft contains one chunk of any size with its header, and the chunks
/// before it.
pub const MOST_DRAFT_BYTES: u32 = 2 * MOST_BYTES;

/// Largest number of records in one chunk of events.
pub const MOST_RECORDS: u32 = 1 << 16;

/// Largest ratio of unpacked to packed bytes. A payload that would pack better is stored unpacked, so that a small file
/// cannot claim much memory.
pub const MOST_RATIO: u32 = 256;

/// Flag: the payload is a zstd frame.
const ZSTD: u16 = 1;

/// Kinds of chunks: see the table in the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    Meta = 1,
    Facts = 2,
    Events = 3,
    Notes = 4,
    End = 5,
    Index = 6,
    Stacks = 7,
    IndexPart = 8,
    Draft = 9,
    EndPart = 10,
    CutStacks = 11,
    Snapshot = 12,
}

impl ChunkKind {
    /// The kind with this number; `None` if this version does not know the kind.
    pub fn from_number(number: u16) -> Option<ChunkKind> {
        Some(match number {
            1 => ChunkKind::Meta,
            2 => ChunkKind::Facts,
            3 => ChunkKind::Events,
            4 => ChunkKind::Notes,
            5 => ChunkKind::End,
            6 => ChunkKind::Index,
            7 => ChunkKind::Stacks,
            8 => ChunkKind::IndexPart,
            9 => ChunkKind::Draft,
            10 => ChunkKind::EndPart,
            11 => ChunkKind::CutStacks,
            12 => ChunkKind::Snapshot,
            _ => return None,
        })
    }
}

/// A chunk's header, without the magic and the checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    pub kind: u16,
    pub flags: u16,
    pub stored_bytes: u32,
    pub raw_bytes: u32,
    pub items: u32,
    pub first_ns: u64,
    pub last_ns: u64,
    pub payload_crc: u32,
}

impl ChunkHeader {
    /// Size in the file, in bytes.
    pub const BYTES: usize = 44;

    /// The header for a payload. `stored` has the payload's bytes in the file.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if a reader would refuse the chunk.
    pub fn of(
        kind: ChunkKind,
        items: u32,
        (first_ns, last_ns): (u64, u64),
        (flags, raw_bytes): (u16, usize),
        stored: &[u8],
    ) -> io::Result<ChunkHeader> {
        let refused = |why: &'static str| io::Error::new(io::ErrorKind::InvalidInput, why);
        let size = |bytes: usize| u32::try_from(bytes).map_err(|_| refused("a chunk grew too large"));
        let header = ChunkHeader {
            kind: kind as u16,
            flags,
            stored_bytes: size(stored.len())?,
            raw_bytes: size(raw_bytes)?,
            items,
            first_ns,
            last_ns,
            payload_crc: crc32fast::hash(stored),
        };
        // The writer checks the same limits as the reader.
        header.within_limits().map_err(refused)?;
        Ok(header)
    }

    /// The header's bytes in the file.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&CHUNK_MAGIC);
        bytes[4..6].copy_from_slice(&self.kind.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.flags.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.stored_bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.raw_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.items.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.first_ns.to_le_bytes());
        bytes[28..36].copy_from_slice(&self.last_ns.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..40]);
        bytes[40..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes a header. `Err` says what is wrong with it.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Result<ChunkHeader, &'static str> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | (u64::from(u32_at(at + 4)) << 32);
        if bytes[..4] != CHUNK_MAGIC {
            return Err("no chunk starts here");
        }
        if crc32fast::hash(&bytes[..40]) != u32_at(40) {
            return Err("the checksum of a chunk's header is wrong");
        }
        let header = ChunkHeader {
            kind: u16_at(4),
            flags: u16_at(6),
            stored_bytes: u32_at(8),
            raw_bytes: u32_at(12),
            items: u32_at(16),
            first_ns: u64_at(20),
            last_ns: u64_at(28),
            payload_crc: u32_at(36),
        };
        header.within_limits()?;
        Ok(header)
    }

    /// Refuses sizes that no writer makes, before any memory is allocated for the chunk.
    fn within_limits(&self) -> Result<(), &'static str> {
        let most = if self.kind == ChunkKind::Draft as u16 { MOST_DRAFT_BYTES } else { MOST_BYTES };
        if self.stored_bytes > most || self.raw_bytes > most {
            return Err("a chunk claims to be larger than any chunk may be");
        }
        if self.flags & ZSTD == 0 && self.stored_bytes != self.raw_bytes {
            return Err("a chunk's sizes contradict each other");
        }
        if self.flags & ZSTD != 0 && self.raw_bytes / MOST_RATIO > self.stored_bytes {
            return Err("a chunk claims to unpack to more than any chunk may");
        }
        if self.kind == ChunkKind::Events as u16 && self.items > MOST_RECORDS {
            return Err("a chunk claims more records than any chunk may hold");
        }
        Ok(())
    }
}

/// Packs payloads. The work space is allocated only once.
pub struct Packer {
    zstd: zstd::bulk::Compressor<'static>,
}

/// A payload in the form in which the file stores it.
pub struct Packed {
    pub flags: u16,
    pub raw_bytes: usize,
    pub bytes: Vec<u8>,
}

impl Packed {
    /// Stores a payload unpacked.
    pub fn plain(raw: Vec<u8>) -> Packed {
        Packed { flags: 0, raw_bytes: raw.len(), bytes: raw }
    }
}

impl Packer {
    pub fn new() -> io::Result<Packer> {
        // Level 1 packs a few hundred MB/s. Higher levels save little more, because the columns have removed most
        // redundancy already.
        Ok(Packer { zstd: zstd::bulk::Compressor::new(1)? })
    }

    /// Packs a payload if packing makes it smaller and the ratio stays within [`MOST_RATIO`]. Otherwise the payload is
    /// stored unpacked.
    pub fn pack(&mut self, raw: Vec<u8>) -> io::Result<Packed> {
        let packed = self.zstd.compress(&raw)?;
        let helps = packed.len() < raw.len();
        let modest = raw.len() / MOST_RATIO as usize <= packed.len();
        if helps && modest {
            Ok(Packed { flags: ZSTD, raw_bytes: raw.len(), bytes: packed })
        } else {
            Ok(Packed::plain(raw))
        }
    }
}

/// Unpacks payloads. The work space is allocated only once.
pub struct Unpacker {
    zstd: zstd::bulk::Decompressor<'static>,
}

impl Unpacker {
    pub fn new() -> io::Result<Unpacker> {
        Ok(Unpacker { zstd: zstd::bulk::Decompressor::new()? })
    }

    /// The unpacked payload, exactly `raw_bytes` long. `Err` says what is wrong with the payload.
    pub fn unpack(&mut self, header: &ChunkHeader, stored: Vec<u8>) -> Result<Vec<u8>, &'static str> {
        let raw_bytes = header.raw_bytes as usize;
        let raw = if header.flags & ZSTD == 0 {
            stored
        } else {
            self.zstd.decompress(&stored, raw_bytes).map_err(|_| "a chunk does not unpack")?
        };
        if raw.len() == raw_bytes { Ok(raw) } else { Err("a chunk unpacks to another size than it says") }
    }
}
