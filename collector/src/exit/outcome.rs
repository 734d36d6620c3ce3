//! How a command that did not fail ends.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// What becomes of longpole's own exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All went well.
    Done,
    /// Nothing failed, but this is the answer for scripts (a launched command's code, `doctor`'s 77).
    Code(u8),
    /// The launched command was killed by this signal: longpole ends the same way.
    Signal(i32),
}

impl From<ExitStatus> for Outcome {
    /// A launched command's end becomes our own, as with `env` or `timeout`.
    fn from(status: ExitStatus) -> Outcome {
        match (status.code(), status.signal()) {
            (Some(0), _) => Outcome::Done,
            (Some(code), _) => Outcome::Code(u8::try_from(code & 0xff).unwrap_or(1)),
            (None, Some(signal)) => Outcome::Signal(signal),
            (None, None) => Outcome::Code(1),
        }
    }
}
