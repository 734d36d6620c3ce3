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
    Spinning,
    HandOver,
    Cpus,
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
            Question::Spinning => 6,
            Question::HandOver => 7,
            Question::Cpus => 8,
        }
    }

    pub(super) fn first_object(&self) -> Option<ObjectId> {
        match self {
            Question::Locks(locks) => locks.first().copied(),
            Question::Device(device) => Some(*device),
            _ => None,
        }
    }
}
