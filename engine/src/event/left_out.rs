//! What a session file had no room for.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What is missing in a recording because a file holds only so much of everything but events: whoever reads it needs bounded
/// memory. Entries, counted by the writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// Entries of the lists in [`super::Facts`]: threads, functions, names of locks and code, mappings.
    pub facts: u64,
    /// Notes about gaps and probes.
    pub notes: u64,
    /// Stacks: samples that name them have none.
    pub stacks: u64,
    /// Threads and pending operations at the end.
    pub end: u64,
}

impl LeftOut {
    /// Whether everything had room.
    pub fn is_nothing(&self) -> bool {
        *self == LeftOut::default()
    }
}

impl fmt::Display for LeftOut {
    /// A list of what is missing, e.g. `3 stacks of samples and 1 note about gaps and probes`; empty if nothing is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { facts, notes, stacks, end } = *self;
        let all = [
            (facts, "fact (threads, functions, names, code)", "facts (threads, functions, names, code)"),
            (notes, "note about gaps and probes", "notes about gaps and probes"),
            (stacks, "stack of samples", "stacks of samples"),
            (end, "thread or lock operation at the end", "threads and lock operations at the end"),
        ];
        let there: Vec<String> = all
            .into_iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, one, several)| format!("{count} {}", if count == 1 { one } else { several }))
            .collect();
        match there.split_last() {
            None => Ok(()),
            Some((last, [])) => f.write_str(last),
            Some((last, before)) => write!(f, "{} and {last}", before.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_a_list() {
        assert!(LeftOut::default().is_nothing());
        assert_eq!(LeftOut::default().to_string(), "");
        let one = LeftOut { notes: 1, ..LeftOut::default() };
        assert!(!one.is_nothing());
        assert_eq!(one.to_string(), "1 note about gaps and probes");
        assert_eq!(
            LeftOut { stacks: 3, end: 2, ..one }.to_string(),
            "1 note about gaps and probes, 3 stacks of samples and 2 threads and lock operations at the end"
        );
    }
}
