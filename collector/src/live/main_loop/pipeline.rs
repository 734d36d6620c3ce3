//! The threads that records pass through: ring reader, writer and the thread that attaches probes.

use super::message::Message;
use crate::live::keep::{BATCHES, WriterThread, Written};
use crate::live::naming::PollIntervals;
use crate::live::probes::{AttachThread, attach_thread};
use crate::live::rings::{
    AtEnd, EventSource, ReaderCommands, TakeSnapshot, ThreadSnapshots, Triggers, Wanted, WriterMessage,
    reader_commands, ring_reader,
};
use crate::threads;
use recording::Disk;
use std::io;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use tokio::sync::mpsc::UnboundedSender;

/// See the module.
pub(super) struct Pipeline {
    reader: JoinHandle<()>,
    writer: JoinHandle<Option<Written>>,
}

/// Channels to the pipeline's threads.
pub(super) struct Started {
    /// Commands to the ring reader.
    pub commands: ReaderCommands,
    /// Jobs for the thread that attaches probes.
    pub attaching: AttachThread,
    /// Requests to the thread that reads the target's threads.
    pub snapshots: Option<ThreadSnapshots>,
    /// See [`EventSource::meter`].
    pub meter: Option<Box<dyn Fn() + Send>>,
}

impl Pipeline {
    /// Starts the threads.
    pub fn start<D: Disk + Send + 'static>(
        mut source: Box<dyn EventSource>,
        (at_end, take): (AtEnd, Option<TakeSnapshot>),
        (writer, triggers): (WriterThread<D>, Option<Triggers>),
        poll_intervals: PollIntervals,
        messages: &UnboundedSender<Message>,
    ) -> io::Result<(Pipeline, Started)> {
        let wanted = if writer.sliding.is_some() { Wanted::Records } else { Wanted::Chunks };
        let (feed, fed) = sync_channel::<WriterMessage>(BATCHES);
        let writer_news = messages.clone();
        let writer = threads::spawn("writer", messages.clone(), (), move || writer.run(&fed, &writer_news))?;

        let meter = source.meter();
        let (commands, receiver) = reader_commands(source.bell());
        let (attaching, attach_results) = attach_thread::start(source.attacher(), messages.clone())?;
        let snapshots = take
            .map(|take| ThreadSnapshots::start(take, attach_results.sender(), messages.clone()))
            .transpose()?;
        let reader_news = messages.clone();
        let reader = threads::spawn("rings", messages.clone(), feed.clone(), move || {
            threads::before_others();
            let (how, feed) = ((poll_intervals, wanted, triggers), (&feed, &reader_news));
            ring_reader::run(source, how, &receiver, attach_results, feed, at_end);
        })?;
        Ok((Pipeline { reader, writer }, Started { commands, attaching, snapshots, meter }))
    }

    /// Waits until all records are written. Returns what the file has.
    pub fn finish(self, is_recording: bool) -> Option<Written> {
        // The threads themselves have reported a panic.
        let _ = self.reader.join();
        if is_recording { self.writer.join().ok().flatten() } else { None }
    }
}
