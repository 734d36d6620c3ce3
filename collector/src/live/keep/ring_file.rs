//! `record --ring`: the last stretch in memory, and the files that it is saved to.

use super::counts_over_time::CountsOverTime;
use super::saved::{Reason, Saved};
use crate::live::rings::{Batch, Fired};
use crate::plan::trigger::Condition;
use engine::event::{Facts, Note, WindowEnd};
use recording::{CreateError, EventChunk, Meta, Overwrite, Ring, Writer};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Names of the files that a ring is saved to.
#[derive(Clone, Debug)]
pub struct Names {
    /// The first file.
    pub file: PathBuf,
    /// Whether the first file may replace an existing one; `None`: the first file has the next free name, like all
    /// other files.
    pub first: Option<Overwrite>,
}

/// See the module.
pub struct RingFile {
    ring: Ring,
    span_ns: u64,
    meta: Meta,
    names: Names,
    /// Set by another thread to have the ring saved.
    wanted: Arc<AtomicBool>,
    /// Conditions that had the ring saved, and up to when the ring was complete then.
    heard: Vec<(Condition, u64)>,
    counts: CountsOverTime,
    complete_to_ns: u64,
    open: Option<EventChunk>,
}

impl RingFile {
    /// A ring that begins with these facts. It is saved when `wanted` is set.
    pub fn new(
        facts: &Facts,
        (span, most_bytes): (Duration, u64),
        meta: Meta,
        names: Names,
        wanted: Arc<AtomicBool>,
    ) -> io::Result<RingFile> {
        let span_ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Ok(RingFile {
            ring: Ring::new(facts, span_ns, most_bytes)?,
            span_ns,
            heard: Vec::new(),
            meta,
            names,
            wanted,
            counts: CountsOverTime::new(facts.start_ns),
            complete_to_ns: facts.start_ns,
            open: None,
        })
    }

    /// Adds facts.
    pub fn facts(&mut self, facts: &Facts) {
        self.ring.facts(facts);
    }

    /// Adds the processes and threads of an instant.
    pub fn snapshot(&mut self, seen: &Facts) {
        self.ring.snapshot(seen);
    }

    /// Adds records and notes. Returns the reason to save the ring, if there is one.
    pub fn batch(&mut self, batch: Batch) -> io::Result<Option<Reason>> {
        let Batch { records: _, chunks, open, notes, complete_to_ns, loss, overhead, fired } = batch;
        notes.iter().for_each(|note: &Note| self.ring.note(note));
        for chunk in chunks {
            self.ring.events(chunk)?;
        }
        // A batch of notes alone comes from another thread, and has neither times nor losses.
        if complete_to_ns > 0 {
            self.open = open;
            self.complete_to_ns = self.complete_to_ns.max(complete_to_ns);
            self.counts.take(self.complete_to_ns, loss, overhead);
            self.counts.forget_before(self.ring.start_ns(self.complete_to_ns));
        }
        // If there are two reasons to save the ring, one file serves both.
        let wanted = self.wanted.swap(false, Ordering::Relaxed);
        let fired = fired.into_iter().find(|fired| self.is_new(fired));
        if let Some(Fired { condition, .. }) = &fired {
            self.heard.retain(|(heard, _)| heard != condition);
            self.heard.push((condition.clone(), self.complete_to_ns));
        }
        Ok(fired.map(Reason::Trigger).or(wanted.then_some(Reason::Signal)))
    }

    /// Whether at least the length of a ring has passed since this condition last saved the ring: otherwise a condition
    /// that holds now and then would fill the disk.
    fn is_new(&self, fired: &Fired) -> bool {
        let last = self.heard.iter().find(|(condition, _)| *condition == fired.condition);
        last.is_none_or(|(_, saved_ns)| fired.time_ns >= saved_ns.saturating_add(self.span_ns))
    }

