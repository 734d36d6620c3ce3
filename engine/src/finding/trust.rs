//! How far a result can be trusted.

use serde::{Deserialize, Serialize};

/// Counts that show how complete the recording behind a result is. All 0 for a hand-written program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trust {
    /// Kernel records read.
    pub events: u64,
    /// Waits that ended with a recorded wake-up.
    pub wakes: u64,
    /// Records lost, for any reason; `None` if the recording lacks its end, which has the count.
    pub lost: Option<u64>,
    /// Waits that ended without a recorded wake-up.
    pub unmatched: u64,
    /// Thread time with unknown activity, nanoseconds.
    pub unknown_ns: u64,
    /// Waits cut by the window's edges.
    #[serde(rename = "censored")]
    pub truncated_waits: u64,
    /// Wake-ups that ended no wait: the thread was awake, or had been woken already.
    #[serde(skip_serializing_if = "is_zero")]
    pub spurious: u64,
}

impl Default for Trust {
    fn default() -> Trust {
        Trust {
            events: 0,
            wakes: 0,
            lost: Some(0),
            unmatched: 0,
            unknown_ns: 0,
            truncated_waits: 0,
            spurious: 0,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
