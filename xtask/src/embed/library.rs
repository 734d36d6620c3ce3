//! Builds the library that launched programs load before libc.
//!
//! cargo makes a static library, and the toolchain's own linker makes a shared library of it. So the library refers to
//! nothing in the build machine's libc. The shared library can also have symbol versions, which the export list of
//! rustc does not allow.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::Provided;
use crate::command;
use crate::toolchain::Toolchain;
use crate::workspace::Workspace;

/// Builds the preloaded library from its sources, under `target`. The inner error says why this machine cannot build
/// it.
///
/// # Errors
///
/// The library does not compile.
pub fn make(workspace: &Workspace) -> Result<Provided<PathBuf>> {
    if !matches!(std::env::consts::ARCH, "x86_64" | "aarch64") {
        return Ok(Err(format!("{} is not one of its architectures", std::env::consts::ARCH)));
    }
    let Some(linker) = Toolchain::ask(workspace)?.program("rust-lld") else {
        return Ok(Err("the toolchain has no rust-lld".into()));
    };
    let mut build = command::cargo(workspace);
    build.args(["rustc", "--quiet", "--locked", "--package", "probe-preload", "--profile", "preload"]);
    // The library runs in other programs on other machines, so flags for this machine, such as -Ctarget-cpu=native, are
    // removed.
    build.env("CARGO_ENCODED_RUSTFLAGS", "");
    // Exceptions and cancellation unwind the stack through the library.
    build.args(["--crate-type", "staticlib", "--", "-C", "force-unwind-tables=yes"]);
    command::must(&mut build, "building the library to put before libc")?;
    let folder = workspace.target.join("preload");
    let library = folder.join("longpole-preload.so");
    command::must(
        &mut link(
            &linker,
            &folder.join("libprobe_preload.a"),
            &workspace.root.join("probe-preload"),
            &library,
        ),
        "linking the library to put before libc",
    )?;
    Ok(Ok(library))
}

