//! A file with code that may get probes. The file stays open after its symbols were read, and probes are attached
//! through its descriptor. A path, or `/proc/PID/exe`, may name another file a moment later, and breakpoints for the
//! first file would then be written into the second one.

use super::file_key::FileKey;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Largest number of files that are open for probes at the same time. Each file with probes keeps one descriptor.
const MOST_OPEN: usize = 512;
/// Bytes of code that are kept for each place. The longest instruction has 15.
const CODE: usize = 16;

/// A file with code that may get probes; the module's documentation has the details.
#[derive(Debug)]
pub struct Binary {
    file: File,
    key: FileKey,
    name: String,
    opened_by: PathBuf,
    /// Whether the file had a name when it was opened. [`Binary::has_just_lost_its_name`] clears the flag when it
    /// returns true.
    has_name: AtomicBool,
    known: Mutex<Known>,
}

/// What is known about the file's content.
#[derive(Debug)]
struct Known {
    /// The original bytes at the places of probes, by offset in the file.
    code: BTreeMap<u64, [u8; CODE]>,
    /// Identity of the file at the last time when all these places were found unchanged.
    as_of: FileKey,
}

impl PartialEq for Binary {
    fn eq(&self, other: &Binary) -> bool {
        self.key == other.key
    }
}

impl Eq for Binary {}

impl Binary {
    /// Opens the file at `path`; `name` is the file's name in messages. Returns at once if the file is a pipe or
    /// device.
    ///
    /// # Errors
    ///
    /// The file cannot be opened.
    pub fn open(path: &Path, name: &str) -> io::Result<Binary> {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = File::options().read(true).custom_flags(flags).open(path)?;
        Binary::of(file, path, name)
    }

    /// Like [`Binary::open`], for a file that is already open.
    ///
    /// # Errors
    ///
    /// The kernel does not return the file's metadata.
    pub fn of(file: File, opened_by: &Path, name: &str) -> io::Result<Binary> {
        let metadata = file.metadata()?;
        let key = FileKey::of(&metadata);
        Ok(Binary {
            file,
            key,
            name: name.to_owned(),
            opened_by: opened_by.to_owned(),
            has_name: AtomicBool::new(metadata.nlink() > 0),
            known: Mutex::new(Known { code: BTreeMap::new(), as_of: key }),
        })
    }

    /// The file's identity when it was opened.
    pub fn key(&self) -> FileKey {
        self.key
    }

