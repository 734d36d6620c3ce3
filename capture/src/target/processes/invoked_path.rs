//! Finds the path by which a program was started, if it differs from its file's path: `/usr/bin/redis-server` may be a
//! link to `redis-check-rdb`, and people know a program by the name that they typed.

use super::proc_dir::ProcDir;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use symbols::safe;

/// Largest auxiliary vector that is read.
const MOST_BYTES: u64 = 4096;
/// Longest path.
const MOST_PATH: usize = 4096;
/// Keys of the auxiliary vector: the address of the path that exec was called with, and the vector's end.
const AT_EXECFN: u64 = 31;
const AT_NULL: u64 = 0;

/// The path, safe to print. `None` if it has the same file name as `executable`, or leads to another file: a script's path
/// is no name of its interpreter, and a path in the process's memory is trusted only if it leads to the process's
/// program.
pub(super) fn path(folder: &ProcDir, executable: &Path) -> Option<String> {
    let comm = folder.text("comm").ok()?;
    // The kernel names a program by the first 15 bytes of the name by which it was started, unless the program changes
    // that name.
    if executable.file_name().is_some_and(|name| name.as_bytes() == comm.trim_end_matches('\n').as_bytes()) {
        return None;
    }
    let typed = started_by(folder)?;
    // A path by descriptor means something else in another process.
    let is_descriptor = ["/dev/fd", "/proc"].iter().any(|folder| typed.starts_with(folder));
    if is_descriptor || typed.file_name()? == executable.file_name()? {
        return None;
    }
    let typed = if typed.is_absolute() { typed } else { folder.link("cwd").ok()?.join(typed) };
    let below = folder.path("root").join(typed.strip_prefix("/").ok()?);
    let (found, program) = (std::fs::metadata(below).ok()?, std::fs::metadata(folder.path("exe")).ok()?);
    let is_program = (found.dev(), found.ino()) == (program.dev(), program.ino());
    is_program.then(|| safe(&typed.to_string_lossy()))
}

/// The path that exec was called with, from the process's memory.
fn started_by(folder: &ProcDir) -> Option<PathBuf> {
    let mut vector = Vec::new();
    let file = File::open(folder.path("auxv")).ok()?;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, MOST_BYTES), &mut vector).ok()?;
    let address = place(&vector)?;
    let memory = File::open(folder.path("mem")).ok()?;
    let mut text = vec![0; MOST_PATH];
    // The path lies at the very end of the stack: fewer than `MOST_PATH` bytes may follow.
    let read = memory.read_at(&mut text, address).ok()?;
    let end = text.get(..read)?.iter().position(|&byte| byte == 0).filter(|&end| end > 0)?;
    Some(PathBuf::from(OsStr::from_bytes(text.get(..end)?)))
}

/// The address of the path.
pub(in crate::target) fn place(vector: &[u8]) -> Option<u64> {
    let (pairs, _) = vector.as_chunks::<16>();
    let number = |bytes: &[u8]| bytes.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
    let mut pairs = pairs.iter().map_while(|pair| Some((number(&pair[..8])?, number(&pair[8..])?)));
    pairs.by_ref().take_while(|(key, _)| *key != AT_NULL).find(|(key, _)| *key == AT_EXECFN).map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use crate::target::Process;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    /// `redis-server` must not be named `redis-check-rdb`, the file to which it is a link.
    #[test]
    fn a_program_is_named_by_the_path_that_started_it() {
        let sleep = ["/usr/bin/sleep", "/bin/sleep"].iter().find(|path| std::path::Path::new(path).is_file());
        let Some(sleep) = sleep else {
            println!("SKIP a_program_is_named_by_the_path_that_started_it: no sleep");
            return;
        };
        let folder = tempfile::tempdir().expect("folder");
        let nap = folder.path().join("nap");
        symlink(sleep, &nap).expect("linked");
        let name_of = |command: &mut Command| {
            let mut child = command.arg("100").spawn().expect("started");
            // The kernel makes this visible only when exec is nearly done.
            let (process, modules) = loop {
                let process = Process::open(child.id()).expect("it sleeps");
                let modules = crate::target::mapped(&process).expect("mappings");
                if modules.iter().any(|module| module.name().starts_with("libc")) {
                    // The name is read in `open`, so the process is opened again now.
                    break (Process::open(child.id()).expect("it sleeps"), modules);
                }
                std::thread::yield_now();
            };
            let main = modules.iter().find(|module| module.is_main).map(|main| main.name().to_owned());
            child.kill().expect("killed");
            child.wait().expect("ended");
            (process.program_name().to_owned(), main)
        };
        let both = |name: &str| (name.to_owned(), Some(name.to_owned()));
        assert_eq!(name_of(&mut Command::new(&nap)), both("nap"));
        assert_eq!(name_of(Command::new("./nap").current_dir(folder.path())), both("nap"));
        std::fs::copy(sleep, folder.path().join("doze")).expect("copied");
        assert_eq!(name_of(&mut Command::new(folder.path().join("doze"))), both("doze"));
    }

    #[test]
    fn a_cut_auxiliary_vector_has_no_path() {
        let pair = |key: u64, value: u64| [key.to_ne_bytes(), value.to_ne_bytes()].concat();
        let whole = [pair(6, 4096), pair(31, 0x7ffe_1000), pair(0, 0)].concat();
        assert_eq!(super::place(&whole), Some(0x7ffe_1000));
        assert_eq!(super::place(&whole[..20]), None);
        assert_eq!(super::place(&[pair(0, 0), pair(31, 5)].concat()), None);
    }
}
