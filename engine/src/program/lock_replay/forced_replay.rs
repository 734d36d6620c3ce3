//! Objects that stay as they were recorded, since the program would not come to its end otherwise.

use crate::finding;
use crate::program::ObjectId;
use crate::timeline::Timeline;
use std::collections::BTreeSet;

/// Objects with which the program does not finish when they are simulated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::program) struct ForcedReplay {
    objects: BTreeSet<u32>,
    /// Condition variables that do not count what they seemed to count.
    misread: BTreeSet<u32>,
    all: bool,
}

impl ForcedReplay {
    /// Everything stays as it was recorded.
    pub(in crate::program) fn everything() -> ForcedReplay {
        ForcedReplay { all: true, ..ForcedReplay::default() }
    }

    /// Whether nothing at all is simulated.
    pub(in crate::program) fn is_all(&self) -> bool {
        self.all
    }

    /// Takes these, too; says whether there was a new one among them.
    pub(in crate::program) fn add(&mut self, others: &[ObjectId]) -> bool {
        let before = self.objects.len();
        self.objects.extend(others.iter().map(|object| object.0));
        self.objects.len() > before
    }

    /// Takes the conditions among these: what one counts is a guess, which a deadlock refutes. Says whether there was a new
    /// one among them.
    pub(in crate::program) fn misread(&mut self, timeline: &Timeline, others: &[ObjectId]) -> bool {
        let before = self.misread.len();
        let is_condition =
            |object: &u32| timeline.locks.get(*object as usize).is_some_and(|lock| lock.kind == "condition");
        self.misread.extend(others.iter().map(|object| object.0).filter(is_condition));
        self.misread.len() > before
    }

    /// Whether what the condition counts is not known.
    pub(super) fn is_misread(&self, condition: u32) -> bool {
        self.misread.contains(&condition)
    }

    /// The objects among the first `count`.
    pub(super) fn objects(&self, count: usize) -> impl Iterator<Item = u32> + '_ {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        (0..count).filter(|object| self.all || self.objects.contains(object))
    }
}

/// A simulated deadlock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeadEnd {
    /// What threads wait for forever.
    pub(crate) objects: Vec<ObjectId>,
    /// Which thread waits for what.
    pub(crate) threads: finding::Stuck,
}
