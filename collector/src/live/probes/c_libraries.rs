//! Finds the files that are the C library of a process, and decides whether probes on them record the process's
//! operations. A process with the preloaded library records its operations itself.

use capture::probe::{LibcFile, LibcProbes};
use capture::target::{
    CLibrary, CLibraryKind, Process, c_libraries_to_come, c_library_kind, mapped, mapped_c_libraries,
};
use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use symbols::FileKey;
use symbols::binary::{Binaries, Binary};
use symbols::{LibcFunctions, Parsers};

/// Largest number of different C library files; each container may have its own.
const MOST_FILES: usize = 128;

/// Why a process that may copy or check its own code gets no probes.
pub const SPARED: &str = "it may copy, move or check code, and probes would kill it";

/// Number of checks, with a pause between them, while the kernel replaces a process's program: during that time the
/// process's environment is empty. A program without any environment is checked the same number of times.
const NEW_PROGRAM_LOOKS: u32 = 50;
const NEW_PROGRAM_PAUSE: Duration = Duration::from_millis(1);

/// The C libraries found so far.
pub struct CLibraries {
    parsers: Parsers,
    files: HashMap<FileKey, (u32, Arc<LibcFunctions>)>,
    binaries: Binaries,
    /// Path of the preloaded library, if the command is started with one.
    inside: Option<PathBuf>,
    /// C libraries may get probes.
    are_probed: bool,
    /// Processes whose C libraries get no probes, since probes would end these processes (`SPARED`).
    spared: HashSet<u32>,
}

/// How the synchronization operations of a process are recorded.
#[derive(Debug)]
pub enum LibcChoice {
    /// By probes on the C library of the process.
    Probes(LibcProbes),
    /// By the preloaded library inside the process.
    Inside,
    /// Not at all, since the process has no C library that can be probed. The text says why, for people.
    None(String),
}

impl CLibraries {
    /// A finder of C libraries. `inside`: path of the library that the command preloads and that records the operations
    /// of its processes.
    pub fn new(parsers: Parsers, inside: Option<PathBuf>) -> CLibraries {
        CLibraries {
            parsers,
            files: HashMap::new(),
            binaries: Binaries::default(),
            inside,
            are_probed: true,
            spared: HashSet::new(),
        }
    }

    /// Forbids probes on all C libraries.
    #[must_use]
    pub fn unprobed(self) -> CLibraries {
        CLibraries { are_probed: false, ..self }
    }

    /// Whether C libraries may get probes.
    pub fn are_probed(&self) -> bool {
        self.are_probed
    }

    /// Sets whether a process gets no probes, because it may copy or check its own code and would then execute or find
    /// them.
    pub fn spare(&mut self, pid: u32, is_spared: bool) {
        if is_spared {
            self.spared.insert(pid);
        } else {
            self.spared.remove(&pid);
        }
    }

    /// How the operations of a process are recorded, judged by the files that it has mapped now and those that its
    /// loader will map.
    pub fn of_process(&mut self, process: &Process) -> LibcChoice {
        if self.records_itself(process) {
            return LibcChoice::Inside;
        }
        let mut libraries = mapped_c_libraries(process);
        if has_our_root(process.pid) {
            let mapped: Vec<_> =
                libraries.iter().map(|library| (key(library), library.name.clone())).collect();
            // A file with the same name as a mapped one is another file, which the process does not use.
            let new = |library: &CLibrary| {
                let key = key(library);
                key.is_some() && !mapped.iter().any(|(known, name)| *known == key || *name == library.name)
            };
            // The process may have mapped its program while the loader has not mapped the libraries yet.
            libraries.extend(c_libraries_to_come(&process.open_path()).into_iter().filter(new));
        }
        self.choose(process.pid, libraries, namespace(process))
    }

