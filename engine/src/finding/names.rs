//! A list of names, cut.

use serde::{Deserialize, Serialize};

/// The first of several names, and how many more there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// The first names of the list.
    pub names: Vec<String>,
    /// Number of further names.
    pub more: usize,
}

impl Names {
    /// Keeps the first `most` names.
    pub(crate) fn first(most: usize, all: impl IntoIterator<Item = String>) -> Names {
        let mut all = all.into_iter();
        let names: Vec<String> = all.by_ref().take(most).collect();
        Names { names, more: all.count() }
    }

    /// Number of all names.
    pub fn count(&self) -> usize {
        self.names.len().saturating_add(self.more)
    }
}
