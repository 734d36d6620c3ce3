//! The common parts of the JSON documents of commands that study a program.

pub(super) use crate::present::json::finding::Findings;
use serde::Serialize;
use std::io::{self, Write};

/// Writes a document as one line.
pub(super) fn write(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    engine::program::json::write_value(document, &mut *out)?;
    out.write_all(b"\n")
}
