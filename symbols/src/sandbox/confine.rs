//! Gives up all rights except reading open files. Limits user, capabilities, memory, CPU time and system calls.

use super::seccomp;
use rustix::process::{Resource, Rlimit, getpid, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
};
use std::io;

/// The user and group `nobody`, who has no rights.
const NOBODY: u32 = 65_534;
/// Largest address space, in bytes. Large debug files are mapped, so this is more than a machine's memory.
const ADDRESS_SPACE: u64 = 64 << 30;
/// Largest file that the process may write, on disk or in memory, in bytes.
const FILE_SIZE: u64 = 512 << 20;

/// Limits on what a confined process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParserLimits {
    /// Memory of the process itself, in bytes, without mapped files.
    pub memory: u64,
    /// CPU time, in seconds.
    pub cpu_s: u64,
}

impl Default for ParserLimits {
    fn default() -> ParserLimits {
        ParserLimits { memory: 4 << 30, cpu_s: 300 }
    }
}

/// The parser's nice value. The parser competes for CPUs with the recorded program, so its priority is lower than
/// normal, but high enough for the parser to finish on a busy machine.
const NICE: i32 = 10;

/// Confines this process permanently. If this function returns an error, the process must end.
pub fn confine(limits: ParserLimits) -> io::Result<()> {
    close_all_but_standard();
    // An error here does no harm: the process only keeps its normal priority.
    let _ = rustix::process::setpriority_process(None, NICE);
    let limit = |resource, soft: u64, hard: u64| {
        // The present limit may be lower, and only root could raise it.
        let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        setrlimit(resource, Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) })
    };
    limit(Resource::Core, 0, 0)?;
    limit(Resource::Nofile, 256, 256)?;
    limit(Resource::Fsize, FILE_SIZE, FILE_SIZE)?;
    limit(Resource::As, ADDRESS_SPACE, ADDRESS_SPACE)?;
    limit(Resource::Data, limits.memory, limits.memory)?;
    limit(Resource::Cpu, limits.cpu_s, limits.cpu_s.saturating_add(1))?;
    become_nobody();
    set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    seccomp::install(getpid().as_raw_nonzero().get())
}

/// Closes all descriptors except the standard streams. The program that started longpole may have left further files
/// open.
pub fn close_all_but_standard() {
    // SAFETY: nothing in this process knows a descriptor above 2.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32) };
}

/// Changes the user to `nobody`. Only root can do so. Other users already have no more rights than their own, and a
/// container may not know `nobody`.
fn become_nobody() {
    // SAFETY: an empty list of groups; the process has one thread.
    let _ = unsafe { libc::setgroups(0, std::ptr::null()) };
    // SAFETY: numbers only; the process has one thread.
    let _ = unsafe { libc::setresgid(NOBODY, NOBODY, NOBODY) };
    // SAFETY: numbers only; the process has one thread.
    let _ = unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) };
}
