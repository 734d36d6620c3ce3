//! Finds what limits the program, in one line, for the summary of a recording.

use crate::input::Input;
use crate::plan::part::{MOST_RECORDS, RecordingPart};
use crate::present::screen::limit;
use crate::present::words::excerpt;
use engine::event::Overhead;
use engine::limit::{LimitKind, Search};
use engine::predict::Model;
use engine::program::Program;
use engine::report::Cpus;
use std::path::Path;

/// Largest number of events of a file without snapshots, which must be read completely. More events would take longer
/// than a user waits for a summary.
const MOST_EVENTS: u64 = 4_000_000;

/// Two results. First: what limits the program on the recorded machine, or a text that finding it takes too long;
/// `None`: unknown. Second: the cost of recording, from events between the program's start and its end.
pub fn limit_and_cost(file: &Path, events: u64) -> (Option<String>, Option<Overhead>) {
    let Ok(input) = Input::open_small(file, (MOST_RECORDS, MOST_EVENTS), events) else { return (None, None) };
    let Some(input) = input else {
        let text = "not searched among this many events: `longpole report` does that";
        return (Some(text.to_owned()), None);
    };
    let program = input.into_program();
    // The cost of a part is only a share of the total cost.
    let cost = program.overhead.filter(|_| part_of(&program).is_none());
    (of_program(&program, events), cost)
}

/// What limits the program of a recording that was read already.
pub fn limit_of_input(input: Input, events: u64) -> Option<String> {
    let program = input.part(RecordingPart::default(), MOST_RECORDS).ok()?.into_program();
    of_program(&program, events)
}

/// Like [`limit_of_input`], for a program. Without any event only a deadlock is known, from the program's memory.
fn of_program(program: &Program, events: u64) -> Option<String> {
    let machine = program.recorded_cpus.and_then(Cpus::count)?;
    let search = Search::new(program, &[machine], &Model::default()).ok()?;
    let found = search.counts().first().map(|cpus| search.at(*cpus))?;
    let limits = search.conclude(vec![found], Vec::new(), Vec::new());
    let first = limits.at.first()?;
    let sentence = || {
        let part = part_of(program).map_or(String::new(), |part| format!(" (seen in {part})"));
        format!("{}{part}", limit::first_sentence(first, &limits))
    };
    (events > 0 || matches!(first.kind, LimitKind::Deadlock { .. })).then(sentence)
}

/// Length of the analysed part, as `1.24 s of 60.0 s`; `None`: all was analysed.
fn part_of(program: &Program) -> Option<String> {
    program.findings.iter().find_map(excerpt::lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_line_of_a_large_recording_without_snapshots_names_report() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/recordings/pipeline.lp");
        let (line, _) = limit_and_cost(Path::new(file), MOST_EVENTS + 1);
        let line = line.expect("a line");
        assert!(line.contains("longpole report"), "{line}");
        assert_eq!(limit_and_cost(Path::new("/nowhere"), 7), (None, None));
    }

    #[test]
    fn the_limit_line_of_a_kept_pipeline_names_its_stage() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/recordings/pipeline.lp");
        let (line, cost) = limit_and_cost(Path::new(file), 1);
        let line = line.expect("a line");
        assert!(cost.is_some());
        assert!(line.starts_with("one stage of a pipeline"), "{line}");
    }
}
