//! Finds which file a command line will run: searches PATH, and follows `#!` to the interpreter.

use super::launch::LaunchError;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bytes at a file's beginning in which the kernel looks for `#!`.
const SCRIPT_LINE: u64 = 256;
/// How many times an interpreter may itself be a script (the kernel's limit is 5).
const MAX_SCRIPTS: usize = 5;
/// Folders that execvp(3) searches without PATH.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The file that exec gets for a command's name: the name itself if it has a `/`, else the first executable file
/// in the folders of `search` (PATH).
pub fn resolve(name: &OsStr, search: Option<&OsStr>) -> Result<PathBuf, LaunchError> {
    let not_found = || LaunchError::NotFound { command: name.to_owned() };
    let refused =
        |error: io::Error| LaunchError::NotExecutable { command: name.to_owned(), why: error.to_string() };
    if name.is_empty() {
        return Err(not_found());
    }
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match check(&path) {
            Ok(()) => Ok(path),
            Err(error) if missing(&error) => Err(not_found()),
            Err(error) => Err(refused(error)),
        };
    }
    let mut first_refusal = None;
    for folder in std::env::split_paths(search.unwrap_or(OsStr::new(DEFAULT_PATH))) {
        // An empty entry is the current folder.
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        let path = folder.join(name);
        match check(&path) {
            Ok(()) => return Ok(path),
            Err(error) if missing(&error) => {}
            Err(error) => first_refusal = first_refusal.or(Some(error)),
        }
    }
    Err(first_refusal.map_or_else(not_found, refused))
}

fn missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn check(path: &Path) -> io::Result<()> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::Error::other("it is a directory"));
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(io::Error::other("it is not marked executable (chmod +x)"));
    }
    Ok(())
}

/// The ELF file whose instructions run when `path` is executed: the file itself, a script's interpreter, or the program
/// that `env` in a script's first line finds. `None` if that is unknown.
pub fn binary_of(path: &Path, search: Option<&OsStr>) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..=MAX_SCRIPTS {
        let start = beginning(&path)?;
        if start.starts_with(b"\x7fELF") {
            return std::fs::canonicalize(&path).ok();
        }
        path = match interpreter(&start) {
            Some((interpreter, arguments)) if interpreter.file_name() == Some(OsStr::new("env")) => {
                resolve(&program_of_env(&arguments)?, search).ok()?
            }
            Some((interpreter, _)) => interpreter,
            // The C library runs a text file without `#!` by the shell.
            None if !start.is_empty() && !start.contains(&0) => PathBuf::from("/bin/sh"),
            None => return None,
        };
    }
    None
}

fn beginning(path: &Path) -> Option<Vec<u8>> {
    // With these flags, opening does not wait for a pipe and does not touch a device.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(())?;
    let mut start = Vec::new();
    file.take(SCRIPT_LINE).read_to_end(&mut start).ok()?;
    Some(start)
}

/// The interpreter in a `#!` line, and the text after it.
fn interpreter(start: &[u8]) -> Option<(PathBuf, Vec<u8>)> {
    let line = start.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    (!name.is_empty()).then(|| (PathBuf::from(OsStr::from_bytes(name)), rest.trim_ascii().to_vec()))
}

/// The first word after `env` that is neither an option nor an assignment.
fn program_of_env(arguments: &[u8]) -> Option<OsString> {
    arguments
        .split(u8::is_ascii_whitespace)
        .find(|word| !word.is_empty() && !word.starts_with(b"-") && !word.contains(&b'='))
        .map(|word| OsStr::from_bytes(word).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, name: &str, content: &str, mode: u32) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_command_is_found_in_path_order_skipping_what_is_not_executable() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("1"), folder.path().join("2"));
        std::fs::create_dir_all(first.join("dir")).unwrap();
        std::fs::create_dir_all(&second).unwrap();
        file(&first, "tool", "x", 0o644);
        let wanted = file(&second, "tool", "x", 0o755);
        let search = std::env::join_paths([&first, &second]).unwrap();
        let search = Some(search.as_os_str());
        assert_eq!(resolve(OsStr::new("tool"), search).unwrap(), wanted);
        let only_first = resolve(OsStr::new("tool"), Some(first.as_os_str()));
        assert!(matches!(only_first, Err(LaunchError::NotExecutable { .. })), "{only_first:?}");
        assert!(matches!(resolve(OsStr::new("dir"), search), Err(LaunchError::NotExecutable { .. })));
        assert!(matches!(resolve(OsStr::new("none"), search), Err(LaunchError::NotFound { .. })));
        assert!(matches!(resolve(OsStr::new(""), search), Err(LaunchError::NotFound { .. })));
        assert!(matches!(resolve(wanted.join("x").as_os_str(), None), Err(LaunchError::NotFound { .. })));
    }

    #[test]
    fn the_binary_of_a_script_is_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let shell = std::fs::canonicalize("/bin/sh").unwrap();
        let search = Some(OsStr::new("/usr/bin:/bin"));
        for (name, line) in [
            ("plain", "#!/bin/sh\n"),
            ("arguments", "#! /bin/sh -eu\necho\n"),
            ("env", "#!/usr/bin/env sh\n"),
            ("env-options", "#!/usr/bin/env -S A=1 sh -e\n"),
            ("none", "echo without a first line\n"),
        ] {
            let script = file(folder.path(), name, line, 0o755);
            assert_eq!(binary_of(&script, search).as_ref(), Some(&shell), "{name}");
        }
        let inner = folder.path().join("plain");
        let outer = file(folder.path(), "outer", &format!("#!{}\n", inner.display()), 0o755);
        assert_eq!(binary_of(&outer, search), Some(shell));
        let circle = folder.path().join("circle");
        file(folder.path(), "circle", &format!("#!{}\n", circle.display()), 0o755);
        assert_eq!(binary_of(&circle, search), None);
        assert_eq!(binary_of(&file(folder.path(), "data", "\0\u{1}\u{2}", 0o755), search), None);
        assert_eq!(binary_of(Path::new("/nonexistent"), search), None);
    }
}
