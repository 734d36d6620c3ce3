//! What goroutines wait for, as a limit.

use serde::Serialize;

/// What goroutines wait for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum GoroutinesWait {
    /// A lock.
    Lock {
        /// Its type, e.g. `sync.Mutex`.
        lock: String,
        /// The function that waits for it most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// How many goroutines wait for locks of this type, on average.
        waiting: f64,
    },
    /// A place in a channel whose places are permits.
    Channel {
        /// Number of places.
        capacity: u64,
        /// The function that waits.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// How many goroutines wait, on average.
        waiting: f64,
    },
    /// A goroutine that is always at work.
    Stage {
        /// The function that it was started with.
        function: String,
        /// Share of the looks at which it was at work.
        at_work: f64,
        /// How many others wait for channels, on average.
        waiting: f64,
    },
    /// No wait stands out.
    Several {
        /// Waits with their function, and how many goroutines wait, on average; the most frequent first.
        waits: Vec<(String, f64)>,
        /// CPUs in use on average.
        busy: f64,
    },
}
