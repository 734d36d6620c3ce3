//! Messages for people, on stderr. `eprintln!` panics when stderr is closed, for example because its terminal was
//! closed; no message is worth a panic.

use std::fmt::Display;
use std::io::Write;

/// Writes one line to stderr; does nothing if stderr has no reader any more.
pub fn say(line: impl Display) {
    // An error of stderr cannot be reported.
    let _ = writeln!(std::io::stderr(), "{line}");
}
