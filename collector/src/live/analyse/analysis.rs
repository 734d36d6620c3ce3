//! Makes a report of a recorded window. The steps are the same for a live window and for a file.

use crate::live::probes::{HotFunctions, hot_functions};
use crate::plan::per::Per;
use crate::tui::{CpuWish, Requests, Snapshot};
use engine::attribution::{Grouping, neighbours};
use engine::event::Recording;
use engine::limit::{Limits, Search};
use engine::parallelism::{measured, predicted};
use engine::predict::Model;
use engine::program::Program;
use engine::report::{Cpus, Detail, report_by};
use engine::requests::summarize;
use engine::timeline::Timeline;
use std::time::Instant;

/// Number of functions on the screen that are listed with their callers and callees.
const AROUND: usize = 64;

/// How deeply a window is analysed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// Everything that `report` asks, for a window that is analysed only once.
    #[default]
    Whole,
    /// Simulations on the scheduler's model only, never on ideally shared CPUs.
    Full,
    /// Like the previous one, with fewer simulations.
    Brief,
}

/// The questions that are answered for each window.
#[derive(Clone, Debug)]
pub struct Asked {
    /// CPU counts to predict for.
    pub cpus: Vec<Cpus>,
    /// CPUs of the recorded machine, if known.
    pub recorded_cpus: Option<u32>,
    /// A CPU count that the user chose instead of the machine's; it is predicted first.
    pub wish: CpuWish,
    /// What counts as a request; `None`: single requests are not followed.
    pub per: Option<Per>,
}

/// A report for the screen.
pub fn snapshot(recording: &Recording, asked: &Asked, cut_by_events: bool) -> Snapshot {
    look(recording, asked, cut_by_events, Depth::Whole).0
}

/// A report for the screen, and the functions without probes that samples found.
pub(super) fn look(
    recording: &Recording,
    asked: &Asked,
    cut_by_events: bool,
    depth: Depth,
) -> (Snapshot, HotFunctions) {
    let began = Instant::now();
    let timeline = engine::timeline::build(recording);
    let mut program = match depth {
        Depth::Whole => engine::translation::from_timeline(&timeline),
        Depth::Full | Depth::Brief => engine::translation::scheduled_from_timeline(&timeline),
    };
    program.recorded_on(asked.recorded_cpus);
    // One run for each CPU count is enough: windows are analysed again and again.
    let model = Model { runs: 1, ..Model::default() };
    let chosen = asked.wish.get().filter(|cpus| program.recorded_cpus.and_then(Cpus::count) != Some(*cpus));
    let parallelism = match chosen {
        Some(cpus) => predicted(&program, cpus, &model).unwrap_or_default(),
        None => measured(&timeline, &program, false),
    };
    let requests = asked.per.as_ref().map(|per| requests(&timeline, &program, per));
    drop(timeline);
    let report = report_by(&program, &asked.cpus, Detail::Functions, Grouping::Function, &model);
    let limits = Search::new(&program, &asked.cpus, &model).map_or_else(
        |_| Limits::default(),
        |search| {
            let search = if depth == Depth::Brief { search.briefly() } else { search };
            match asked.wish.get() {
                Some(cpus) => search.on(cpus).all(),
                None => search.all(),
            }
        },
    );
    let start_ns = recording.facts.start_ns;
    let end_ns = recording.facts.end.as_ref().map_or(start_ns, |end| end.end_ns);
    let window_ns = end_ns.saturating_sub(start_ns);
    let hot = hot_functions(&program, &report, window_ns);
    let snapshot = Snapshot {
        limits,
        neighbours: neighbours(&program, AROUND),
        parallelism,
        requests,
        report,
        threads: program.threads.len(),
        window_ns,
        took: began.elapsed(),
        cut_by_events,
        recording: None,
    };
    (snapshot, hot)
}

/// The single requests of a window.
fn requests(timeline: &Timeline, program: &Program, per: &Per) -> Requests {
    let kind = per.kind();
    match per.requests(timeline) {
        Ok((calls, names)) => {
            let what = match &names[..] {
                [one] => one.clone(),
                _ => per.to_string(),
            };
            Requests { what, names, kind, summary: Some(summarize(timeline, program, &calls)) }
        }
        // Its probes are not there yet, or its code is not loaded.
        Err(_) => Requests { what: per.to_string(), names: Vec::new(), kind, summary: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::limit::LimitKind;

    /// A brief analysis must find the same limit: otherwise a program with a hot lock is limited by CPUs in one window
    /// and by the lock in the next.
    #[test]
    fn a_brief_analysis_finds_the_same_limit_as_a_whole_one() {
        for name in ["attached", "forkjoin", "phases", "pipeline", "quicksort", "split", "store", "timers"] {
            let file = format!("{}/../tests/data/recordings/{name}.lp", env!("CARGO_MANIFEST_DIR"));
            let (recording, info) = recording::read(file.as_ref()).expect("a recording");
            let recorded_cpus = info.meta.map(|meta| meta.cpu_count);
            let cpus = [1, 2, 4].into_iter().filter_map(Cpus::count).collect();
            let asked = Asked { cpus, recorded_cpus, wish: CpuWish::default(), per: None };
            let limit = |depth| {
                let (snapshot, _) = look(&recording, &asked, false, depth);
                let first = snapshot.limits.at.into_iter().next().expect("a limit");
                let name: &'static str = (&first.kind).into();
                match first.kind {
                    LimitKind::Lock { lock, .. } => format!("{name} {lock}"),
                    _ => name.to_owned(),
                }
            };
            let whole = limit(Depth::Whole);
            assert_eq!([Depth::Full, Depth::Brief].map(limit), [whole.clone(), whole], "{name}");
        }
    }
}
