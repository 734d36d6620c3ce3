//! Remarks on a program before it is recorded: that it is traced, has ended, or was replaced on disk.

use super::alive::is_alive;
use capture::target::Process;

/// A remark if a debugger traces the process: its stops would count as waiting, on other machines, too.
pub(super) fn traced(process: &Process) -> Option<String> {
    let (pid, name) = process.tracer.as_ref()?;
    Some(format!(
        "{name} (pid {pid}) traces {}: its stops show as waiting, and its breakpoint on the first instruction of a function that gets a probe is lost",
        process.program_name()
    ))
}

/// A remark if the process has ended since it was found.
pub(super) fn ended(process: &Process) -> Option<String> {
    // A process that is ending has no program any more, but its threads may live on for some time.
    let program = std::fs::read_link(process.open_path());
    let is_ending = program.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    (is_ending || !is_alive(process.pid)).then(|| {
        format!(
            "{} (pid {}) ended while longpole was attaching: only events until then are recorded; start short programs by `longpole record -- CMD`",
            process.program_name(),
            process.pid
        )
    })
}

/// A remark if the program's file was replaced or deleted: a file at its path now is another one.
pub(super) fn replaced(process: &Process) -> Option<String> {
    let path = std::fs::read_link(process.open_path()).ok()?;
    // A memfd never had a name on disk.
    let gone = path.to_string_lossy().ends_with(" (deleted)") && !path.starts_with("/memfd:");
    gone.then(|| {
        format!(
            "{}: replaced or deleted on disk since the start: names are those of the file that runs",
            process.program_name()
        )
    })
}
