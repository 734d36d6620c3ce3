//! What to probe of a process's C library.

use std::sync::Arc;

use engine::event::OperationsTried;
use probe_abi::SyncFamily;

use symbols::LibcFunctions;
use symbols::binary::Binary;

/// A process's C library, to be probed.
#[derive(Clone, Debug, Default)]
pub struct LibcProbes {
    /// The process.
    pub pid: u32,
    /// Its files.
    pub files: Vec<LibcFile>,
    /// Where they are in the process (from, up to), if they are mapped already; the loader first.
    pub own: Vec<(u64, u64)>,
    /// Device and inode of its PID namespace as `stat` gives them, if that is not the first one.
    pub namespace: Option<(u64, u64)>,
    /// Families that never get any probes: what a trial has shown.
    pub unfit: Vec<(SyncFamily, OperationsTried)>,
}

/// One file of it.
#[derive(Clone, Debug)]
pub struct LibcFile {
    /// The same for the same file.
    pub id: u32,
    /// Its name, for people.
    pub name: String,
    /// The file itself.
    pub file: Arc<Binary>,
    /// What it has.
    pub functions: Arc<LibcFunctions>,
    /// It is the loader only.
    pub is_loader: bool,
}
