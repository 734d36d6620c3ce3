//! The way of all records into the engine, for live, recorded and generated ones alike: decodes bytes, sorts records
//! and releases them in batches.

use super::source::{Drained, EventSource};
use super::trigger::{Fired, Triggers};
use crate::live::main_loop::{ChangeKind, ProcessChange};
use crate::live::naming::{Ask, KnownAddresses, LockStack};
use crate::live::probes::{Tally, Tallying};
use engine::event::{LossCounts, Merger, Note, Overhead, ThreadFact};
use probe_abi::Record;
use recording::{Contradiction, EventChunk, EventChunks};
use std::time::Instant;

/// Records in order of time, with notes about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Records; later batches have later records.
    pub records: Vec<Record>,
    /// The records as chunks, if only the file needs them ([`Decoder::for_the_file`]). Released records may wait until
    /// their chunk is full.
    pub chunks: Vec<EventChunk>,
    /// A draft of the chunk that is not yet full.
    pub open: Option<EventChunk>,
    /// Probe changes and gaps, in order of time. A note may be older than records of earlier batches.
    pub notes: Vec<Note>,
    /// Records are complete up to here (nanoseconds of the source's clock).
    pub complete_to_ns: u64,
    /// Records lost until then, as far as known: the kernel's counters are read less often.
    pub loss: LossCounts,
    /// Costs of recording until then; they are read as rarely.
    pub overhead: Option<Overhead>,
    /// Conditions that have become true.
    pub fired: Vec<Fired>,
}

/// Decodes records, and merges the records of all rings.
pub struct Decoder {
    merger: Merger,
    chunks: Option<EventChunks>,
    undecodable: u64,
    events: u64,
    /// Number of records in the last batch: room for the next one.
    usual: usize,
    loss: LossCounts,
    /// Cost of recording, passed on with the next batches.
    pub overhead: Option<Overhead>,
    changes: Vec<ProcessChange>,
    /// Addresses that need names, if names are looked for.
    seen: Option<KnownAddresses>,
    /// The tally of where threads run, for a source that can attach probes.
    tallying: Option<Tallying>,
    /// Conditions that are watched, if there are any.
    triggers: Option<Triggers>,
}

impl Decoder {
    /// A decoder for this source.
    pub fn new(source: &dyn EventSource) -> Decoder {
        Decoder {
            merger: Merger::new(source.rings()).numbered_from(source.first_number()),
            chunks: None,
            undecodable: 0,
            events: 0,
            usual: 0,
            loss: LossCounts::default(),
            overhead: None,
            changes: Vec::new(),
            seen: source.is_live().then(KnownAddresses::default),
            // Full records are analysed by the consumer, which shows more than tallies.
            tallying: source.is_live().then(|| Tallying::new(Instant::now(), false)),
            triggers: None,
        }
    }

    /// Adds conditions to watch.
    #[must_use]
    pub fn with_triggers(self, triggers: Option<Triggers>) -> Decoder {
        Decoder { triggers, ..self }
    }

    /// Sets that only the session file needs the records. They are then encoded when they are released, while they are
    /// in the cache; otherwise they would be written to memory and read again by another CPU.
    #[must_use]
    pub fn for_the_file(self) -> Decoder {
        let tallying = self.tallying.is_some().then(|| Tallying::new(Instant::now(), true));
        Decoder { chunks: Some(EventChunks::default()), tallying, ..self }
    }

