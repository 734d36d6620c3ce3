//! The end of a file that is being written: final chunks, and after them drafts of chunks that are not yet full.
//!
//! A chunk packs well when it has thousands of records, but a killed recording should lose only a quarter of a second. So the
//! content of a chunk that is not full is repeatedly written as a draft, each time with more in it. The full chunk then
//! replaces the drafts. The payload of a draft is the chunks that would be at the place where the drafts begin; the last whole
//! draft counts.
//!
//! ```text
//! … chunk chunk │ draft draft draft            waiting
//! … chunk chunk │ draft draft draft draft      the last one holds the full chunk,
//! … chunk chunk chunk │ remains of drafts      which is then written over the first
//! ```
//!
//! A writer may be killed between any two bytes. When the full chunk begins to replace the first draft, the last draft has the
//! same content, beyond the end of the full chunk. Remains of drafts after the full chunk are known to be older by the offset
//! in their header. The next drafts are written over them; without such drafts, or at the end of the recording, they are cut
//! off.

use super::chunk::{ChunkHeader, ChunkKind};
use super::disk::Disk;
use std::io;

/// The end of a file that is being written; see the module's documentation.
pub struct Tail<D> {
    disk: D,
    /// Offset after the last final chunk.
    kept: u64,
    /// Whether there is a draft after that.
    has_draft: bool,
    /// Offset after the last draft.
    drafts: u64,
    /// Offset after everything that was ever written.
    reach: u64,
}

impl<D: Disk> Tail<D> {
    /// An empty file.
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

    /// Writes final chunks in place of all drafts. After an error the file can be read up to the final chunks before, or up to
    /// the last draft.
    pub fn keep(&mut self, chunks: &[u8]) -> io::Result<()> {
        let end = self.kept.saturating_add(chunks.len() as u64);
        if self.has_draft {
            // Beyond the place where the header of the next draft will be written.
            let place = self.drafts.max(end + ChunkHeader::BYTES as u64);
            if let Err(error) = self.put(place, &draft(self.kept, 0, chunks)?) {
                self.cut(self.drafts);
                // The disk may be full: the drafts' room can be used, and any further room is taken before a draft is lost.
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
            // If some bytes of new chunks preceded some bytes of an old draft, that would look like damage.
            self.end()?;
            if let Err(error) = self.put(self.kept, chunks) {
                self.cut(self.kept);
                return Err(error);
            }
        }
        (self.kept, self.drafts, self.has_draft) = (end, end, false);
        Ok(())
    }

    /// Writes a draft of chunks that are not final yet, with this number of records. After an error the previous draft stays.
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

    /// Cuts off remains of drafts.
    pub fn end(&mut self) -> io::Result<()> {
        if self.reach > self.kept {
            self.disk.cut(self.kept)?;
            self.reach = self.kept;
        }
        Ok(())
    }

    /// Writes with one call, so that in most cases either all bytes or none are written.
    fn put(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.reach = self.reach.max(at.saturating_add(bytes.len() as u64));
        self.disk.write_at(at, bytes)
    }

    /// Cuts the file after a failed write, of which a part may be there.
    fn cut(&mut self, at: u64) {
        // The caller reports the earlier failure.
        if self.disk.cut(at).is_ok() {
            self.reach = at;
        }
    }
}

/// A draft: a chunk whose payload is chunks that would be at `kept`.
fn draft(kept: u64, records: u32, chunks: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(ChunkHeader::BYTES + chunks.len());
    bytes.extend_from_slice(&[0; ChunkHeader::BYTES]);
    bytes.extend_from_slice(chunks);
    let header = ChunkHeader::of(ChunkKind::Draft, records, (kept, kept), (0, chunks.len()), chunks)?;
    bytes[..ChunkHeader::BYTES].copy_from_slice(&header.encode());
    Ok(bytes)
}
