//! The thread that keeps what the ring reader delivers: in the session file, in the sliding window, or in both.

use super::destination::{Destination, Written};
use crate::live::analyse::Sliding;
use crate::live::main_loop::Message;
use crate::live::rings::WriterMessage;
use crate::threads::Failure;
use crate::threads::Urgency;
use recording::{Disk, Older};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Instant;
use tokio::sync::mpsc::UnboundedSender;

/// Batches between ring reader and writer: room for about a second in which the disk does not respond.
pub(crate) const BATCHES: usize = 64;

/// If more items than this wait, the writer is behind. If there is no room for more, the kernel's rings fill up.
const BEHIND: usize = BATCHES / 4;

/// The writer thread, with the places where it keeps records.
pub struct WriterThread<D: Disk> {
    /// The session file or ring, for `record`.
    pub destination: Option<Destination<D>>,
    /// The window and its analysis, for `top`.
    pub sliding: Option<Sliding>,
    /// The user is leaving and wants no last report.
    pub skip_last_report: Arc<AtomicBool>,
}

impl<D: Disk> WriterThread<D> {
    /// The thread's body. Returns what the file has, if there is one and it could be finished.
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
                                // Only this value shows that an older part is in another file.
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
        // The main loop may have ended already.
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
