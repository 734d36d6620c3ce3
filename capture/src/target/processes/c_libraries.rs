//! The C library of a process: the files of it that are mapped, and those that a program's loader will map.
//!
//! glibc before 2.34 has its thread functions in a separate library, which is loaded when something needs it.
//! musl is its own loader. A statically linked program is its own C library.

use super::maps::{Module, mapped};
use super::process::Process;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use symbols::Outline;

/// The kind of a file of a C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CLibraryKind {
    /// A file that has functions of libc.
    Library,
    /// The file that loads all other files; it has no functions of libc.
    Loader,
    /// A statically linked program.
    Program,
}

/// A file that belongs to a process's C library.
#[derive(Debug)]
pub struct CLibrary {
    /// The mapped file itself, opened.
    pub file: File,
    /// File name, safe to print.
    pub name: String,
    /// Its part in the C library.
    pub kind: CLibraryKind,
    /// Its addresses in the process, from the first instruction up to the last; `None`: it is not mapped yet.
    pub range: Option<(u64, u64)>,
}

/// Files of a C library that a process has mapped. The program is one of them if it is statically linked.
pub fn mapped_c_libraries(process: &Process) -> Vec<CLibrary> {
    let Ok(modules) = mapped(process) else { return Vec::new() };
    let mut libraries: Vec<CLibrary> = modules.iter().filter_map(library).collect();
    if let Some(program) = static_program(&process.open_path(), process.program_name()) {
        libraries.push(program);
    }
    libraries
}

fn library(module: &Module) -> Option<CLibrary> {
    let kind = c_library_kind(module.name())?;
    let file = open(&module.open_path)?;
    // If the path leads to another file by now, that file must get no probes.
    (file.metadata().ok()?.ino() == module.inode).then_some(())?;
    let start = module.ranges.iter().map(|range| range.start).min()?;
    let end = module.ranges.iter().map(|range| range.end).max()?;
    Some(CLibrary { file, name: module.name().to_owned(), kind, range: Some((start, end)) })
}

/// Files that the program in `binary` will map when it is started here, before any of its code runs. The result is
/// wrong if the program's libraries are not in its loader's folder; [`mapped_c_libraries`] gives the true files later.
pub fn c_libraries_to_come(binary: &Path) -> Vec<CLibrary> {
    let Some((_, outline)) = Outline::open(binary) else { return Vec::new() };
    let Some(interpreter) = outline.interpreter else {
        return static_program(binary, &name_of(binary)).into_iter().collect();
    };
    let mut paths = vec![interpreter.clone()];
    let folder = std::fs::canonicalize(&interpreter).ok().and_then(|path| Some(path.parent()?.to_owned()));
    paths
        .extend(["libc.so.6", "libpthread.so.0"].iter().filter_map(|name| Some(folder.as_ref()?.join(name))));
    let open = |path: PathBuf| {
        let name = name_of(&path);
        Some(CLibrary { file: open(&path)?, kind: c_library_kind(&name)?, name, range: None })
    };
    paths.into_iter().filter_map(open).collect()
}

fn static_program(binary: &Path, name: &str) -> Option<CLibrary> {
    let (file, outline) = Outline::open(binary)?;
    let kind = CLibraryKind::Program;
    outline.interpreter.is_none().then(|| CLibrary { file, name: name.to_owned(), kind, range: None })
}

fn open(path: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

fn name_of(path: &Path) -> String {
    symbols::safe(&path.file_name().unwrap_or_default().to_string_lossy())
}

/// Whether a file with this name may belong to a C library.
pub fn is_c_library(name: &str) -> bool {
    c_library_kind(name).is_some()
}

/// The kind of file, judged by its name, if it may belong to a C library.
pub fn c_library_kind(name: &str) -> Option<CLibraryKind> {
    // Before 2.34, glibc's files had the version in their names, and today's names were links to them.
    let versioned = |stem: &str| {
        name.strip_prefix(stem).is_some_and(|rest| rest.starts_with("-2.") && rest.ends_with(".so"))
    };
    let musl = name == "libc.so" || name.starts_with("ld-musl-") || name.starts_with("libc.musl-");
    if name == "libc.so.6"
        || name == "libpthread.so.0"
        || versioned("libc")
        || versioned("libpthread")
        || musl
    {
        Some(CLibraryKind::Library)
    } else if name.starts_with("ld-linux") || versioned("ld") {
        Some(CLibraryKind::Loader)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_libraries_are_known_by_their_file_names() {
        use CLibraryKind::*;
        for (name, expected) in [
            ("libc.so.6", Some(Library)),
            ("libc-2.17.so", Some(Library)),
            ("libpthread-2.31.so", Some(Library)),
            ("libpthread.so.0", Some(Library)),
            ("ld-musl-x86_64.so.1", Some(Library)),
            ("libc.musl-x86_64.so.1", Some(Library)),
            ("libc.so", Some(Library)),
            ("ld-linux-x86-64.so.2", Some(Loader)),
            ("ld-2.31.so", Some(Loader)),
            ("libcrypto.so.3", None),
            ("libc-client.so.2007e", None),
            ("libstdc++.so.6", None),
        ] {
            assert_eq!(c_library_kind(name), expected, "{name}");
        }
    }

    #[test]
    fn the_c_libraries_expected_of_a_program_are_those_it_maps() {
        let Ok(shell) = std::fs::canonicalize("/bin/sh") else { return };
        let mut child = std::process::Command::new(&shell)
            .args(["-c", "echo up; read line"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("shell");
        std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut [0]).expect("up");
        let process = Process::open(child.id()).expect("process");
        let id = |library: &CLibrary| {
            let metadata = library.file.metadata().expect("metadata");
            (metadata.dev(), metadata.ino())
        };
        let mapped = mapped_c_libraries(&process);
        drop(child.stdin.take());
        child.wait().expect("ended");
        let to_come = c_libraries_to_come(&shell);
        assert!(mapped.iter().any(|library| library.kind == CLibraryKind::Library), "{mapped:?}");
        assert!(mapped.iter().all(|library| library.range.is_some()), "{mapped:?}");
        for library in &mapped {
            assert!(to_come.iter().any(|other| id(other) == id(library)), "{library:?} in {to_come:?}");
        }
    }
}
