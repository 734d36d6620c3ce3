//! A window that slides over a live stream of records. It is always a [`Recording`], so it becomes a timeline in the same way
//! as a file. Moving its start turns earlier events into facts at the new start.

use crate::event::{
    CodeFact, CodePlace, Facts, Note, NoteKind, ProcessFact, Recording, STACKS_AT_ONCE, WindowEnd,
    unnamed_code,
};
use probe_abi::Record;
use rustc_hash::FxHashSet;

/// The most recent stretch of a live recording.
#[derive(Clone, Debug, Default)]
pub struct Window {
    recording: Recording,
}

impl Window {
    /// An empty window that begins at the time of the facts.
    pub fn new(facts: Facts) -> Window {
        Window { recording: Recording { facts, ..Recording::default() } }
    }

    /// A window that contains a complete recording.
    pub fn of(recording: Recording) -> Window {
        Window { recording }
    }

    /// Takes the next record, in the merger's order.
    pub fn push(&mut self, record: Record) {
        self.recording.events.push(record);
    }

    /// Takes a note; notes may come in any order, and later than the records around them.
    pub fn push_note(&mut self, note: Note) {
        let notes = &mut self.recording.notes;
        let at = notes.partition_point(|other| other.time_ns <= note.time_ns);
        notes.insert(at, note);
    }

    /// The recorded facts, to add new processes and functions.
    pub fn facts_mut(&mut self) -> &mut Facts {
        &mut self.recording.facts
    }

    /// Its first instant.
    pub fn start_ns(&self) -> u64 {
        self.recording.facts.start_ns
    }

    /// Records in the window.
    pub fn len(&self) -> usize {
        self.recording.events.len()
    }

    /// Whether there is no record in the window.
    pub fn is_empty(&self) -> bool {
        self.recording.events.is_empty()
    }

    /// Moves the start to `start_ns`: everything earlier becomes facts. Never moves back.
    pub fn advance(&mut self, start_ns: u64) {
        if start_ns <= self.start_ns() {
            return;
        }
        self.recording.facts = crate::timeline::facts_at(&self.recording, start_ns);
        self.forget_before(start_ns);
    }

    /// Begins the window at a snapshot, as a recording started then would.
    ///
    /// All that is known of earlier times are the snapshot's processes and threads.
    pub fn begin_at(&mut self, seen: Facts) {
        let facts = &mut self.recording.facts;
        let Facts { start_ns, mut processes, threads, .. } = seen;
        let known: FxHashSet<u32> = processes.iter().map(|process: &ProcessFact| process.pid).collect();
        // Ended processes are kept: notes and mappings still refer to them.
        facts.processes.retain(|process| !known.contains(&process.pid));
        facts.processes.append(&mut processes);
        // The command was released before this window.
        (facts.start_ns, facts.threads, facts.launched) = (start_ns, threads, None);
        self.forget_before(start_ns);
    }

    /// Drops events before the start, and notes that are needed only for these events.
    fn forget_before(&mut self, start_ns: u64) {
        let gone = self.recording.events.partition_point(|event| event.header().time_ns < start_ns);
        self.recording.events.drain(..gone);
        let used: FxHashSet<u32> = self.recording.events.iter().filter_map(stack_of).collect();
        let latest = self.recording.notes.iter().filter_map(Note::stack).max().unwrap_or(0);
        let alive: FxHashSet<u32> = self.recording.facts.threads.iter().map(|thread| thread.pid).collect();
        self.recording.notes.retain(|note| match note.kind {
            // A gap that ends at the new start is over: facts contain what was unknown because of it. A gap of a
            // process that has ended is over, too.
            NoteKind::Gap { pid, until_ns, .. } => {
                until_ns > start_ns && (pid == 0 || note.time_ns >= start_ns || alive.contains(&pid))
            }
            NoteKind::EndedUnprobed { until_ns, .. } => until_ns > start_ns,
            NoteKind::ProbesOff { .. } | NoteKind::ProbesOn { .. } => true,
            NoteKind::Stack { id, .. }
            | NoteKind::Changed { stack: id, .. }
            | NoteKind::InKernel { stack: id, .. } => {
                id.saturating_add(STACKS_AT_ONCE) > latest || used.contains(&id)
            }
        });
    }

