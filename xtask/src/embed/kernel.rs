//! Builds the kernel programs with the pinned stable toolchain for the kernel's target.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{Provided, linker};
use crate::command;
use crate::toolchain::Toolchain;
use crate::workspace::Workspace;

/// The kernel's instruction set for BPF, little-endian.
const TARGET: &str = "bpfel-unknown-none";

/// Builds the object file of the kernel programs from its sources, under `target`. The inner error says what this
/// machine lacks.
///
/// # Errors
/// The kernel programs do not compile, or the output folder cannot be written.
pub fn make(workspace: &Workspace) -> Result<Provided<PathBuf>> {
    Ok(match tools(workspace)? {
        Ok(tools) => Ok(compile(workspace, &tools)?),
        Err(reason) => Err(reason),
    })
}

/// A command that lints the crate of the kernel programs, which cannot be compiled for a host. The inner error says
/// what this machine lacks.
///
/// # Errors
/// Folders under target cannot be written.
pub fn lints(workspace: &Workspace) -> Result<Provided<Command>> {
    Ok(tools(workspace)?.map(|tools| {
        let mut clippy = cargo(workspace, &tools, "clippy");
        clippy.args(["--quiet", "--", "-D", "warnings"]);
        clippy
    }))
}

/// A cargo command (`build`, `clippy`, …) on the crate of the kernel programs.
fn cargo(workspace: &Workspace, tools: &Tools, action: &str) -> Command {
    let mut cargo = command::cargo(workspace);
    cargo.current_dir(workspace.ebpf_crate());
    cargo.arg(action).args(["--locked", "--profile", "ebpf", "-Z", "build-std=core", "--target", TARGET]);
    cargo.arg("--target-dir").arg(workspace.target.join("ebpf-build"));
    // build-std is not stable, but the toolchain is pinned, so its behaviour cannot change.
    cargo.env("RUSTC_BOOTSTRAP", "1");
    cargo.env("CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER", &tools.linker);
    // The architecture decides which registers contain a function's arguments. Compiler flags are in
    // probe-ebpf/.cargo/config.toml. Flags in the environment would hide these, so `command::cargo` removes them.
    cargo.env("AYA_BPF_TARGET_ARCH", std::env::consts::ARCH);
    cargo.arg("--config").arg(remap(workspace, &tools.sysroot));
    cargo
}

/// Flags that remove this machine's folders from source paths. probe-ebpf/.cargo/config.toml has all other flags.
fn remap(workspace: &Workspace, sysroot: &Path) -> String {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).unwrap_or_default();
    let registries = std::fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten();
    let registries = registries.map(|entry| (entry.path(), "registry"));
    let folders = [(workspace.root.clone(), "longpole"), (sysroot.join("lib/rustlib/src/rust"), "rust")];
    let flags: Vec<String> = folders
        .into_iter()
        .chain(registries)
        .map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display()))
        .collect();
    format!("target.{TARGET}.rustflags={flags:?}")
}

/// The tools that building the kernel programs needs, apart from cargo.
struct Tools {
    linker: PathBuf,
    /// The tool that removes debug information from the object.
    objcopy: PathBuf,
    sysroot: PathBuf,
}

/// Finds all necessary tools. The inner error says what is missing.
///
/// # Errors
/// Folders under target cannot be written.
fn tools(workspace: &Workspace) -> Result<Provided<Tools>> {
    let toolchain = Toolchain::ask(workspace)?;
    if !toolchain.sysroot.join("lib/rustlib/src/rust/library/core").is_dir() {
        return Ok(Err("the toolchain lacks rust-src: rustup component add rust-src".into()));
    }
    let linker = match linker::provide(workspace, &toolchain)? {
        Ok(linker) => linker,
        Err(reason) => return Ok(Err(reason)),
    };
    let Some(objcopy) = toolchain.program("rust-objcopy") else {
        return Ok(Err("the toolchain has no rust-objcopy".into()));
    };
    let tools = Tools { linker, objcopy, sysroot: toolchain.sysroot };
    // A failure here is no compile error: a machine without network may lack the crates.
    let mut fetch = command::cargo(workspace);
    fetch.current_dir(workspace.ebpf_crate()).env("RUSTC_BOOTSTRAP", "1");
    fetch.args(["fetch", "--locked", "-Z", "build-std=core", "--target", TARGET]);
    let outcome = command::capture(&mut fetch, Duration::from_secs(600))?;
    if !outcome.success() {
        let last = outcome.output.lines().last().unwrap_or_default().trim();
        return Ok(Err(format!("cannot fetch the crates of the kernel programs: {last}")));
    }
    Ok(Ok(tools))
}

fn compile(workspace: &Workspace, tools: &Tools) -> Result<PathBuf> {
    let mut build = cargo(workspace, tools, "build");
    build.args(["--message-format", "json-render-diagnostics"]);
    let outcome = command::capture(&mut build, Duration::from_secs(1800))?;
    if !outcome.success() {
        for line in outcome.output.lines().filter(|line| !line.starts_with('{')) {
            eprintln!("{line}");
        }
        bail!("the kernel programs do not compile: {}", outcome.ending());
    }
    let built = executable(&outcome.output).context("cargo named no object file of probe-ebpf")?;
    let object = workspace.target.join("ebpf-build/probe-ebpf.o");
    let mut strip = Command::new(&tools.objcopy);
    // The kernel programs' type information (BTF) stays, because it is not in a debug section.
    strip.arg("--strip-debug").arg(built).arg(&object);
    // objcopy needs the toolchain's LLVM, which is in the folder of rustc's own libraries.
    strip.env("LD_LIBRARY_PATH", tools.sysroot.join("lib"));
    command::must(&mut strip, "taking debug information out of the kernel programs")?;
    Ok(object)
}

/// The last executable in cargo's messages. probe-ebpf has only one binary.
fn executable(messages: &str) -> Option<String> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|message| message.get("executable")?.as_str().map(str::to_owned))
        .next_back()
}

#[cfg(test)]
mod tests {
    use super::executable;

    #[test]
    fn the_kernel_object_is_the_last_executable_that_cargo_names() {
        let messages = concat!(
            "{\"reason\":\"compiler-artifact\",\"executable\":null}\n",
            "   Compiling probe-ebpf\n",
            "{\"reason\":\"compiler-artifact\",\"executable\":\"/t/probe-ebpf\"}\n",
            "{\"reason\":\"build-finished\",\"success\":true}\n"
        );
        assert_eq!(executable(messages).as_deref(), Some("/t/probe-ebpf"));
        assert_eq!(executable("{\"reason\":\"build-finished\"}"), None);
    }
}
