//! In place of `parquet.rs` in a build without the feature `parquet`.

use super::model::Model;
use super::tables::Table;
use std::io::{self, Write};

/// The feature is off.
pub const IS_BUILT_IN: bool = false;

/// Always an error: `longpole export` refuses the format before.
pub fn write(_model: &Model<'_>, _table: &Table, _out: &mut dyn Write) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
