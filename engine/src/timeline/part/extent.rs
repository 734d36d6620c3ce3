//! When a recording begins and ends.

use crate::event::Recording;

/// The first and the last instant of a recording (`CLOCK_MONOTONIC` nanoseconds).
pub fn extent(recording: &Recording) -> (u64, u64) {
    let from_ns = recording.facts.start_ns;
    let last_ns = || recording.events.last().map(|event| event.header().time_ns);
    let to_ns = recording.facts.end.as_ref().map(|end| end.end_ns).or_else(last_ns).unwrap_or(from_ns);
    (from_ns, to_ns.max(from_ns))
}
