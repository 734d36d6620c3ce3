//! Writes the output of commands to standard output.

use crate::exit::UserError;
use capture::target::launching::signals;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::{Command, Stdio};

/// Runs `write` on a buffered standard output. A reader that stops early (`| head`) is not an error.
pub fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), UserError> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let result = write(&mut out).and_then(|()| out.flush());
    // When the buffer is dropped, it must not write the remaining bytes again.
    let _ = out.into_parts();
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(UserError::runtime(
            format!("standard output cannot be written: {error}"),
            "check where the output goes",
        )),
        _ => Ok(()),
    }
}

/// Writes text that a person reads: on a terminal, long texts are shown by a pager (`PAGER`, else less), as git does.
pub fn to_reader(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), UserError> {
    let pager = pager(io::stdout().is_terminal(), std::env::var_os("PAGER"), std::env::var_os("TERM"));
    let Some(mut command) = pager else { return to_stdout(write) };
    command.stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // F: ends by itself if all fits on one screen. R: shows colours. X: leaves the text on the terminal.
        command.env("LESS", "FRX");
    }
    // Without a pager the text goes to standard output.
    let Ok(mut child) = command.spawn() else { return to_stdout(write) };
    // The pager handles ^C.
    signals::leave_interrupts_to_others();
    if let Some(stdin) = child.stdin.take() {
        let mut out = BufWriter::with_capacity(1 << 16, stdin);
        // A user who leaves the pager early has read enough.
        let _ = write(&mut out).and_then(|()| out.flush());
        let _ = out.into_parts();
    }
    // The pager's exit code says nothing about the text.
    let _ = child.wait();
    Ok(())
}

/// The pager for a terminal; `None`: write to standard output.
fn pager(terminal: bool, pager: Option<OsString>, term: Option<OsString>) -> Option<Command> {
    if !terminal || term.is_none_or(|term| term == "dumb") {
        return None;
    }
    match pager {
        None => Some(Command::new("less")),
        Some(pager) if pager.is_empty() || pager == "cat" => None,
        Some(pager) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(pager);
            Some(shell)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pager;

    #[test]
    fn a_pager_is_used_for_a_terminal_only_and_can_be_turned_off() {
        let name = |terminal, set: Option<&str>, term: Option<&str>| {
            let command = pager(terminal, set.map(Into::into), term.map(Into::into))?;
            Some(command.get_program().to_string_lossy().into_owned())
        };
        assert_eq!(name(true, None, Some("xterm")).as_deref(), Some("less"));
        assert_eq!(name(true, Some("most -w"), Some("xterm")).as_deref(), Some("sh"));
        for none in [
            name(false, None, Some("xterm")),
            name(true, Some(""), Some("xterm")),
            name(true, Some("cat"), Some("xterm")),
            name(true, None, Some("dumb")),
            name(true, None, None),
        ] {
            assert_eq!(none, None);
        }
    }
}