    /// The file's name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path by which the file was opened, for messages and for finding files next to it. The path may name another
    /// file by now.
    pub fn opened_by(&self) -> &Path {
        &self.opened_by
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether the file has lost its last name since it was opened, because it was replaced or deleted. Returns true
    /// only once.
    pub fn has_just_lost_its_name(&self) -> bool {
        self.has_name.load(Ordering::Relaxed)
            && self.file.metadata().is_ok_and(|now| now.nlink() == 0)
            && self.has_name.swap(false, Ordering::Relaxed)
    }

    /// Whether both are the same file with the same content.
    pub fn is_same_file(&self, other: &Binary) -> bool {
        let now = || self.key_now().is_ok_and(|key| other.key_now().is_ok_and(|other| key == other));
        std::ptr::eq(self, other) || now()
    }

    /// The file's present identity. Every change of the file makes another identity, and so does a rename or deletion.
    ///
    /// # Errors
    ///
    /// The kernel does not return the file's metadata.
    pub fn key_now(&self) -> io::Result<FileKey> {
        Ok(FileKey::of(&self.file.metadata()?))
    }

    /// Checks that the code at these offsets is as it was when the file was read. Callers do this each time before they
    /// attach probes. A rename or deletion of the file does not matter. After a write, only offsets whose original
    /// bytes are known can be confirmed.
    ///
    /// # Errors
    ///
    /// A message that says why the code cannot be confirmed.
    pub fn vouch(&self, offsets: impl Iterator<Item = u64>) -> Result<(), String> {
        let unreadable = |error: io::Error| format!("{} cannot be read: {error}", self.name);
        let changed = || format!("{} has been changed since it was read", self.name);
        let before = self.key_now().map_err(unreadable)?;
        let untouched = before == self.key;
        if !before.is_as_long_as(&self.key) {
            return Err(changed());
        }
        let mut known = self.known();
        let is_known_good = untouched || before == known.as_of;
        for offset in offsets {
            match known.code.get(&offset) {
                Some(_) if is_known_good => {}
                None if untouched => {
                    let code = self.code_at(offset).map_err(unreadable)?;
                    known.code.insert(offset, code);
                }
                Some(code) if self.code_at(offset).is_ok_and(|now| now == *code) => {}
                _ => return Err(changed()),
            }
        }
        // The file may have been changed during the comparison.
        if self.key_now().is_ok_and(|now| now == before) { Ok(()) } else { Err(changed()) }
    }

    /// Checks that the code at all places of probes is as it was when the places got their probes.
    ///
    /// # Errors
    ///
    /// A message that says why the code cannot be confirmed.
    pub fn vouch_for_all(&self) -> Result<(), String> {
        let (places, as_of): (Vec<u64>, FileKey) = {
            let known = self.known();
            (known.code.keys().copied().collect(), known.as_of)
        };
        let now = self.key_now();
        if now.as_ref().is_ok_and(|now| *now == self.key || *now == as_of) {
            return Ok(());
        }
        self.vouch(places.into_iter())?;
        if let Ok(now) = now {
            self.known().as_of = now;
        }
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes at an offset, with zeros after the end of the file.
    fn code_at(&self, offset: u64) -> io::Result<[u8; CODE]> {
        let (mut code, mut have) = ([0; CODE], 0);
        while let Some(rest) = code.get_mut(have..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, offset.saturating_add(have as u64)) {
                Ok(0) => break,
                Ok(more) => have = have.saturating_add(more),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(code)
    }
}

/// The open binaries. There is one descriptor for each file, even if many processes run the file.
#[derive(Debug, Default)]
pub struct Binaries {
    open: HashMap<FileKey, Weak<Binary>>,
}

impl Binaries {
    /// Opens the file at `path`, or returns the binary that is already open for it.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or too many other files are open.
    pub fn open(&mut self, path: &Path, name: &str) -> io::Result<Arc<Binary>> {
        self.share(Binary::open(path, name)?)
    }

    /// Returns the binary that is already open for this file. If there is none, keeps and returns `binary`.
    ///
    /// # Errors
    ///
    /// Too many other files are open.
    pub fn share(&mut self, binary: Binary) -> io::Result<Arc<Binary>> {
        if let Some(open) = self.open.get(&binary.key).and_then(Weak::upgrade) {
            return Ok(open);
        }
        self.open.retain(|_, binary| binary.strong_count() > 0);
        if self.open.len() >= MOST_OPEN {
            return Err(io::Error::other(format!("{MOST_OPEN} different files have probes already")));
        }
        let binary = Arc::new(binary);
        self.open.insert(binary.key, Arc::downgrade(&binary));
        Ok(binary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_for_the_clock_of_files(binary: &Binary) {
        // The file system's clock advances in steps of some milliseconds.
        let beside = tempfile::NamedTempFile::new().expect("file");
        let key = || FileKey::of(&std::fs::metadata(beside.path()).expect("metadata"));
        let first = key();
        while first == key() {
            std::fs::set_permissions(beside.path(), std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .expect("touched");
            std::thread::yield_now();
        }
        assert!(binary.key_now().is_ok());
    }

    fn copy(folder: &Path) -> (PathBuf, Binary) {
        let path = folder.join("program");
        std::fs::write(&path, (0..=255).collect::<Vec<u8>>()).expect("written");
        let binary = Binary::open(&path, "program").expect("open");
        (path, binary)
    }

    #[test]
    fn a_renamed_replaced_or_deleted_binary_is_the_same_program() {
        let folder = tempfile::tempdir().expect("folder");
        let (path, binary) = copy(folder.path());
        assert_eq!(binary.vouch([16, 240, 250].into_iter()), Ok(()));
        wait_for_the_clock_of_files(&binary);
        let other = folder.path().join("other");
        std::fs::write(&other, [0; 256]).expect("written");
        std::fs::rename(&other, &path).expect("replaced");
        assert_ne!(binary.key_now().expect("key"), binary.key(), "its last name is gone");
        assert_eq!(binary.vouch([16, 240, 250].into_iter()), Ok(()));
        assert_eq!(binary.vouch_for_all(), Ok(()));
        assert!(binary.has_just_lost_its_name() && !binary.has_just_lost_its_name(), "said once");
        let mut byte = [0];
        binary.file().read_exact_at(&mut byte, 3).expect("read");
        assert_eq!(byte, [3], "and it is what was opened");
        // The original bytes at this offset were never read.
        assert!(binary.vouch([32].into_iter()).is_err());
    }

    #[test]
    fn a_binary_that_was_written_over_gets_no_probes() {
        let folder = tempfile::tempdir().expect("folder");
        for (number, spoil) in [
            |file: &File| file.write_all_at(&[0xcc; 8], 20),
            |file: &File| file.set_len(100),
            |file: &File| file.write_all_at(&[1; 2000], 100),
        ]
        .into_iter()
        .enumerate()
        {
            let (path, binary) = copy(folder.path());
            assert_eq!(binary.vouch([16, 240].into_iter()), Ok(()));
            let file = File::options().write(true).open(&path).expect("open");
            wait_for_the_clock_of_files(&binary);
            spoil(&file).expect("spoiled");
            // A user can set a file's time of modification (mtime) back, but not its time of change (ctime).
            let time = std::fs::metadata(folder.path()).and_then(|folder| folder.modified()).expect("time");
            file.set_modified(time).expect("set back");
            let why = binary.vouch([16].into_iter()).expect_err("changed");
            assert_eq!(why, "program has been changed since it was read", "{number}");
            assert!(binary.vouch_for_all().is_err());
        }
    }

    #[test]
    fn a_binary_is_opened_once_and_the_number_of_open_ones_is_bounded() {
        let folder = tempfile::tempdir().expect("folder");
        let mut binaries = Binaries::default();
        let (path, _) = copy(folder.path());
        let first = binaries.open(&path, "program").expect("open");
        let second = binaries.open(&path, "program").expect("open");
        assert!(Arc::ptr_eq(&first, &second));
        let files: Vec<_> = (0..MOST_OPEN)
            .map(|number| {
                let path = folder.path().join(number.to_string());
                std::fs::write(&path, "x").expect("written");
                binaries.open(&path, "x")
            })
            .collect();
        assert_eq!(files.iter().filter(|file| file.is_err()).count(), 1, "one too many");
        drop(files);
        let third = folder.path().join("0");
        assert!(binaries.open(&third, "x").is_ok(), "they are closed with their last use");
        assert_eq!(binaries.open.len(), 2);
    }
}
