//! Remarks about a program before it is recorded: another tracer, and whether its file is still there.

use super::alive::is_alive;
use capture::target::Process;

/// A debugger's stops are time of the program that no other machine would be rid of.
pub(super) fn traced(process: &Process) -> Option<String> {
    let (pid, name) = process.tracer.as_ref()?;
    Some(format!(
        "{} is traced by {name} (pid {pid}): what that stops shows as waiting, and a breakpoint of it on the first \
         instruction of a function that gets a probe is lost",
        process.program_name()
    ))
}

/// It was there when it was asked for.
pub(super) fn ended(process: &Process) -> Option<String> {
    // One that is ending has no program any more, but its threads may take a while to go.
    let program = std::fs::read_link(process.open_path());
    let is_ending = program.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    (is_ending || !is_alive(process.pid)).then(|| {
        format!(
            "{} (pid {}) ended while longpole was attaching to it: what was seen until then is recorded, and for short \
             programs there is `longpole record -- CMD`",
            process.program_name(),
            process.pid
        )
    })
}

/// A file of that name now would be another one.
pub(super) fn replaced(process: &Process) -> Option<String> {
    let path = std::fs::read_link(process.open_path()).ok()?;
    // A file that never had a name has not lost it.
    let gone = path.to_string_lossy().ends_with(" (deleted)") && !path.starts_with("/memfd:");
    gone.then(|| {
        format!(
            "{}: replaced or deleted on disk since it was started: what is told of it is of the file that runs",
            process.program_name()
        )
    })
}
