//! Writes tables with one JSON object in each line.

use super::tables::{Cell, Sink, Table};
use std::io::{self, Write};

/// Writes rows as JSON objects.
pub struct Ndjson<'w> {
    table: &'static Table,
    out: &'w mut dyn Write,
}

impl<'w> Ndjson<'w> {
    /// A writer for this table.
    pub fn new(table: &'static Table, out: &'w mut dyn Write) -> Ndjson<'w> {
        Ndjson { table, out }
    }
}

impl Sink for Ndjson<'_> {
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        let mut before = "{";
        for ((name, _), cell) in self.table.columns.iter().zip(cells) {
            write!(self.out, "{before}\"{name}\":")?;
            before = ",";
            match cell {
                Cell::Null => self.out.write_all(b"null")?,
                Cell::Text(text) => serde_json::to_writer(&mut *self.out, text)?,
                Cell::Int(number) => write!(self.out, "{number}")?,
                Cell::Float(number) => serde_json::to_writer(&mut *self.out, number)?,
                Cell::Bool(yes) => write!(self.out, "{yes}")?,
            }
        }
        self.out.write_all(b"}\n")
    }
}
