//! What requests spend their time on, on average: along each request's own critical path ([`crate::requests`]).

use crate::json::number;
use serde::{Deserialize, Serialize};

/// A part of the requests' time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimePart {
    /// The cause.
    pub kind: CauseKind,
    /// Its name, as in [`crate::requests::CauseRow::name`].
    pub name: String,
    /// Share of the requests' time, from 0 to 1.
    #[serde(serialize_with = "number")]
    pub share: f64,
    /// For a lock or another request: what those did that the request waited for. Shares of the requests' time; the largest
    /// first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub under: Vec<TimePart>,
}

/// A kind of cause of a request's latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// Computing a function.
    Computing,
    /// A lock that another thread had.
    Lock,
    /// Another request, whose thread ended the wait: they share a lock that the program makes itself.
    OtherRequest,
    /// Waiting for a CPU that another thread of the program had.
    NoCpu,
    /// Waiting for a CPU that another program or the kernel had.
    NoCpuOthers,
    /// Time from the wake-up until the thread runs on a free CPU.
    Woken,
    /// A disk.
    Disk,
    /// The network.
    Peer,
    /// A sleep or a time limit.
    Timer,
    /// A process that is not recorded.
    Process,
    /// Another device or a signal.
    Other,
    /// Waiting while the thread does other requests.
    Queue,
    /// The cause is not known.
    #[default]
    Unknown,
    /// The walk was not continued.
    NotFollowed,
}
