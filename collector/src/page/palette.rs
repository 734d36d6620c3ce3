//! Things that are the same again and again, as numbers.

use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};
use std::hash::Hash;

/// Each thing once, in the order in which it came.
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
    /// The number of a thing.
    pub fn number(&mut self, thing: T) -> u32 {
        if let Some(number) = self.numbers.get(&thing) {
            return *number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.numbers.insert(thing.clone(), number);
        self.all.push(thing);
        number
    }

    /// Takes the things of another palette: the number that each of its numbers becomes.
    pub fn take(&mut self, other: Palette<T>) -> Vec<u32> {
        other.all.into_iter().map(|thing| self.number(thing)).collect()
    }
}

impl<T: Serialize> Serialize for Palette<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.all.serialize(serializer)
    }
}

/// A state of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct StateColour {
    /// running, spinning, ready, blocked, unknown, or none before and after its life.
    pub state: &'static str,
    /// The CPU, if it was on one that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// What it waits for, or why nothing is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The object that it waits for, by its number among the names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<u32>,
    /// That object is a lock.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lock: bool,
    /// It has nothing to do.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub idle: bool,
    /// What ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<&'static str>,
}

/// A stretch of a critical path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct PathColour {
    /// Threads that compute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// The innermost function, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<u32>,
    /// What passes instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
}
