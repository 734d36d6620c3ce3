//! Runs the command without longpole on some CPUs, and measures its time.

use crate::exit::UserError;
use capture::target::{BusyTimes, ChildStream, CpuList, Launch, LaunchOptions, children_cpu_time};
use std::ffi::OsString;
use std::time::{Duration, Instant};
use symbols::safe;

/// One measured run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Time from the command's first instruction to its end.
    pub wall: Duration,
    /// CPU time of the command, and of the children that it has waited for.
    pub cpu: Duration,
    /// Time for which other programs or the hypervisor used the command's CPUs during the run; accurate to some 10 ms.
    pub others: Duration,
}

/// All runs on one number of CPUs, in the order of the rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// The number of CPUs.
    pub cpus: u32,
    /// The runs, one for each round.
    pub runs: Vec<Run>,
}

/// Runs the command once. It has no input, and its output is dropped.
///
/// # Errors
/// The command cannot be started, or does not end with exit code 0: then its time means nothing.
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
            "give a command that ends with exit code 0 on any number of CPUs",
        ));
    }
    // This includes the start of the gate (the process that executes the command): about a millisecond for any number
    // of CPUs.
    let cpu = children_cpu_time().saturating_sub(used_before);
    Ok(Run { wall, cpu, others: BusyTimes::now().since(&busy_before, cpus).saturating_sub(cpu) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;

    #[test]
    fn a_command_that_does_not_exist_is_a_not_found_error() {
        let cpus = CpuList::allowed().expect("CPUs");
        let error = run_once(&["/nonexistent/command".into()], &cpus, true).expect_err("no command");
        assert_eq!(error.code, Code::NotFound);
    }
}
