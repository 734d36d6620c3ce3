//! Recordings. A checksum protects each part of a file, and random bytes never have the right one, so all checksums are put
//! right before reading: otherwise only the check itself would be tried.

use std::borrow::Cow;
use std::io::Cursor;

use engine::event::Recording;

/// Bytes of the file's header; its checksum is the last four (`recording/src/v1/mod.rs`).
const FILE_HEADER: usize = 20;
/// Bytes of a chunk's header: the checksums of payload and header are the last eight.
const CHUNK_HEADER: usize = 44;

/// Reads a recording as a whole, by its index, and its description alone.
pub fn read(bytes: &[u8]) {
    let sealed = sealed(bytes);
    let _ = recording::read_from(Cursor::new(&sealed));
    if let Ok(Some(mut outline)) = recording::outline(Cursor::new(&sealed)) {
        let _ = outline.without_events();
    }
}

/// The recording, if the bytes are one.
pub fn recording(bytes: &[u8]) -> Option<Recording> {
    recording::read_from(Cursor::new(sealed(bytes))).ok().map(|(recording, _)| recording)
}

/// The same file with right checksums, as far as chunk follows chunk.
fn sealed(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.len() < FILE_HEADER {
        return Cow::Borrowed(bytes);
    }
    let mut file = bytes.to_vec();
    seal(&mut file[..FILE_HEADER]);
    let mut rest = &mut file[FILE_HEADER..];
    while let Some((header, payload)) = rest.split_at_mut_checked(CHUNK_HEADER) {
        let stored = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let stored = stored.min(payload.len());
        let (payload, after) = payload.split_at_mut(stored);
        header[36..40].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        seal(header);
        rest = after;
    }
    Cow::Owned(file)
}

/// Makes the last four bytes the checksum of those before.
fn seal(bytes: &mut [u8]) {
    let (content, checksum) = bytes.split_at_mut(bytes.len() - 4);
    checksum.copy_from_slice(&crc32fast::hash(content).to_le_bytes());
}
