//! The identity of a file, independent of its name.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// The content of a file, independent of its name. An inode alone is not enough: a program that is built
/// again may get the number of the one before, or be written over it, and probes in the old places would
/// destroy it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    device: u64,
    inode: u64,
    bytes: u64,
    /// The kernel's time of the last change (seconds, nanoseconds), which no user can set.
    changed: (i64, i64),
}

impl FileKey {
    /// The kernel's own library, which is not a file.
    pub const VDSO: FileKey = FileKey { device: 0, inode: 0, bytes: 0, changed: (0, 0) };

    /// Of a file that is there.
    pub fn of(metadata: &Metadata) -> FileKey {
        FileKey {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Of one that is gone, as far as its number tells; never that of a file.
    pub fn gone(inode: u64) -> FileKey {
        FileKey { device: u64::MAX, inode, bytes: 0, changed: (0, 0) }
    }

    /// Its number on its device.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Whether both are, or were at different times, the same file by number.
    pub fn is_same_inode(&self, other: &FileKey) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether the files are equally long.
    pub fn is_as_long_as(&self, other: &FileKey) -> bool {
        self.bytes == other.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions were chosen once for each inode: what was built again there got its predecessor's probes.
    #[test]
    fn a_program_written_over_another_one_is_another_one() {
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
        // The clock of files goes in steps of some milliseconds.
        let as_long = || key("LONGER THAN THAT") != longer;
        assert!((0..1_000).any(|_| as_long() || {
            std::thread::sleep(std::time::Duration::from_millis(1));
            false
        }));
    }

    #[test]
    fn what_is_gone_is_no_file_that_is_there() {
        let here = FileKey::of(&std::fs::metadata("/proc/self/exe").expect("metadata"));
        assert_ne!(FileKey::gone(here.inode), here);
        assert_ne!(FileKey::gone(0), FileKey::VDSO);
    }
}
