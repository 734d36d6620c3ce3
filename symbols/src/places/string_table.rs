//! Texts that occur often, stored once and identified by number.

use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// A table of texts, each with a number.
#[derive(Debug, Default)]
pub struct StringTable {
    all: Vec<String>,
    by_text: HashMap<String, u32>,
    /// The number of each text, by the address of its source text. Looking up a number is faster than demangling the
    /// name again.
    by_place: FxHashMap<(usize, usize), u32>,
}

impl StringTable {
    /// The number of a text, which is added if it is new.
    pub fn number(&mut self, text: String) -> u32 {
        if let Some(&number) = self.by_text.get(&text) {
            return number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push(text.clone());
        self.by_text.insert(text, number);
        number
    }

    /// The number of the text that `make` returns for `source`. The memory of `source` must stay in place as long as
    /// the table is in use, because the table remembers its address.
    pub fn made_from(&mut self, source: &str, make: impl FnOnce(&str) -> String) -> u32 {
        let place = (source.as_ptr() as usize, source.len());
        if let Some(&number) = self.by_place.get(&place) {
            return number;
        }
        let number = self.number(make(source));
        self.by_place.insert(place, number);
        number
    }

    /// The text with a number.
    pub fn get(&self, number: u32) -> Option<&str> {
        self.all.get(number as usize).map(String::as_str)
    }

    /// All texts, in the order of their numbers.
    pub fn all(&self) -> &[String] {
        &self.all
    }
}
