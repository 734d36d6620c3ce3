//! Text as lines of the screen.

use crate::present::style::Style;
use std::io;

/// A style for tables whose look does not matter.
pub(super) const ANY: Style = Style { colour: false, unicode: true, width: 80 };

/// The written text as lines.
pub(super) fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Vec<String> {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail.
    let _ = write(&mut bytes);
    String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
}
