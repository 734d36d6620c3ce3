//! A part of a file, mapped into memory instead of read: only pages that are used are loaded.

use std::fs::File;
use std::io;
use std::ops::Deref;

/// A mapped part of a file. Anyone who may write to the file can change it while it is read, or truncate it, which kills the
/// reader. So it is only for expendable processes, see [`super`].
#[derive(Debug)]
pub struct Mapping(memmap2::Mmap);

impl Mapping {
    /// Maps `len` bytes at `offset`.
    pub fn new(file: &File, offset: u64, len: u64) -> io::Result<Mapping> {
        let end = offset.checked_add(len).ok_or(io::ErrorKind::InvalidInput)?;
        if file.metadata()?.len() < end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut options = memmap2::MmapOptions::new();
        options.offset(offset).len(len);
        // SAFETY: the bytes are only ever read as bytes, and every byte is valid. That they may change under
        // a parser is no worse than a hostile file. That the file may be cut ends this process, which is
        // expendable.
        let map = unsafe { options.map(file)? };
        Ok(Mapping(map))
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
