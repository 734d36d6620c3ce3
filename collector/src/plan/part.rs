//! Which part of a recording is analysed.

use std::time::Duration;

/// A part of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordingPart {
    /// Where the part begins; `None`: at the recording's start.
    pub from: Option<Moment>,
    /// Where the part ends; `None`: at the recording's end.
    pub to: Option<Moment>,
    /// All of that is analysed. Otherwise, with more than twice [`MOST_RECORDS`] records, only the stretch that is most like
    /// all of it.
    pub whole: bool,
}

/// Number of records that can be analysed within seconds. Records that stand for many lock operations count as more.
pub const MOST_RECORDS: usize = 250_000;

/// A moment of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Time since the recording's start.
    After(Duration),
    /// A time of day in this machine's time zone, as time since midnight.
    Clock(Duration),
}
