//! Sentences and single words.

pub(crate) mod cause;
pub(super) mod counts;
pub(crate) mod deadlock;
pub mod edit_words;
pub(crate) mod excerpt;
pub mod finding;
pub(super) mod others;
pub(super) mod overhead;
pub(super) mod sample_note;
pub(crate) mod short;
pub(crate) mod traffic;
pub(crate) mod unlike;
