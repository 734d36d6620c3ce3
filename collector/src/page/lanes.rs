//! Lanes: items that follow each other in time, with a level of detail that fits.

use super::columns::{Column, Columns};
use crate::level_of_detail::{Item, summed};

/// Lanes to which items are added. Each lane has its number of items and its start; each item its code (doubled, plus one
/// for a sum), its length and a further number.
#[derive(Debug, Default)]
pub struct Lanes {
    counts: Column,
    starts: Column,
    codes: Vec<u64>,
    lengths: Column,
    more: Column,
}

impl Lanes {
    /// Appends a lane that begins at this time, nanoseconds.
    pub fn add(&mut self, start: u64, items: impl Iterator<Item = Item>, quantum: u64) {
        let mut count = 0;
        self.starts.push(start);
        summed(items, quantum, |item, joined| {
            count += 1;
            self.codes.push(coded(item.code, joined > 0));
            self.lengths.push(item.ns);
            self.more.push(u64::from(item.more));
        });
        self.counts.push(count);
    }

    /// Stores the lanes' columns under this name; `number` translates codes into those of the page.
    pub fn finish(&self, name: &str, number: impl Fn(u32) -> u32, columns: &mut Columns) {
        let mut codes = Column::default();
        for &code in &self.codes {
            // A code that `coded` made fits into 32 bits.
            codes.push(coded(number((code >> 1) as u32), code & 1 != 0));
        }
        let parts = [
            ("counts", &self.counts),
            ("starts", &self.starts),
            ("codes", &codes),
            ("lengths", &self.lengths),
            ("more", &self.more),
        ];
        for (part, column) in parts {
            columns.add(format!("{name}.{part}"), column);
        }
    }
}

fn coded(code: u32, is_sum: bool) -> u64 {
    u64::from(code) << 1 | u64::from(is_sum)
}
