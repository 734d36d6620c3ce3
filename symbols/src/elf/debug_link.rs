//! Reads the names of separate debug files from a binary's sections `.gnu_debuglink` and `.gnu_debugaltlink`.

use super::build_id::BuildId;
use super::elf_file::{ElfFile, text_at};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Largest file whose checksum is computed, bytes.
const MAX_SUMMED: u64 = 16 << 30;

/// The section `.gnu_debuglink`: a file name, and a checksum of the complete file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugLink {
    /// A file name without folders.
    pub name: String,
    /// CRC-32 of the file.
    pub checksum: u32,
}

/// The debug link of a binary. `None` if the name contains a path.
pub fn debug_link(elf: &ElfFile) -> Option<DebugLink> {
    let bytes = elf.section_bytes(elf.section(b".gnu_debuglink")?, "the debug link", 4096).ok()?;
    parse_link(&bytes)
}

fn parse_link(bytes: &[u8]) -> Option<DebugLink> {
    let name = text_at(bytes, 0, 255);
    let at = name.len().checked_add(1)?.checked_next_multiple_of(4)?;
    let checksum = u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
    let name = std::str::from_utf8(name).ok()?;
    let plain = !name.is_empty() && name != "." && name != ".." && !name.contains('/');
    plain.then(|| DebugLink { name: name.to_owned(), checksum })
}

/// A debug file's link to its supplement (the file that several debug files share): path and build-id.
pub fn supplement_link(elf: &ElfFile) -> Option<(String, Option<BuildId>)> {
    let section = elf.section(b".gnu_debugaltlink").or_else(|| elf.section(b".debug_sup"))?;
    let bytes = elf.section_bytes(section, "the link to its supplement", 8192).ok()?;
    let (path, id) = if section.name == b".debug_sup" {
        // DWARF 5: version (u16), is_supplementary (u8), name, length (uleb), checksum.
        if *bytes.get(2)? != 0 {
            return None;
        }
        let path = text_at(bytes.get(3..)?, 0, 4096);
        (path, bytes.get(3 + path.len() + 2..).unwrap_or_default())
    } else {
        let path = text_at(&bytes, 0, 4096);
        (path, bytes.get(path.len() + 1..).unwrap_or_default())
    };
    let path = std::str::from_utf8(path).ok().filter(|path| !path.is_empty())?;
    Some((path.to_owned(), BuildId::new(id)))
}

/// CRC-32 of a complete file, as in `.gnu_debuglink`.
pub fn checksum(file: &File) -> Option<u32> {
    let len = file.metadata().ok()?.len();
    if len > MAX_SUMMED {
        return None;
    }
    let mut hasher = crc32fast::Hasher::new();
    let mut bytes = vec![0u8; 1 << 18];
    let mut at = 0;
    while at < len {
        let read = file.read_at(&mut bytes, at).ok().filter(|&read| read > 0)?;
        hasher.update(bytes.get(..read)?);
        at = at.checked_add(read as u64)?;
    }
    Some(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debug_link_is_padded_to_four_bytes() {
        let link = |bytes: &[u8]| parse_link(bytes).map(|link| (link.name, link.checksum));
        assert_eq!(link(b"abc\0\x01\x02\x03\x04"), Some(("abc".into(), 0x0403_0201)));
        assert_eq!(link(b"abcd\0\0\0\0\x01\0\0\0"), Some(("abcd".into(), 1)));
        for bad in
            [&b""[..], b"\0\0\0\0\x01\0\0\0", b"a/b\0\x01\0\0\0", b"..\0\0\x01\0\0\0", b"abc\0\x01\x02"]
        {
            assert_eq!(link(bad), None, "{bad:?}");
        }
    }
}
