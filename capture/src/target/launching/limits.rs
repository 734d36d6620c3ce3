//! Resource limits of this process: the number of open files.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use std::io;
use std::sync::OnceLock;

/// The kernel's default upper limit. More descriptors are never needed.
const MOST_DESCRIPTORS: u64 = 1 << 20;

/// Descriptors for maps, programs and their links, and for each CPU for its rings, counters and clock.
const WITHOUT_CPUS: u64 = 64;
const EACH_CPU: u64 = 8;

/// The limit of open files with which longpole was started.
static AT_START: OnceLock<Rlimit> = OnceLock::new();

/// Raises this process's limit of open files as far as it may: a ring for each CPU, and a link and a binary for
/// each program take hundreds. Commands get the original limit from [`restore_descriptors`].
pub fn raise_descriptors() {
    let before = *AT_START.get_or_init(|| getrlimit(Resource::Nofile));
    let most = before.maximum.map_or(MOST_DESCRIPTORS, |most| most.min(MOST_DESCRIPTORS));
    if before.current.is_some_and(|now| now < most) {
        let raised = Rlimit { current: Some(most), maximum: before.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            log::debug!("no more descriptors: {error}");
        }
    }
}

/// Gives a process that this one has started the limit of open files with which longpole was started.
///
/// # Errors
/// The process has ended, or belongs to another user.
pub fn restore_descriptors(pid: u32) -> io::Result<()> {
    let Some(before) = AT_START.get() else { return Ok(()) };
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    prlimit(Some(pid), Resource::Nofile, *before)?;
    Ok(())
}

/// How many files a command started by this process may open; `None`: any number.
pub fn descriptors_of_commands() -> Option<u64> {
    AT_START.get().copied().unwrap_or_else(|| getrlimit(Resource::Nofile)).current
}

/// About how many open files recording needs on this machine, without those for function probes.
pub fn descriptors_needed() -> u64 {
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    cpus.saturating_mul(EACH_CPU).saturating_add(WITHOUT_CPUS)
}

/// How many files this process may open; `None`: any number.
pub fn descriptors() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
