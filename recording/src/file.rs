//! Creates output files as root in directories to which other users may write. longpole never opens an existing file
//! for writing, so no link can make it write into another file. Exports may write to existing devices and pipes.

use super::{SudoUser, is_session};
use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Which existing files may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// No file.
    Nothing,
    /// No file. Exports may write to existing character devices and pipes.
    Devices,
    /// Any regular file that is not a session. For outputs that longpole makes again each time and that have no option
    /// for this.
    Reports,
    /// Any regular file, because the user asked for that.
    AnyFile,
}

/// A file that could not be created.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct CreateError {
    /// The file.
    pub path: PathBuf,
    /// Why the file could not be created.
    pub problem: CreateProblem,
}

/// Why a file could not be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateProblem {
    /// The path ends in `..` or `/`.
    #[error("this names no file")]
    NoName,
    /// The last part of the path is a symbolic link.
    #[error("this is a symbolic link")]
    Link,
    /// The path is a directory, a device or a socket.
    #[error("this is not a regular file")]
    NotAFile,
    /// A file with this name exists.
    #[error("the file exists")]
    Exists,
    /// The file exists and is a recording.
    #[error("the file exists and is a recording")]
    IsSession,
    /// An error of the system.
    #[error("{0}")]
    Io(io::Error),
}

impl CreateError {
    /// The error for `path` that an error of the system causes.
    pub fn io(path: &Path, error: io::Error) -> CreateError {
        CreateError { path: path.to_path_buf(), problem: CreateProblem::Io(error) }
    }

    /// What the user can do about the error.
    pub fn hint(&self) -> &'static str {
        match &self.problem {
            CreateProblem::NoName | CreateProblem::NotAFile => "give the name of a file: -o FILE",
            CreateProblem::Link => "give the file that the link points to",
            CreateProblem::Exists => "give another name, or add --force to replace it",
            CreateProblem::IsSession => "give another name",
            CreateProblem::Io(error) => match error.kind() {
                io::ErrorKind::NotFound => "make the directory first",
                io::ErrorKind::PermissionDenied => {
                    "give a file in a directory that you may write to: -o FILE"
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free some space, or give a file on another disk: -o FILE"
                }
                _ => "give a file on another disk: -o FILE",
            },
        }
    }
}

/// Creates a new file that only its owner can read and write. Under sudo the owner is the user who called sudo. An
/// existing file with that name is first unlinked, if `overwrite` allows it.
pub fn create_file(path: &Path, overwrite: Overwrite) -> Result<File, CreateError> {
    let fail = |problem| CreateError { path: path.to_path_buf(), problem };
    create(path, overwrite).map_err(fail)
}

/// Fails if [`create_file`] would refuse an existing file with this name, or if the folder is missing. Changes nothing.
/// Callers that do much work before they need the file check early; the later call of [`create_file`] decides.
pub fn check_file(path: &Path, overwrite: Overwrite) -> Result<(), CreateError> {
    place(path, overwrite).map(drop).map_err(|problem| CreateError { path: path.to_path_buf(), problem })
}

/// Finds where a file can be created. Returns the open folder, the path in that folder, and the kind of an existing
/// file that may be replaced or written to.
pub(super) fn place(
    path: &Path,
    overwrite: Overwrite,
) -> Result<(File, PathBuf, Option<FileType>), CreateProblem> {
    let name = path.file_name().ok_or(CreateProblem::NoName)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // All later steps use this open directory, even if someone renames or replaces a directory above it.
    let directory = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
        .open(parent)
        .map_err(CreateProblem::Io)?;
    let place = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name);
    let found = match place.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(CreateProblem::Io(error)),
        Ok(found) if found.is_symlink() => return Err(CreateProblem::Link),
        Ok(found) if found.is_file() => {
            replaceable(&place, overwrite)?;
            Some(found.file_type())
        }
        Ok(found) => {
            let kind = found.file_type();
            if overwrite != Overwrite::Devices || !(kind.is_char_device() || kind.is_fifo()) {
                return Err(CreateProblem::NotAFile);
            }
            Some(kind)
        }
    };
    Ok((directory, place, found))
}

fn create(path: &Path, overwrite: Overwrite) -> Result<File, CreateProblem> {
    let (_directory, place, found) = place(path, overwrite)?;
    match found {
        None => {}
        Some(kind) if kind.is_file() => std::fs::remove_file(&place).map_err(CreateProblem::Io)?,
        Some(kind) => {
            let file = OpenOptions::new()
                .write(true)
                .custom_flags(libc::O_NOFOLLOW | libc::O_NOCTTY)
                .open(&place)
                .map_err(CreateProblem::Io)?;
            return still(kind, file);
        }
    }
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&place)
        .map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => CreateProblem::Exists,
            _ => CreateProblem::Io(error),
        })?;
    if let Some(user) = SudoUser::from_environment() {
        user.give(&file).map_err(CreateProblem::Io)?;
    }
    Ok(file)
}

