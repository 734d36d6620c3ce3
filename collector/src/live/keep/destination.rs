//! The places where `record` keeps records: all of them in a file, the newest part in a file, or the last stretch in
//! memory.

use super::ring_file::RingFile;
use super::saved::Saved;
use crate::exit::say;
use crate::live::main_loop::Message;
use crate::live::rings::{Batch, WriterMessage};
use crate::present::style;
use engine::event::{Facts, GapReason, Note, NoteKind, WindowEnd};
use recording::{Disk, Generations, Kept, Older, SessionSummary, TwoFiles, Writer};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// Time between checks that the file still has its name.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// See the module.
pub enum Destination<D: Disk = File> {
    /// A file with the complete recording.
    Whole(Box<Writer<D>>),
    /// A file with the newest part, which stays below a size.
    Newest(Box<Generations<TwoFiles>>),
    /// The last stretch, in memory.
    Ring(Box<RingFile>),
}

/// Whether recording from inside goes on after a pause: such a note is made at the pause's end.
fn ends_a_pause(note: &Note) -> bool {
    matches!(note.kind, NoteKind::Gap { reason: GapReason::OperationsPaused, .. })
}

/// What was written, at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written {
    /// Counts of what the file contains.
    pub summary: SessionSummary,
    /// The file's name, if it was not known before.
    pub path: Option<PathBuf>,
    /// Which part of the recording is in the file.
    pub part: Part,
    /// Where the older part is, if the recording is in two files.
    pub older: Older,
}

/// The part of a recording that was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// The complete recording.
    #[default]
    All,
    /// The last stretch.
    Last {
        /// Length of the kept part.
        length: Duration,
        /// Whether the part is shorter than asked for, because there was no room.
        is_cut: bool,
    },
}

impl<D: Disk> From<Writer<D>> for Destination<D> {
    fn from(writer: Writer<D>) -> Destination<D> {
        Destination::Whole(Box::new(writer))
    }
}

impl<D: Disk> Destination<D> {
    /// Keeps one item. Returns the end of the window if the item is the end. `looked`: time of the file's last check.
    pub fn take(
        &mut self,
        item: WriterMessage,
        looked: &mut Instant,
        messages: &UnboundedSender<Message>,
    ) -> io::Result<Option<WindowEnd>> {
        let facts = match item {
            WriterMessage::Batch(batch) => {
                self.batch(batch, messages)?;
                self.look(looked)?;
                return Ok(None);
            }
            WriterMessage::Snapshot(seen) => {
                self.snapshot(&seen)?;
                return Ok(None);
            }
            WriterMessage::End(end) => return Ok(Some(end)),
            // A file has the requests at its end.
            WriterMessage::Requests(_) | WriterMessage::Awaited(_) | WriterMessage::Goroutines(_) => {
                return Ok(None);
            }
            WriterMessage::Functions(functions) => Facts { functions, ..Facts::default() },
            WriterMessage::Modules(modules) => Facts { modules, ..Facts::default() },
            WriterMessage::Mappings(mappings) => Facts { mappings, ..Facts::default() },
            WriterMessage::Code(code) => Facts { code, ..Facts::default() },
            WriterMessage::Addresses(addresses) => Facts { addresses, ..Facts::default() },
        };
        if facts != Facts::default() {
            self.facts(&facts)?;
        }
        Ok(None)
    }

    fn facts(&mut self, facts: &Facts) -> io::Result<()> {
        match self {
            Destination::Whole(writer) => writer.facts(facts),
            Destination::Newest(generations) => generations.facts(facts),
            Destination::Ring(ring) => {
                ring.facts(facts);
                Ok(())
            }
        }
    }

    fn snapshot(&mut self, seen: &Facts) -> io::Result<()> {
        match self {
            Destination::Whole(writer) => writer.snapshot(seen),
            Destination::Newest(generations) => generations.snapshot(seen),
            Destination::Ring(ring) => {
                ring.snapshot(seen);
                Ok(())
            }
        }
    }

    fn batch(&mut self, batch: Batch, messages: &UnboundedSender<Message>) -> io::Result<()> {
        match self {
            Destination::Whole(writer) => {
                // Stacks must precede the samples that refer to them.
                batch.notes.iter().try_for_each(|note| writer.note(note))?;
                if batch.notes.iter().any(ends_a_pause) {
                    // A part of the recording begins at a snapshot and has no pause. The main loop may have ended already.
                    let _ = messages.send(Message::SnapshotWanted);
                }
                batch.records.iter().try_for_each(|record| writer.push(record))?;
                batch.chunks.into_iter().try_for_each(|chunk| writer.events(chunk))?;
                writer.draft(batch.open)
            }
            Destination::Newest(generations) => {
                if batch.complete_to_ns > 0 {
                    generations.so_far(batch.loss, batch.overhead);
                }
                batch.notes.iter().try_for_each(|note| generations.note(note))?;
                batch.chunks.into_iter().try_for_each(|chunk| generations.events(chunk))?;
                if generations.wants_snapshot() {
                    // The main loop may have ended already.
                    let _ = messages.send(Message::SnapshotWanted);
                }
                generations.draft(batch.open)
            }
            Destination::Ring(ring) => {
                if let Some(reason) = ring.batch(batch)? {
                    let saved = ring.save(reason);
                    let _ = messages.send(Message::Saved(saved.map_err(Into::into).map(Box::new)));
                }
                Ok(())
            }
        }
    }

    /// An error if the file was deleted, since a recording in it could not be found any more.
    fn look(&self, looked: &mut Instant) -> io::Result<()> {
        if looked.elapsed() < LOOK_EVERY {
            return Ok(());
        }
        *looked = Instant::now();
        let has_name = match self {
            Destination::Whole(writer) => writer.has_name()?,
            Destination::Newest(generations) => generations.has_name()?,
            Destination::Ring(_) => true,
        };
        if has_name {
            Ok(())
        } else {
            Err(io::Error::new(io::ErrorKind::NotFound, "another program removed the file"))
        }
    }

    /// Ends the recording.
    pub fn finish(self, end: WindowEnd) -> io::Result<Written> {
        match self {
            Destination::Whole(writer) => Ok(Written { summary: writer.finish(end)?, ..Written::default() }),
            Destination::Newest(generations) => {
                if let Some(older) = generations.older() {
                    let older = older.display();
                    let text = format!("joining both files; a second ^C leaves the older part in {older}");
                    say(style::for_stderr().text(&text));
                }
                let Kept { summary, is_cut, older } = generations.finish(end)?;
                let length = Duration::from_nanos(summary.last_ns.saturating_sub(summary.first_ns));
                let is_all = !is_cut && older == Older::Joined;
                let part = if is_all { Part::All } else { Part::Last { length, is_cut } };
                Ok(Written { summary, path: None, part, older })
            }
            Destination::Ring(ring) => {
                let Saved { path, summary, length, is_cut, reason: _ } =
                    ring.finish(end).map_err(io::Error::other)?;
                let part = Part::Last { length, is_cut };
                Ok(Written { summary, path: Some(path), part, older: Older::Joined })
            }
        }
    }

    /// What the file contains after a failure.
    pub fn so_far(&self) -> Written {
        let (summary, older) = match self {
            Destination::Whole(writer) => (writer.summary(), None),
            Destination::Newest(generations) => (generations.summary(), generations.older()),
            Destination::Ring(_) => (SessionSummary::default(), None),
        };
        Written { summary, older: older.map_or(Older::Joined, Older::Apart), ..Written::default() }
    }
}
