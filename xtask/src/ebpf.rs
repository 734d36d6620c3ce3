//! The kernel programs: `target/ebpf/probe-ebpf.o`, built with the pinned stable toolchain for the kernel's target.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::command;
use crate::linker;
use crate::toolchain::Toolchain;
use crate::workspace::Workspace;

/// The kernel's own instruction set, little-endian.
const TARGET: &str = "bpfel-unknown-none";

/// The object file, or the reason why this machine cannot build it.
pub enum Object {
    /// Up to date with its sources.
    Built(PathBuf),
    /// A tool or the network is missing; everything else builds replay-only.
    Unavailable(String),
}

impl Object {
    /// Tells a cargo command for the collector which object to embed.
    pub fn pass_to(&self, cargo: &mut Command) {
        match self {
            Object::Built(path) => cargo.env("LONGPOLE_EBPF_OBJECT", path),
            Object::Unavailable(_) => cargo.env_remove("LONGPOLE_EBPF_OBJECT"),
        };
    }
}

/// `./x ebpf`.
///
/// # Errors
/// The kernel programs do not compile, or the output folder cannot be written.
pub fn run() -> Result<ExitCode> {
    Ok(match provide(&Workspace::find())? {
        Object::Built(path) => {
            println!("{}", path.display());
            ExitCode::SUCCESS
        }
        Object::Unavailable(reason) => {
            eprintln!("xtask: no kernel programs: {reason}");
            ExitCode::FAILURE
        }
    })
}

/// Builds the kernel programs if their sources changed.
///
/// # Errors
/// They do not compile, or the output folder cannot be written.
pub fn provide(workspace: &Workspace) -> Result<Object> {
    let object = match tools(workspace)? {
        Ok(tools) => Object::Built(compile(workspace, &tools)?),
        Err(reason) => Object::Unavailable(reason),
    };
    if let Object::Unavailable(_) = object {
        // An object of other sources must not get into a build that was told there is none.
        drop(std::fs::remove_file(workspace.ebpf_object()));
    }
    Ok(object)
}

/// A cargo command on the kernel programs' crate: `build`, `clippy`, …
pub fn cargo(workspace: &Workspace, tools: &Tools, action: &str) -> Command {
    let mut cargo = command::cargo(workspace);
    cargo.current_dir(workspace.ebpf_crate());
    cargo.arg(action).args(["--locked", "--release", "-Z", "build-std=core", "--target", TARGET]);
    cargo.arg("--target-dir").arg(workspace.target.join("ebpf-build"));
    // build-std is not stable; the toolchain is pinned, so what it does cannot change under us.
    cargo.env("RUSTC_BOOTSTRAP", "1");
    cargo.env("CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER", &tools.linker);
    // Which registers hold a function's arguments. Flags are in probe-ebpf/.cargo/config.toml; `command::cargo` keeps out
    // the environment's, which would hide them.
    cargo.env("AYA_BPF_TARGET_ARCH", std::env::consts::ARCH);
    cargo
}

/// What building kernel programs takes beside cargo.
pub struct Tools {
    linker: PathBuf,
}

/// Looks for everything that is needed; the inner error says what is missing.
///
/// # Errors
/// Folders under target cannot be written.
pub fn tools(workspace: &Workspace) -> Result<std::result::Result<Tools, String>> {
    if !workspace.ebpf_crate().join("Cargo.toml").is_file() {
        return Ok(Err("this tree has no probe-ebpf".into()));
    }
    let toolchain = Toolchain::ask(workspace)?;
    if !toolchain.sysroot.join("lib/rustlib/src/rust/library/core").is_dir() {
        return Ok(Err("the toolchain lacks rust-src: rustup component add rust-src".into()));
    }
    let linker = match linker::provide(workspace, &toolchain)? {
        Ok(linker) => linker,
        Err(reason) => return Ok(Err(reason)),
    };
    let tools = Tools { linker };
    // Told apart from a compile error: a machine without network may lack the crates.
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
    let object = workspace.ebpf_object();
    copy_if_new(Path::new(&built), &object)?;
    Ok(object)
}

/// The last executable cargo says it made: probe-ebpf has one binary.
fn executable(messages: &str) -> Option<String> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|message| message.get("executable")?.as_str().map(str::to_owned))
        .next_back()
}

/// Leaves the file and its time alone if nothing changed, so that the collector is not built again.
pub fn copy_if_new(from: &Path, to: &Path) -> Result<()> {
    let new = std::fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if std::fs::read(to).is_ok_and(|old| old == new) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    std::fs::write(to, new).with_context(|| format!("cannot write {}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::executable;

    #[test]
    fn the_object_is_what_cargo_names_last() {
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
