//! Assigns numbers to names, in order of their first use.

use std::collections::HashMap;

/// Numbers names. Uses the standard library's hash, since names in a file may be chosen to collide.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<String, u32>,
    list: Vec<String>,
}

impl Names {
    /// The name's number, assigned now if the name is new; `None` if all numbers are used.
    pub(super) fn number(&mut self, name: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let number = u32::try_from(self.list.len()).ok()?;
        self.numbers.insert(name.to_owned(), number);
        self.list.push(name.to_owned());
        Some(number)
    }

    /// The name's number; `None` if it has none.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// All names, in order of their numbers.
    pub(super) fn list(&self) -> &[String] {
        &self.list
    }

    pub(super) fn into_list(self) -> Vec<String> {
        self.list
    }
}
