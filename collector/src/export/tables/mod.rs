//! Tables of a recording for `csv`, `ndjson` and `parquet`, one row at a time. Each row has the recording's name, so
//! tables of many recordings can be joined into one.

mod measured;
mod predicted;
pub mod schema;

pub use schema::Table;

use super::Model;
use std::borrow::Cow;
use std::io;

/// A value in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// The value is not known, or there is none.
    Null,
    /// A text.
    Text(Cow<'a, str>),
    /// A whole number.
    Int(i64),
    /// An integer.
    Float(f64),
    /// Yes or no.
    Bool(bool),
}

impl<'a> Cell<'a> {
    fn text(text: &'a str) -> Cell<'a> {
        Cell::Text(Cow::Borrowed(text))
    }

    fn known(text: Option<&'a str>) -> Cell<'a> {
        text.map_or(Cell::Null, Cell::text)
    }

    /// An integer; a number that does not fit counts as not known.
    fn count(count: u64) -> Cell<'a> {
        i64::try_from(count).map_or(Cell::Null, Cell::Int)
    }

    fn number(number: Option<f64>) -> Cell<'a> {
        number.filter(|number| number.is_finite()).map_or(Cell::Null, Cell::Float)
    }
}

/// Receives rows.
pub trait Sink {
    /// Takes a row, with a cell for each of the table's columns.
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()>;
}

/// Writes all rows of a table.
pub fn write(model: &Model<'_>, table: &Table, sink: &mut dyn Sink) -> io::Result<()> {
    (table.rows)(&mut Rows { model, sink })
}

struct Rows<'m, 'a, 's> {
    model: &'m Model<'a>,
    sink: &'s mut dyn Sink,
}

impl Rows<'_, '_, '_> {
    /// Passes on a row, with the recording's name as first cell.
    fn put(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        let mut row = Vec::with_capacity(cells.len() + 1);
        row.push(Cell::text(&self.model.about.name));
        row.extend_from_slice(cells);
        self.sink.row(&row)
    }
}
