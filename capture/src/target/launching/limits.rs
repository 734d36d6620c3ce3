//! The limit of open files of this process.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use std::io;
use std::sync::OnceLock;

/// The kernel's default upper limit. More descriptors are never needed.
const MOST_DESCRIPTORS: u64 = 1 << 20;

/// Number of descriptors for maps, programs and their links. Further ones are needed for each CPU: its rings, counters
/// and clock.
const WITHOUT_CPUS: u64 = 64;
const EACH_CPU: u64 = 8;

/// The limit of open files with which longpole was started.
static AT_START: OnceLock<Rlimit> = OnceLock::new();

/// Raises this process's limit of open files as far as allowed: a ring for each CPU, and a link and a binary for each
/// program take hundreds. Commands get the original limit from [`restore_descriptors`].
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

/// Sets the limit of open files of a process that longpole started to the limit with which longpole itself was started.
///
/// # Errors
/// The process has ended, or belongs to another user.
pub fn restore_descriptors(pid: u32) -> io::Result<()> {
    let Some(before) = AT_START.get() else { return Ok(()) };
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    prlimit(Some(pid), Resource::Nofile, *before)?;
    Ok(())
}

/// Number of files that a command started by longpole may open; `None`: any number.
pub fn descriptors_of_commands() -> Option<u64> {
    AT_START.get().copied().unwrap_or_else(|| getrlimit(Resource::Nofile)).current
}

/// Approximate number of open files that recording needs on this machine, without those for function probes.
pub fn descriptors_needed() -> u64 {
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    cpus.saturating_mul(EACH_CPU).saturating_add(WITHOUT_CPUS)
}

/// Number of files that longpole may open; `None`: any number.
pub fn descriptors() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
