//! Makes the initial memory file system of a virtual machine: a cpio archive of the format "newc"
//! (Documentation/driver-api/early-userspace/buffer-format.rst).

/// An archive to which files are added one by one.
pub struct Initramfs(Vec<u8>);

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const CONSOLE: u32 = 0o020_600;

impl Initramfs {
    /// Creates an archive that contains the console, to which the first process writes.
    pub fn new() -> Self {
        let mut archive = Self(Vec::new());
        archive.folder("dev");
        archive.entry("dev/console", CONSOLE, (5, 1), &[]);
        archive
    }

    /// Adds a folder. The folders above it must already be in the archive.
    pub fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER, (0, 0), &[]);
    }

    /// Adds an executable file.
    pub fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, (0, 0), content);
    }

    /// The complete archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.0
    }

    fn entry(&mut self, name: &str, mode: u32, device: (usize, usize), content: &[u8]) {
        let number = self.0.len();
        let words =
            [number, mode as usize, 0, 0, 1, 0, content.len(), 0, 0, device.0, device.1, name.len() + 1, 0];
        self.0.extend(b"070701");
        self.0.extend(words.iter().flat_map(|word| format!("{word:08x}").into_bytes()));
        self.0.extend(name.as_bytes());
        self.0.push(0);
        self.pad();
        self.0.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_begin_at_multiples_of_four_and_have_their_lengths() {
        let mut archive = Initramfs::new();
        archive.file("a", b"12345");
        let bytes = archive.finish();
        let heads: Vec<usize> =
            (0..bytes.len() - 6).filter(|at| bytes[*at..].starts_with(b"070701")).collect();
        assert_eq!(heads.len(), 4);
        assert!(heads.iter().all(|at| at % 4 == 0) && bytes.len().is_multiple_of(4));
        let of_file = &bytes[heads[2]..];
        assert_eq!((&of_file[54..62], &of_file[110..112]), (&b"00000005"[..], &b"a\0"[..]));
        assert_eq!(&of_file[112..120], b"12345\0\0\0");
    }
}
