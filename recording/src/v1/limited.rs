//! A file that never grows beyond a size.

use super::disk::Disk;
use std::io;

/// A file that never grows beyond a size. A larger write fails as on a full disk, and writes nothing.
pub struct Limited<D> {
    disk: D,
    most_bytes: u64,
}

impl<D> Limited<D> {
    /// A file of at most `most_bytes` bytes.
    pub fn new(disk: D, most_bytes: u64) -> Limited<D> {
        Limited { disk, most_bytes }
    }
}

impl<D: Disk> Disk for Limited<D> {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        match at.checked_add(bytes.len() as u64) {
            Some(end) if end <= self.most_bytes => self.disk.write_at(at, bytes),
            _ => Err(io::ErrorKind::FileTooLarge.into()),
        }
    }

    fn cut(&mut self, at: u64) -> io::Result<()> {
        self.disk.cut(at)
    }

    fn has_name(&self) -> io::Result<bool> {
        self.disk.has_name()
    }
}