/// Returns the open file if it still has the kind that was found before. Someone may have put another file there since
/// then.
fn still(kind: FileType, file: File) -> Result<File, CreateProblem> {
    let opened = file.metadata().map_err(CreateProblem::Io)?.file_type();
    if opened == kind { Ok(file) } else { Err(CreateProblem::NotAFile) }
}

fn replaceable(place: &Path, overwrite: Overwrite) -> Result<(), CreateProblem> {
    match overwrite {
        Overwrite::AnyFile => return Ok(()),
        Overwrite::Nothing | Overwrite::Devices => return Err(CreateProblem::Exists),
        Overwrite::Reports => {}
    }
    let mut file = OpenOptions::new()
        .read(true)
        // If the file has become a pipe, opening it must not wait for a writer.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(place)
        .map_err(CreateProblem::Io)?;
    let mut start = Vec::new();
    file.by_ref().take(8).read_to_end(&mut start).map_err(CreateProblem::Io)?;
    if is_session(&start) { Err(CreateProblem::IsSession) } else { Ok(()) }
}

/// Creates a file with this name or with the next free one: `a.lp`, `a-2.lp`, `a-3.lp` and so on. If a thousand names
/// are taken, the name contains the time instead (nanoseconds since 1970). Two simultaneous callers get two different
/// files.
pub fn create_unused(path: &Path) -> Result<(File, PathBuf), CreateError> {
    const TRIES: u128 = 1_000;
    let time = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
    let stem = path.file_stem().unwrap_or_default();
    let mut taken = None;
    for number in (1..=TRIES).chain([time]) {
        let name = if number == 1 {
            path.to_path_buf()
        } else {
            let mut name = stem.to_os_string();
            name.push(format!("-{number}"));
            let mut name = path.with_file_name(name);
            if let Some(extension) = path.extension() {
                name.as_mut_os_string().push(".");
                name.as_mut_os_string().push(extension);
            }
            name
        };
        match create_file(&name, Overwrite::Nothing) {
            Ok(file) => return Ok((file, name)),
            // Another file or a link has the name.
            Err(error) if !matches!(error.problem, CreateProblem::Io(_) | CreateProblem::NoName) => {
                taken = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    Err(taken.unwrap_or(CreateError { path: path.to_path_buf(), problem: CreateProblem::NoName }))
}

/// The name of a session file, `longpole-NAME-PID-TIME.lp`. `name` is the target's name and may contain anything: every
/// character other than ASCII letters, digits and `._+-` becomes `_`.
pub fn default_name(name: &str, pid: u32, realtime_ns: u64) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '_' };
    let name: String = name.chars().take(64).map(plain).collect();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(realtime_ns);
    let time = humantime::format_rfc3339_seconds(time).to_string().replace(['-', ':'], "");
    PathBuf::from(format!("longpole-{}-{pid}-{time}.lp", if name.is_empty() { "unnamed" } else { &name }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    fn problem(path: &Path, overwrite: Overwrite) -> String {
        create_file(path, overwrite).expect_err("refused").problem.to_string()
    }

    #[test]
    fn a_new_file_is_readable_by_its_owner_only() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("new.lp");
        let file = create_file(&path, Overwrite::Nothing).expect("created");
        assert_eq!(file.metadata().expect("metadata").permissions().mode() & 0o777, 0o600);
        assert!(path.exists());
    }

    #[test]
    fn checking_a_file_tells_what_would_be_refused_and_changes_nothing() {
        let dir = tempfile::tempdir().expect("dir");
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("text"), "precious").expect("written");
        std::fs::write(path("empty"), "").expect("written");
        std::os::unix::fs::symlink(path("text"), path("link")).expect("linked");
        for name in ["text", "link", "none/x", "..", "empty", "new"] {
            let looked = check_file(&path(name), Overwrite::Nothing).map_err(|error| error.to_string());
            assert_eq!(looked.is_ok(), name == "new", "{name}");
            assert!(!path("new").exists() && path("empty").exists(), "only a look");
            if looked.is_err() {
                let made = create_file(&path(name), Overwrite::Nothing).map(drop);
                assert_eq!(made.map_err(|error| error.to_string()), looked);
            }
        }
    }

    #[test]
    fn a_symbolic_link_as_output_is_refused() {
        let dir = tempfile::tempdir().expect("dir");
        let precious = dir.path().join("precious");
        std::fs::write(&precious, "").expect("written");
        let link = dir.path().join("link.lp");
        std::os::unix::fs::symlink(&precious, &link).expect("linked");
        let dangling = dir.path().join("dangling.lp");
        std::os::unix::fs::symlink(dir.path().join("not-there"), &dangling).expect("linked");
        for overwrite in [Overwrite::Nothing, Overwrite::Devices, Overwrite::Reports, Overwrite::AnyFile] {
            assert_eq!(problem(&link, overwrite), "this is a symbolic link");
            assert_eq!(problem(&dangling, overwrite), "this is a symbolic link");
        }
        assert!(!dir.path().join("not-there").exists());
    }

    #[test]
    fn replacing_a_hard_link_keeps_the_other_name_s_content() {
        let dir = tempfile::tempdir().expect("dir");
        let precious = dir.path().join("precious");
        std::fs::write(&precious, "keep me").expect("written");
        let link = dir.path().join("link.lp");
        std::fs::hard_link(&precious, &link).expect("linked");
        let mut file = create_file(&link, Overwrite::AnyFile).expect("created");
        file.write_all(b"new").expect("written");
        assert_eq!(std::fs::read_to_string(&precious).expect("read"), "keep me");
        assert_eq!(std::fs::read_to_string(&link).expect("read"), "new");
    }

    #[test]
    fn a_file_in_the_place_of_a_device_is_not_written_to() {
        let file = tempfile::tempfile().expect("file");
        let device = std::fs::metadata("/dev/null").expect("device").file_type();
        assert_eq!(still(device, file).expect_err("refused").to_string(), "this is not a regular file");
        let null = OpenOptions::new().write(true).open("/dev/null").expect("device");
        assert!(still(device, null).is_ok());
    }

    #[test]
    fn only_files_that_may_be_overwritten_are_replaced() {
        let dir = tempfile::tempdir().expect("dir");
        let text = dir.path().join("thesis.txt");
        std::fs::write(&text, "years of work").expect("written");
        let session = dir.path().join("old.lp");
        std::fs::write(&session, b"\x9fLPS\r\n\x1a\nrest").expect("written");
        for refused in [Overwrite::Nothing, Overwrite::Devices] {
            assert_eq!(problem(&text, refused), "the file exists");
            assert_eq!(problem(&session, refused), "the file exists");
        }
        assert_eq!(problem(&session, Overwrite::Reports), "the file exists and is a recording");
        assert_eq!(problem(dir.path(), Overwrite::AnyFile), "this is not a regular file");
        assert_eq!(problem(Path::new("/dev/null"), Overwrite::Nothing), "this is not a regular file");
        assert_eq!(problem(Path::new(".."), Overwrite::Nothing), "this names no file");
        assert_eq!(std::fs::read_to_string(&text).expect("read"), "years of work");
        assert_eq!(std::fs::read(&session).expect("read"), b"\x9fLPS\r\n\x1a\nrest");
        create_file(&session, Overwrite::AnyFile).expect("the user said so");
        create_file(&text, Overwrite::Reports).expect("made anew");
        create_file(Path::new("/dev/null"), Overwrite::Devices).expect("nothing to replace");
    }

    /// Recordings that begin in the same second have the same default name. None of them may replace another.
    #[test]
    fn output_names_in_use_are_counted_up_even_at_the_same_time() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("longpole-sort-12-2023.lp");
        std::os::unix::fs::symlink("/not-there", dir.path().join("longpole-sort-12-2023-3.lp"))
            .expect("linked");
        let makers: Vec<_> = (0..8)
            .map(|number| {
                let path = path.clone();
                std::thread::spawn(move || {
                    let (mut file, name) = create_unused(&path).expect("created");
                    file.write_all(&[number]).expect("written");
                    name
                })
            })
            .collect();
        let mut names: Vec<PathBuf> = makers.into_iter().map(|maker| maker.join().expect("made")).collect();
        let mut held: Vec<u8> = names.iter().flat_map(|name| std::fs::read(name).expect("read")).collect();
        held.sort_unstable();
        assert_eq!(held, (0..8).collect::<Vec<u8>>(), "each has its own");
        names.sort();
        let expected: Vec<PathBuf> = ["-2", "-4", "-5", "-6", "-7", "-8", "-9", ""]
            .map(|number| dir.path().join(format!("longpole-sort-12-2023{number}.lp")))
            .to_vec();
        assert_eq!(names, expected);
        let none = dir.path().join("none").join("a.lp");
        assert!(matches!(create_unused(&none).expect_err("no folder").problem, CreateProblem::Io(_)));
    }

    /// A recording that keeps the newest part in memory may write its file more than a thousand times.
    #[test]
    fn after_a_thousand_numbers_an_output_name_has_the_time() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("a.lp");
        std::fs::write(&path, "").expect("written");
        for number in 2..=1_000 {
            std::fs::write(dir.path().join(format!("a-{number}.lp")), "").expect("written");
        }
        let names = [(); 2].map(|()| create_unused(&path).expect("created").1);
        for name in &names {
            let name = name.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            assert!(name.len() > 18 && name.starts_with("a-1"), "{name}");
        }
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn default_names_have_safe_characters_whatever_the_target_is_called() {
        let time = 1_700_000_000_000_000_000;
        assert_eq!(default_name("sort", 12, time), Path::new("longpole-sort-12-20231114T221320Z.lp"));
        assert_eq!(
            default_name("../a b\n\u{1b}", 1, time),
            Path::new("longpole-.._a_b__-1-20231114T221320Z.lp")
        );
        assert_eq!(default_name("", 1, time), Path::new("longpole-unnamed-1-20231114T221320Z.lp"));
    }
}
