//! Writes the end of a file during recording: final chunks, and after them drafts of chunks that are not full yet.
//!
//! A chunk packs well when it has thousands of records, but a killed recording should lose only a quarter of a second.
//! So the content of the open chunks is written again and again as a draft, each time with more records. The full chunk
//! then replaces the drafts. A draft is a chunk whose payload consists of the chunks that would be at the place where
//! the drafts begin. The last complete draft is valid.
//!
//! ```text
//! … chunk chunk │ draft draft draft            waiting
//! … chunk chunk │ draft draft draft draft      the last one holds the full chunk,
//! … chunk chunk chunk │ remains of drafts      which is then written over the first
//! ```
//!
//! A writer may be killed between any two bytes. While the full chunk overwrites the first draft, the last draft has
//! the same content and lies beyond the end of the full chunk. Remains of drafts after the full chunk are recognised as
//! old by the offset in their header. The next drafts overwrite these remains. If no drafts follow, or at the end of
//! the recording, the remains are cut off.

use super::chunk::{ChunkHeader, ChunkKind};
use super::disk::Disk;
use std::io;

/// The end of a file that is being written; see the module's documentation.
pub struct Tail<D> {
    disk: D,
    /// Offset of the first byte after the last final chunk.
    kept: u64,
    /// Whether there is a draft after the final chunks.
    has_draft: bool,
    /// Offset of the first byte after the last draft.
    drafts: u64,
    /// Offset of the first byte after everything that was ever written.
    reach: u64,
}

impl<D: Disk> Tail<D> {
    /// Takes an empty file.
    pub fn new(disk: D) -> Tail<D> {
        Tail { disk, kept: 0, has_draft: false, drafts: 0, reach: 0 }
    }

    /// The file.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// Whether there is a draft after the final chunks.
    pub fn has_draft(&self) -> bool {
        self.has_draft
    }

    /// Writes final chunks in place of all drafts. After an error, the file can be read up to the previous final chunks
    /// or up to the last draft.
    pub fn keep(&mut self, chunks: &[u8]) -> io::Result<()> {
        let end = self.kept.saturating_add(chunks.len() as u64);
        if self.has_draft {
            // A place beyond the bytes where the header of the next draft will be written.
            let place = self.drafts.max(end + ChunkHeader::BYTES as u64);
            if let Err(error) = self.put(place, &draft(self.kept, 0, chunks)?) {
                self.cut(self.drafts);
                // The disk may be full. The chunks use the drafts' space first, and more space is taken before a draft
                // is overwritten.
                let room = usize::try_from(self.drafts - self.kept).unwrap_or(usize::MAX);
                if let Some(more) = chunks.get(room..)
                    && self.put(self.drafts, more).is_err()
                {
                    self.cut(self.drafts);
                    return Err(error);
                }
            }
            self.put(self.kept, chunks)?;
        } else {
            // Bytes of new chunks directly before remains of an old draft would look like damage, so the remains are
            // removed first.
            self.end()?;
            if let Err(error) = self.put(self.kept, chunks) {
                self.cut(self.kept);
                return Err(error);
            }
        }
        (self.kept, self.drafts, self.has_draft) = (end, end, false);
        Ok(())
    }

    /// Writes a draft of chunks that are not final yet and contain this number of records. After an error, the previous
    /// draft stays.
    pub fn draft(&mut self, records: u32, chunks: &[u8]) -> io::Result<()> {
        let bytes = draft(self.kept, records, chunks)?;
        if let Err(error) = self.put(self.drafts, &bytes) {
            self.cut(self.drafts);
            return Err(error);
        }
        self.has_draft = true;
        self.drafts += bytes.len() as u64;
        Ok(())
    }

    /// Cuts off the remains of drafts.
    pub fn end(&mut self) -> io::Result<()> {
        if self.reach > self.kept {
            self.disk.cut(self.kept)?;
            self.reach = self.kept;
        }
        Ok(())
    }

    /// Writes with one system call, so that mostly either all bytes or none are written.
    fn put(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.reach = self.reach.max(at.saturating_add(bytes.len() as u64));
        self.disk.write_at(at, bytes)
    }

    /// Cuts the file after a failed write, which may have written a part.
    fn cut(&mut self, at: u64) {
        // An error here is ignored, because the caller reports the first failure.
        if self.disk.cut(at).is_ok() {
            self.reach = at;
        }
    }
}

/// Makes a draft: a chunk whose payload consists of chunks that would be at the offset `kept`.
fn draft(kept: u64, records: u32, chunks: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(ChunkHeader::BYTES + chunks.len());
    bytes.extend_from_slice(&[0; ChunkHeader::BYTES]);
    bytes.extend_from_slice(chunks);
    let header = ChunkHeader::of(ChunkKind::Draft, records, (kept, kept), (0, chunks.len()), chunks)?;
    bytes[..ChunkHeader::BYTES].copy_from_slice(&header.encode());
    Ok(bytes)
}
