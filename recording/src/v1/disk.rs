//! The file that a session is written to.

use std::fs::File;
use std::io::{self, Cursor};
use std::os::unix::fs::{FileExt, MetadataExt};

/// A file that is written from its first byte.
pub trait Disk {
    /// Writes all of the bytes at offset `at`, and replaces existing bytes there.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Removes everything from the byte at offset `at` on.
    fn cut(&mut self, at: u64) -> io::Result<()>;

    /// Whether the file still has a name. A file without a name is gone as soon as it is closed.
    fn has_name(&self) -> io::Result<bool>;
}

impl Disk for File {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn cut(&mut self, at: u64) -> io::Result<()> {
        self.set_len(at)
    }

    fn has_name(&self) -> io::Result<bool> {
        Ok(self.metadata()?.nlink() > 0)
    }
}

impl Disk for Cursor<Vec<u8>> {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.get_mut().write_at(at, bytes)
    }

    fn cut(&mut self, at: u64) -> io::Result<()> {
        self.get_mut().cut(at)
    }

    fn has_name(&self) -> io::Result<bool> {
        Ok(true)
    }
}

impl Disk for Vec<u8> {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let at = usize::try_from(at).map_err(io::Error::other)?;
        let end = at.checked_add(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        if self.len() < end {
            self.resize(end, 0);
        }
        self[at..end].copy_from_slice(bytes);
        Ok(())
    }

    fn cut(&mut self, at: u64) -> io::Result<()> {
        self.truncate(usize::try_from(at).map_err(io::Error::other)?);
        Ok(())
    }

    fn has_name(&self) -> io::Result<bool> {
        Ok(true)
    }
}

impl<D: Disk> Disk for &mut D {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        (**self).write_at(at, bytes)
    }

    fn cut(&mut self, at: u64) -> io::Result<()> {
        (**self).cut(at)
    }

    fn has_name(&self) -> io::Result<bool> {
        (**self).has_name()
    }
}
