//! Numbers for values that occur again and again.

use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};
use std::hash::Hash;

/// Each value once, in order of first appearance.
#[derive(Clone, Debug)]
pub struct Palette<T> {
    all: Vec<T>,
    numbers: FxHashMap<T, u32>,
}

impl<T> Default for Palette<T> {
    fn default() -> Palette<T> {
        Palette { all: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl<T: Clone + Eq + Hash> Palette<T> {
    /// The number of a value.
    pub fn number(&mut self, thing: T) -> u32 {
        if let Some(number) = self.numbers.get(&thing) {
            return *number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.numbers.insert(thing.clone(), number);
        self.all.push(thing);
        number
    }

    /// The value with this number.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.all.get(number as usize)
    }

    /// Adds the values of another palette. Returns the new number for each of its numbers.
    pub fn take(&mut self, other: &Palette<T>) -> Vec<u32> {
        other.all.iter().map(|thing| self.number(thing.clone())).collect()
    }
}

impl<T: Serialize> Serialize for Palette<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.all.serialize(serializer)
    }
}
