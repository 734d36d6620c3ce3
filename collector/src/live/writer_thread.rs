//! The thread that keeps what the reader delivers: in the session file, in the sliding window, or in both.

use super::message::Message;
use super::ring_reader::WriterMessage;
use super::sliding::Sliding;
use crate::threads::Failure;
use crate::threads::Urgency;
use engine::event::{Facts, WindowEnd};
use recording::{Disk, Summary, Writer};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// Batches between the reader and the writer: a hiccup of the disk of about a second.
pub(super) const BATCHES: usize = 64;

/// How often to check whether the file is still there.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// More waiting items than this are too many: the kernel's rings fill up when there is no room for more.
const BEHIND: usize = BATCHES / 4;

/// Where the reader's feed goes.
pub struct WriterThread<D: Disk> {
    /// The session file, for `record`.
    pub writer: Option<Writer<D>>,
    /// The window and its analysis, for `top`.
    pub sliding: Option<Sliding>,
    /// No last report is wanted: the user is leaving.
    pub skip_last_report: Arc<AtomicBool>,
}

impl<D: Disk> WriterThread<D> {
    /// The thread's whole life. Returns what the file holds, if there is one and it could be finished.
    pub fn run(
        mut self,
        feed: &Receiver<WriterMessage>,
        messages: &UnboundedSender<Message>,
    ) -> Option<Summary> {
        let mut looked = Instant::now();
        let mut summary = None;
        let mut urgency = Urgency::of_this_thread();
        let mut waiting = VecDeque::new();
        while let Some(item) = waiting.pop_front().or_else(|| feed.recv().ok()) {
            let room = BEHIND.saturating_sub(waiting.len());
            waiting.extend(feed.try_iter().take(room));
            urgency.hurry(waiting.len() >= BEHIND);
            if let Some(sliding) = &mut self.sliding {
                sliding.take(&item, &self.skip_last_report);
            }
            if let Some(mut writer) = self.writer.take() {
                match keep(&mut writer, item, &mut looked) {
                    Ok(None) => self.writer = Some(writer),
                    Ok(Some(end)) => match writer.finish(end) {
                        Ok(done) => summary = Some(done),
                        Err(error) => tell(messages, &error),
                    },
                    Err(error) => {
                        summary = Some(writer.summary());
                        tell(messages, &error);
                    }
                }
            }
        }
        // The loop may have left already.
        let _ = messages.send(Message::Detached);
        if let Some(sliding) = self.sliding {
            sliding.finish(self.skip_last_report.load(Ordering::Relaxed));
        }
        let _ = messages.send(Message::Finished);
        summary
    }
}

/// Writes one item; returns the end, if that is what it was.
fn keep<D: Disk>(
    writer: &mut Writer<D>,
    item: WriterMessage,
    looked: &mut Instant,
) -> std::io::Result<Option<WindowEnd>> {
    match item {
        WriterMessage::Batch(batch) => {
            // Stacks come before the samples that name them.
            for note in &batch.notes {
                writer.note(note)?;
            }
            for record in &batch.records {
                writer.push(record)?;
            }
            for chunk in batch.chunks {
                writer.events(chunk)?;
            }
            writer.draft(batch.open)?;
            if looked.elapsed() >= LOOK_EVERY {
                *looked = Instant::now();
                if !writer.has_name()? {
                    return Err(std::io::Error::new(
                        std::io::ErrorKind::NotFound,
                        "it was removed meanwhile",
                    ));
                }
            }
        }
        WriterMessage::Functions(functions) => writer.facts(&Facts { functions, ..Facts::default() })?,
        WriterMessage::Modules(modules) => writer.facts(&Facts { modules, ..Facts::default() })?,
        WriterMessage::Mappings(mappings) => writer.facts(&Facts { mappings, ..Facts::default() })?,
        WriterMessage::Code(code) if code.is_empty() => {}
        WriterMessage::Code(code) => writer.facts(&Facts { code, ..Facts::default() })?,
        WriterMessage::Addresses(addresses) if addresses.is_empty() => {}
        WriterMessage::Addresses(addresses) => writer.facts(&Facts { addresses, ..Facts::default() })?,
        WriterMessage::Snapshot(seen) => writer.snapshot(&seen)?,
        WriterMessage::End(end) => return Ok(Some(end)),
    }
    Ok(None)
}

fn tell(messages: &UnboundedSender<Message>, error: &std::io::Error) {
    let _ = messages.send(Message::Failed(Failure { part: "the session file", text: error.to_string() }));
}
