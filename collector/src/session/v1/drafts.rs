//! Finding the last draft of a file whose writer was killed: see [`super::tail`].

use super::chunk::{CHUNK_MAGIC, ChunkHeader, ChunkKind};
use std::collections::VecDeque;
use std::io::{self, Read, Seek, SeekFrom};

/// Drafts whose payload is looked at, the last ones first: a writer leaves at most a few that are not whole.
const MOST_LOOKED_AT: usize = 16;

/// What lies behind the chunks that stay.
#[derive(Debug, PartialEq, Eq)]
pub enum Behind {
    /// Nothing of a writer.
    Nothing,
    /// Drafts of what has been written in full since, or the beginning of one.
    Remains,
    /// The chunks of the last whole draft that do not stay yet.
    Draft(Vec<u8>),
}

/// Looks through the rest of the file, from `kept` on, once.
pub fn find(source: &mut (impl Read + Seek), kept: u64) -> io::Result<Behind> {
    // The last ones of those that would stand furthest on.
    let mut found: VecDeque<(u64, ChunkHeader)> = VecDeque::new();
    let mut remains = false;
    source.seek(SeekFrom::Start(kept))?;
    // `window[next..]`, which lies at `window_at + next` in the file, has not been looked at yet.
    let (mut window, mut window_at, mut next) = (Vec::new(), kept, 0);
    loop {
        if window.len() - next < ChunkHeader::BYTES {
            window.drain(..next);
            window_at += next as u64;
            next = 0;
            if source.by_ref().take(1 << 16).read_to_end(&mut window)? == 0 {
                break;
            }
            continue;
        }
        let left = &window[next..];
        match left.windows(CHUNK_MAGIC.len()).position(|bytes| bytes == CHUNK_MAGIC) {
            Some(0) => {}
            Some(skip) => {
                next += skip;
                continue;
            }
            None => {
                next = window.len() - (CHUNK_MAGIC.len() - 1);
                continue;
            }
        }
        let header = left.first_chunk().and_then(|bytes| ChunkHeader::decode(bytes).ok());
        let is_draft =
            |header: &ChunkHeader| header.kind == ChunkKind::Draft as u16 && header.first_ns <= kept;
        if let Some(header) = header.filter(is_draft) {
            // A recording that has ended has none, and one that is damaged further ahead has them for places behind that.
            remains = true;
            let furthest = found.back().map_or(0, |(_, last)| last.first_ns);
            if header.first_ns > furthest {
                found.clear();
            }
            if header.first_ns >= furthest {
                found.push_back((window_at + next as u64, header));
            }
            if found.len() > MOST_LOOKED_AT {
                found.pop_front();
            }
        }
        next += 1;
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
        let there = usize::try_from(kept - header.first_ns).unwrap_or(usize::MAX);
        return Ok(match payload.split_at_checked(there) {
            Some((_, [])) => Behind::Remains,
            Some((_, rest)) => Behind::Draft(rest.to_vec()),
            None if remains => Behind::Remains,
            None => Behind::Nothing,
        });
    }
    Ok(if remains { Behind::Remains } else { Behind::Nothing })
}
