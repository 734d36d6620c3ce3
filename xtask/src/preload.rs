//! The library that is put before libc of launched programs: `target/preload/longpole-preload.so`.
//!
//! cargo makes a static library of it, and the toolchain's own linker a shared one: so nothing of the building machine's
//! libc is named in it, and it can have symbol versions, which rustc's own export list excludes.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::command;
use crate::ebpf::copy_if_new;
use crate::toolchain::Toolchain;
use crate::workspace::Workspace;

/// `./x preload`.
///
/// # Errors
/// It does not compile.
pub fn run() -> Result<ExitCode> {
    match provide(&Workspace::find())? {
        Ok(path) => {
            println!("{}", path.display());
            Ok(ExitCode::SUCCESS)
        }
        Err(reason) => {
            eprintln!("xtask: no library to put before libc: {reason}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The library, up to date with its sources; the inner error says why this machine cannot build it.
///
/// # Errors
/// It does not compile, or the output folder cannot be written.
pub fn provide(workspace: &Workspace) -> Result<std::result::Result<PathBuf, String>> {
    let library = workspace.target.join("preload/longpole-preload.so");
    if !matches!(std::env::consts::ARCH, "x86_64" | "aarch64") {
        return Ok(Err(format!("{} is not one of its architectures", std::env::consts::ARCH)));
    }
    let Some(linker) = linker(&Toolchain::ask(workspace)?) else {
        // A library of other sources must not get into a build that was told there is none.
        drop(std::fs::remove_file(&library));
        return Ok(Err("the toolchain has no rust-lld".into()));
    };
    let mut build = command::cargo(workspace);
    build.args(["rustc", "--quiet", "--locked", "--package", "probe-preload", "--profile", "preload"]);
    // Exceptions and cancellation unwind through it.
    build.args(["--crate-type", "staticlib", "--", "-C", "force-unwind-tables=yes"]);
    command::must(&mut build, "building the library to put before libc")?;
    let folder = workspace.target.join("preload");
    let fresh = folder.join("longpole-preload.so.new");
    let versions = workspace.root.join("probe-preload/versions.map");
    command::must(
        &mut link(&linker, &folder.join("libprobe_preload.a"), &versions, &fresh),
        "linking the library to put before libc",
    )?;
    copy_if_new(&fresh, &library)?;
    drop(std::fs::remove_file(&fresh));
    Ok(Ok(library))
}

/// Tells a cargo command for the collector which library to embed.
pub fn pass_to(library: &std::result::Result<PathBuf, String>, cargo: &mut Command) {
    match library {
        Ok(path) => cargo.env("LONGPOLE_PRELOAD_OBJECT", path),
        Err(_) => cargo.env_remove("LONGPOLE_PRELOAD_OBJECT"),
    };
}

fn linker(toolchain: &Toolchain) -> Option<PathBuf> {
    let host = toolchain.version_text.lines().find_map(|line| line.strip_prefix("host: "))?;
    let path = toolchain.sysroot.join("lib/rustlib").join(host).join("bin/rust-lld");
    path.is_file().then_some(path)
}

fn link(linker: &Path, archive: &Path, versions: &Path, to: &Path) -> Command {
    let mut link = Command::new(linker);
    link.args(["-flavor", "gnu", "-shared", "-o"]).arg(to);
    link.arg("--whole-archive").arg(archive).args(["--no-whole-archive", "--gc-sections"]);
    link.arg("--version-script").arg(versions).arg("--undefined-version");
    link.args(["-soname", "longpole-preload.so", "--hash-style=both", "--build-id", "--strip-all"]);
    link.args(["--eh-frame-hdr", "-z", "now", "-z", "relro", "-z", "noexecstack"]);
    link
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    /// The names a shared library defines, or only asks for.
    fn names(library: &Path, defined: bool) -> Vec<String> {
        let mut nm = Command::new("nm");
        nm.arg("-D").arg(if defined { "--defined-only" } else { "--undefined-only" }).arg(library);
        let text = command::text(&mut nm).context("nm").unwrap();
        text.lines().filter_map(|line| Some(line.split_whitespace().next_back()?.to_owned())).collect()
    }

    /// What it must not do: keep a program from starting because a symbol, or a version of one, is missing; or put
    /// anything before the program's libraries but what it wraps.
    #[test]
    fn the_library_needs_nothing_and_defines_only_what_it_wraps() {
        if std::process::Command::new("nm").arg("--version").output().is_err() {
            println!("SKIP the_library_needs_nothing_and_defines_only_what_it_wraps: there is no nm");
            return;
        }
        let library = match provide(&Workspace::find()).unwrap() {
            Ok(library) => library,
            Err(reason) => {
                println!("SKIP the_library_needs_nothing_and_defines_only_what_it_wraps: {reason}");
                return;
            }
        };
        let defined = names(&library, true);
        let families = ["pthread_", "__pthread_", "sem_", "mtx_", "cnd_", "thrd_", "call_once", "GLIBC_2."];
        for name in &defined {
            // What takes the clock or system calls away, what would keep the library from coming up later, and what
            // starts other programs.
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