    /// Drops names of places that are in no stack, except the last `last` names, and drops duplicates.
    pub fn forget_code(&mut self, last: usize) {
        let code = std::mem::take(&mut self.recording.facts.code);
        let used: FxHashSet<CodePlace> = unnamed_code(&self.recording).into_iter().collect();
        let kept_from = code.len().saturating_sub(last);
        let mut seen: FxHashSet<(CodePlace, u64)> = FxHashSet::default();
        // Of several names of one place, the last one is valid.
        let mut kept: Vec<CodeFact> = Vec::new();
        for (number, fact) in code.into_iter().enumerate().rev() {
            let place =
                CodePlace { path: fact.path.clone(), build_id: fact.build_id.clone(), offset: fact.offset };
            if (number >= kept_from || used.contains(&place)) && seen.insert((place, fact.since_ns)) {
                kept.push(fact);
            }
        }
        kept.reverse();
        self.recording.facts.code = kept;
    }

    /// The window's recording.
    pub fn into_recording(self) -> Recording {
        self.recording
    }

    /// The records in the window, in order.
    pub fn events(&self) -> &[Record] {
        &self.recording.events
    }

    /// The notes in the window, in order of time.
    pub fn notes(&self) -> &[Note] {
        &self.recording.notes
    }

    /// The window as a recording that ends at `end`, without later events.
    pub fn into_ending(self, end: WindowEnd) -> Recording {
        let Recording { facts, mut events, mut notes } = self.recording;
        events.truncate(events.partition_point(|event| event.header().time_ns <= end.end_ns));
        let used: FxHashSet<u32> = events.iter().filter_map(stack_of).collect();
        notes.retain(|note| note.stack().is_none_or(|stack| used.contains(&stack)));
        Recording { facts: Facts { end: Some(end), ..facts }, events, notes }
    }

    /// A copy of the window as a recording that ends at `end`, without later events.
    ///
    /// Stacks without a sample are not copied: the window keeps tens of thousands for later samples, and a reader would
    /// walk through all.
    pub fn ending(&self, end: WindowEnd) -> Recording {
        let end_ns = end.end_ns;
        let Recording { facts, events, notes } = &self.recording;
        let events = events.get(..events.partition_point(|event| event.header().time_ns <= end_ns));
        let events = events.unwrap_or_default().to_vec();
        let used: FxHashSet<u32> = events.iter().filter_map(stack_of).collect();
        let wanted = |note: &&Note| note.stack().is_none_or(|stack| used.contains(&stack));
        let notes = notes.iter().filter(wanted).cloned().collect();
        Recording { facts: Facts { end: Some(end), ..facts.clone() }, events, notes }
    }
}

fn stack_of(record: &Record) -> Option<u32> {
    match record {
        Record::Sample(sample) => Some(sample.stack),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Merger;
    use probe_abi::{Exit, Header, Kind, Sample};

    fn header(kind: Kind, time_ns: u64, sequence: u32) -> Header {
        Header { time_ns, sequence, cpu: 0, kind: kind as u8, context: 0, tid: 7, pid: 7 }
    }

    fn sample(time_ns: u64, sequence: u32, stack: u32) -> Record {
        let header = header(Kind::Sample, time_ns, sequence);
        Record::Sample(Sample { header, stack, reason: 0, flags: 0, reserved: 0 })
    }

    fn stack(time_ns: u64, id: u32) -> Note {
        Note { time_ns, kind: NoteKind::Stack { id, pid: 7, frames: vec![1], cut: false } }
    }

    #[test]
    fn a_window_keeps_stacks_as_long_as_a_sample_may_name_them() {
        let mut window = Window::new(Facts::default());
        let latest = STACKS_AT_ONCE + 5;
        for note in [stack(10, 1), stack(10, 4), stack(11, 5), stack(20, 6), stack(30, latest)] {
            window.push_note(note);
        }
        for (time_ns, stack) in [(10, 1), (12, 4), (30, latest)] {
            window.push(sample(time_ns, stack, stack));
        }
        window.advance(12);
        let left: Vec<u32> = window.recording.notes.iter().filter_map(Note::stack).collect();
        assert_eq!(left, [4, 6, latest], "named in the window, or not yet too old to be named again");
    }

    #[test]
    fn a_lost_sample_leaves_no_gap_and_one_of_equal_time_comes_first() {
        let exit = |time_ns, sequence| {
            Record::Exit(Exit {
                header: header(Kind::Exit, time_ns, sequence),
                last_of_process: 0,
                placement: 0,
            })
        };
        let mut merger = Merger::new(1).numbered_from(Some(0));
        for record in [exit(5, 0), exit(10, 1), sample(10, 70, 1), sample(12, 3, 1), exit(12, 2)] {
            merger.push(0, record);
        }
        let kinds: Vec<u8> = merger.finish().iter().map(|record| record.header().kind).collect();
        let (exit, sample) = (Kind::Exit as u8, Kind::Sample as u8);
        assert_eq!(kinds, [exit, sample, exit, sample, exit]);
        assert_eq!(merger.take_notes(), []);
        assert_eq!(merger.counts().missing, 0);
    }
}
