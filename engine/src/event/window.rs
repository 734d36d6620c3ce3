//! A window that slides over a live stream. It is a [`Recording`] all the time, so it goes through the very same
//! timeline as a file; moving its start on turns the events that fall out into facts at the new start.

use super::{Facts, Note, NoteKind, Recording, WindowEnd};
use probe_abi::Record;

/// The last stretch of a live recording.
#[derive(Clone, Debug, Default)]
pub struct Window {
    recording: Recording,
}

impl Window {
    /// A window that begins where the facts were taken.
    pub fn new(facts: Facts) -> Window {
        Window { recording: Recording { facts, ..Recording::default() } }
    }

    /// Takes the next record, in the merger's order.
    pub fn push(&mut self, record: Record) {
        self.recording.events.push(record);
    }

    /// Takes a note; notes may come in any order, and later than the records around them.
    pub fn push_note(&mut self, note: Note) {
        self.recording.notes.push(note);
        self.recording.notes.sort_by_key(|note| note.time_ns);
    }

    /// The recorded facts, so that processes and functions that come later can be added.
    pub fn facts_mut(&mut self) -> &mut Facts {
        &mut self.recording.facts
    }

    /// First instant of the window.
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

    /// Moves the start on to `start_ns`: everything before it becomes facts. Never moves back.
    pub fn advance(&mut self, start_ns: u64) {
        if start_ns <= self.start_ns() {
            return;
        }
        self.recording.facts = crate::timeline::facts_at(&self.recording, start_ns);
        let gone = self.recording.events.partition_point(|event| event.header().time_ns < start_ns);
        self.recording.events.drain(..gone);
        self.recording.notes.retain(|note| match note.kind {
            // A gap that ends at the new start has ended: facts say what it left unknown.
            NoteKind::Gap { until_ns, .. } => until_ns > start_ns,
            NoteKind::ProbesOff { .. } | NoteKind::ProbesOn { .. } => true,
        });
    }

    /// The window as a recording that ends as told.
    pub fn recording(&mut self, end: WindowEnd) -> &Recording {
        self.recording.facts.end = Some(end);
        &self.recording
    }
}
