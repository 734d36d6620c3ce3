//! The preloaded library's file on disk, for as long as the command and its children may load it. The file is in a
//! folder that all users may read and only longpole's may change, on a file system from which code may run.

use super::library::library;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Folders to try. The user's `TMPDIR` is not among them: the command may run as another user, who may have no
/// access there.
const FOLDERS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
const PREFIX: &str = engine::event::LIBRARY.0;
const NAME: &str = engine::event::LIBRARY.1;

/// The library's file. Removed when dropped, unless [`LibraryFile::leave`] was called.
#[derive(Debug)]
pub(super) struct LibraryFile {
    folder: PathBuf,
    file: PathBuf,
    left: bool,
}

impl LibraryFile {
    /// Writes the file.
    ///
    /// # Errors
    /// No folder can be written to and allows running code; returns the error of the last folder.
    pub fn new() -> io::Result<LibraryFile> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for folder in FOLDERS {
            match LibraryFile::below(Path::new(folder)) {
                Ok(place) => return Ok(place),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn below(parent: &Path) -> io::Result<LibraryFile> {
        sweep(parent);
        let name = format!("{PREFIX}{}-{:x}", std::process::id(), crate::target::monotonic_ns());
        let folder = parent.join(name);
        // Fails if another process made the folder before, so a folder that is created here belongs to longpole.
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let place = LibraryFile { file: folder.join(NAME), folder, left: false };
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&place.file)?;
        file.write_all(library())?;
        drop(file);
        // Independent of the umask: everybody may load it.
        std::fs::set_permissions(&place.file, Permissions::from_mode(0o444))?;
        std::fs::set_permissions(&place.folder, Permissions::from_mode(0o755))?;
        may_run(&File::open(&place.file)?)?;
        Ok(place)
    }

    /// The library's path.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Keeps the file when this is dropped: a process may still want to load it.
    pub fn leave(&mut self) {
        self.left = true;
    }
}

impl Drop for LibraryFile {
    fn drop(&mut self) {
        if !self.left {
            // A leftover does no harm.
            let _ = std::fs::remove_file(&self.file);
            let _ = std::fs::remove_dir(&self.folder);
        }
    }
}

/// Removes files that earlier runs left for programs which continued to run, unless a process still maps them.
fn sweep(parent: &Path) {
    let user = rustix::process::geteuid().as_raw();
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    let left: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()))
        // No links are followed. In a folder of longpole's own, no other user can create files.
        .filter(|entry| entry.metadata().is_ok_and(|data| data.is_dir() && data.uid() == user))
        .map(|entry| entry.path())
        .filter(|folder| folder.join(NAME).exists() && !maker_lives(folder))
        .collect();
    if left.is_empty() {
        return;
    }
    let mapped = mapped();
    for folder in left.iter().filter(|folder| !mapped.contains(&folder.join(NAME))) {
        // A file that cannot be removed does no harm.
        let _ = std::fs::remove_file(folder.join(NAME));
        let _ = std::fs::remove_dir(folder);
    }
}

/// Whether the longpole whose pid is in the folder's name may still run.
fn maker_lives(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
    pid.and_then(|pid| pid.parse::<u32>().ok())
        .is_none_or(|pid| Path::new("/proc").join(pid.to_string()).exists())
}

/// Paths of all files of the preloaded library that some process has mapped.
pub(super) fn mapped() -> HashSet<PathBuf> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return HashSet::new() };
    let is_number = |name: &OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let mut paths = HashSet::new();
    for entry in processes.filter_map(Result::ok).filter(|entry| is_number(&entry.file_name())) {
        let Ok(maps) = std::fs::read(entry.path().join("maps")) else { continue };
        for line in maps.split(|&byte| byte == b'\n').filter(|line| line.ends_with(NAME.as_bytes())) {
            let path = line.iter().position(|&byte| byte == b'/').and_then(|at| line.get(at..));
            paths.extend(path.map(|path| PathBuf::from(OsStr::from_bytes(path))));
        }
    }
    paths
}

/// Fails if code may not be run from this file, as on a file system that is mounted `noexec`.
fn may_run(file: &File) -> io::Result<()> {
    const BYTES: usize = 4096;
    // SAFETY: a new mapping at an address of the kernel's choice, of a descriptor that is open. Nothing in it is run.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            BYTES,
            libc::PROT_READ | libc::PROT_EXEC,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping just made, which nothing refers to.
    unsafe { libc::munmap(address, BYTES) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_s_file_is_readable_by_all_and_removed_unless_left() {
        let place = LibraryFile::new().expect("a place");
        let mode = |path: &Path| std::fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
        assert_eq!((mode(&place.folder), mode(&place.file)), (0o755, 0o444));
        assert_eq!(std::fs::read(place.path()).expect("file"), library());
        let folder = place.folder.clone();
        drop(place);
        assert!(!folder.exists());
        let mut place = LibraryFile::new().expect("a place");
        place.leave();
        let (folder, file) = (place.folder.clone(), place.file.clone());
        drop(place);
        assert!(file.exists());
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn library_files_of_ended_longpoles_are_removed_unless_in_use() {
        let parent = tempfile::tempdir().expect("folder");
        let made = |name: &str, file: &str| {
            let folder = parent.path().join(name);
            std::fs::create_dir(&folder).expect("folder");
            std::fs::write(folder.join(file), "x").expect("file");
            folder
        };
        // No process has a number that large.
        let left = made("longpole-4194305-1", NAME);
        let running = made(&format!("longpole-{}-1", std::process::id()), NAME);
        let other = made("longpole-4194305-2", "notes.txt");
        let used = made("longpole-4194305-3", NAME);
        let file = File::open(used.join(NAME)).expect("file");
        let size = 4096;
        // SAFETY: a new mapping of an open file that is never read.
        let address = unsafe {
            libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        assert_ne!(address, libc::MAP_FAILED);
        sweep(parent.path());
        assert_eq!([&left, &running, &other, &used].map(|folder| folder.exists()), [false, true, true, true]);
        // SAFETY: the mapping just made.
        unsafe { libc::munmap(address, size) };
        sweep(parent.path());
        assert!(!used.exists());
    }

    #[test]
    fn a_folder_that_cannot_hold_the_library_is_an_error() {
        assert!(LibraryFile::below(Path::new("/proc")).is_err());
    }
}
