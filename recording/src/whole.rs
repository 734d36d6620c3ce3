//! Files that are there whole or not at all: written under another name in the same folder, and renamed in the end.

use super::file::place;
use super::{CreateError, CreateProblem, Overwrite, SudoUser, create_file};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Bytes that go to the system at a time.
const BUFFER: usize = 1 << 18;

/// What `write` writes becomes the content of a file that only its owner can read and write; under sudo that
/// is the user who called it. If anything fails, no file is left, and what existed under the name stays. A
/// device or a pipe that may be written to gets it as it comes.
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
        // The rest of a failed write must not be tried again when the buffer is dropped.
        let _ = out.into_parts();
        return written.map_err(to_system);
    }
    let folder = place.parent().unwrap_or(Path::new("."));
    let new = tempfile::Builder::new().prefix(".longpole-").suffix(".tmp").tempfile_in(folder);
    let mut new = new.map_err(to_system)?;
    if let Some(user) = SudoUser::from_environment() {
        user.give(new.as_file()).map_err(to_system)?;
    }
    let mut out = BufWriter::with_capacity(BUFFER, new.as_file_mut());
    let written = write(&mut out).and_then(|()| out.flush());
    let _ = out.into_parts();
    written.map_err(to_system)?;
    let renamed = match overwrite {
        Overwrite::AnyFile | Overwrite::Reports => new.persist(&place),
        // Another process may have made one meanwhile.
        Overwrite::Nothing | Overwrite::Devices => new.persist_noclobber(&place),
    };
    renamed.map(drop).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => fail(CreateProblem::Exists),
        _ => to_system(error.error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
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
}
