//! Keeps the newest part of a recording on disk, in files that together never exceed a size.
//!
//! There are two files. Each is a complete recording of its time and has at most half of the size. When the newer file
//! is full, it replaces the older one, and a new file begins with everything that is known by then. At the end, both
//! files are joined.
//!
//! ```text
//! FILE     ▓▓▓▓▓▓▓▓│                  │
//! older            │▓▓▓▓▓▓▓▓          │▓▓▓▓▓▓▓▓          the one before it has been removed
//! FILE             │        ▓▓▓▓▓▓▓▓▓▓│        ▓▓▓▓
//! ```

use super::carried::Carried;
use super::disk::Disk;
use super::event_chunk::EventChunk;
use super::join::{Joined, join};
use super::limited::Limited;
use super::{FileLimits, SessionSummary, Writer};
use crate::Meta;
use engine::event::{Facts, LossCounts, Note, Overhead, WindowEnd};
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Where the two files are stored.
pub trait Shelf {
    /// A file that is being written.
    type Disk: Disk;

    /// Makes the newer file the older one, and removes the previous older file. Returns a new, empty file as the newer
    /// one.
    fn turn(&mut self) -> io::Result<Self::Disk>;

    /// Opens both files for reading: the older one from its start, the newer one from the byte `newer_from` on.
    fn read(&self, newer_from: u64) -> io::Result<(Box<dyn Read>, Box<dyn Read>)>;

    /// Replaces both files by one file that `write` writes. The new file gets the name of the newer one. After an error
    /// both files stay.
    fn replace(&mut self, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()>;

    /// Name of the older file, if there is one.
    fn older(&self) -> Option<PathBuf>;
}

/// The newest part of a recording in two files; see the module's documentation.
pub struct Generations<S: Shelf> {
    shelf: S,
    meta: Meta,
    most_bytes: u64,
    carried: Carried,
    /// The writer of the newer file. `None` between the end of one file and the beginning of the next, or after an
    /// error at that point.
    writer: Option<Writer<Limited<S::Disk>>>,
    newer: Generation,
    older: Option<Generation>,
    /// Losses and costs of the recording so far.
    so_far: SoFar,
    /// A snapshot of threads. When the records reach its time, the newer file ends and the next one begins with the
    /// snapshot.
    next: Option<Facts>,
}

/// One of the two files of a recording.
#[derive(Clone, Copy, Debug, Default)]
struct Generation {
    /// Size of the file before its first record, in bytes. This part repeats content of the older file.
    begin_bytes: u64,
    /// Start of the file's time (`CLOCK_MONOTONIC` nanoseconds).
    start_ns: u64,
    /// Whether the file is the first one of the recording.
    is_first: bool,
    /// Losses and costs of the recording before this file began.
    before: SoFar,
    /// Counts of the file's content. Set when the file has ended.
    summary: SessionSummary,
}

#[derive(Clone, Copy, Debug, Default)]
struct SoFar {
    loss: LossCounts,
    overhead: Option<Overhead>,
}

/// The result of a recording that keeps only the newest part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The content of the file.
    pub summary: SessionSummary,
    /// Whether an older part of the recording has been removed.
    pub is_cut: bool,
    /// What happened to the older file.
    pub older: Older,
}

/// What happened to the older of two files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Older {
    /// The older file was joined with the newer one, or there was no older file.
    #[default]
    Joined,
    /// The older file stays under this name, because joining the two files failed.
    Apart(PathBuf),
    /// Another program has removed the older file.
    Removed,
}

impl<S: Shelf> Generations<S> {
    /// Begins the first file with description and facts. `disk` is a new, empty file. Both files together have at most
    /// `most_bytes`.
    pub fn new(
        shelf: S,
        disk: S::Disk,
        meta: &Meta,
        facts: &Facts,
        most_bytes: u64,
    ) -> io::Result<Generations<S>> {
        let mut generations = Generations {
            shelf,
            meta: meta.clone(),
            most_bytes,
            carried: Carried::default(),
            writer: None,
            newer: Generation::default(),
            older: None,
            so_far: SoFar::default(),
            next: None,
        };
        generations.carried.facts(facts);
        generations.begin(disk, facts)?;
        Ok(generations)
    }

    /// Adds facts.
    pub fn facts(&mut self, facts: &Facts) -> io::Result<()> {
        self.carried.facts(facts);
        // Packed JSON takes less than half of its size. If this call begins a new file, the new file contains these
        // facts already.
        let bytes = serde_json::to_vec(facts)?.len() as u64 / 2;
        if self.is_full_with(bytes) {
            return self.turn_without_snapshot();
        }
        self.writer()?.facts(facts)
    }

