//! Standard output as the commands use it.

use crate::cli::UserError;
use std::io::{self, BufWriter, Write};

/// Runs `write` on a buffered standard output. A reader that has seen enough (`| head`) is no error.
pub fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), UserError> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let result = write(&mut out).and_then(|()| out.flush());
    // What is left of a failed write must not be tried again when the buffer goes.
    let _ = out.into_parts();
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(UserError::runtime(
            format!("standard output cannot be written: {error}"),
            "check where the output goes to",
        )),
        _ => Ok(()),
    }
}
