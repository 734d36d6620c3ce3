//! Finds which C library a command's file will load, and whether another library can be put before it.

use std::ffi::CString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use symbols::Outline;

/// The user's choice (`--interpose`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterposeMode {
    /// Record from inside the command where that is possible.
    #[default]
    Auto,
    /// Record from inside the command, or fail where that is impossible.
    Always,
    /// Never record from inside.
    Never,
}

/// Largest C library that is read.
const MOST_LIBRARY: u64 = 64 << 20;

/// The C library that a command will load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLibrary {
    /// `glibc` or `musl`.
    pub name: &'static str,
    /// Names of libraries that the program links, and that end it unless they come before all other libraries.
    pub first: Vec<String>,
}

/// Why no library can be put before a command's libc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle(pub String);

fn obstacle<T>(reason: impl Into<String>) -> Result<T, Obstacle> {
    Err(Obstacle(reason.into()))
}

/// The C library that an executable file will load.
///
/// # Errors
/// Nothing can be put before the file's C library, or that library is not known.
pub fn c_library(binary: &Path) -> Result<CommandLibrary, Obstacle> {
    let unreadable = |error: std::io::Error| Obstacle(format!("the program cannot be read: {error}"));
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(binary).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return obstacle("the program is not a regular file");
    }
    if metadata.mode() & (libc::S_ISUID | libc::S_ISGID) != 0 {
        return obstacle("the program is set-uid or set-gid, so no library can be put before its libc");
    }
    if has_capabilities(binary) {
        return obstacle("the program has file capabilities, so no library can be put before its libc");
    }
    let machine = if cfg!(target_arch = "x86_64") { Outline::X86_64 } else { Outline::AARCH64 };
    let outline = Outline::of(&file).filter(|outline| outline.machine == machine);
    let Some(outline) = outline else { return obstacle("the program is not an ELF file of this machine") };
    let needed = outline.needed(&file);
    let Some(interpreter) = outline.interpreter else {
        return obstacle("the program is statically linked: no library can be put before its libc");
    };
    let loader = interpreter.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let first = needed.iter().filter(|name| insists_on_being_first(name)).cloned().collect();
    if loader.starts_with("ld-musl-") {
        return Ok(CommandLibrary { name: "musl", first });
    }
    if !loader.starts_with("ld-linux") {
        return obstacle(format!("its loader {} is not known", symbols::safe_path(&interpreter)));
    }
    let threads = needed.iter().any(|name| name == "libpthread.so.0");
    match threads_are_in_libc(&interpreter) {
        Some(true) => {}
        Some(false) if threads => {}
        Some(false) => return obstacle("its C library is older than 2.34, and it does not link libpthread"),
        None => return obstacle("its C library is not next to its loader"),
    }
    Ok(CommandLibrary { name: "glibc", first })
}

/// Whether a library insists on coming first: the libraries of sanitizers check that, and otherwise end the program.
fn insists_on_being_first(name: &str) -> bool {
    ["libasan.so", "libtsan.so", "liblsan.so", "libhwasan.so", "libclang_rt."]
        .iter()
        .any(|known| name.starts_with(known))
}

/// Whether glibc has its thread functions in libc itself, as since version 2.34; `None` if its file is not found.
fn threads_are_in_libc(interpreter: &Path) -> Option<bool> {
    let folder = std::fs::canonicalize(interpreter).ok()?.parent()?.to_owned();
    let path = folder.join("libc.so.6");
    let metadata =
        std::fs::metadata(&path).ok().filter(|data| data.is_file() && data.len() <= MOST_LIBRARY)?;
    let bytes = std::fs::read(&path).ok().filter(|bytes| bytes.len() as u64 <= metadata.len())?;
    // The symbol version that came with the thread functions in libc.
    const VERSION: &[u8] = b"\0GLIBC_2.34\0";
    Some(bytes.windows(VERSION.len()).any(|window| window == VERSION))
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let name = c"security.capability";
    // SAFETY: both are NUL-ended; no bytes are asked for, only how many there are.
    unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_shell_has_a_c_library_and_a_script_has_a_reason_why_not() {
        let shell = c_library(Path::new("/bin/sh")).expect("known");
        assert_eq!(shell.first, Vec::<String>::new());
        let folder = tempfile::tempdir().expect("folder");
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").expect("written");
        let why = c_library(&script).expect_err("a script").0;
        assert!(why.contains("not an ELF file"), "{why}");
        assert!(c_library(Path::new("/dev/null")).expect_err("a device").0.contains("not a regular file"));
        assert!(c_library(Path::new("/nonexistent")).expect_err("nothing").0.contains("cannot be read"));
    }

    #[test]
    fn a_set_uid_or_set_gid_file_gets_no_library() {
        let folder = tempfile::tempdir().expect("folder");
        let copy = folder.path().join("sh");
        std::fs::copy("/bin/sh", &copy).expect("copied");
        for mode in [0o4755, 0o2755] {
            std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(mode)).expect("mode");
            let why = c_library(&copy).expect_err("rights").0;
            assert!(why.contains("set-uid or set-gid"), "{why}");
        }
    }

    #[test]
    fn looking_for_the_c_library_of_a_cut_file_never_panics() {
        let whole = std::fs::read("/bin/sh").expect("file");
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("cut");
        for length in (0..4096).step_by(61).chain([whole.len() / 2, whole.len() - 1]) {
            std::fs::write(&path, &whole[..length]).expect("written");
            let _ = c_library(&path);
        }
    }

    #[test]
    fn address_and_thread_sanitizers_must_be_loaded_first() {
        assert!(insists_on_being_first("libasan.so.8") && insists_on_being_first("libtsan.so.2"));
        assert!(!insists_on_being_first("libubsan.so.1") && !insists_on_being_first("libc.so.6"));
    }
}