    /// Adds a note.
    pub fn note(&mut self, note: &Note) -> io::Result<()> {
        if self.is_full_with(0) {
            self.turn_without_snapshot()?;
        }
        self.carried.note(note);
        // The next file begins after the latest stack.
        self.carried.forget_stacks(self.carried.latest_stack());
        self.writer()?.note(note)
    }

    /// Adds records, which must be later than all records before.
    pub fn events(&mut self, chunk: EventChunk) -> io::Result<()> {
        let Some(next) = self.next.take_if(|next| next.start_ns <= chunk.last_ns) else {
            return self.of_this_file(chunk);
        };
        let (before, after) = chunk.split(next.start_ns)?;
        before.into_iter().try_for_each(|chunk| self.of_this_file(chunk))?;
        self.turn(&next)?;
        after.into_iter().try_for_each(|chunk| self.of_this_file(chunk))
    }

    fn of_this_file(&mut self, chunk: EventChunk) -> io::Result<()> {
        if self.is_full_with(chunk.payload_bytes()) {
            self.turn_without_snapshot()?;
        }
        self.writer()?.events(chunk)
    }

    /// Writes data that is not final yet as a draft: see [`Writer::draft`].
    pub fn draft(&mut self, open: Option<EventChunk>) -> io::Result<()> {
        self.writer()?.draft(open)
    }

    /// Sets the losses and costs of the recording so far.
    pub fn so_far(&mut self, loss: LossCounts, overhead: Option<Overhead>) {
        self.so_far = SoFar { loss, overhead: overhead.or(self.so_far.overhead) };
    }

    /// Adds a snapshot: the processes and threads of an instant. The next file may begin at that instant if no later
    /// record has been written yet.
    pub fn snapshot(&mut self, seen: &Facts) -> io::Result<()> {
        let written_ns = self.summary().last_ns.max(self.newer.start_ns);
        if self.wants_snapshot() && seen.start_ns > written_ns {
            self.next = Some(seen.clone());
        }
        self.writer()?.snapshot(seen)
    }

    /// Whether the next snapshot should come soon: the newer file has used half of its room.
    pub fn wants_snapshot(&self) -> bool {
        let begin_bytes = self.newer.begin_bytes;
        let room = self.half_bytes().saturating_sub(begin_bytes);
        self.next.is_none() && self.bytes() > begin_bytes.saturating_add(room / 2)
    }

    /// Memory of the notes and stacks that the next file needs, in bytes.
    #[cfg(test)]
    pub fn carried_bytes(&self) -> u64 {
        self.carried.bytes()
    }

    /// Whether the newer file still has a name.
    pub fn has_name(&self) -> io::Result<bool> {
        self.writer.as_ref().map_or(Ok(true), Writer::has_name)
    }

    /// The content of the newer file so far.
    pub fn summary(&self) -> SessionSummary {
        self.writer.as_ref().map_or(self.newer.summary, Writer::summary)
    }

    /// Name of the older file, if there is one.
    pub fn older(&self) -> Option<PathBuf> {
        self.shelf.older()
    }

    /// Ends the recording in an orderly way and joins the files.
    pub fn finish(mut self, end: WindowEnd) -> io::Result<Kept> {
        let own = of_this(end.clone(), &self.newer);
        self.newer.summary = self.take_writer()?.finish(own)?;
        let newer = self.newer;
        let Some(older) = self.older else {
            return Ok(Kept { summary: newer.summary, ..Kept::default() });
        };
        let mut end = of_this(end, &older);
        for left_out in [older.summary.left_out, newer.summary.left_out] {
            end.left_out = added(end.left_out, left_out);
        }
        let mut joined = Joined::default();
        if self.join(end, &mut joined).is_err() {
            let older_file = self.shelf.older().map_or(Older::Removed, Older::Apart);
            return Ok(Kept { summary: newer.summary, is_cut: !older.is_first, older: older_file });
        }
        let events = newer.summary.events;
        let summary = SessionSummary {
            bytes: joined.bytes,
            events: joined.events,
            left_out: joined.left_out,
            raw_bytes: older.summary.raw_bytes.saturating_add(newer.summary.raw_bytes),
            chunks: older.summary.chunks.saturating_add(newer.summary.chunks),
            first_ns: older.summary.first_ns,
            last_ns: if events == 0 { older.summary.last_ns } else { newer.summary.last_ns },
        };
        Ok(Kept { summary, is_cut: !older.is_first, older: Older::Joined })
    }

