//! Binaries: longpole parses those of the program that it records, in a process without rights.

use std::fs::File;
use std::io::Write as _;

use rustix::fs::{MemfdFlags, memfd_create};

/// Reads a binary's functions, lines, variables, exits, unwind rows and lock functions.
pub fn read(bytes: &[u8]) {
    let Ok(memory) = memfd_create("fuzz", MemfdFlags::CLOEXEC) else { return };
    let mut file = File::from(memory);
    if file.write_all(bytes).is_ok() {
        symbols::fuzzing::binary(&file);
    }
}
