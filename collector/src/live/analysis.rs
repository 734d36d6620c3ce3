//! From a recording to a report: the same steps for a live window and for a file.

use crate::tui::Snapshot;
use engine::event::Recording;
use engine::report::{Cpus, Detail};
use std::time::Instant;

/// A report for the screen. `recorded_cpus`: CPUs of the machine that the recording is of, if that is known.
pub fn snapshot(
    recording: &Recording,
    cpus: &[Cpus],
    recorded_cpus: Option<u32>,
    cut_by_events: bool,
) -> Snapshot {
    let began = Instant::now();
    let mut program = engine::program::from_timeline(&engine::timeline::build(recording));
    program.recorded_cpus = recorded_cpus;
    let report = engine::report::report(&program, cpus, Detail::Functions);
    let start_ns = recording.facts.start_ns;
    let end_ns = recording.facts.end.as_ref().map_or(start_ns, |end| end.end_ns);
    Snapshot {
        headline: engine::report::headline(&report),
        report,
        threads: program.threads.len(),
        window_ns: end_ns.saturating_sub(start_ns),
        took: began.elapsed(),
        cut_by_events,
    }
}