    /// Joins the older and the newer file.
    fn join(&mut self, end: WindowEnd, joined: &mut Joined) -> io::Result<()> {
        let (first, second) = self.shelf.read(self.newer.begin_bytes)?;
        let (most_bytes, mut parts) = (self.most_bytes, Some((first, second, end)));
        self.shelf.replace(&mut |out| {
            let Some((first, second, end)) = parts.take() else { return Ok(()) };
            *joined = join(first, second, Capped { out, room: most_bytes }, end, FileLimits::FILE)?;
            Ok(())
        })
    }

    /// Ends the newer file, and begins the next one with the processes and threads of a snapshot.
    fn turn(&mut self, seen: &Facts) -> io::Result<()> {
        let end = WindowEnd {
            end_ns: seen.start_ns,
            loss: self.so_far.loss,
            overhead: self.so_far.overhead,
            ..WindowEnd::default()
        };
        let end = of_this(end, &self.newer);
        self.newer.summary = self.take_writer()?.finish(end)?;
        self.older = Some(self.newer);
        self.carried.forget_before(seen.start_ns, self.carried.latest_stack());
        let facts = self.carried.beginning(seen);
        let disk = self.shelf.turn()?;
        self.begin(disk, &facts)
    }

    /// Begins the next file without a snapshot, because records come faster than /proc can be read. The threads are
    /// then known from records.
    fn turn_without_snapshot(&mut self) -> io::Result<()> {
        self.next = None;
        let start_ns = self.summary().last_ns.saturating_add(1);
        self.turn(&Facts { start_ns, ..Facts::default() })
    }

    /// Begins a file with these facts, and with the known stacks and probes.
    fn begin(&mut self, disk: S::Disk, facts: &Facts) -> io::Result<()> {
        let mut writer = Writer::new(Limited::new(disk, self.half_bytes()), &self.meta)?;
        writer.facts(facts)?;
        for note in self.carried.newest(self.full_bytes() / 4) {
            writer.note(note)?;
        }
        writer.flush()?;
        let summary = writer.summary();
        if summary.bytes > self.full_bytes() {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, NO_ROOM));
        }
        self.newer = Generation {
            begin_bytes: summary.bytes,
            start_ns: facts.start_ns,
            is_first: self.older.is_none(),
            before: self.so_far,
            summary,
        };
        self.writer = Some(writer);
        Ok(())
    }

    fn half_bytes(&self) -> u64 {
        self.most_bytes / 2
    }

    /// Size of a file from which on it only has room for its end, in bytes.
    fn full_bytes(&self) -> u64 {
        self.half_bytes() - self.half_bytes() / 8
    }

    fn bytes(&self) -> u64 {
        self.summary().bytes
    }

    /// Whether the newer file has no room for this many more bytes. Never true before the file's first record, since a
    /// new file would be as full.
    fn is_full_with(&self, bytes: u64) -> bool {
        let pending = self.writer.as_ref().map_or(0, Writer::pending_bytes);
        let bytes = self.bytes().saturating_add(pending).saturating_add(bytes);
        bytes > self.full_bytes() && self.summary().events > 0
    }

    fn writer(&mut self) -> io::Result<&mut Writer<Limited<S::Disk>>> {
        self.writer.as_mut().ok_or_else(no_file)
    }

    fn take_writer(&mut self) -> io::Result<Writer<Limited<S::Disk>>> {
        self.writer.take().ok_or_else(no_file)
    }
}

/// Error text for a file that cannot begin because there is too little room.
const NO_ROOM: &str = "what is known of the program takes half of the size that the file may have";

fn no_file() -> io::Error {
    io::Error::other("beginning the next file has failed before")
}

/// Makes the end of one file: losses and costs since the file's start. Counts for the whole recording are kept only in
/// the first file.
fn of_this(end: WindowEnd, generation: &Generation) -> WindowEnd {
    let Generation { before, is_first, .. } = generation;
    let cost_before = before.overhead.unwrap_or_default();
    WindowEnd {
        loss: end.loss.since(&before.loss),
        overhead: end.overhead.map(|cost| cost.since(&cost_before)),
        samples: end.samples.filter(|_| *is_first),
        kernel_locks: end.kernel_locks.filter(|_| *is_first),
        requests: end.requests.filter(|_| *is_first),
        ..end
    }
}

fn added(one: engine::event::LeftOut, other: engine::event::LeftOut) -> engine::event::LeftOut {
    engine::event::LeftOut {
        facts: one.facts.saturating_add(other.facts),
        notes: one.notes.saturating_add(other.notes),
        stacks: one.stacks.saturating_add(other.stacks),
        end: one.end.saturating_add(other.end),
    }
}

/// Writes up to `room` bytes. Writing more is an error.
struct Capped<W> {
    out: W,
    room: u64,
}

impl<W: Write> Write for Capped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.room = self.room.checked_sub(bytes.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