fn link(linker: &Path, archive: &Path, source: &Path, to: &Path) -> Command {
    let mut link = Command::new(linker);
    link.args(["-flavor", "gnu", "-shared", "-o"]).arg(to);
    link.arg("--whole-archive").arg(archive).args(["--no-whole-archive", "--gc-sections"]);
    link.arg("--version-script").arg(source.join("versions.map")).arg("--undefined-version");
    link.args(["-soname", "longpole-preload.so", "--hash-style=gnu", "--build-id", "--strip-all"]);
    link.args(["--eh-frame-hdr", "-z", "now", "-z", "noexecstack"]);
    // The file has two mappings, and no part of them becomes read-only later, which would split a mapping. That part
    // would contain the addresses of seven variables and functions of libc. The word after them, the address of a vDSO
    // function, is written later in any case. Each mapping costs a program that starts, forks and ends some
    // microseconds, as much as all of the library's own work.
    link.args(["-z", "norelro", "-z", "separate-loadable-segments", "--no-rosegment"]);
    link.arg("-T").arg(source.join("sections.ld"));
    link
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    /// The checked-in library for this architecture.
    fn embedded(test: &str) -> Option<PathBuf> {
        let library = super::super::folder(&Workspace::find()).join(super::super::LIBRARY);
        if !library.exists() {
            println!("SKIP {test}: none is checked in for {}", std::env::consts::ARCH);
        }
        library.exists().then_some(library)
    }

    /// The names that a shared library defines, or those that it only refers to.
    fn names(library: &Path, defined: bool) -> Vec<String> {
        let mut nm = Command::new("nm");
        nm.arg("-D").arg(if defined { "--defined-only" } else { "--undefined-only" }).arg(library);
        let text = command::text(&mut nm).context("nm").unwrap();
        text.lines().filter_map(|line| Some(line.split_whitespace().next_back()?.to_owned())).collect()
    }

    fn number<const N: usize>(file: &[u8], at: usize) -> u64 {
        let bytes = file[at..at + N].iter().rev();
        bytes.fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    /// Type, offset in the file, address, size in the file and size in memory of each program header.
    fn parts(file: &[u8]) -> Vec<[u64; 5]> {
        let (headers, count) = (number::<8>(file, 32) as usize, number::<2>(file, 56) as usize);
        let part = |at: usize| [number::<4>(file, at), number::<8>(file, at + 8), number::<8>(file, at + 16)];
        let sizes = |at: usize| [number::<8>(file, at + 32), number::<8>(file, at + 40)];
        let all = (0..count).map(|i| headers + 56 * i);
        all.map(|at| [part(at).as_slice(), &sizes(at)].concat().try_into().unwrap()).collect()
    }

    /// A loop in a shell starts thousands of programs that never lock anything. For such programs, the library costs
    /// only the loader's work. So the file must have two mappings without a hole between them, nothing to clear or
    /// protect, and one page to change.
    #[test]
    fn the_embedded_library_gives_the_loader_little_to_do() {
        const PAGE: u64 = 4096;
        let Some(library) = embedded("the_embedded_library_gives_the_loader_little_to_do") else { return };
        let file = std::fs::read(library).unwrap();
        let parts = parts(&file);
        let of = |kind: u64| parts.iter().filter(move |part| part[0] == kind).collect::<Vec<_>>();
        let [code, data] = of(1)[..] else { panic!("not two mappings: {parts:x?}") };
        // AArch64 may have larger pages, and its linker leaves room for them.
        let gap = data[2] - (code[2] + code[4]).next_multiple_of(PAGE);
        assert!(gap == 0 || cfg!(target_arch = "aarch64"), "a hole: {parts:x?}");
        assert_eq!((data[2] % PAGE, data[3]), (0, data[4]), "more to map, or to clear: {parts:x?}");
        assert!(of(0x6474_e552).is_empty(), "something is to become read-only: {parts:x?}");
        let dynamic = of(2)[0];
        let entry = |tag: u64| {
            let at = (0..).map(|i| dynamic[1] as usize + 16 * i);
            let mut entries = at.map(|at| (number::<8>(&file, at), number::<8>(&file, at + 8)));
            entries.find(|entry| entry.0 == tag || entry.0 == 0).filter(|entry| entry.0 == tag)
        };
        assert!(entry(4).is_none() && entry(0x6fff_fef5).is_some(), "one table of names is enough");
        let (table, bytes) = (entry(7).unwrap().1 as usize, entry(8).unwrap().1 as usize);
        let places: Vec<u64> = (table..table + bytes).step_by(24).map(|at| number::<8>(&file, at)).collect();
        assert!((8..16).contains(&places.len()), "{} relocations", places.len());
        let first_page = data[2]..data[2] + PAGE;
        assert!(places.iter().all(|place| first_page.contains(place)), "more than one page: {places:x?}");
    }

    /// No program may fail to start because a symbol or a version is missing. The library must define only the
    /// functions that it wraps, because its definitions come before those of the program's libraries.
    #[test]
    fn the_embedded_library_needs_nothing_and_defines_only_what_it_wraps() {
        if std::process::Command::new("nm").arg("--version").output().is_err() {
            println!(
                "SKIP the_embedded_library_needs_nothing_and_defines_only_what_it_wraps: there is no nm"
            );
            return;
        }
        let Some(library) = embedded("the_embedded_library_needs_nothing_and_defines_only_what_it_wraps")
        else {
            return;
        };
        let defined = names(&library, true);
        let families = ["pthread_", "__pthread_", "sem_", "mtx_", "cnd_", "thrd_", "call_once", "GLIBC_2."];
        for name in &defined {
            // Functions that take the clock or system calls away, that would prevent the library from initializing
            // itself later, or that start other programs.
            let watched = [
                "prctl",
                "syscall",
                "mlockall",
                "chroot",
                "setuid",
                "setreuid",
                "setresuid",
                "unshare",
                "setns",
                "setrlimit",
                "setrlimit64",
                "prlimit",
                "prlimit64",
                "close_range",
                "closefrom",
                "execv",
                "execvp",
                "execl",
                "execlp",
                "execve",
                "execvpe",
                "fexecve",
                "execveat",
                "posix_spawn",
                "posix_spawnp",
                "system",
                "popen",
            ];
            let is_watched = watched.contains(&name.as_str());
            assert!(
                is_watched || families.iter().any(|family| name.starts_with(family)),
                "{name} is exported"
            );
        }
        for name in
            ["pthread_mutex_lock", "sem_open", "call_once", "thrd_create", "pthread_rwlock_clockwrlock"]
        {
            assert!(defined.iter().any(|other| other == name), "{name} is missing");
        }
        if cfg!(target_arch = "x86_64") {
            for name in ["pthread_cond_wait@@GLIBC_2.3.2", "pthread_cond_wait@GLIBC_2.2.5"] {
                assert!(defined.iter().any(|other| other == name), "{name} is missing");
            }
        }
        let needed = names(&library, false);
        let known = [
            "__errno_location",
            "__libc_single_threaded",
            "dlsym",
            "dlvsym",
            "environ",
            "getauxval",
            "gnu_get_libc_version",
        ];
        assert_eq!(needed, known, "each of them weak and without a version");
    }
}
