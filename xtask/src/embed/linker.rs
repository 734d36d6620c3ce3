//! Builds bpf-linker once for each toolchain, against the toolchain's own LLVM, so that no LLVM of the system is
//! needed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Provided;
use crate::command;
use crate::toolchain::Toolchain;
use crate::workspace::Workspace;

const VERSION: &str = "0.13.0";
/// The LLVM version that this version of bpf-linker links by default.
const DEFAULT_LLVM: u32 = 23;

/// Path of a working bpf-linker. If there is none in the cache, builds it now. `LONGPOLE_BPF_LINKER` names another one.
///
/// # Errors
///
/// A folder cannot be made, or something fails for another reason than a missing tool.
pub fn provide(workspace: &Workspace, toolchain: &Toolchain) -> Result<Provided<PathBuf>> {
    if let Some(own) = std::env::var_os("LONGPOLE_BPF_LINKER") {
        let own = PathBuf::from(own);
        return Ok(if works(&own) {
            Ok(own)
        } else {
            Err(format!("LONGPOLE_BPF_LINKER={} does not run", own.display()))
        });
    }
    let home = workspace.tools().join(format!("bpf-linker-{VERSION}-{}", toolchain.key()));
    let program = home.join("bin/bpf-linker");
    if works(&program) {
        return Ok(Ok(program));
    }
    let Some(library) = toolchain.llvm_library() else {
        return Ok(Err(format!(
            "the toolchain has no shared LLVM in {}/lib to build bpf-linker with",
            toolchain.sysroot.display()
        )));
    };
    eprintln!("building bpf-linker {VERSION} with the toolchain's LLVM {} (once)", toolchain.llvm_major);
    let prefix = home.join("llvm");
    link(&library, &prefix.join("lib/libLLVM.so"))?;
    let scratch = home.join("build");
    let outcome = command::capture(
        &mut install(workspace, toolchain, &home, &prefix, &scratch),
        Duration::from_secs(1800),
    )?;
    // These hundreds of megabytes are not needed any more. If they cannot be removed, they do no harm.
    drop(std::fs::remove_dir_all(&scratch));
    Ok(if outcome.success() && works(&program) {
        Ok(program)
    } else {
        let last: Vec<&str> = outcome.output.lines().rev().take(12).collect();
        for line in last.iter().rev() {
            eprintln!("    {line}");
        }
        Err(format!("bpf-linker {VERSION} could not be built here ({})", outcome.ending()))
    })
}

fn works(program: &Path) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn link(library: &Path, name: &Path) -> Result<()> {
    let folder = name.parent().context("a link needs a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    if std::fs::symlink_metadata(name).is_ok() {
        std::fs::remove_file(name).with_context(|| format!("cannot replace {}", name.display()))?;
    }
    std::os::unix::fs::symlink(library, name).with_context(|| format!("cannot make {}", name.display()))
}

fn install(
    workspace: &Workspace,
    toolchain: &Toolchain,
    home: &Path,
    prefix: &Path,
    scratch: &Path,
) -> Command {
    let mut cargo = command::cargo(workspace);
    cargo.args(["install", "bpf-linker", "--locked", "--no-track", "--force", "--version", VERSION]);
    cargo.arg("--root").arg(home).arg("--target-dir").arg(scratch);
    if toolchain.llvm_major != DEFAULT_LLVM {
        cargo.args(["--no-default-features", "--features", &format!("llvm-{}", toolchain.llvm_major)]);
    }
    cargo.env("LLVM_PREFIX", prefix);
    // The toolchain's own library is loaded at run time, so the toolchain is part of the cache key. Flags are in the
    // encoded form, because the folder's name may contain spaces.
    let rpath = format!("-C\x1flink-arg=-Wl,-rpath,{}/lib", toolchain.sysroot.display());
    cargo.env("CARGO_ENCODED_RUSTFLAGS", rpath);
    cargo
}
