//! Questions: the time without one constraint.

use crate::program::ObjectId;

/// One constraint.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Question {
    Locks(Vec<ObjectId>),
    Device(ObjectId),
    Sleeps,
    Balance,
    /// A group of threads that are alike, by its number: one more of them.
    OneMore(usize),
    Serial,
    Turns,
    /// What threads spin for, if that ends as recorded, and is no lock.
    SpunWaits,
    Spinning,
    HandOver,
    Cpus,
    /// What the control groups let the program use of CPUs.
    Quota,
}

impl Question {
    /// Of two that gain the same, the first is reported.
    pub(super) fn order(&self) -> u32 {
        match self {
            Question::Locks(_) => 0,
            Question::Device(_) => 1,
            Question::Sleeps => 2,
            Question::Balance => 3,
            Question::OneMore(_) => 4,
            Question::Serial => 5,
            Question::Turns => 6,
            Question::SpunWaits => 7,
            Question::Spinning => 8,
            Question::HandOver => 9,
            Question::Cpus => 10,
            Question::Quota => 11,
        }
    }

    /// Whether what its absence gains is an assumption, and nothing that was simulated.
    pub(super) fn is_assumed(&self) -> bool {
        matches!(self, Question::Serial | Question::Turns)
    }

    pub(super) fn first_object(&self) -> Option<ObjectId> {
        match self {
            Question::Locks(locks) => locks.first().copied(),
            Question::Device(device) => Some(*device),
            _ => None,
        }
    }
}
