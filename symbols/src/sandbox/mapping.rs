//! Maps a part of a file into memory instead of reading it, so that only the pages in use are loaded.

use std::fs::File;
use std::io;
use std::ops::Deref;

/// A mapped part of a file. Everyone who may write to the file can change the bytes while they are read. Everyone who
/// truncates the file kills the reader. So only expendable processes may map files; see [`super`].
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
        // SAFETY: the bytes are only read as bytes, and every byte is a valid value. Changes of the bytes are no worse
        // than a hostile file. If the file is truncated, the kernel ends this process, which is expendable.
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
