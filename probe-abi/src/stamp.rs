//! A stamp in the object file of the kernel programs. The stamp identifies the version of this crate with which the
//! programs were built.
//!
//! The kernel programs and longpole work together only if both were built with the same version of this crate. If a
//! setting has another offset, the kernel's verifier refuses the program. If a field has another meaning, numbers are
//! wrong. Developers easily forget to increase [`crate::ABI_VERSION`], so the stamp also contains a hash of this
//! crate's source.

/// Name of the section in the object file that contains [`ABI_STAMP`].
pub const ABI_STAMP_SECTION: &str = "longpole_abi";

/// A word that is easy to find, then [`crate::ABI_VERSION`] and the hash of the source, both little-endian.
pub const ABI_STAMP: [u8; 24] = {
    let word = *b"longpole";
    let version = crate::ABI_VERSION.to_le_bytes();
    let hash = source_hash().to_le_bytes();
    let mut stamp = [0; 24];
    let mut i = 0;
    while i < 8 {
        stamp[i] = word[i];
        stamp[16 + i] = hash[i];
        if i < 4 {
            stamp[8 + i] = version[i];
        }
        i += 1;
    }
    stamp
};

/// Every file of this crate on which both the kernel programs and user space depend. A test compares this list with the
/// folder.
const SOURCES: [(&str, &[u8]); 18] = [
    ("awaited.rs", include_bytes!("awaited.rs")),
    ("burst.rs", include_bytes!("burst.rs")),
    ("call.rs", include_bytes!("call.rs")),
    ("contention.rs", include_bytes!("contention.rs")),
    ("control.rs", include_bytes!("control.rs")),
    ("descriptor.rs", include_bytes!("descriptor.rs")),
    ("function.rs", include_bytes!("function.rs")),
    ("header.rs", include_bytes!("header.rs")),
    ("interpose.rs", include_bytes!("interpose.rs")),
    ("lib.rs", include_bytes!("lib.rs")),
    ("libc_probe.rs", include_bytes!("libc_probe.rs")),
    ("lifecycle.rs", include_bytes!("lifecycle.rs")),
    ("operation.rs", include_bytes!("operation.rs")),
    ("record.rs", include_bytes!("record.rs")),
    ("request.rs", include_bytes!("request.rs")),
    ("sample.rs", include_bytes!("sample.rs")),
    ("sched.rs", include_bytes!("sched.rs")),
    ("thread_context.rs", include_bytes!("thread_context.rs")),
];

const fn source_hash() -> u64 {
    let mut hash = FNV_START;
    let mut i = 0;
    while i < SOURCES.len() {
        hash = hash_code(hash, SOURCES[i].1);
        i += 1;
    }
    hash
}

/// Parameters of FNV-1a for 64 bits (Fowler, Noll, Vo: RFC 9923). The hash has to detect mistakes, not attacks.
const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Computes FNV-1a over the lines of a source file without their indentation. Comment lines are skipped, because they
/// do not change the program.
const fn hash_code(start: u64, source: &[u8]) -> u64 {
    let mut hash = start;
    let mut i = 0;
    while i < source.len() {
        while i < source.len() && (source[i] == b' ' || source[i] == b'\n') {
            i += 1;
        }
        let comment = i + 1 < source.len() && source[i] == b'/' && source[i + 1] == b'/';
        while i < source.len() && source[i] != b'\n' {
            if !comment {
                hash = (hash ^ source[i] as u64).wrapping_mul(FNV_PRIME);
            }
            i += 1;
        }
        if !comment {
            // The end of the line counts, too.
            hash = (hash ^ 0x0a).wrapping_mul(FNV_PRIME);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::String;
    use std::vec::Vec;

    #[test]
    fn every_source_file_is_part_of_the_abi_stamp() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let names = std::fs::read_dir(folder).expect("src");
        let mut names: Vec<String> =
            names.map(|entry| entry.expect("entry").file_name().into_string().expect("UTF-8")).collect();
        names.retain(|name| name != "stamp.rs");
        names.sort();
        assert_eq!(names, SOURCES.map(|(name, _)| name));
    }

    #[test]
    fn the_abi_hash_depends_on_code_and_not_on_comments() {
        let hash = |source: &str| hash_code(FNV_START, source.as_bytes());
        let source = "pub struct A {\n    /// What.\n    pub x: u32,\n}\n";
        assert_eq!(hash(source), hash("//! New.\npub struct A {\n  /// Which, in ms.\n  pub x: u32,\n}\n"));
        assert_ne!(hash(source), hash(&source.replace("u32", "u64")));
        assert_ne!(hash(source), hash(&source.replace("x:", "y:")));
        assert_ne!(hash("pub x: u32,\npub y: u32,"), hash("pub y: u32,\npub x: u32,"));
    }

    #[test]
    fn the_abi_stamp_contains_version_and_hash() {
        assert_eq!(&ABI_STAMP[..8], b"longpole");
        assert_eq!(ABI_STAMP[8..12], crate::ABI_VERSION.to_le_bytes());
        assert_eq!(ABI_STAMP[16..], source_hash().to_le_bytes());
    }
}
