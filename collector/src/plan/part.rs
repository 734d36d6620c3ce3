//! Which part of a recording is analysed.

use std::time::Duration;

/// A part of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Where it begins; `None`: where the recording does.
    pub from: Option<Moment>,
    /// Where it ends; `None`: where the recording does.
    pub to: Option<Moment>,
    /// All of that, however many records it has. Else the part of it that is most like it, if it has more than twice
    /// [`MOST_RECORDS`].
    pub whole: bool,
}

/// As many records are analysed within seconds. Records that stand for many lock operations count as more.
pub const MOST_RECORDS: usize = 250_000;

/// A moment of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So long after its start.
    After(Duration),
    /// A time of day in the time zone of this machine, as long after midnight.
    Clock(Duration),
}
