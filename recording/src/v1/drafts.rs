//! Finding the last draft of a file whose writer was killed: see [`super::tail`].

use super::chunk::{ChunkHeader, ChunkKind};
use super::walk::Walk;
use std::collections::VecDeque;
use std::io::{self, Read, Seek, SeekFrom};

/// Drafts whose payload is looked at, the last ones first: a writer leaves at most a few that are not whole.
const MOST_LOOKED_AT: usize = 16;

/// What comes after the chunks that stay.
#[derive(Debug, PartialEq, Eq)]
pub enum Behind {
    /// No data that a writer left.
    Nothing,
    /// Drafts of what has been written in full since, or the beginning of one.
    Remains,
    /// The chunks of the last whole draft that do not stay yet. They are from `begin` on. If that is before
    /// the end of the chunks that seemed to stay, some of these were remains of an older draft, ending
    /// exactly where a chunk could have begun.
    Draft { begin: u64, chunks: Vec<u8> },
}

/// Looks through the rest of the file, from `kept` on, once.
pub fn find(source: &mut (impl Read + Seek), kept: u64) -> io::Result<Behind> {
    // The last ones of those that reach furthest.
    let mut found: VecDeque<(u64, ChunkHeader)> = VecDeque::new();
    let mut remains = false;
    let mut walk = Walk::from(source, kept)?;
    while let Some((at, header)) = walk.header()? {
        if header.kind != ChunkKind::Draft as u16 || header.first_ns > kept {
            continue;
        }
        // A recording that has ended has none, and one that is damaged earlier has them for places after
        // that.
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
        // The writer was killed while it wrote these chunks over the first draft: some of them are there.
        let begin = header.first_ns;
        source.seek(SeekFrom::Start(begin))?;
        let mut there = Vec::new();
        // A file may claim that it began anywhere: one byte too many is enough to disprove that.
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
