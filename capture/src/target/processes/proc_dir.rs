//! A process's folder in /proc, held open: everything read through it belongs to exactly this process, even if another
//! process gets its PID later.

use crate::rights::{CAP_SYS_PTRACE, Rights};
use crate::target::error::TargetError;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Largest file of /proc that is read.
const MAX_BYTES: u64 = 64 << 20;

/// An open /proc/PID.
#[derive(Debug)]
pub struct ProcDir {
    folder: File,
    pid: u32,
}

impl ProcDir {
    /// Opens the folder, and distinguishes a missing process from a hidden one (`hidepid`).
    pub fn open(pid: u32) -> Result<ProcDir, TargetError> {
        let path = format!("/proc/{pid}");
        let opened = File::options().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(&path);
        match opened {
            Ok(folder) => Ok(ProcDir { folder, pid }),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !exists(pid) => {
                Err(TargetError::NoSuchProcess { pid })
            }
            Err(_) => Err(refused(pid, path)),
        }
    }

    /// The process's PID.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// A path to a file in the folder that stays valid for this process only, as long as `self` lives.
    pub fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.folder.as_raw_fd()))
    }

    /// A file's text; bytes that are not UTF-8 are replaced.
    pub fn text(&self, name: &str) -> Result<String, TargetError> {
        let mut bytes = Vec::new();
        File::open(self.path(name))
            .and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes))
            .map_err(|error| self.error(name, &error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The target of a link.
    pub fn link(&self, name: &str) -> Result<PathBuf, TargetError> {
        std::fs::read_link(self.path(name)).map_err(|error| self.error(name, &error))
    }

    /// The entries of a folder whose names are numbers, such as the threads in `task`, ascending.
    pub fn numbers(&self, name: &str) -> Result<Vec<u32>, TargetError> {
        let entries = std::fs::read_dir(self.path(name)).map_err(|error| self.error(name, &error))?;
        let mut numbers: Vec<u32> =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The error for the process if one of its files cannot be read.
    fn error(&self, name: &str, error: &io::Error) -> TargetError {
        let pid = self.pid;
        match error.raw_os_error() {
            Some(libc::ESRCH | libc::ENOENT) => TargetError::ExitedDuringAttach { pid },
            Some(libc::EACCES | libc::EPERM) => refused(pid, format!("/proc/{pid}/{name}")),
            _ => TargetError::Unreadable { pid, what: format!("/proc/{pid}/{name}: {error}") },
        }
    }
}

fn refused(pid: u32, what: String) -> TargetError {
    TargetError::NoPermission { pid, what, why: Rights::read().refusal(&[CAP_SYS_PTRACE]) }
}

/// Whether a process with this number exists, even if /proc hides it.
fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| matches!(test_kill_process(pid), Ok(()) | Err(Errno::PERM)))
}
