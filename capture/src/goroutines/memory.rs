//! Reads another process's memory.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The memory of a process.
pub(super) trait Memory {
    /// Fills `bytes` from `address` on; `None`: not all of it can be read.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()>;

    /// A number of 8 bytes.
    fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Some(u64::from_le_bytes(bytes))
    }
}

impl Memory for File {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        self.read_exact_at(bytes, address).ok()
    }
}

/// The number of 8 bytes at a place in `bytes`.
pub(super) fn word_at(bytes: &[u8], place: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(place..)?.first_chunk()?))
}
