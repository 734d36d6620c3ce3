//! Copies complete chunks from one file to another without unpacking them, because a chunk does not depend on its
//! position. The copy gets an index of its own.

use super::chunk::{ChunkHeader, ChunkKind, Packed, Packer};
use super::header::FileHeader;
use super::index::{self, Entry};
use std::io::{self, Read, Write};

/// The error for a file that has changed since it was read.
pub fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the session has changed while it was read")
}

/// Reads the next chunk. The caller has read or written the file before, so any damage is an error.
pub fn next_chunk(from: &mut impl Read) -> io::Result<(ChunkHeader, Vec<u8>)> {
    let mut bytes = [0u8; ChunkHeader::BYTES];
    from.read_exact(&mut bytes)?;
    let header = ChunkHeader::decode(&bytes).map_err(|_| changed())?;
    let mut payload = Vec::new();
    from.by_ref().take(u64::from(header.stored_bytes)).read_to_end(&mut payload)?;
    if payload.len() != header.stored_bytes as usize {
        return Err(changed());
    }
    Ok((header, payload))
}

/// Writes a file of copied chunks.
pub struct Copy<W> {
    to: W,
    packer: Packer,
    at: u64,
    entries: Vec<Entry>,
}

impl<W: Write> Copy<W> {
    /// Begins a file with this header.
    pub fn begin(mut to: W, head: &[u8; FileHeader::BYTES]) -> io::Result<Copy<W>> {
        to.write_all(head)?;
        Ok(Copy { to, packer: Packer::new()?, at: FileHeader::BYTES as u64, entries: Vec::new() })
    }

    /// Adds a chunk unchanged. An index or a part of one is not copied, because it describes the original file.
    pub fn chunk(&mut self, header: &ChunkHeader, payload: &[u8]) -> io::Result<()> {
        if header.kind == ChunkKind::IndexPart as u16 {
            return Ok(());
        }
        self.put(header, payload)?;
        if self.entries.len() >= index::MOST_ENTRIES { self.index(ChunkKind::IndexPart) } else { Ok(()) }
    }

    /// Adds a new chunk.
    pub fn new_chunk(
        &mut self,
        kind: ChunkKind,
        items: u32,
        times: (u64, u64),
        raw: Vec<u8>,
    ) -> io::Result<()> {
        let Packed { flags, raw_bytes, bytes } = self.packer.pack(raw)?;
        let header = ChunkHeader::of(kind, items, times, (flags, raw_bytes), &bytes)?;
        self.chunk(&header, &bytes)
    }

    /// Ends the file. Returns its size in bytes.
    pub fn finish(mut self) -> io::Result<u64> {
        self.index(ChunkKind::Index)?;
        self.to.flush()?;
        Ok(self.at)
    }

    fn index(&mut self, kind: ChunkKind) -> io::Result<()> {
        let packed = Packed::plain(index::encode(kind, &self.entries, self.at));
        let items = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.clear();
        let header = ChunkHeader::of(kind, items, (0, 0), (packed.flags, packed.raw_bytes), &packed.bytes)?;
        self.put(&header, &packed.bytes)
    }

    fn put(&mut self, header: &ChunkHeader, payload: &[u8]) -> io::Result<()> {
        self.to.write_all(&header.encode())?;
        self.to.write_all(payload)?;
        self.entries.push(Entry::new(self.at, header));
        self.at = self.at.saturating_add((ChunkHeader::BYTES + payload.len()) as u64);
        Ok(())
    }
}
