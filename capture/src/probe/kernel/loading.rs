//! Loads programs through the kernel's verifier, several at a time, since this is most of the time that starting to record
//! takes.

use std::{
    num::NonZero,
    os::fd::{AsFd as _, BorrowedFd},
    sync::{Mutex, PoisonError},
    time::Instant,
};

use aya::{
    Ebpf,
    programs::{Program, ProgramError, UProbe},
};

use super::attach::program;
use super::layout::KernelLayout;
use crate::probe::error::{ProbeError, ProbeErrorKind};

/// Largest number of programs that are verified at the same time.
const AT_ONCE: usize = 8;

/// The tracepoint whose arguments a program gets: mostly the one of the same name.
fn tracepoint(program: &str) -> &str {
    match program {
        "sample_block" => "sched_switch",
        "sample_wake" => "sched_waking",
        same => same,
    }
}

/// Loads the programs that are not loaded yet.
///
/// # Errors
///
/// The first error of the kernel. Other programs may have been loaded or not.
pub(crate) fn load_together(
    ebpf: &mut Ebpf,
    kernel: &KernelLayout,
    names: &[&str],
) -> Result<(), ProbeError> {
    let wanted: Vec<_> =
        ebpf.programs_mut().filter(|(name, program)| names.contains(name) && program.fd().is_err()).collect();
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(AT_ONCE).min(wanted.len());
    let left = Mutex::new(wanted);
    let work = || {
        loop {
            let next = left.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some((name, program)) = next else { return Ok(()) };
            load(name, program, kernel)
                .map_err(|error| ProbeError::from_cause(format_args!("program {name}"), &error))?;
        }
    };
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let theirs = helpers.into_iter().map(|helper| helper.join().unwrap_or_else(|_| Err(panicked())));
        own.and(theirs.collect())
    })
}

/// The descriptor of a program for function probes. The program is loaded if it was not.
pub(crate) fn function_program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<BorrowedFd<'a>, ProbeError> {
    let failed = |error| ProbeError::from_cause(format_args!("program {name}"), &error);
    let program: &mut UProbe = program(ebpf, name)?;
    if program.fd().is_err() {
        program.load().map_err(failed)?;
    }
    Ok(program.fd().map_err(failed)?.as_fd())
}

fn load(name: &str, program: &mut Program, kernel: &KernelLayout) -> Result<(), ProgramError> {
    let begun = Instant::now();
    match program {
        Program::BtfTracePoint(program) => program.load(tracepoint(name), &kernel.tracepoints),
        Program::PerfEvent(program) => program.load(),
        Program::UProbe(program) => program.load(),
        _ => Err(ProgramError::UnexpectedProgramType),
    }?;
    let steps = program.info().ok().and_then(|info| info.verified_instruction_count()).unwrap_or(0);
    log::debug!("{name}: loaded in {:.1} ms, {steps} steps checked", begun.elapsed().as_secs_f64() * 1e3);
    Ok(())
}

/// The error for a thread of this process that has panicked.
pub(crate) fn panicked() -> ProbeError {
    ProbeError::new(ProbeErrorKind::Failed, "a thread that prepares recording failed", "")
}
