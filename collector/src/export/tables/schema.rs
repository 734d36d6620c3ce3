//! Which tables there are, and their columns.

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Texts.
    Text,
    /// Whole numbers.
    Int,
    /// Numbers.
    Float,
    /// Yes or no.
    Bool,
}

use Kind::{Bool, Float, Int, Text};

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// The recording itself.
    Recordings,
    /// Its threads.
    Threads,
    /// What each thread did when.
    Intervals,
    /// Calls of probed functions.
    Calls,
    /// Which thread woke which.
    Wakes,
    /// Which thread held which lock when.
    Sections,
    /// Functions on each CPU count.
    Functions,
    /// Locks on each CPU count.
    Locks,
    /// What the predicted time is owed to, and the predicted time itself: on each CPU count the rows add up to it.
    Waits,
    /// Call stacks on each CPU count.
    Stacks,
    /// The critical path on each CPU count.
    Paths,
}

impl Table {
    /// All of them.
    pub const ALL: [Table; 11] = [
        Table::Recordings,
        Table::Threads,
        Table::Intervals,
        Table::Calls,
        Table::Wakes,
        Table::Sections,
        Table::Functions,
        Table::Locks,
        Table::Waits,
        Table::Stacks,
        Table::Paths,
    ];

    /// Its name, and that of its file.
    pub fn name(self) -> &'static str {
        match self {
            Table::Recordings => "recordings",
            Table::Threads => "threads",
            Table::Intervals => "intervals",
            Table::Calls => "calls",
            Table::Wakes => "wakes",
            Table::Sections => "sections",
            Table::Functions => "functions",
            Table::Locks => "locks",
            Table::Waits => "waits",
            Table::Stacks => "stacks",
            Table::Paths => "paths",
        }
    }

    /// The table of this name.
    pub fn of(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Its columns. Times are nanoseconds: of what was measured those of `CLOCK_MONOTONIC`, of a predicted run from its
    /// start. `cpus` is null for unlimited CPUs.
    pub fn columns(self) -> &'static [(&'static str, Kind)] {
        match self {
            Table::Recordings => &[
                ("recording", Text),
                ("command", Text),
                ("build_id", Text),
                ("host", Text),
                ("recorded_at_ns", Int),
                ("start_ns", Int),
                ("end_ns", Int),
                ("recorded_cpus", Int),
                ("events", Int),
                ("lost", Int),
                ("unknown_ns", Int),
                ("longpole", Text),
            ],
            Table::Threads => &[
                ("recording", Text),
                ("thread", Text),
                ("process", Text),
                ("pid", Int),
                ("tid", Int),
                ("start_ns", Int),
                ("end_ns", Int),
                ("created_by", Text),
            ],
            Table::Intervals => &[
                ("recording", Text),
                ("thread", Text),
                ("start_ns", Int),
                ("end_ns", Int),
                ("state", Text),
                ("cpu", Int),
                ("reason", Text),
                ("object", Text),
                ("idle", Bool),
                ("ended_by", Text),
                ("waker", Text),
            ],
            Table::Calls => &[
                ("recording", Text),
                ("thread", Text),
                ("function", Text),
                ("start_ns", Int),
                ("end_ns", Int),
                ("depth", Int),
            ],
            Table::Wakes => &[
                ("recording", Text),
                ("time_ns", Int),
                ("waker", Text),
                ("wakee", Text),
                ("ended_wait", Bool),
            ],
            Table::Sections => &[
                ("recording", Text),
                ("lock", Text),
                ("kind", Text),
                ("thread", Text),
                ("waited_ns", Int),
                ("start_ns", Int),
                ("end_ns", Int),
                ("reads", Bool),
            ],
            Table::Functions => &[
                ("recording", Text),
                ("cpus", Int),
                ("time_ns", Float),
                ("function", Text),
                ("location", Text),
                ("calls", Int),
                ("own_ns", Float),
                ("own_error_ns", Float),
                ("total_ns", Float),
                ("total_error_ns", Float),
            ],
            Table::Locks => &[
                ("recording", Text),
                ("cpus", Int),
                ("time_ns", Float),
                ("lock", Text),
                ("critical_ns", Float),
                ("acquisitions", Int),
                ("contended", Int),
                ("waited_ns", Float),
                ("held_ns", Float),
            ],
            Table::Waits => &[
                ("recording", Text),
                ("cpus", Int),
                ("time_ns", Float),
                ("speedup", Float),
                ("wait", Text),
                ("object", Text),
                ("count", Int),
                ("critical_ns", Float),
            ],
            Table::Stacks => &[
                ("recording", Text),
                ("cpus", Int),
                ("thread", Text),
                ("stack", Text),
                ("cpu_ns", Float),
                ("critical_ns", Float),
            ],
            Table::Paths => &[
                ("recording", Text),
                ("cpus", Int),
                ("start_ns", Float),
                ("end_ns", Float),
                ("weight", Float),
                ("thread", Text),
                ("function", Text),
                ("wait", Text),
            ],
        }
    }
}
