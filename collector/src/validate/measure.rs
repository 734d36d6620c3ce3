//! Running the command without longpole, on some CPUs, and measuring how long it takes.

use crate::exit::UserError;
use capture::target::{BusyTimes, ChildStream, CpuList, Launch, LaunchOptions, children_cpu_time};
use std::ffi::OsString;
use std::time::{Duration, Instant};
use symbols::safe;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// From its first instruction to its end.
    pub wall: Duration,
    /// CPU time of it and of the children it has waited for.
    pub cpu: Duration,
    /// Time that others took of its CPUs meanwhile, other programs or the hypervisor; to some 10 ms.
    pub others: Duration,
}

/// All runs on one number of CPUs, in the order of the rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// How many CPUs.
    pub cpus: u32,
    /// One run of each round.
    pub runs: Vec<Run>,
}

/// Runs the command once. It reads nothing and what it prints is dropped.
///
/// # Errors
/// It cannot be started, or does not end with exit code 0: then its time says nothing.
pub fn run_once(command: &[OsString], cpus: &CpuList, keep_root: bool) -> Result<Run, UserError> {
    let options = LaunchOptions {
        keep_root,
        cpus: Some(cpus.clone()),
        stdin: ChildStream::Null,
        stdout: ChildStream::Null,
        stderr: ChildStream::Null,
        ..LaunchOptions::default()
    };
    let mut child = Launch::gated(command, options)?;
    let (busy_before, used_before) = (BusyTimes::now(), children_cpu_time());
    let began = Instant::now();
    child.release()?;
    let status = child
        .wait()
        .map_err(|error| UserError::runtime(format!("cannot wait for the command: {error}"), "try again"))?;
    let wall = began.elapsed();
    if !status.success() {
        let name = command.first().map(|name| safe(&name.to_string_lossy())).unwrap_or_default();
        return Err(UserError::runtime(
            format!("{name} failed on CPU {cpus}: {status}"),
            "give a command that ends with exit code 0 whatever CPUs it may use",
        ));
    }
    // The gate's own start is in it: about a millisecond, the same for every number of CPUs.
    let cpu = children_cpu_time().saturating_sub(used_before);
    Ok(Run { wall, cpu, others: BusyTimes::now().since(&busy_before, cpus).saturating_sub(cpu) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;

    #[test]
    fn a_command_that_cannot_be_found_is_said_so() {
        let cpus = CpuList::allowed().expect("CPUs");
        let error = run_once(&["/nonexistent/command".into()], &cpus, true).expect_err("no command");
        assert_eq!(error.code, Code::NotFound);
    }
}
