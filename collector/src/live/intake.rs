//! The one way into the engine, for live, recorded and generated records alike: bytes are decoded, put in order
//! and released as batches.

use super::message::{ChangeKind, ProcessChange};
use super::naming::{Ask, Seen};
use super::{Drained, EventSource};
use engine::event::{LossCounts, Merger, Note, Overhead};
use probe_abi::Record;

/// Records in time order, and what was noticed meanwhile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Records; later batches hold later ones.
    pub records: Vec<Record>,
    /// Probe changes and gaps, in order of time. One may lie before records that have left already.
    pub notes: Vec<Note>,
    /// Records are complete up to here (nanoseconds of the source's clock).
    pub complete_to_ns: u64,
    /// What had got lost by then, as far as it is known: the kernel's counters are read less often.
    pub loss: LossCounts,
    /// What recording had cost by then; it is read as rarely.
    pub overhead: Option<Overhead>,
}

/// Decodes and merges.
#[derive(Debug)]
pub struct Intake {
    merger: Merger,
    undecodable: u64,
    events: u64,
    /// Records of the last batch: the next one is about as long.
    usual: usize,
    loss: LossCounts,
    /// What the next batches say that recording has cost.
    pub overhead: Option<Overhead>,
    changes: Vec<ProcessChange>,
    /// Addresses to be named, if anybody can.
    seen: Option<Seen>,
}

impl Intake {
    /// For this source.
    pub fn new(source: &dyn EventSource) -> Intake {
        Intake {
            merger: Merger::new(source.rings()).numbered_from(source.first_number()),
            undecodable: 0,
            events: 0,
            usual: 0,
            loss: LossCounts::default(),
            overhead: None,
            changes: Vec::new(),
            seen: source.is_live().then(Seen::default),
        }
    }

    /// One turn of the source: whatever it hands over is decoded and waits for its place in time.
    pub fn drain(&mut self, source: &mut dyn EventSource) -> Drained {
        let drained = source.drain(&mut |ring, bytes| match Record::decode(bytes) {
            Ok(record) => {
                self.changes.extend(process_change(&record));
                if let Some(seen) = &mut self.seen {
                    seen.record(&record);
                }
                self.merger.push(ring, record);
            }
            Err(_) => self.undecodable += 1,
        });
        if let Some(complete_to_ns) = drained.complete_to_ns {
            for ring in 0..source.rings() {
                self.merger.drained(ring, complete_to_ns);
            }
        }
        drained
    }

    /// Processes born, changed and ended in what was drained since the last call, in order of time. At once: while a
    /// record waits for its place in time, calls of the new program are missing.
    pub fn take_process_changes(&mut self) -> Vec<ProcessChange> {
        let mut changes = std::mem::take(&mut self.changes);
        changes.sort_by_key(|change| change.time_ns);
        changes
    }

    /// Addresses that are new since the last call.
    pub fn take_asks(&mut self) -> Vec<Ask> {
        self.seen.as_mut().map(Seen::take).unwrap_or_default()
    }

    /// What may leave now.
    pub fn release(&mut self, source: &mut dyn EventSource) -> Batch {
        let mut records = Vec::with_capacity(self.usual);
        self.merger.release_to(&mut records);
        self.usual = records.len();
        let complete_to_ns = self.merger.watermark_ns();
        self.batch(source, records, complete_to_ns)
    }

    /// Asks how much there should have been, once everything is drained: what a full ring lost at the end leaves no hole
    /// before anything.
    pub fn compare(&mut self, source: &mut dyn EventSource, end_ns: u64) {
        for (ring, cpu, count) in source.written() {
            self.merger.written(ring, cpu, count, end_ns);
        }
    }

    /// The rest, up to `end_ns`: what was recorded later lies outside the window.
    pub fn finish(&mut self, source: &mut dyn EventSource, end_ns: u64) -> Batch {
        let mut records = self.merger.finish();
        records.retain(|record| record.header().time_ns <= end_ns);
        self.batch(source, records, end_ns)
    }

    fn batch(&mut self, source: &mut dyn EventSource, records: Vec<Record>, complete_to_ns: u64) -> Batch {
        self.events = self.events.saturating_add(records.len() as u64);
        let mut notes = self.merger.take_notes();
        notes.extend(source.take_notes());
        notes.sort_by_key(|note| note.time_ns);
        Batch { records, notes, complete_to_ns, loss: self.loss, overhead: self.overhead }
    }

    /// Records are complete up to here.
    pub fn watermark_ns(&self) -> u64 {
        self.merger.watermark_ns()
    }

    /// Records released so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Reads the loss counters. What got lost since the start, here and before.
    pub fn read_loss(&mut self, source: &mut dyn EventSource) -> LossCounts {
        let mut loss = source.loss();
        loss.late = loss.late.saturating_add(self.merger.counts().late);
        loss.undecodable = loss.undecodable.saturating_add(self.undecodable);
        self.loss = loss;
        loss
    }
}

/// What a record says about its process as a whole.
fn process_change(record: &Record) -> Option<ProcessChange> {
    let header = record.header();
    let (pid, kind) = match record {
        Record::Fork(fork) if fork.child_pid != header.pid => {
            (fork.child_pid, ChangeKind::Forked { parent: header.pid })
        }
        Record::Exec(exec) => (header.pid, ChangeKind::Executed { by_leader: exec.old_tid == header.tid }),
        Record::Exit(exit) if exit.last_of_process != 0 => (header.pid, ChangeKind::Ended),
        _ => return None,
    };
    Some(ProcessChange { pid, time_ns: header.time_ns, kind })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{Pace, Replay};
    use engine::event::{Facts, Recording};
    use probe_abi::{Exec, Header, Kind};

    /// The probes of a new program came some 100 ms later than they could: its record waited for its place in time.
    #[test]
    fn a_new_program_is_told_before_its_record_leaves() {
        let exec = |time_ns: u64, sequence: u32, old_tid: u32| {
            let kind = Kind::Exec as u8;
            let header = Header { time_ns, sequence, cpu: 0, kind, context: 0, tid: 7, pid: 7 };
            Record::Exec(Exec { header, old_tid, first_page: 0, comm: [0; 16] })
        };
        // Swapped, as an interrupt may.
        let events = vec![exec(2_000_000, 1, 9), exec(1_999_999, 0, 7)];
        let recording = Recording { facts: Facts::default(), events, notes: Vec::new() };
        let mut source = Replay::new(recording, Pace::Batches(10));
        let mut intake = Intake::new(&source);
        assert_eq!(intake.drain(&mut source).records, 2);
        assert!(intake.release(&mut source).records.is_empty());
        let change =
            |time_ns, by_leader| ProcessChange { pid: 7, time_ns, kind: ChangeKind::Executed { by_leader } };
        assert_eq!(intake.take_process_changes(), [change(1_999_999, true), change(2_000_000, false)]);
        assert_eq!(intake.take_process_changes(), []);
    }
}
