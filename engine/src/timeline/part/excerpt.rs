//! A part of a recording, as if only that had been recorded.

use crate::event::{Facts, Recording, WindowEnd};
use crate::timeline::Window;
use crate::timeline::part::extent::extent;

/// The recording between two instants, both included; earlier records become facts about its start.
///
/// Costs and counts of samples are scaled by the share of the records that the excerpt has; `all` is the number of
/// records in the whole recording. What other programs used is not known for a part of a recording. Counts of lost
/// records and of requests stay those of the whole recording.
pub fn excerpt(recording: Recording, from_ns: u64, to_ns: u64, all: u64) -> Recording {
    let (begin_ns, end_ns) = extent(&recording);
    let (from_ns, to_ns) = (from_ns.max(begin_ns), to_ns.min(end_ns));
    let end = recording.facts.end.clone();
    let mut window = Window::of(recording);
    window.advance(from_ns);
    let mut cut = window.into_ending(WindowEnd { end_ns: to_ns, ..WindowEnd::default() });
    let share = cut.events.len() as f64 / all.max(1) as f64;
    let is_last = to_ns == end_ns;
    let is_all = is_last && from_ns == begin_ns;
    cut.facts.end = end.map(|end| WindowEnd {
        end_ns: to_ns,
        threads: if is_last { end.threads } else { Vec::new() },
        pending: if is_last { end.pending } else { Vec::new() },
        overhead: end.overhead.map(|cost| cost.scaled(share)),
        kernel_locks: end.kernel_locks.map(|locks| locks.scaled(share)),
        samples: end.samples.map(|counts| counts.scaled(share)),
        others: end.others.filter(|_| is_all),
        ..end
    });
    cut
}

/// The recording as if begun at a snapshot: the snapshot's processes and threads, and no earlier event.
pub fn beginning_at(recording: Recording, seen: Facts) -> Recording {
    let mut window = Window::of(recording);
    window.begin_at(seen);
    window.into_recording()
}
