//! The newest part of a recording on disk, in a file that never grows beyond a size.
//!
//! There are two files, each a whole recording of its time and at most half as large. When the newer one is full, it becomes
//! the older one, in place of the one there was, and a new one begins with all that is known by then. At the end both are
//! joined.
//!
//! ```text
//! FILE     ▓▓▓▓▓▓▓▓│                  │
//! older            │▓▓▓▓▓▓▓▓          │▓▓▓▓▓▓▓▓          the one before it is gone
//! FILE             │        ▓▓▓▓▓▓▓▓▓▓│        ▓▓▓▓
//! ```

use super::carried::Carried;
use super::disk::Disk;
use super::event_chunk::EventChunk;
use super::join::{Joined, join};
use super::limited::Limited;
use super::{Limits, Summary, Writer};
use crate::Meta;
use engine::event::{Facts, LossCounts, Note, Overhead, WindowEnd};
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Where the two files are.
pub trait Shelf {
    /// A file that is being written.
    type Disk: Disk;

    /// The newer file becomes the older one, in place of the one there was; returns a new and empty newer one.
    fn turn(&mut self) -> io::Result<Self::Disk>;

    /// Reads the older file from its start, and the newer one from this byte on.
    fn read(&self, newer_from: u64) -> io::Result<(Box<dyn Read>, Box<dyn Read>)>;

    /// What `write` writes takes the place of both files, as the newer one; if anything fails, both stay.
    fn replace(&mut self, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()>;

    /// The name of the older file, if there is one.
    fn older(&self) -> Option<PathBuf>;
}

/// See the module.
pub struct Generations<S: Shelf> {
    shelf: S,
    meta: Meta,
    most_bytes: u64,
    carried: Carried,
    /// `None` only while one ends and the next begins, or when that has failed.
    writer: Option<Writer<Limited<S::Disk>>>,
    newer: Generation,
    older: Option<Generation>,
    /// Losses and costs so far, up to this instant.
    so_far: SoFar,
    /// The newer one ends here as soon as the records reach it.
    next: Option<Facts>,
}

/// One of the two files.
#[derive(Clone, Copy, Debug, Default)]
struct Generation {
    /// Its size when the first record came: what comes before it repeats what the older one has, in bytes.
    begin_bytes: u64,
    /// When it begins (`CLOCK_MONOTONIC` nanoseconds).
    start_ns: u64,
    /// It is the first one of the recording.
    is_first: bool,
    /// What there had been when it began.
    before: SoFar,
    /// What it holds, if it has ended.
    summary: Summary,
}

#[derive(Clone, Copy, Debug, Default)]
struct SoFar {
    loss: LossCounts,
    overhead: Option<Overhead>,
}

/// What there is at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// What the file holds.
    pub summary: Summary,
    /// An older part was given up.
    pub is_cut: bool,
    /// What became of the older file.
    pub older: Older,
}

/// What became of the older file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Older {
    /// The file has it, or there was none.
    #[default]
    Joined,
    /// It is there, under this name: the two could not be joined.
    Apart(PathBuf),
    /// Somebody has removed it.
    Removed,
}

impl<S: Shelf> Generations<S> {
    /// Begins the first file, `disk`, which is new; with the description and the facts. At most `most_bytes` for both.
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

    /// More facts.
    pub fn facts(&mut self, facts: &Facts) -> io::Result<()> {
        self.carried.facts(facts);
        // Text packs to less than half; what begins now has them already.
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
        // No file begins before the latest one.
        self.carried.forget_stacks(self.carried.latest_stack());
        self.writer()?.note(note)
    }

    /// Adds records, later than those that were added before.
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

    /// Writes what is held back as a draft: see [`Writer::draft`].
    pub fn draft(&mut self, open: Option<EventChunk>) -> io::Result<()> {
        self.writer()?.draft(open)
    }

    /// What had been lost, and what recording had cost, by now.
    pub fn so_far(&mut self, loss: LossCounts, overhead: Option<Overhead>) {
        self.so_far = SoFar { loss, overhead: overhead.or(self.so_far.overhead) };
    }

    /// The processes and threads of an instant: a file may begin there, if no later record is written yet.
    pub fn snapshot(&mut self, seen: &Facts) -> io::Result<()> {
        let written_ns = self.summary().last_ns.max(self.newer.start_ns);
        if self.wants_snapshot() && seen.start_ns > written_ns {
            self.next = Some(seen.clone());
        }
        self.writer()?.snapshot(seen)
    }

    /// Whether the next snapshot should come soon: it is time for a new file.
    pub fn wants_snapshot(&self) -> bool {
        let begin_bytes = self.newer.begin_bytes;
        let room = self.half_bytes().saturating_sub(begin_bytes);
        self.next.is_none() && self.bytes() > begin_bytes.saturating_add(room / 2)
    }

    /// Memory of what the next file begins with, in bytes.
    #[cfg(test)]
    pub fn carried_bytes(&self) -> u64 {
        self.carried.bytes()
    }

    /// Whether the newer file still has a name.
    pub fn has_name(&self) -> io::Result<bool> {
        self.writer.as_ref().map_or(Ok(true), Writer::has_name)
    }

    /// What the newer file holds so far.
    pub fn summary(&self) -> Summary {
        self.writer.as_ref().map_or(self.newer.summary, Writer::summary)
    }

    /// The name of the older file, if there is one.
    pub fn older(&self) -> Option<PathBuf> {
        self.shelf.older()
    }

    /// Ends the recording in an orderly way: there is one file.
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
        let summary = Summary {
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

    /// Both files become one.
    fn join(&mut self, end: WindowEnd, joined: &mut Joined) -> io::Result<()> {
        let (first, second) = self.shelf.read(self.newer.begin_bytes)?;
        let (most_bytes, mut parts) = (self.most_bytes, Some((first, second, end)));
        self.shelf.replace(&mut |out| {
            let Some((first, second, end)) = parts.take() else { return Ok(()) };
            *joined = join(first, second, Capped { out, room: most_bytes }, end, Limits::FILE)?;
            Ok(())
        })
    }

    /// The newer file has ended; the next one begins with these processes and threads.
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

    /// Records come faster than /proc can be read: what the threads did is known from their first records on.
    fn turn_without_snapshot(&mut self) -> io::Result<()> {
        self.next = None;
        let start_ns = self.summary().last_ns.saturating_add(1);
        self.turn(&Facts { start_ns, ..Facts::default() })
    }

    /// Begins a file with these facts, and with what is known of stacks and probes.
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

    /// From here on there is room for nothing but an end.
    fn full_bytes(&self) -> u64 {
        self.half_bytes() - self.half_bytes() / 8
    }

    fn bytes(&self) -> u64 {
        self.summary().bytes
    }

    /// Whether so much more has no room, and the next file may have: without a record it would begin again where it begins.
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

/// Why a file cannot begin.
const NO_ROOM: &str = "what is known of the program takes half of the size that the file may have";

fn no_file() -> io::Error {
    io::Error::other("beginning the next file has failed before")
}

/// An end whose losses and costs are those since this one began. What is counted for all of the recording is of no part of it.
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

/// Takes as many bytes as there is room for.
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
