//! Finds the root folder of the workspace, and folders under its target folder.

use std::path::{Path, PathBuf};

/// The workspace from which this xtask was built.
pub struct Workspace {
    /// The folder with the workspace's Cargo.toml.
    pub root: PathBuf,
    /// The folder for cargo's output: `CARGO_TARGET_DIR`, or `target` in the root.
    pub target: PathBuf,
}

impl Workspace {
    /// Finds the workspace from the folder of xtask's own manifest.
    pub fn find() -> Self {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = own.parent().unwrap_or(own).to_path_buf();
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
        Self { root, target }
    }

    /// The folder of tools that are built for this toolchain. The folder is never in the user's home.
    pub fn tools(&self) -> PathBuf {
        self.target.join("tools")
    }

    /// The folder of the kernel programs' own crate, which cannot be compiled for a host.
    pub fn ebpf_crate(&self) -> PathBuf {
        self.root.join("probe-ebpf")
    }
}
