//! Snapshots of the target's processes and threads, taken regularly while recording. A reader of a part of a long recording
//! begins at a snapshot and needs nothing before it.

use super::ring_reader::WriterMessage;
use crate::live::main_loop::Message;
use crate::threads;
use engine::event::Facts;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// A function that reads the present processes and threads; [`Facts::start_ns`] is the time of reading.
pub type TakeSnapshot = Box<dyn FnMut(&[u32]) -> Facts + Send>;

/// Events between two snapshots: as many as a part of a recording has, which begins at one.
const EVENTS: u64 = 250_000;
/// Time between two snapshots, if there were events.
const EVERY: Duration = Duration::from_secs(10);
/// Snapshots take at most this fraction (one part in `SHARE`) of the time: there are fewer for a target with very many
/// threads.
const SHARE: u32 = 200;

/// Requests snapshots of threads when they are due.
pub struct ThreadSnapshots {
    asks: SyncSender<Vec<u32>>,
    events: u64,
    asked: Instant,
}

impl ThreadSnapshots {
    /// Starts a thread that sends snapshots to the ring reader: with thousands of threads, reading /proc takes long.
    pub fn start(
        take: TakeSnapshot,
        feed: Sender<WriterMessage>,
        messages: UnboundedSender<Message>,
    ) -> io::Result<ThreadSnapshots> {
        let (asks, asked) = sync_channel(1);
        threads::spawn("snapshots", messages, (), move || serve(&asked, take, &feed))?;
        Ok(ThreadSnapshots { asks, events: 0, asked: Instant::now() })
    }

    /// Requests a snapshot of these processes, if one is due after this number of events.
    pub fn look(&mut self, events: u64, pids: impl FnOnce() -> Vec<u32>) {
        let new = events.saturating_sub(self.events);
        if new < EVENTS && (new == 0 || self.asked.elapsed() < EVERY) {
            return;
        }
        // While a snapshot is being taken, no further one is queued.
        if self.asks.try_send(pids()).is_ok() {
            (self.events, self.asked) = (events, Instant::now());
        }
    }

    /// Asks for a snapshot, due or not.
    pub fn take_now(&mut self, pids: Vec<u32>) {
        if self.asks.try_send(pids).is_ok() {
            self.asked = Instant::now();
        }
    }
}

fn serve(asked: &Receiver<Vec<u32>>, mut take: TakeSnapshot, feed: &Sender<WriterMessage>) {
    threads::behind_others();
    let mut not_before = Instant::now();
    for pids in asked {
        let began = Instant::now();
        if began < not_before {
            continue;
        }
        let seen = take(&pids);
        not_before = Instant::now() + began.elapsed() * SHARE;
        if !seen.threads.is_empty() && feed.send(WriterMessage::Snapshot(Box::new(seen))).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use tokio::sync::mpsc::unbounded_channel;

    #[test]
    fn a_thread_snapshot_is_taken_after_many_events_only() {
        let (feed, fed) = channel();
        let take: TakeSnapshot = Box::new(|pids| {
            let threads = pids.iter().map(|&pid| engine::event::ThreadFact { pid, ..Default::default() });
            Facts { threads: threads.collect(), ..Facts::default() }
        });
        let mut snapshots = ThreadSnapshots::start(take, feed, unbounded_channel().0).expect("a thread");
        snapshots.look(EVENTS - 1, || panic!("not due"));
        snapshots.look(EVENTS, || vec![7]);
        let WriterMessage::Snapshot(seen) = fed.recv().expect("one") else { panic!("something else") };
        assert_eq!(seen.threads[0].pid, 7);
        snapshots.asked = Instant::now().checked_sub(EVERY).expect("it runs longer");
        snapshots.look(EVENTS, || panic!("nothing has happened"));
        snapshots.look(EVENTS + 1, Vec::new);
        drop(snapshots);
        assert!(fed.recv().is_err(), "nobody is left, and it ends");
    }

    #[test]
    fn slow_thread_snapshots_are_taken_rarely() {
        let (feed, fed) = channel();
        let (asks, asked) = sync_channel(8);
        let take: TakeSnapshot = Box::new(|_| {
            std::thread::sleep(Duration::from_millis(20));
            Facts { threads: vec![Default::default()], ..Facts::default() }
        });
        (0..5).for_each(|_| asks.send(vec![1]).expect("room"));
        drop(asks);
        serve(&asked, take, &feed);
        drop(feed);
        assert_eq!(fed.iter().count(), 1, "the next one would be due after 4 s");
    }
}
