//! The outcome of a command that did not fail.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Decides longpole's own exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All went well.
    Done,
    /// Nothing failed; the exit code is an answer for scripts (a launched command's code, `doctor`'s 77).
    Code(u8),
    /// A signal killed the launched command: longpole ends by the same signal.
    Signal(i32),
}

impl From<ExitStatus> for Outcome {
    /// A launched command's exit status becomes longpole's, as with `env` or `timeout`.
    fn from(status: ExitStatus) -> Outcome {
        match (status.code(), status.signal()) {
            (Some(0), _) => Outcome::Done,
            (Some(code), _) => Outcome::Code(u8::try_from(code & 0xff).unwrap_or(1)),
            (None, Some(signal)) => Outcome::Signal(signal),
            (None, None) => Outcome::Code(1),
        }
    }
}
