//! Builds the static program. The program contains musl instead of using the machine's C library, so it runs on every
//! distribution.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::command;
use crate::embed;
use crate::workspace::Workspace;

const TARGET: &str = "x86_64-unknown-linux-musl";

/// Builds the static program, and returns its path.
///
/// # Errors
///
/// The target or its C compiler is missing, or the program does not compile.
pub fn build(workspace: &Workspace, time: &str) -> Result<PathBuf> {
    if let Err(reason) = embed::bring_up_to_date(workspace)? {
        eprintln!("xtask: {reason}");
    }
    let mut sysroot = Command::new("rustc");
    sysroot.current_dir(&workspace.root).args(["--print", "sysroot"]);
    let sysroot = command::text(&mut sysroot)?;
    if !Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).exists() {
        bail!("Rust has no {TARGET} here\nhint: rustup target add {TARGET}");
    }
    if Command::new("musl-gcc").arg("--version").output().is_err() {
        bail!("there is no musl-gcc, which compiles zstd\nhint: sudo apt install musl-tools");
    }
    let mut cargo = command::cargo(workspace);
    cargo
        .args(["build", "--locked", "--package", "collector", "--bin", "longpole"])
        .args(["--profile", "dist", "--target", TARGET, "--target-dir"])
        .arg(&workspace.target)
        .env("CARGO_ENCODED_RUSTFLAGS", without_own_paths(workspace))
        .env("SOURCE_DATE_EPOCH", time);
    let status = cargo.status()?;
    if !status.success() {
        bail!("building the static longpole: {status}");
    }
    Ok(workspace.target.join(TARGET).join("dist/longpole"))
}

/// Compiler flags that replace the paths of this machine's folders, because messages of panics contain paths. So a
/// build in another folder or by another user gives the same bytes.
fn without_own_paths(workspace: &Workspace) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    // The last matching prefix wins, and the target folder may be within the root.
    [(&cargo_home, "/cargo"), (&workspace.root, "/longpole"), (&workspace.target, "/longpole/target")]
        .map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display()))
        .join("\u{1f}")
}