    /// Saves the ring as it is now; recording into the ring continues.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn save(&mut self, reason: Reason) -> Result<Saved, CreateError> {
        let (loss, overhead) = self.counts.last();
        let end_ns = self.complete_to_ns;
        self.save_until(reason, WindowEnd { end_ns, loss, overhead, ..WindowEnd::default() })
    }

    /// Saves the ring at the end.
    ///
    /// # Errors
    /// As [`RingFile::save`].
    pub fn finish(mut self, end: WindowEnd) -> Result<Saved, CreateError> {
        self.open = None;
        self.save_until(Reason::End, end)
    }

    fn save_until(&mut self, reason: Reason, end: WindowEnd) -> Result<Saved, CreateError> {
        let (writer, path) = match self.names.first.take() {
            Some(overwrite) => {
                let file = self.names.file.clone();
                (Writer::create(&file, overwrite, &self.meta)?, file)
            }
            None => Writer::create_unused(&self.names.file, &self.meta)?,
        };
        let end_ns = end.end_ns;
        let start_ns = self.ring.start_ns(end_ns);
        let end = self.counts.since(start_ns, end);
        let summary = self.ring.save(writer, self.open.clone(), end);
        let summary = summary.map_err(|error| CreateError::io(&path, error))?;
        let length = Duration::from_nanos(end_ns.saturating_sub(start_ns));
        Ok(Saved { path, reason, summary, length, is_cut: self.ring.is_cut(end_ns) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::event::{LossCounts, NoteKind};
    use probe_abi::{Exit, Header, Kind, Record};
    use recording::{ClockAnchor, CreateProblem, EventChunks, read};
    use std::path::Path;

    const MS: u64 = 1_000_000;

    /// A chunk with a record every 10 ms from `from_ms` to `to_ms`, and the losses so far.
    fn batch(from_ms: u64, to_ms: u64, dropped: u64) -> Batch {
        let mut chunks = EventChunks::default();
        for time_ms in (from_ms..to_ms).step_by(10) {
            let (kind, time_ns) = (Kind::Exit as u8, time_ms * MS);
            let header = Header { time_ns, sequence: 0, cpu: 0, kind, context: 0, tid: 1, pid: 1 };
            let record = Record::Exit(Exit { header, last_of_process: 0, placement: 0 });
            assert_eq!(chunks.push(&record), Ok(None));
        }
        Batch {
            chunks: chunks.take().into_iter().collect(),
            complete_to_ns: to_ms * MS,
            loss: LossCounts { dropped, ..LossCounts::default() },
            ..Batch::default()
        }
    }

    fn ring(folder: &Path, first: Option<Overwrite>) -> (RingFile, Arc<AtomicBool>) {
        let wanted = Arc::new(AtomicBool::new(false));
        let meta = Meta::of_this_machine(ClockAnchor::now(0));
        let names = Names { file: folder.join("a.lp"), first };
        let size = (Duration::from_millis(300), 1 << 20);
        let ring = RingFile::new(&Facts::default(), size, meta, names, Arc::clone(&wanted)).expect("a ring");
        (ring, wanted)
    }

    fn end(end_ms: u64, dropped: u64) -> WindowEnd {
        let loss = LossCounts { dropped, ..LossCounts::default() };
        WindowEnd { end_ns: end_ms * MS, loss, ..WindowEnd::default() }
    }

    #[test]
    fn a_ring_is_saved_at_each_signal_and_at_the_end_under_new_names() {
        let folder = tempfile::tempdir().expect("folder");
        let (mut ring, wanted) = ring(folder.path(), Some(Overwrite::Nothing));
        assert_eq!(ring.batch(batch(0, 500, 1)).expect("taken"), None);
        wanted.store(true, Ordering::Relaxed);
        let reason = ring.batch(batch(500, 1_000, 3)).expect("taken").expect("wanted");
        assert_eq!(reason, Reason::Signal);
        let saved = ring.save(reason).expect("saved");
        assert_eq!((saved.path, saved.length), (folder.path().join("a.lp"), Duration::from_millis(300)));
        assert_eq!((saved.summary.events, saved.is_cut), (30, false));
        // The signal may come again while the ring is written.
        wanted.store(true, Ordering::Relaxed);
        let reason = ring.batch(batch(1_000, 1_100, 3)).expect("taken").expect("wanted again");
        assert_eq!(ring.save(reason).expect("saved").path, folder.path().join("a-2.lp"));
        assert_eq!(ring.batch(batch(1_100, 1_200, 4)).expect("taken"), None, "once for each");
        let saved = ring.finish(end(1_200, 9)).expect("saved");
        assert_eq!((saved.path.clone(), saved.reason), (folder.path().join("a-3.lp"), Reason::End));
        let (recording, info) = read(&saved.path).expect("read");
        assert_eq!((info.damage, recording.facts.start_ns, info.events), (None, 900 * MS, 30));
        // Records that were lost before the saved part do not count in it.
        assert_eq!(recording.facts.end.map(|end| end.loss.dropped), Some(8));
    }

    #[test]
    fn a_condition_that_fires_saves_the_ring_and_notes_alone_do_not() {
        let folder = tempfile::tempdir().expect("folder");
        let (mut ring, _) = ring(folder.path(), None);
        let condition = "parallelism<1.5 for 2s".parse().expect("a condition");
        let fired = Fired { condition, time_ns: 400 * MS };
        let reason = ring.batch(Batch { fired: vec![fired], ..batch(0, 500, 0) }).expect("taken");
        assert_eq!(reason.as_ref().map(ToString::to_string).as_deref(), Some("parallelism<1.5 for 2s"));
        let kind = NoteKind::ProbesOff { functions: vec![1], rates: vec![0] };
        let notes = vec![Note { time_ns: 450 * MS, kind }];
        assert_eq!(ring.batch(Batch { notes, ..Batch::default() }).expect("taken"), None);
        let saved = ring.save(reason.expect("one")).expect("saved");
        let (recording, _) = read(&saved.path).expect("read");
        assert_eq!((recording.events.len(), recording.notes.len()), (30, 1));
        assert_eq!(recording.facts.end.map(|end| end.end_ns), Some(500 * MS));
    }

    /// A condition that holds now and then must not fill the disk.
    #[test]
    fn a_condition_saves_the_ring_at_most_once_per_ring_length() {
        let folder = tempfile::tempdir().expect("folder");
        let (mut ring, wanted) = ring(folder.path(), None);
        let mut saves = |condition: &str, end_ms: u64| {
            let fired = Fired { condition: condition.parse().expect("a condition"), time_ns: end_ms * MS };
            let batch = Batch { fired: vec![fired], ..batch(end_ms - 10, end_ms, 0) };
            ring.batch(batch).expect("taken")
        };
        let (one, other) = ("parallelism<1.5 for 2s", "lock_wait>20% for 5s");
        let heard: Vec<u64> =
            (10..=1_000u64).step_by(10).filter(|&end_ms| saves(one, end_ms).is_some()).collect();
        assert_eq!(heard, [10, 310, 610, 910]);
        assert!(saves(other, 1_010).is_some(), "each by itself");
        wanted.store(true, Ordering::Relaxed);
        assert_eq!(saves(one, 1_020), Some(Reason::Signal));
    }

    /// A file that exists costs nothing of the ring.
    #[test]
    fn a_ring_whose_file_exists_is_an_error_and_is_saved_under_another_name() {
        let folder = tempfile::tempdir().expect("folder");
        let (mut ring, _) = ring(folder.path(), Some(Overwrite::Nothing));
        std::fs::write(folder.path().join("a.lp"), "precious").expect("written");
        ring.batch(batch(0, 500, 0)).expect("taken");
        let error = ring.save(Reason::Signal).expect_err("there");
        assert!(matches!(error.problem, CreateProblem::Exists));
        assert_eq!(ring.finish(end(500, 0)).expect("saved").path, folder.path().join("a-2.lp"));
        assert_eq!(std::fs::read_to_string(folder.path().join("a.lp")).expect("there"), "precious");
    }

    #[test]
    fn a_saved_ring_without_an_event_can_be_read() {
        let folder = tempfile::tempdir().expect("folder");
        let (mut ring, _) = ring(folder.path(), None);
        assert_eq!(ring.save(Reason::Signal).expect("saved").summary.events, 0);
        let saved = ring.finish(WindowEnd::default()).expect("saved");
        let (recording, info) = read(&saved.path).expect("read");
        assert_eq!((info.damage, recording.events.len(), saved.length), (None, 0, Duration::ZERO));
    }
}
