//! The file header, the first 20 bytes.

/// The start of every session of any version. The first byte is invalid in text of every encoding. The line ends in it
/// change if a program transfers the file as text.
pub const MAGIC: [u8; 8] = *b"\x9fLPS\r\n\x1a\n";

/// The header after the magic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Major version. Readers refuse a newer one.
    pub major: u16,
    /// Minor version. Readers ignore what a newer one has added.
    pub minor: u16,
    /// Version of the records' layout (`probe_abi::ABI_VERSION`).
    pub abi_version: u32,
}

impl FileHeader {
    /// Size in the file, in bytes.
    pub const BYTES: usize = 20;

    /// The versions that this longpole writes.
    pub const CURRENT: FileHeader = FileHeader { major: 1, minor: 0, abi_version: probe_abi::ABI_VERSION };

    /// The header's bytes in the file.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.major.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.minor.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.abi_version.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..16]);
        bytes[16..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes a header. The caller has checked the magic. `None` if the checksum is wrong.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<FileHeader> {
        let [.., m0, m1, n0, n1, a0, a1, a2, a3, c0, c1, c2, c3] = *bytes;
        if crc32fast::hash(&bytes[..16]) != u32::from_le_bytes([c0, c1, c2, c3]) {
            return None;
        }
        Some(FileHeader {
            major: u16::from_le_bytes([m0, m1]),
            minor: u16::from_le_bytes([n0, n1]),
            abi_version: u32::from_le_bytes([a0, a1, a2, a3]),
        })
    }
}
