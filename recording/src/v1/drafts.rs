//! Finds the last draft in a file whose writer was killed; [`super::tail`] explains drafts.

use super::chunk::{ChunkHeader, ChunkKind};
use super::walk::Walk;
use std::collections::VecDeque;
use std::io::{self, Read, Seek, SeekFrom};

/// Largest number of drafts whose payload is read, from the last one back. A killed writer leaves only a few incomplete
/// drafts.
const MOST_LOOKED_AT: usize = 16;

/// What follows the final chunks of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Behind {
    /// Nothing that a writer has written.
    Nothing,
    /// Only the beginning of a draft, or drafts of chunks that are final by now.
    Remains,
    /// The last complete draft has chunks that are not final yet and that belong at the offset `begin`. Some chunks
    /// after `begin` may look final but are remains of an older draft: the last final chunk ends exactly where a chunk
    /// in that draft begins.
    Draft { begin: u64, chunks: Vec<u8> },
}

/// Searches the file once, from the offset `kept` on.
pub fn find(source: &mut (impl Read + Seek), kept: u64) -> io::Result<Behind> {
    // The last drafts among those whose chunks belong furthest back in the file.
    let mut found: VecDeque<(u64, ChunkHeader)> = VecDeque::new();
    let mut remains = false;
    let mut walk = Walk::from(source, kept)?;
    while let Some((at, header)) = walk.header()? {
        if header.kind != ChunkKind::Draft as u16 || header.first_ns > kept {
            continue;
        }
        // A finished recording has no drafts. A draft in a file with damage before it belongs to a place after the
        // damage.
        remains = true;
        let furthest = found.back().map_or(0, |(_, last)| last.first_ns);
        if header.first_ns > furthest {
            found.clear();
        }
        if header.first_ns >= furthest {
            found.push_back((at, header));
        }
        if found.len() > MOST_LOOKED_AT {
            found.pop_front();
        }
    }
    for (at, header) in found.into_iter().rev() {
        source.seek(SeekFrom::Start(at + ChunkHeader::BYTES as u64))?;
        let mut payload = Vec::new();
        source.by_ref().take(u64::from(header.stored_bytes)).read_to_end(&mut payload)?;
        let is_whole = payload.len() as u64 == u64::from(header.stored_bytes)
            && crc32fast::hash(&payload) == header.payload_crc;
        if !is_whole {
            continue;
        }
        // The writer was killed while it replaced the first draft by these chunks, so the file already has some of
        // their bytes.
        let begin = header.first_ns;
        source.seek(SeekFrom::Start(begin))?;
        let mut there = Vec::new();
        // A hostile draft may name any offset. One byte more than its payload is enough to find the contradiction.
        let most = payload.len() as u64 + 1;
        source.by_ref().take((kept - begin).min(most)).read_to_end(&mut there)?;
        return Ok(match payload.strip_prefix(there.as_slice()) {
            Some([]) => Behind::Remains,
            Some(rest) => Behind::Draft { begin: kept, chunks: rest.to_vec() },
            None => Behind::Draft { begin, chunks: payload },
        });
    }
    Ok(if remains { Behind::Remains } else { Behind::Nothing })
}
