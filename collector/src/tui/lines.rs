//! Text as lines of the screen.

use crate::present::style::Style;
use std::io;

/// For questions about rows in which it does not matter how they look.
pub(super) const ANY: Style = Style { colour: false, unicode: true, width: 80 };

/// What is written, as lines.
pub(super) fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Vec<String> {
    let mut bytes = Vec::new();
    // Memory takes everything.
    let _ = write(&mut bytes);
    String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
}
