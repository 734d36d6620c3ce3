//! Where the library's file lies while the command and its children may load it: in a folder of our own that everybody
//! may read and only we may change, on a file system from which code may be run.

use super::library::library;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Folders to try. Not the user's `TMPDIR`: the command may run as another user, who may not be let in there.
const FOLDERS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
const NAME: &str = "longpole-preload.so";

/// The library's file. Removed when dropped, unless [`Place::leave`] was called.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
    file: PathBuf,
    left: bool,
}

impl Place {
    /// Writes the file.
    ///
    /// # Errors
    /// None of the folders can be written to and allows running code; the error is the last one's.
    pub fn new() -> io::Result<Place> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for folder in FOLDERS {
            match Place::below(Path::new(folder)) {
                Ok(place) => return Ok(place),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn below(parent: &Path) -> io::Result<Place> {
        let name = format!("longpole-{}-{:x}", std::process::id(), crate::target::monotonic_ns());
        let folder = parent.join(name);
        // Fails if anybody has made it before us, so that it is ours.
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let place = Place { file: folder.join(NAME), folder, left: false };
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&place.file)?;
        file.write_all(library())?;
        drop(file);
        // Whatever the umask: everybody may load it.
        std::fs::set_permissions(&place.file, Permissions::from_mode(0o444))?;
        std::fs::set_permissions(&place.folder, Permissions::from_mode(0o755))?;
        may_run(&File::open(&place.file)?)?;
        Ok(place)
    }

    /// The library's path.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// The file stays: somebody may still want to load it.
    pub fn leave(&mut self) {
        self.left = true;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.left {
            // A leftover does no harm.
            let _ = std::fs::remove_file(&self.file);
            let _ = std::fs::remove_dir(&self.folder);
        }
    }
}

/// Whether code may be run from this file: the file system may be mounted `noexec`.
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
    fn the_file_is_readable_by_all_and_gone_afterwards() {
        let place = Place::new().expect("a place");
        let mode = |path: &Path| std::fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
        assert_eq!((mode(&place.folder), mode(&place.file)), (0o755, 0o444));
        assert_eq!(std::fs::read(place.path()).expect("file"), library());
        let folder = place.folder.clone();
        drop(place);
        assert!(!folder.exists());
        let mut place = Place::new().expect("a place");
        place.leave();
        let (folder, file) = (place.folder.clone(), place.file.clone());
        drop(place);
        assert!(file.exists());
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_folder_without_room_is_an_error() {
        assert!(Place::below(Path::new("/proc")).is_err());
    }
}
