//! Searches for chunks where it is unknown where a chunk starts: after damage, and among drafts.

use super::chunk::{CHUNK_MAGIC, ChunkHeader};
use std::io::{self, Read, Seek, SeekFrom};

/// Number of bytes that are read at a time.
const STEP: u64 = 1 << 16;

/// A search for headers of chunks. The search only moves forward, so its time is proportional to the size of the file,
/// for any content.
pub struct Walk<'a, R> {
    source: &'a mut R,
    /// The part of the file in memory. `window[next..]` has not been searched yet; it is at the offset `window_at +
    /// next` of the file.
    window: Vec<u8>,
    window_at: u64,
    next: usize,
}

impl<'a, R: Read + Seek> Walk<'a, R> {
    /// Begins a search at the byte `at`.
    pub fn from(source: &'a mut R, at: u64) -> io::Result<Walk<'a, R>> {
        source.seek(SeekFrom::Start(at))?;
        Ok(Walk { source, window: Vec::new(), window_at: at, next: 0 })
    }

    /// The next header and its offset; `None` at the end of the file. The next search begins only one byte later,
    /// because bytes inside a chunk may look like a header.
    pub fn header(&mut self) -> io::Result<Option<(u64, ChunkHeader)>> {
        loop {
            let left = self.window.get(self.next..).unwrap_or_default();
            if left.len() < ChunkHeader::BYTES {
                self.window_at += self.next as u64;
                self.window.drain(..self.next);
                self.next = 0;
                if self.source.by_ref().take(STEP).read_to_end(&mut self.window)? == 0 {
                    return Ok(None);
                }
                continue;
            }
            match left.windows(CHUNK_MAGIC.len()).position(|bytes| bytes == CHUNK_MAGIC) {
                Some(0) => {
                    let at = self.window_at + self.next as u64;
                    let header = left.first_chunk().and_then(|bytes| ChunkHeader::decode(bytes).ok());
                    self.next += 1;
                    if let Some(header) = header {
                        return Ok(Some((at, header)));
                    }
                }
                Some(skip) => self.next += skip,
                // The last bytes of the window may be the beginning of a magic.
                None => self.next = self.window.len() - (CHUNK_MAGIC.len() - 1),
            }
        }
    }

    /// Continues the search at this byte, which has not been searched yet.
    pub fn skip_to(&mut self, at: u64) -> io::Result<()> {
        match at.checked_sub(self.window_at).and_then(|into| usize::try_from(into).ok()) {
            Some(into) if into <= self.window.len() => self.next = into,
            _ => {
                self.source.seek(SeekFrom::Start(at))?;
                self.window.clear();
                (self.window_at, self.next) = (at, 0);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::chunk::ChunkKind;
    use std::io::Cursor;

    fn chunk(payload: &[u8]) -> Vec<u8> {
        let header = ChunkHeader::of(ChunkKind::Notes, 1, (0, 0), (0, payload.len()), payload);
        [&header.expect("small").encode()[..], payload].concat()
    }

    /// Headers must be found even where they cross the border between two reads.
    #[test]
    fn chunk_headers_are_found_at_any_place() {
        let inner = chunk(b"abc");
        for before in (0..90).chain(STEP as usize - 90..STEP as usize + 9) {
            let rubbish: Vec<u8> = b"LPckLP".iter().copied().cycle().take(before).collect();
            let outer = chunk(&inner);
            let bytes = [rubbish, outer.clone(), inner.clone()].concat();
            let (first, last) = (before as u64, (before + outer.len()) as u64);
            let mut source = Cursor::new(&bytes);
            let mut walk = Walk::from(&mut source, 0).expect("memory");
            let mut found = Vec::new();
            while let Some((at, _)) = walk.header().expect("memory") {
                found.push(at);
            }
            assert_eq!(found, [first, first + ChunkHeader::BYTES as u64, last]);
            let mut walk = Walk::from(&mut source, 0).expect("memory");
            let (at, header) = walk.header().expect("memory").expect("one");
            walk.skip_to(at + ChunkHeader::BYTES as u64 + u64::from(header.stored_bytes)).expect("memory");
            assert_eq!(walk.header().expect("memory").map(|(at, _)| at), Some(last));
            walk.skip_to(bytes.len() as u64 + 5).expect("memory");
            assert_eq!(walk.header().expect("memory"), None);
        }
    }
}
