//! `./x build`: the release binary with the kernel programs inside.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::command;
use crate::ebpf::{self, Object};
use crate::preload;
use crate::workspace::Workspace;

/// Builds and says where the binary is.
///
/// # Errors
/// Something does not compile.
pub fn run() -> Result<ExitCode> {
    let workspace = Workspace::find();
    let object = ebpf::provide(&workspace)?;
    let binary = release(&workspace, &object)?;
    if let Object::Unavailable(reason) = &object {
        eprintln!("xtask: built replay-only, it cannot record: {reason}");
    }
    println!("{}", binary.display());
    Ok(ExitCode::SUCCESS)
}

/// `target/release/longpole`.
///
/// # Errors
/// It does not compile.
pub fn release(workspace: &Workspace, object: &Object) -> Result<PathBuf> {
    let mut build = command::cargo(workspace);
    build.args(["build", "--release", "--locked", "--package", "collector", "--bin", "longpole"]);
    object.pass_to(&mut build);
    let library = preload::provide(workspace)?;
    if let Err(reason) = &library {
        eprintln!("xtask: built without the library to put before libc: {reason}");
    }
    preload::pass_to(&library, &mut build);
    command::must(&mut build, "building longpole")?;
    Ok(workspace.target.join("release/longpole"))
}
