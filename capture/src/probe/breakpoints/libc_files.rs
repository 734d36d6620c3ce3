//! The files and functions of a process's C library that get probes.

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
    /// The library's files.
    pub files: Vec<LibcFile>,
    /// Address ranges of the library's files in the process (start, end), if they are mapped already; the loader comes
    /// first.
    pub own: Vec<(u64, u64)>,
    /// Device and inode of the process's PID namespace, as `stat` gives them, if it is not the first namespace.
    pub namespace: Option<(u64, u64)>,
    /// Families that must not get probes, each with the trial's result.
    pub unfit: Vec<(SyncFamily, OperationsTried)>,
}

/// One file of a C library.
#[derive(Clone, Debug)]
pub struct LibcFile {
    /// A number that is the same for the same file.
    pub id: u32,
    /// The file's name in messages.
    pub name: String,
    /// The open file.
    pub file: Arc<Binary>,
    /// The functions in the file.
    pub functions: Arc<LibcFunctions>,
    /// The file is the loader without the library.
    pub is_loader: bool,
}
