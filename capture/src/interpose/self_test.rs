//! Whether launched commands can be recorded from inside on this machine: `longpole doctor` asks.

use super::library::has_library;
use super::library_file::LibraryFile;
use std::path::Path;
use std::process::{Command, Stdio};

/// Paths of programs that do nothing; every machine has one of these.
const PROGRAMS: [&str; 2] = ["/bin/true", "/usr/bin/true"];

/// Checks the preloaded library: writes it where a command would find it, and starts a program with it that does
/// nothing.
///
/// # Errors
/// The library is not built in, there is no folder for it, or the loader does not take it: a sentence that says which.
pub fn check_library() -> Result<(), String> {
    if !has_library() {
        return Err("this longpole was built without the library".to_owned());
    }
    let place = LibraryFile::new().map_err(|error| format!("no folder for the library: {error}"))?;
    match PROGRAMS.into_iter().find(|program| Path::new(program).exists()) {
        Some(program) => starts_with(program, place.path()),
        None => Ok(()),
    }
}

/// Starts the program with the library. The loader reports a library that it cannot use and goes on without it.
fn starts_with(program: &str, library: &Path) -> Result<(), String> {
    let mut command = Command::new(program);
    command.env_clear().env("LD_PRELOAD", library).stdin(Stdio::null()).current_dir("/");
    let ended = command.output().map_err(|error| format!("{program} cannot be started: {error}"))?;
    let said = String::from_utf8_lossy(&ended.stderr);
    match said.lines().find(|line| line.contains("LD_PRELOAD") || line.contains("preload")) {
        Some(line) => Err(format!("{program} cannot be started with the library: {}", line.trim())),
        None if ended.status.success() => Ok(()),
        None => Err(format!("{program} does not run with the library: {}", ended.status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_cannot_be_loaded_is_an_error_with_its_name() {
        let Some(program) = PROGRAMS.into_iter().find(|program| Path::new(program).exists()) else {
            println!(
                "SKIP a_library_that_cannot_be_loaded_is_an_error_with_its_name: no program that does nothing here"
            );
            return;
        };
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("none.so");
        std::fs::write(&file, "not a library").expect("file");
        let error = starts_with(program, &file).expect_err("no library");
        assert!(error.contains("none.so"), "{error}");
    }

    #[test]
    fn the_library_s_self_test_succeeds_or_gives_a_reason() {
        match check_library() {
            Ok(()) => assert!(has_library()),
            Err(why) => assert!(!why.is_empty() && !why.contains('\n'), "{why}"),
        }
    }
}
