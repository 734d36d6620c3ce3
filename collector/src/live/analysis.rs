//! From a recording to a report: the same steps for a live window and for a file.

use super::promising::{Sighting, promising};
use crate::tui::Snapshot;
use engine::attribution::Grouping;
use engine::event::Recording;
use engine::predict::Model;
use engine::report::{Cpus, Detail, report_by};
use std::time::Instant;

/// A report for the screen. `recorded_cpus`: CPUs of the machine that the recording is of, if that is known.
pub fn snapshot(
    recording: &Recording,
    cpus: &[Cpus],
    recorded_cpus: Option<u32>,
    cut_by_events: bool,
) -> Snapshot {
    look(recording, cpus, recorded_cpus, cut_by_events).0
}

/// The same, and what samples show of functions without probes.
pub(super) fn look(
    recording: &Recording,
    cpus: &[Cpus],
    recorded_cpus: Option<u32>,
    cut_by_events: bool,
) -> (Snapshot, Sighting) {
    let began = Instant::now();
    let timeline = engine::timeline::build(recording);
    // Not threads times window: most of them may have lived for a moment.
    let lives = timeline.threads.iter().map(|thread| thread.end.0.saturating_sub(thread.start.0));
    let thread_ns = lives.fold(0, u64::saturating_add);
    let mut program = engine::program::from_timeline(&timeline);
    drop(timeline);
    program.recorded_cpus = recorded_cpus;
    // One run: the window is looked at again and again.
    let model = Model { runs: 1, ..Model::default() };
    let report = report_by(&program, cpus, Detail::Functions, Grouping::Function, &model);
    let start_ns = recording.facts.start_ns;
    let end_ns = recording.facts.end.as_ref().map_or(start_ns, |end| end.end_ns);
    let window_ns = end_ns.saturating_sub(start_ns);
    let sighting = promising(&program, &report, window_ns);
    let snapshot = Snapshot {
        headline: crate::present::headline(&report),
        report,
        threads: program.threads.len(),
        thread_ns,
        window_ns,
        took: began.elapsed(),
        cut_by_events,
    };
    (snapshot, sighting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::event::{Facts, ProcessFact, ThreadFact, WindowEnd};
    use probe_abi::{Exit, Header, Kind, Record};

    /// What is unknown was shown as a share of threads times window: of short-lived threads it was too small.
    #[test]
    fn a_thread_counts_for_as_long_as_it_lived() {
        let thread = |tid| ThreadFact { tid, pid: 7, ..ThreadFact::default() };
        let facts = Facts {
            start_ns: 1_000,
            processes: vec![ProcessFact { pid: 7, ..ProcessFact::default() }],
            threads: vec![thread(7), thread(8)],
            end: Some(WindowEnd { end_ns: 11_000, ..WindowEnd::default() }),
            ..Facts::default()
        };
        let header = Header {
            time_ns: 1_500,
            sequence: 0,
            cpu: 0,
            kind: Kind::Exit as u8,
            context: 0,
            tid: 8,
            pid: 7,
        };
        let exit = Record::Exit(Exit { header, last_of_process: 0, placement: 0 });
        let recording = Recording { facts, events: vec![exit], ..Recording::default() };
        let snapshot = snapshot(&recording, &[Cpus::Infinite], None, false);
        assert_eq!(snapshot.window_ns, 10_000);
        assert_eq!(snapshot.thread_ns, 10_500);
    }
}
