//! Reads `.gnu_debugdata`: a small symbol table that some distributions leave in stripped binaries, compressed by xz.

use super::elf_file::ElfFile;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Write};

/// Largest compressed section that is read, in bytes.
const MAX_PACKED: u64 = 64 << 20;
/// Largest file that is unpacked, in bytes. Fedora's largest ones have some megabytes.
const MAX_UNPACKED: u64 = 256 << 20;
/// Memory that the decompression may take, in KiB. Data from `xz -9` needs 65 MiB.
const MAX_WORK_KIB: u32 = 128 << 10;

/// Unpacks the section's ELF file into memory.
pub fn read(elf: &ElfFile) -> Option<ElfFile> {
    let section = elf.section(b".gnu_debugdata")?;
    let packed = elf.section_bytes(section, "the packed symbol table", MAX_PACKED).ok()?;
    let file = unpack(&packed)?;
    elf.open_companion(file, elf.path()).ok()
}

fn unpack(packed: &[u8]) -> Option<File> {
    let memory = memfd_create("longpole-symbols", MemfdFlags::CLOEXEC).ok()?;
    let mut file = File::from(memory);
    let unpacked = crate::catch_panic::catch_panic(|| {
        let reader = lzma_rust2::XzReader::new_mem_limit(packed, true, MAX_WORK_KIB);
        let mut bytes = Vec::new();
        reader.take(MAX_UNPACKED).read_to_end(&mut bytes).ok().map(|_| bytes)
    })??;
    if unpacked.len() as u64 >= MAX_UNPACKED {
        return None;
    }
    file.write_all(&unpacked).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_mini_debug_streams_give_nothing() {
        assert!(unpack(b"").is_none());
        assert!(unpack(b"\xfd7zXZ\0\0\x04").is_none());
        assert!(unpack(&[0xff; 4096]).is_none());
    }
}
