//! Libraries that may hook functions. A hook runs a copy of a function's first instructions, and a copy with a
//! breakpoint in it ends the process. Processes with such a library get no probes unless a user names functions.

use capture::target::{Process, is_c_library, linked_libraries, mapped};
use std::collections::HashMap;
use std::path::Path;
use symbols::binary::Binary;
use symbols::{FileKey, Parsers};

/// The name that stands for the program itself, if the program may move code and no library does.
pub(super) const ITSELF: &str = "";

/// Whether each library seen so far makes memory executable.
#[derive(Default)]
pub(super) struct MovingLibraries {
    known: HashMap<FileKey, bool>,
}

impl MovingLibraries {
    /// The name of a library that may move code, if a process has mapped one, or if the loader of the program in
    /// `binary` will map one.
    pub(super) fn of_process(&mut self, pid: u32, binary: &Path, parsers: &Parsers) -> Option<String> {
        let process = Process::open(pid).ok();
        let modules = process.and_then(|process| mapped(&process).ok()).unwrap_or_default();
        let mapped = modules.into_iter().filter(|module| !module.is_main).map(|module| module.open_path);
        let mut paths = linked_libraries(binary).into_iter().chain(mapped);
        paths.find_map(|path| self.moves(&path, parsers))
    }

    /// The name of the library, if it may move code. A library that cannot be read is assumed not to.
    fn moves(&mut self, path: &Path, parsers: &Parsers) -> Option<String> {
        let name = path.file_name().map(|name| symbols::safe(&name.to_string_lossy()))?;
        if is_c_library(&name) {
            return None;
        }
        let binary = Binary::open(path, &name).ok()?;
        let look = || {
            let moves = parsers.library_moves_code(binary.file(), path);
            moves.inspect_err(|error| log::debug!("{name}: {error}")).unwrap_or(false)
        };
        self.known.entry(binary.key()).or_insert_with(look).then_some(name)
    }
}

/// A text for people about what the library may do.
pub(super) fn may_move(mover: &str) -> String {
    match mover {
        ITSELF => "may copy or move its own code, or check it".to_owned(),
        library => format!("has {library}, which may copy code to hook functions"),
    }
}

/// A remark on a program that a probe may end.
pub(super) fn remark(mover: &str) -> String {
    format!(
        "{}, and a probe in a copy would kill the process (SIGTRAP): functions are known only from samples (±); --functions 'GLOB' probes some all the same",
        may_move(mover)
    )
}
