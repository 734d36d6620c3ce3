//! The end of a file that is being written: whole chunks, and after them drafts of those that are not yet
//! full.
//!
//! A chunk packs well when it holds thousands of records, but a killed recording should lose only a quarter
//! of a second. So the content of a chunk that is not full is written repeatedly as a draft, with more in it
//! each time, and the full chunk replaces the drafts. A draft is a chunk whose payload is the chunks that
//! would be where the drafts begin; of several, the last whole one counts.
//!
//! ```text
//! … chunk chunk │ draft draft draft            waiting
//! … chunk chunk │ draft draft draft draft      the last one holds the full chunk,
//! … chunk chunk chunk │ remains of drafts      which is then written over the first
//! ```
//!
//! A writer may be killed between any two bytes of this. Before the full chunk begins to take the first
//! draft's place the last draft holds the same, further on than the full chunk reaches. Remains of drafts
//! after the full chunk are recognized as older by the offset in their header. The next drafts are written
//! over them; if none comes before, or at the end of the recording, they are cut off.

use super::chunk::{ChunkHeader, ChunkKind};
use super::disk::Disk;
use std::io;

/// See the module.
pub struct Tail<D> {
    disk: D,
    /// Offset after the last chunk that stays.
    kept: u64,
    /// There is a draft after that.
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

    /// Where it is written.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// There is a draft after what stays.
    pub fn has_draft(&self) -> bool {
        self.has_draft
    }

    /// Writes chunks that stay in place of all drafts. After an error the file reads up to what stayed before, or up to the
    /// last draft.
    pub fn keep(&mut self, chunks: &[u8]) -> io::Result<()> {
        let end = self.kept.saturating_add(chunks.len() as u64);
        if self.has_draft {
            // Not where the header of the next draft will be written.
            let place = self.drafts.max(end + ChunkHeader::BYTES as u64);
            if let Err(error) = self.put(place, &draft(self.kept, 0, chunks)?) {
                self.cut(self.drafts);
                // On a full disk there is the room that the drafts take, and what else is needed is taken before one is lost.
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
            // Half of the chunks before half of a draft would look like damage.
            self.end()?;
            if let Err(error) = self.put(self.kept, chunks) {
                self.cut(self.kept);
                return Err(error);
            }
        }
        (self.kept, self.drafts, self.has_draft) = (end, end, false);
        Ok(())
    }

    /// Writes a draft of what will be kept, with this number of records. After an error the previous draft is
    /// there.
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

    /// Cuts off what remains of drafts.
    pub fn end(&mut self) -> io::Result<()> {
        if self.reach > self.kept {
            self.disk.cut(self.kept)?;
            self.reach = self.kept;
        }
        Ok(())
    }

    /// One write: mostly it is whole or not there.
    fn put(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.reach = self.reach.max(at.saturating_add(bytes.len() as u64));
        self.disk.write_at(at, bytes)
    }

    /// After a write that failed: its beginning is of no use.
    fn cut(&mut self, at: u64) {
        // The caller reports the earlier failure.
        if self.disk.cut(at).is_ok() {
            self.reach = at;
        }
    }
}

/// A chunk that holds chunks, which would be at `kept`.
fn draft(kept: u64, records: u32, chunks: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(ChunkHeader::BYTES + chunks.len());
    bytes.extend_from_slice(&[0; ChunkHeader::BYTES]);
    bytes.extend_from_slice(chunks);
    let header = ChunkHeader::of(ChunkKind::Draft, records, (kept, kept), (0, chunks.len()), chunks)?;
    bytes[..ChunkHeader::BYTES].copy_from_slice(&header.encode());
    Ok(bytes)
}
