//! CSV as in RFC 4180, with a line of column names. Names come from the recorded program: a name that a spreadsheet would
//! take for a formula gets an apostrophe before it, and control characters become U+FFFD. `ndjson` and `parquet` have
//! names unchanged.

use super::tables::{Cell, Sink, Table};
use std::io::{self, Write};

/// Writes rows as CSV.
pub struct Csv<'w> {
    out: &'w mut dyn Write,
}

impl<'w> Csv<'w> {
    /// Writes the line of names.
    pub fn new(table: &Table, out: &'w mut dyn Write) -> io::Result<Csv<'w>> {
        let names: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
        writeln!(out, "{}", names.join(","))?;
        Ok(Csv { out })
    }
}

impl Sink for Csv<'_> {
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for (place, cell) in cells.iter().enumerate() {
            if place > 0 {
                self.out.write_all(b",")?;
            }
            match cell {
                Cell::Null => {}
                Cell::Text(text) => write!(self.out, "{}", quoted(text))?,
                Cell::Int(number) => write!(self.out, "{number}")?,
                Cell::Float(number) => write!(self.out, "{number}")?,
                Cell::Bool(yes) => write!(self.out, "{yes}")?,
            }
        }
        self.out.write_all(b"\n")
    }
}

/// A quoted text: without quotes an empty text would be the same as no value.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 3);
    quoted.push('"');
    // Characters that begin a formula in spreadsheets (OWASP, "CSV injection").
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}']) {
        quoted.push('\'');
    }
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\"\""),
            c if c.is_control() => quoted.push(char::REPLACEMENT_CHARACTER),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_name_in_csv_is_neither_a_formula_nor_another_cell() {
        assert_eq!(quoted("plain, with \"quotes\""), "\"plain, with \"\"quotes\"\"\"");
        assert_eq!(quoted("=cmd|' /C calc'!A0"), "\"'=cmd|' /C calc'!A0\"");
        assert_eq!(quoted("-[Cart add]"), "\"'-[Cart add]\"");
        assert_eq!(quoted("a\r\nb\0"), "\"a\u{fffd}\u{fffd}b\u{fffd}\"");
        assert_eq!(quoted(""), "\"\"");
    }
}
