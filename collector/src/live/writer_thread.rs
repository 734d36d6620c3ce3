//! The thread that keeps what the reader delivers: in the session file, in the sliding window, or in both.

use super::destination::{Destination, Written};
use super::message::Message;
use super::ring_reader::WriterMessage;
use super::sliding::Sliding;
use crate::threads::Failure;
use crate::threads::Urgency;
use recording::{Disk, Older};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Instant;
use tokio::sync::mpsc::UnboundedSender;

/// Batches between the reader and the writer: a hiccup of the disk of about a second.
pub(super) const BATCHES: usize = 64;

/// More waiting items than this are too many: the kernel's rings fill up when there is no room for more.
const BEHIND: usize = BATCHES / 4;

/// Where the reader's feed goes.
pub struct WriterThread<D: Disk> {
    /// The session file or what there is in its place, for `record`.
    pub destination: Option<Destination<D>>,
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
    ) -> Option<Written> {
        let mut looked = Instant::now();
        let mut written = None;
        let mut urgency = Urgency::of_this_thread();
        let mut waiting = VecDeque::new();
        while let Some(item) = waiting.pop_front().or_else(|| feed.recv().ok()) {
            let room = BEHIND.saturating_sub(waiting.len());
            waiting.extend(feed.try_iter().take(room));
            urgency.hurry(waiting.len() >= BEHIND);
            if let Some(sliding) = &mut self.sliding {
                sliding.take(&item, &self.skip_last_report);
            }
            if let Some(mut destination) = self.destination.take() {
                match destination.take(item, &mut looked, messages) {
                    Ok(None) => self.destination = Some(destination),
                    Ok(Some(end)) => {
                        let so_far = destination.so_far();
                        match destination.finish(end) {
                            Ok(done) => written = Some(done),
                            Err(error) => {
                                // What is in another file is known from nowhere else.
                                written = Some(so_far).filter(|so_far| so_far.older != Older::Joined);
                                tell(messages, &error);
                            }
                        }
                    }
                    Err(error) => {
                        written = Some(destination.so_far());
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
        written
    }
}

fn tell(messages: &UnboundedSender<Message>, error: &std::io::Error) {
    let _ = messages.send(Message::Failed(Failure { part: "the session file", text: error.to_string() }));
}
