//! Writes files that exist either completely or not at all. While a file is being written, it has no name. On file
//! systems without nameless files, it has a temporary name in the same folder.

use super::file::place;
use super::{CreateError, CreateProblem, Overwrite, SudoUser, create_file};
use rustix::fs::{AtFlags, CWD, linkat};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use tempfile::TempPath;

/// Number of bytes that are written at a time.
const BUFFER: usize = 1 << 18;

/// Creates a file with the content that `write` writes. Only the file's owner can read and write it; under sudo the
/// owner is the user who called sudo. After an error there is no new file, and an existing file stays. A permitted
/// device or pipe is written to directly.
///
/// # Errors
/// Those of [`create_file`] and of `write`.
pub fn write_whole(
    path: &Path,
    overwrite: Overwrite,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CreateError> {
    let fail = |problem| CreateError { path: path.to_path_buf(), problem };
    let (_directory, place, found) = place(path, overwrite).map_err(fail)?;
    let to_system = |problem: io::Error| fail(CreateProblem::Io(problem));
    if found.is_some_and(|kind| !kind.is_file()) {
        let mut out = BufWriter::with_capacity(BUFFER, create_file(path, overwrite)?);
        let written = write(&mut out).and_then(|()| out.flush());
        // After an error, dropping the buffer must not try to write the remaining bytes again.
        let _ = out.into_parts();
        return written.map_err(to_system);
    }
    let folder = place.parent().unwrap_or(Path::new("."));
    let mut new = New::begin(folder).map_err(to_system)?;
    if let Some(user) = SudoUser::from_environment() {
        user.give(&new.file).map_err(to_system)?;
    }
    let mut out = BufWriter::with_capacity(BUFFER, &mut new.file);
    let written = write(&mut out).and_then(|()| out.flush());
    let _ = out.into_parts();
    written.map_err(to_system)?;
    let named = new.named(folder).map_err(to_system)?;
    let renamed = match overwrite {
        Overwrite::AnyFile | Overwrite::Reports => named.persist(&place),
        // Another process may have created the file in the meantime.
        Overwrite::Nothing | Overwrite::Devices => named.persist_noclobber(&place),
    };
    renamed.map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => fail(CreateProblem::Exists),
        _ => to_system(error.error),
    })
}

/// A new file that disappears unless it gets its name at the end.
struct New {
    file: File,
    /// The temporary name, on file systems where every file needs a name.
    name: Option<TempPath>,
}

impl New {
    fn begin(folder: &Path) -> io::Result<New> {
        // A file without a name disappears whenever this process ends, for any reason.
        let unnamed = OpenOptions::new().write(true).mode(0o600).custom_flags(libc::O_TMPFILE).open(folder);
        if let Ok(file) = unnamed {
            return Ok(New { file, name: None });
        }
        let (file, name) = usual_name().tempfile_in(folder)?.into_parts();
        Ok(New { file, name: Some(name) })
    }

    fn named(self, folder: &Path) -> io::Result<TempPath> {
        if let Some(name) = self.name {
            return Ok(name);
        }
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let link = |name: &Path| linkat(CWD, &own, CWD, name, AtFlags::SYMLINK_FOLLOW).map_err(Into::into);
        Ok(usual_name().make_in(folder, link)?.into_temp_path())
    }
}

fn usual_name() -> tempfile::Builder<'static, 'static> {
    let mut name = tempfile::Builder::new();
    name.prefix(".longpole-").suffix(".tmp");
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_written_completely_or_not_at_all() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("out.json");
        let names = || std::fs::read_dir(folder.path()).expect("folder").count();
        let full = |out: &mut dyn Write| {
            out.write_all(b"half of it")?;
            out.flush()?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        };
        let error = write_whole(&path, Overwrite::Devices, full).expect_err("no room");
        assert!(error.hint().starts_with("free some space"), "{}", error.hint());
        assert_eq!(names(), 0, "nothing is left of it");
        write_whole(&path, Overwrite::Devices, |out| out.write_all(b"whole")).expect("written");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        write_whole(&path, Overwrite::AnyFile, full).expect_err("no room");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "whole", "the old one stays");
        let error = write_whole(&path, Overwrite::Devices, |_| panic!("not even begun")).expect_err("there");
        assert_eq!(error.problem.to_string(), "the file exists");
        write_whole(&path, Overwrite::AnyFile, |out| out.write_all(b"new")).expect("replaced");
        assert_eq!((std::fs::read_to_string(&path).expect("read").as_str(), names()), ("new", 1));
        write_whole(Path::new("/dev/null"), Overwrite::Devices, |out| out.write_all(b"gone"))
            .expect("a device");
    }

    /// A process that is killed while it writes must not leave a large hidden file.
    #[test]
    fn a_process_that_ends_while_it_writes_leaves_no_file() {
        let folder = tempfile::tempdir().expect("folder");
        let names = || std::fs::read_dir(folder.path()).expect("folder").count();
        let unnamed = OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(folder.path());
        write_whole(&folder.path().join("a"), Overwrite::AnyFile, |out| {
            out.write_all(b"some")?;
            assert_eq!(names(), usize::from(unnamed.is_err()));
            Ok(())
        })
        .expect("written");
        // This is what happens on a file system without nameless files.
        let (file, name) = usual_name().tempfile_in(folder.path()).expect("made").into_parts();
        let named = New { file, name: Some(name) }.named(folder.path()).expect("named");
        assert_eq!(names(), 2);
        drop(named);
        assert_eq!(names(), 1);
    }
}