    /// How the operations of a process are recorded that exists at the start. `binary`: the program that a held command
    /// will run. `None`: the process has ended.
    pub fn choose_for(&mut self, pid: u32, binary: Option<&Path>) -> Option<LibcChoice> {
        match binary {
            Some(binary) => Some(self.of_command(pid, binary)),
            None => Process::open(pid).ok().map(|process| self.of_process(&process)),
        }
    }

    /// The probes for the C library of a process, if it is to get any.
    pub fn probes_of(&mut self, pid: u32) -> Option<LibcProbes> {
        match self.choose_for(pid, None)? {
            LibcChoice::Probes(probes) => Some(probes),
            LibcChoice::Inside | LibcChoice::None(_) => None,
        }
    }

    /// Like [`CLibraries::of_process`], for a held command that will run the program in `binary`.
    fn of_command(&mut self, pid: u32, binary: &Path) -> LibcChoice {
        self.choose(pid, c_libraries_to_come(binary), None)
    }

    fn choose(&mut self, pid: u32, libraries: Vec<CLibrary>, namespace: Option<(u64, u64)>) -> LibcChoice {
        if self.spared.contains(&pid) {
            return LibcChoice::None(SPARED.to_owned());
        }
        let (mut files, mut own) = (Vec::new(), Vec::new());
        // The reason is that of the first library that fails; mapped libraries come first.
        let mut why = None;
        for library in libraries {
            if let Some(range) = library.range {
                match library.kind {
                    CLibraryKind::Loader => own.insert(0, range),
                    CLibraryKind::Library | CLibraryKind::Program => own.push(range),
                }
            }
            match self.file(library) {
                Ok(file) => files.push(file),
                Err(reason) => {
                    why.get_or_insert(reason);
                }
            }
        }
        if files.iter().any(|file| !file.is_loader && !file.functions.functions.is_empty()) {
            LibcChoice::Probes(LibcProbes { pid, files, own, namespace, unfit: Vec::new() })
        } else {
            LibcChoice::None(why.unwrap_or_else(|| "longpole does not know its C library".to_owned()))
        }
    }

    fn file(&mut self, library: CLibrary) -> Result<LibcFile, String> {
        let CLibrary { file, name, kind, .. } = library;
        let binary = Binary::of(file, Path::new(&name), &name).and_then(|binary| self.binaries.share(binary));
        let file = binary.map_err(|error| format!("{name}: {error}"))?;
        let key = file.key();
        let (id, functions) = match self.files.get(&key) {
            Some((id, functions)) => (*id, Arc::clone(functions)),
            None if self.files.len() >= MOST_FILES => {
                return Err(format!("{MOST_FILES} different C libraries have probes already"));
            }
            None => {
                let functions = self.parsers.libc_functions(file.file(), Path::new(&name));
                let functions = Arc::new(functions.map_err(|error| format!("{name}: {error}"))?);
                for (function, reason) in &functions.unsure {
                    log::warn!("{function} of {name} cannot be probed: {reason}");
                }
                let id = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
                self.files.insert(key, (id, Arc::clone(&functions)));
                (id, functions)
            }
        };
        if kind != CLibraryKind::Loader && functions.functions.is_empty() {
            return Err(match kind {
                CLibraryKind::Program => {
                    format!(
                        "{name} is statically linked and has no names of a C library's synchronization functions"
                    )
                }
                _ => format!("{name} has no names of synchronization functions"),
            });
        }
        Ok(LibcFile { id, name, file, functions, is_loader: kind == CLibraryKind::Loader })
    }

