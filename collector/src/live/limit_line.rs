//! What limits, in one line: for the summary of a recording.

use crate::input::Input;
use crate::plan::InputPlan;
use crate::present::screen::limit;
use engine::event::Overhead;
use engine::limit::{Kind, Search};
use engine::predict::Model;
use engine::program::Program;
use engine::report::Cpus;
use std::path::Path;

/// A recording of more events takes longer than a person waits for a summary.
const MOST_EVENTS: u64 = 200_000;

/// What limits the program of this recording on the machine that it was recorded on, or a text that this takes longer; `None`:
/// unknown. And what recording cost, by what the events show of the time that the program ran before its end.
pub fn limit_and_cost(file: &Path, events: u64) -> (Option<String>, Option<Overhead>) {
    if let Some(text) = too_many(events) {
        return (Some(text), None);
    }
    let Ok(input) = Input::open(&InputPlan::File(file.to_owned())) else { return (None, None) };
    let program = input.into_program();
    (of_program(&program, events), program.overhead)
}

/// The same for what is read already.
pub fn limit_of_input(input: Input, events: u64) -> Option<String> {
    too_many(events).or_else(|| of_program(&input.into_program(), events))
}

fn too_many(events: u64) -> Option<String> {
    let text = || "not looked for among this many events: `longpole report` does that".to_owned();
    (events > MOST_EVENTS).then(text)
}

/// Without any event only a deadlock is known, from the program's memory.
fn of_program(program: &Program, events: u64) -> Option<String> {
    let machine = program.recorded_cpus.and_then(Cpus::count)?;
    let search = Search::new(program, &[machine], &Model::default()).ok()?;
    let found = search.counts().first().map(|cpus| search.at(*cpus))?;
    let limits = search.conclude(vec![found], Vec::new(), Vec::new());
    let first = limits.at.first()?;
    (events > 0 || matches!(first.kind, Kind::Deadlock { .. })).then(|| limit::first_sentence(first, &limits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_recording_is_not_waited_for() {
        let (line, _) = limit_and_cost(Path::new("/nowhere"), MOST_EVENTS + 1);
        let line = line.expect("a line");
        assert!(line.contains("longpole report"), "{line}");
        assert_eq!(limit_and_cost(Path::new("/nowhere"), 7), (None, None));
    }

    #[test]
    fn the_limit_of_a_kept_recording() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/recordings/pipeline.lp");
        let (line, cost) = limit_and_cost(Path::new(file), 1);
        let line = line.expect("a line");
        assert!(cost.is_some());
        assert!(line.starts_with("one stage of a pipeline"), "{line}");
    }
}
