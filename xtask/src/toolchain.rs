//! Facts about the pinned Rust toolchain: its version text, its folder and its own LLVM.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use longpole_tests::workload::fnv;

use crate::command;
use crate::workspace::Workspace;

/// The toolchain that builds kernel programs and user space.
pub struct Toolchain {
    /// Output of `rustc -vV`. Tools that are built for this toolchain have it in their key.
    pub version_text: String,
    /// The value of the line `release:`.
    pub release: String,
    /// The major number in the line `LLVM version:`.
    pub llvm_major: u32,
    /// The folder that `rustc --print sysroot` prints.
    pub sysroot: PathBuf,
}

impl Toolchain {
    /// Runs rustc in the workspace's folder, so that rust-toolchain.toml decides which rustc runs.
    ///
    /// # Errors
    /// There is no rustc, or it does not name its LLVM.
    pub fn ask(workspace: &Workspace) -> Result<Self> {
        let rustc = |argument: &[&str]| {
            command::text(Command::new("rustc").args(argument).current_dir(&workspace.root))
        };
        let version_text = rustc(&["-vV"])?;
        let release = field(&version_text, "release: ").context("rustc -vV names no release")?.to_owned();
        let llvm_major = field(&version_text, "LLVM version: ")
            .and_then(|version| version.split('.').next())
            .and_then(|major| major.parse().ok())
            .context("rustc -vV names no LLVM version")?;
        let sysroot = PathBuf::from(rustc(&["--print", "sysroot"])?);
        Ok(Self { version_text, release, llvm_major, sysroot })
    }

    /// Short name for a folder with tools that are built for exactly this toolchain.
    pub fn key(&self) -> String {
        format!("{}-{:016x}", self.release, fnv(&self.version_text))
    }

    /// Whether the toolchain is the one of rust-toolchain.toml. If not, the inner error says so: another toolchain
    /// produces other bytes.
    ///
    /// # Errors
    /// rust-toolchain.toml cannot be read.
    pub fn is_pinned(&self, workspace: &Workspace) -> Result<std::result::Result<(), String>> {
        let file = workspace.root.join("rust-toolchain.toml");
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let pin =
            field(&text, "channel = ").context("rust-toolchain.toml names no channel")?.trim_matches('"');
        let release = &self.release;
        Ok(if release == pin {
            Ok(())
        } else {
            Err(format!("Rust {pin} makes them, and this is Rust {release}"))
        })
    }

    /// Path of a program that comes with the toolchain, such as `rust-lld`.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let host = field(&self.version_text, "host: ")?;
        let path = self.sysroot.join("lib/rustlib").join(host).join("bin").join(name);
        path.is_file().then_some(path)
    }

    /// The shared LLVM library that rustc itself uses.
    pub fn llvm_library(&self) -> Option<PathBuf> {
        let folder = self.sysroot.join("lib");
        let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| is_llvm_name(path) && is_elf(path))
            .collect();
        found.sort();
        found.into_iter().next()
    }
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))
}

fn is_llvm_name(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with("libLLVM") && name.contains(".so"))
}

/// Whether the file is an ELF file. The toolchain also has a linker script of a similar name.
fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_toolchain_s_versions_are_read() {
        let toolchain = Toolchain::ask(&Workspace::find()).unwrap();
        assert!(toolchain.llvm_major >= 15, "{}", toolchain.version_text);
        assert!(toolchain.key().starts_with(&toolchain.release));
        assert!(toolchain.sysroot.is_dir());
    }

    #[test]
    fn a_linker_script_is_not_the_llvm_library() {
        assert!(is_llvm_name(Path::new("/x/libLLVM.so.23.1-rust-1.99.1-stable")));
        assert!(!is_llvm_name(Path::new("/x/librustc_driver-7ed.so")));
        assert!(!is_elf(Path::new(file!())));
    }
}
