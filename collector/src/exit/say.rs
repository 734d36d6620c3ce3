//! Words for people, on stderr. `eprintln!` panics when stderr is gone, for example because its terminal is
//! gone; no message is worth that.

use std::fmt::Display;
use std::io::Write;

/// Writes one line to stderr, or nothing if nobody listens any more.
pub fn say(line: impl Display) {
    // There is nobody to tell that there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{line}");
}
