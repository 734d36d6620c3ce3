//! The identity of a file's content, independent of its name.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// The identity of a file's content, independent of the file's name. An inode number is not enough. A rebuilt program
/// may get the inode number of the old one, or may be written into the old file. Probes at the old places would then
/// destroy the new program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Time of the last change (ctime: seconds, nanoseconds), which no user can set.
    changed: (i64, i64),
}

impl FileKey {
    /// The key of the vDSO, a library that the kernel maps into each process without a file.
    pub const VDSO: FileKey = FileKey { device: 0, inode: 0, bytes: 0, changed: (0, 0) };

    /// The key of an existing file.
    pub fn of(metadata: &Metadata) -> FileKey {
        FileKey {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// The inode number.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Whether both have the same inode number. Their content may still differ: the file may have changed, or another
    /// file may have got the inode.
    pub fn is_same_inode(&self, other: &FileKey) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether the files have the same length.
    pub fn is_as_long_as(&self, other: &FileKey) -> bool {
        self.bytes == other.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Probes are chosen once for each key. If the new program had the old key, it would get the probes of the old
    /// program.
    #[test]
    fn a_program_written_over_another_one_has_another_key() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("program");
        let key = |content: &str| {
            std::fs::write(&path, content).expect("written");
            FileKey::of(&std::fs::metadata(&path).expect("metadata"))
        };
        let first = key("first");
        assert_eq!(first, FileKey::of(&std::fs::metadata(&path).expect("metadata")));
        let longer = key("longer than that");
        assert_eq!((longer.device, longer.inode), (first.device, first.inode), "this must be the same inode");
        assert_ne!(longer, first);
        assert!(!longer.is_as_long_as(&first));
        // The file system's clock advances in steps of some milliseconds.
        let as_long = || key("LONGER THAN THAT") != longer;
        assert!((0..1_000).any(|_| as_long() || {
            std::thread::sleep(std::time::Duration::from_millis(1));
            false
        }));
    }
}
