//! Columns of integers after the page's JSON, each number with as many bytes as it needs (LEB128).

use recording::varint::put;
use std::collections::BTreeMap;

/// A column to which numbers are added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column(Vec<u8>);

impl Column {
    /// Appends a number.
    pub fn push(&mut self, value: u64) {
        put(&mut self.0, value);
    }
}

/// Finished columns, and the place of each: first byte and length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    bytes: Vec<u8>,
    places: BTreeMap<String, (usize, usize)>,
}

impl Columns {
    /// Keeps a column under this name.
    pub fn add(&mut self, name: String, column: &Column) {
        self.places.insert(name, (self.bytes.len(), column.0.len()));
        self.bytes.extend_from_slice(&column.0);
    }

    /// Place of each column.
    pub fn places(&self) -> &BTreeMap<String, (usize, usize)> {
        &self.places
    }

    /// Bytes of all columns.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_page_are_stored_one_after_the_other() {
        let mut columns = Columns::default();
        for (name, values) in [("a", &[1, 300][..]), ("b", &[]), ("c", &[u64::MAX])] {
            let mut column = Column::default();
            values.iter().for_each(|value| column.push(*value));
            columns.add(name.to_owned(), &column);
        }
        let places: Vec<(usize, usize)> = columns.places().values().copied().collect();
        assert_eq!(places, [(0, 3), (3, 0), (3, 10)]);
        assert_eq!(&columns.bytes()[..3], [1, 0xac, 2]);
    }
}
