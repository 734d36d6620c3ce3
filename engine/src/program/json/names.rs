//! Names to numbers, in the order in which they appear.

use std::collections::HashMap;

/// Numbers names. The map's hash is the standard library's, since the names come from a file that may be made to collide.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<String, u32>,
    list: Vec<String>,
}

impl Names {
    /// The name's number; `None` when there are more names than numbers.
    pub(super) fn number(&mut self, name: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let number = u32::try_from(self.list.len()).ok()?;
        self.numbers.insert(name.to_owned(), number);
        self.list.push(name.to_owned());
        Some(number)
    }

    /// The name's number, if it has one.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// All names by their numbers.
    pub(super) fn list(&self) -> &[String] {
        &self.list
    }

    pub(super) fn into_list(self) -> Vec<String> {
        self.list
    }
}