    /// Empties the source's rings once. Each decoded record waits in the merger for its place in time.
    pub fn drain(&mut self, source: &mut dyn EventSource) -> Drained {
        source.set_merge_backlog(self.merger.held_bytes());
        let drained = source.drain(&mut |ring, bytes| match Record::decode(bytes) {
            Ok(record) => {
                self.changes.extend(process_change(&record));
                if let Some(seen) = &mut self.seen {
                    seen.record(&record);
                }
                if let Some(tallying) = &mut self.tallying {
                    tallying.record(&record);
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

    /// Processes that were born, changed and ended, according to the records drained since the last call, in order of
    /// time. This does not wait until all records are in order, since calls of a new program would be missing until
    /// then.
    pub fn take_process_changes(&mut self) -> Vec<ProcessChange> {
        let mut changes = std::mem::take(&mut self.changes);
        changes.sort_by_key(|change| change.time_ns);
        changes
    }

    /// Notices the stacks that samples name.
    pub fn see_stacks(&mut self, notes: &[Note]) {
        if let Some(seen) = &mut self.seen {
            notes.iter().for_each(|note| seen.note(note));
        }
        if let Some(tallying) = &mut self.tallying {
            tallying.notes(notes);
        }
    }

    /// The tally of where threads ran, if the next one is due.
    pub fn tally(&mut self, now: Instant) -> Option<Tally> {
        self.tallying.as_mut()?.take(now)
    }

    /// Stacks at waits for locks and at wake-ups that are new since the last call.
    pub fn take_lock_stacks(&mut self) -> Vec<LockStack> {
        self.seen.as_mut().map(KnownAddresses::take_lock_stacks).unwrap_or_default()
    }

    /// Addresses that need names, and are new since the last call.
    pub fn take_asks(&mut self) -> Vec<Ask> {
        self.seen.as_mut().map(KnownAddresses::take).unwrap_or_default()
    }

    /// Notes the words that threads wait for at the end: they get names.
    pub fn see_threads(&mut self, threads: &[ThreadFact]) {
        if let Some(seen) = &mut self.seen {
            threads.iter().for_each(|thread| seen.thread(thread));
        }
    }

    /// Releases the records that no ring can precede any more.
    pub fn release(&mut self, source: &mut dyn EventSource) -> Batch {
        let mut leaving = BatchBuilder::with(self.chunks.as_mut(), self.triggers.as_mut(), self.usual);
        self.merger.release_to(&mut |record| leaving.take(record));
        let mut batch = leaving.end(&mut self.undecodable, &mut self.events);
        self.usual = batch.records.len();
        let complete_to_ns = self.merger.watermark_ns();
        if let Some(triggers) = &mut self.triggers {
            triggers.advance(complete_to_ns, &mut batch.fired);
        }
        let open = self.chunks.as_ref().and_then(EventChunks::draft);
        self.with_notes(source, Batch { complete_to_ns, open, ..batch })
    }

    /// Adds the chunk that is not yet full.
    fn flush(&mut self, batch: &mut Batch) {
        batch.chunks.extend(self.chunks.as_mut().and_then(EventChunks::take));
    }

    /// Compares with the number of records written by each ring, once all rings are empty. What a full ring lost at the
    /// end leaves no hole before a later record.
    pub fn compare(&mut self, source: &mut dyn EventSource, end_ns: u64) {
        for (ring, cpu, count) in source.written() {
            self.merger.written(ring, cpu, count, end_ns);
        }
    }

    /// Releases all remaining records up to `end_ns`: later records lie outside the window.
    pub fn finish(&mut self, source: &mut dyn EventSource, end_ns: u64) -> Batch {
        // No triggers: at the end the file is written in any case.
        let mut leaving = BatchBuilder::with(self.chunks.as_mut(), None, self.usual);
        self.merger.finish_to(&mut |record| {
            if record.header().time_ns <= end_ns {
                leaving.take(record);
            }
        });
        let mut batch = leaving.end(&mut self.undecodable, &mut self.events);
        self.flush(&mut batch);
        self.with_notes(source, Batch { complete_to_ns: end_ns, ..batch })
    }

    fn with_notes(&mut self, source: &mut dyn EventSource, batch: Batch) -> Batch {
        let mut notes = self.merger.take_notes();
        notes.extend(source.take_notes());
        notes.sort_by_key(|note| note.time_ns);
        Batch { notes, loss: self.loss, overhead: self.overhead, ..batch }
    }

    /// Records are complete up to here.
    pub fn watermark_ns(&self) -> u64 {
        self.merger.watermark_ns()
    }

    /// Records released so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Reads the loss counters: records lost since the start, here and in the source.
    pub fn read_loss(&mut self, source: &mut dyn EventSource) -> LossCounts {
        let mut loss = source.loss();
        loss.late = loss.late.saturating_add(self.merger.counts().late);
        loss.undecodable = loss.undecodable.saturating_add(self.undecodable);
        self.loss = loss;
        loss
    }
}

/// Collects the released records of one batch.
struct BatchBuilder<'a> {
    chunks: Option<&'a mut EventChunks>,
    triggers: Option<&'a mut Triggers>,
    batch: Batch,
    left: u64,
    contradictions: u64,
}

impl<'a> BatchBuilder<'a> {
    fn with(
        chunks: Option<&'a mut EventChunks>,
        triggers: Option<&'a mut Triggers>,
        usual: usize,
    ) -> BatchBuilder<'a> {
        let records = Vec::with_capacity(if chunks.is_some() { 0 } else { usual });
        let batch = Batch { records, ..Batch::default() };
        BatchBuilder { chunks, triggers, batch, left: 0, contradictions: 0 }
    }

    #[inline]
    fn take(&mut self, record: &Record) {
        self.left += 1;
        if let Some(triggers) = &mut self.triggers {
            triggers.record(record, &mut self.batch.fired);
        }
        match &mut self.chunks {
            None => self.batch.records.push(*record),
            Some(chunks) => match chunks.push(record) {
                Ok(full) => self.batch.chunks.extend(full),
                // Decoded records never contradict themselves.
                Err(Contradiction) => self.contradictions += 1,
            },
        }
    }

    fn end(self, undecodable: &mut u64, events: &mut u64) -> Batch {
        *undecodable = undecodable.saturating_add(self.contradictions);
        *events = events.saturating_add(self.left - self.contradictions);
        self.batch
    }
}

/// The change of a process that a record reports.
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
    use engine::event::{Facts, Recording, WindowEnd};
    use probe_abi::{Exec, Exit, Header, Kind};
    use recording::{ClockAnchor, Meta, Writer, read_from};
    use std::io::Cursor;

    /// A record waits some 100 ms until its place in time is certain; a new program must get its probes before that.
    #[test]
    fn a_process_change_is_known_before_its_record_is_released() {
        let exec = |time_ns: u64, sequence: u32, old_tid: u32| {
            let kind = Kind::Exec as u8;
            let header = Header { time_ns, sequence, cpu: 0, kind, context: 0, tid: 7, pid: 7 };
            Record::Exec(Exec { header, old_tid, first_page: 0, comm: [0; 16] })
        };
        // The records are in the wrong order, as an interrupt may write them.
        let events = vec![exec(2_000_000, 1, 9), exec(1_999_999, 0, 7)];
        let recording = Recording { facts: Facts::default(), events, notes: Vec::new() };
        let mut source = Replay::new(recording, Pace::Batches(10));
        let mut decoder = Decoder::new(&source);
        assert_eq!(decoder.drain(&mut source).records, 2);
        assert!(decoder.release(&mut source).records.is_empty());
        let change =
            |time_ns, by_leader| ProcessChange { pid: 7, time_ns, kind: ChangeKind::Executed { by_leader } };
        assert_eq!(decoder.take_process_changes(), [change(1_999_999, true), change(2_000_000, false)]);
        assert_eq!(decoder.take_process_changes(), []);
    }

    /// Conditions advance with released records, and with the time up to which records are complete.
    #[test]
    fn a_trigger_fires_when_its_time_is_complete_between_records() {
        let exit = |sequence: u32| {
            let (time_ns, kind) = (u64::from(sequence) * 300_000_000, Kind::Exit as u8);
            let header = Header { time_ns, sequence, cpu: 0, kind, context: 0, tid: 7, pid: 7 };
            Record::Exit(Exit { header, last_of_process: 0, placement: 0 })
        };
        let recording =
            Recording { facts: Facts::default(), events: (1..4).map(exit).collect(), notes: Vec::new() };
        let condition = "parallelism<0.5 for 400ms".parse().expect("a condition");
        let triggers = Triggers::new(&[condition], &Facts::default());
        let mut source = Replay::new(recording, Pace::Batches(1));
        let mut decoder = Decoder::new(&source).for_the_file().with_triggers(Some(triggers));
        let mut fired = Vec::new();
        while !decoder.drain(&mut source).ended {
            fired.extend(decoder.release(&mut source).fired);
        }
        fired.extend(decoder.release(&mut source).fired);
        assert_eq!(fired.iter().map(|fired| fired.time_ns).collect::<Vec<_>>(), [400_000_000]);
    }

    /// The chunks that the decoder makes have the same bytes as those that the writer thread makes.
    #[test]
    fn chunks_for_the_file_hold_the_same_records_as_the_window_gets() {
        let exit = |number: u32| {
            let (cpu, kind) = ((number % 2) as u16, Kind::Exit as u8);
            let time_ns = 1_000_000_000 + u64::from(number) * 20_000_000;
            let header =
                Header { time_ns, sequence: number / 2, cpu, kind, context: 0, tid: 1 + number % 5, pid: 1 };
            Record::Exit(Exit { header, last_of_process: 0, placement: number })
        };
        let events: Vec<Record> = (0..300).map(exit).collect();
        let written = |for_the_file: bool| {
            let recording = Recording { facts: Facts::default(), events: events.clone(), notes: Vec::new() };
            let mut source = Replay::new(recording, Pace::Batches(7));
            let decoder = Decoder::new(&source);
            let mut decoder = if for_the_file { decoder.for_the_file() } else { decoder };
            let mut bytes = Cursor::new(Vec::new());
            let meta = Meta::of_this_machine(ClockAnchor::now(0));
            let mut writer = Writer::new(&mut bytes, &meta).expect("started");
            let (mut chunks, mut records, mut last) = (0, 0, false);
            while !last {
                last = decoder.drain(&mut source).ended;
                let mut batch = decoder.release(&mut source);
                if chunks == 2 {
                    decoder.flush(&mut batch);
                }
                if last {
                    // The last five records lie outside the window.
                    let rest = decoder.finish(&mut source, 1_000_000_000 + 294 * 20_000_000);
                    batch.records.extend(rest.records);
                    batch.chunks.extend(rest.chunks);
                }
                chunks += batch.chunks.len();
                records += batch.records.len();
                batch.records.iter().for_each(|record| writer.push(record).expect("written"));
                batch.chunks.into_iter().for_each(|chunk| writer.events(chunk).expect("written"));
            }
            let summary = writer.finish(WindowEnd::default()).expect("finished");
            let (recording, info) = read_from(bytes).expect("a session");
            assert_eq!(info.damage, None);
            (recording.events, summary.events, summary.raw_bytes, decoder.events(), chunks > 5, records)
        };
        let (as_records, as_chunks) = (written(false), written(true));
        assert_eq!((as_records.1, as_records.2, as_records.3), (295, 295 * 32, 295));
        assert_eq!((as_records.4, as_records.5), (false, 295));
        assert_eq!((as_chunks.4, as_chunks.5), (true, 0));
        assert!(as_records.0 == events[..295] && as_chunks.0 == events[..295]);
        assert_eq!((as_chunks.1, as_chunks.2, as_chunks.3), (as_records.1, as_records.2, as_records.3));
    }
}
