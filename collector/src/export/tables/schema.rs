//! All tables and their columns.

use super::Rows;
use std::io;

/// Type of a column's values.
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
#[derive(Debug)]
pub struct Table {
    /// Name of the table, and of its file.
    pub name: &'static str,
    /// The columns. Times are nanoseconds: of `CLOCK_MONOTONIC` in the measured run, from its start in a predicted run.
    /// `cpus` is null for unlimited CPUs.
    pub columns: &'static [(&'static str, Kind)],
    /// Writes the table's rows.
    pub(super) rows: fn(&mut Rows<'_, '_, '_>) -> io::Result<()>,
}

impl PartialEq for Table {
    fn eq(&self, other: &Table) -> bool {
        self.name == other.name
    }
}

impl Eq for Table {}

impl Table {
    /// All tables; the table of recordings comes first.
    pub const ALL: &'static [Table] = &[
        // The table of recordings.
        Table {
            name: "recordings",
            columns: &[
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
            rows: |rows| rows.recordings(),
        },
        // Threads of the recording.
        Table {
            name: "threads",
            columns: &[
                ("recording", Text),
                ("thread", Text),
                ("process", Text),
                ("pid", Int),
                ("tid", Int),
                ("start_ns", Int),
                ("end_ns", Int),
                ("created_by", Text),
            ],
            rows: |rows| rows.threads(),
        },
        // States of threads.
        Table {
            name: "intervals",
            columns: &[
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
            rows: |rows| rows.intervals(),
        },
        // Calls of probed functions.
        Table {
            name: "calls",
            columns: &[
                ("recording", Text),
                ("thread", Text),
                ("function", Text),
                ("start_ns", Int),
                ("end_ns", Int),
                ("depth", Int),
            ],
            rows: |rows| rows.calls(),
        },
        // The table of wake-ups: which thread woke which.
        Table {
            name: "wakes",
            columns: &[
                ("recording", Text),
                ("time_ns", Int),
                ("waker", Text),
                ("wakee", Text),
                ("ended_wait", Bool),
            ],
            rows: |rows| rows.wakes(),
        },
        // The table of lock sections: which thread held which lock at what time.
        Table {
            name: "sections",
            columns: &[
                ("recording", Text),
                ("lock", Text),
                ("kind", Text),
                ("thread", Text),
                ("waited_ns", Int),
                ("start_ns", Int),
                ("end_ns", Int),
                ("reads", Bool),
            ],
            rows: |rows| rows.sections(),
        },
        // Functions on each CPU count.
        Table {
            name: "functions",
            columns: &[
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
            rows: |rows| rows.functions(),
        },
        // Locks on each CPU count.
        Table {
            name: "locks",
            columns: &[
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
            rows: |rows| rows.locks(),
        },
        // Computing, waits and hand-overs on each CPU count, with the predicted time: the rows of a CPU count add up to it.
        Table {
            name: "waits",
            columns: &[
                ("recording", Text),
                ("cpus", Int),
                ("time_ns", Float),
                ("speedup", Float),
                ("wait", Text),
                ("object", Text),
                ("count", Int),
                ("critical_ns", Float),
            ],
            rows: |rows| rows.waits(),
        },
        // Call stacks on each CPU count.
        Table {
            name: "stacks",
            columns: &[
                ("recording", Text),
                ("cpus", Int),
                ("thread", Text),
                ("stack", Text),
                ("cpu_ns", Float),
                ("critical_ns", Float),
            ],
            rows: |rows| rows.stacks(),
        },
        // The critical path on each CPU count.
        Table {
            name: "paths",
            columns: &[
                ("recording", Text),
                ("cpus", Int),
                ("start_ns", Float),
                ("end_ns", Float),
                ("weight", Float),
                ("thread", Text),
                ("function", Text),
                ("wait", Text),
            ],
            rows: |rows| rows.paths(),
        },
    ];

    /// The table with this name.
    pub fn of(name: &str) -> Option<&'static Table> {
        Table::ALL.iter().find(|table| table.name == name)
    }
}