    /// Whether the preloaded library is in this process, or will be as soon as the loader is done.
    fn records_itself(&self, process: &Process) -> bool {
        let Some(inside) = &self.inside else { return false };
        // In a PID namespace of its own, the preloaded library does not know the pids in the kernel's records, so it
        // records nothing.
        if process.namespace_pids.len() > 1 || capture::interpose::cannot_come_up(process.pid) {
            return false;
        }
        let inside = inside.to_string_lossy();
        let folder = PathBuf::from(format!("/proc/{}", process.pid));
        for _ in 0..NEW_PROGRAM_LOOKS {
            // Mappings are read once: between two reads a loader may map the preloaded library and then the C library.
            let modules = mapped(process).unwrap_or_default();
            let Ok(environment) = std::fs::read(folder.join("environ")) else { return false };
            match stage(modules.iter().map(|module| module.path.as_str()), &environment, &inside) {
                Stage::Inside => return true,
                Stage::Without => return false,
                Stage::ToCome => return capture::interpose::c_library(&process.open_path()).is_ok(),
                // An ended process never gets a program: do not wait for one.
                Stage::Nowhere if std::fs::read_link(process.open_path()).is_err() => return false,
                Stage::Nowhere => std::thread::sleep(NEW_PROGRAM_PAUSE),
            }
        }
        false
    }
}

/// Whether the loader of a process has mapped the preloaded library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Inside,
    Without,
    /// The loader will map the library, if it can.
    ToCome,
    /// The kernel has removed the old program and not yet set up the new one, for example when a newly started shell
    /// executes another program.
    Nowhere,
}

/// Decides the stage from the files that a process has mapped, and from its environment.
fn stage<'a>(mapped: impl Iterator<Item = &'a str> + Clone, environment: &[u8], inside: &str) -> Stage {
    if mapped.clone().any(|path| path.contains(inside)) {
        return Stage::Inside;
    }
    let file = |path: &'a str| path.rsplit('/').next().unwrap_or(path);
    // A loader maps preloaded libraries before the C library, so the library does not come any more.
    if mapped.clone().any(|path| c_library_kind(file(path)) == Some(CLibraryKind::Library)) {
        return Stage::Without;
    }
    let mut entries = environment.split(|&byte| byte == 0);
    if environment.is_empty() {
        Stage::Nowhere
    } else if entries.any(|entry| entry.starts_with(b"LD_PRELOAD=") && contains(entry, inside.as_bytes())) {
        Stage::ToCome
    } else {
        Stage::Without
    }
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    !what.is_empty() && bytes.windows(what.len()).any(|window| window == what)
}

fn key(library: &CLibrary) -> Option<FileKey> {
    library.file.metadata().ok().map(|metadata| FileKey::of(&metadata))
}

/// Whether a process has the same root directory as longpole.
fn has_our_root(pid: u32) -> bool {
    let id = |path: &str| std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let own = id("/");
    own.is_some() && id(&format!("/proc/{pid}/root")) == own
}

/// Device and inode of a process's PID namespace; `None`: it is in the first one.
fn namespace(process: &Process) -> Option<(u64, u64)> {
    if process.namespace_pids.len() < 2 {
        return None;
    }
    let metadata = std::fs::metadata(format!("/proc/{}/ns/pid", process.pid)).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that is checked between two programs must not count as one without the preloaded library: its locks
    /// would get probes in addition to its own records.
    #[test]
    fn a_process_before_its_exec_is_looked_at_again_for_the_library() {
        let stage = |mapped: &[&str], environment: &str| {
            super::stage(mapped.iter().copied(), environment.as_bytes(), "/run/longpole-7/lib.so")
        };
        let wanted = "HOME=/\0LD_PRELOAD=/run/longpole-7/lib.so:/other.so\0";
        assert_eq!(stage(&[], ""), Stage::Nowhere);
        assert_eq!(stage(&["/bin/program"], ""), Stage::Nowhere);
        assert_eq!(stage(&["/bin/program", "/lib/ld-linux-x86-64.so.2"], wanted), Stage::ToCome);
        assert_eq!(stage(&["/bin/program"], "HOME=/\0PRELOAD=/run/longpole-7/lib.so\0"), Stage::Without);
        let with = ["/bin/program", "/run/longpole-7/lib.so", "/lib/libc.so.6"];
        assert_eq!(stage(&with, ""), Stage::Inside);
        assert_eq!(stage(&["/bin/program", "/lib/libc.so.6"], wanted), Stage::Without);
    }
}
