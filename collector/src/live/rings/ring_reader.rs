//! The thread that empties the rings. It wakes by the clock, never for each event: a wake-up costs the target fifty
//! times as much as the record itself.

use super::context_places::ContextPlaces;
use super::decoder::{Batch, Decoder};
use super::goroutine_looks::GoroutineLooks;
use super::new_mappings::mapped;
use super::reader_commands::CommandReceiver;
use super::request_reader::RequestReader;
use super::source::Late;
use super::source::{EventSource, Probed};
use super::trigger::Triggers;
use crate::live::main_loop::Message;
use crate::live::naming::{Ask, CodeNamer, Namer, PollIntervals};
use crate::live::probes::AttachResults;
use crate::tui::LiveCounts;
use engine::event::{
    AddressFact, AwaitedFact, CodeFact, Facts, FunctionFact, GapReason, GoroutineFact, LeftOut, LossCounts,
    MappingFact, ModuleFact, NoteKind, OtherPrograms, Overhead, Requests, ThreadFact, WindowEnd,
};
use probe_abi::SyncFamily;
use std::collections::VecDeque;
use std::sync::mpsc::{RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// A command of the main loop.
pub enum Command {
    /// Read what is in the rings, then detach.
    Stop {
        /// Processes that are still alive.
        pids: Vec<u32>,
    },
}

/// A message to the writer thread.
#[derive(Debug)]
pub enum WriterMessage {
    /// Records and notes.
    Batch(Batch),
    /// Functions that have probes from now on.
    Functions(Vec<FunctionFact>),
    /// Binaries of functions with probes.
    Modules(Vec<ModuleFact>),
    /// Mappings of sampled processes.
    Mappings(Vec<MappingFact>),
    /// Names of addresses.
    Addresses(Vec<AddressFact>),
    /// Names of code of sampled stacks.
    Code(Vec<CodeFact>),
    /// Requests over sockets since the start, for the window.
    Requests(Requests),
    /// What threads have slept for since the start, for the window.
    Awaited(Vec<AwaitedFact>),
    /// What goroutines have done in the last seconds, for the window.
    Goroutines(Vec<GoroutineFact>),
    /// The processes and threads of an instant.
    Snapshot(Box<Facts>),
    /// The end: nothing more comes.
    End(WindowEnd),
}

/// Reads the threads of processes that are alive at the end, and what other programs used of the CPUs; called once,
/// right after the end.
pub type AtEnd = Box<dyn FnOnce(&[u32]) -> (Vec<ThreadFact>, Option<OtherPrograms>) + Send>;

/// If a turn has more records than this, the next turn comes sooner; if it has less than a quarter, later.
const TARGET_PER_TURN: usize = 8_192;
const SHORTEST: Duration = Duration::from_millis(10);
/// How long records are collected, if there are few, before they are passed on: waking the writer for each turn is not
/// worth it. A record leaves its ring after at most 100 ms, and its place in time is certain 100 ms later. So a killed
/// longpole loses less than the last 250 ms.
const HAND_ON_EVERY: Duration = Duration::from_millis(90);
/// The reported cost of recording is that of the last 10 seconds.
const RECENT_NS: u64 = 10_000_000_000;
/// How long a source that writes records faster than they are read is still read at the end.
const LONGEST_STOP: Duration = Duration::from_secs(2);

/// How long the end waits for unfinished stacks: for a file, which should be complete. A live screen does not wait as
/// long, since it has shown most of them.
const LAST_WAIT: Duration = Duration::from_secs(15);
const LAST_WAIT_OF_A_VIEW: Duration = Duration::from_millis(500);

/// The consumer of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A live screen, which gets records as they come.
    Records,
    /// The session file only.
    Chunks,
}

/// The thread's body: runs until [`Command::Stop`], the source's own end, or the receiver ends.
pub fn run(
    mut source: Box<dyn EventSource>,
    (poll_intervals, wanted, triggers): (PollIntervals, Wanted, Option<Triggers>),
    commands: &CommandReceiver,
    attach_results: AttachResults,
    (feed, messages): (&SyncSender<WriterMessage>, &UnboundedSender<Message>),
    at_end: AtEnd,
) {
    let decoder = Decoder::new(&*source).with_triggers(triggers);
    let mut reader = RingReader {
        decoder: if wanted == Wanted::Chunks { decoder.for_the_file() } else { decoder },
        namer: namer(&*source, poll_intervals, messages),
        code: code_namer(&*source, poll_intervals, messages),
        goroutines: GoroutineLooks::of(&*source, wanted == Wanted::Records, messages),
        contexts: ContextPlaces::of(&*source, messages),
        costs: VecDeque::from([Overhead::default()]),
        counted: None,
        counts_every: poll_intervals.counts,
        handed_on: Instant::now(),
        waiting: 0,
        interval: SHORTEST.min(source.longest_pause()),
        requests: (wanted == Wanted::Records).then(RequestReader::default),
        last_wait: match wanted {
            Wanted::Chunks => LAST_WAIT,
            Wanted::Records => LAST_WAIT_OF_A_VIEW,
        },
    };
    let mut alive = None;
    loop {
        commands.begin_turn();
        let Some(turn) =
            reader.turn(&mut *source, &attach_results, feed, messages).filter(|turn| *turn != Turn::Ended)
        else {
            break;
        };
        // If the rings have more, do not pause, but see whether there is a command.
        let pause = if turn == Turn::More { Duration::ZERO } else { reader.interval };
        match commands.next(pause) {
            Ok(Command::Stop { pids }) => {
                alive = Some(pids);
                break;
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    reader.end(source, attach_results, feed, messages, move || {
        let (threads, others) = at_end(alive.as_deref().unwrap_or_default());
        // The set of recorded processes is known only if the main loop has sent it.
        (threads, others.filter(|_| alive.is_some()))
    });
}

struct RingReader {
    decoder: Decoder,
    namer: Option<Namer>,
    code: Option<CodeNamer>,
    goroutines: Option<GoroutineLooks>,
    contexts: Option<ContextPlaces>,
    /// Costs of recording at the last reads, the oldest from some seconds ago.
    costs: VecDeque<Overhead>,
    counted: Option<Instant>,
    counts_every: Duration,
    /// Time at which records were last passed on, and number of records read since then.
    handed_on: Instant,
    waiting: usize,
    interval: Duration,
    /// Reads the requests, if the window wants them.
    requests: Option<RequestReader>,
    /// How long the end waits for stacks whose unwind tables are still being read.
    last_wait: Duration,
}

#[derive(PartialEq, Eq)]
enum Turn {
    /// The rings are empty.
    Empty,
    /// The rings have more.
    More,
    /// The source has ended.
    Ended,
}

impl RingReader {
    /// Empties the rings once, and passes on records that may leave. `None`: the receiver has ended.
    fn turn(
        &mut self,
        source: &mut dyn EventSource,
        attach_results: &AttachResults,
        feed: &SyncSender<WriterMessage>,
        messages: &UnboundedSender<Message>,
    ) -> Option<Turn> {
        let drained = self.decoder.drain(source);
        self.hand_on_mappings(source, feed)?;
        for done in attach_results.take() {
            feed.send(done).ok()?;
        }
        for change in self.decoder.take_process_changes() {
            self.contexts.iter().for_each(|contexts| contexts.see(&change));
            messages.send(Message::Process(change)).ok()?;
        }
        if let Some(namer) = &self.code {
            let names = namer.take();
            if !names.is_empty() {
                feed.send(WriterMessage::Code(names)).ok()?;
            }
        }
        let mut asks = self.decoder.take_asks();
        for change in mapped(source.take_loaded()) {
            asks.push(Ask::Mapped { pid: change.pid });
            self.contexts.iter().for_each(|contexts| contexts.see(&change));
            messages.send(Message::Process(change)).ok()?;
        }
        self.contexts.iter_mut().for_each(|contexts| contexts.tell(source));
        if let Some(namer) = &self.namer {
            namer.ask(asks);
            let names = namer.take();
            if !names.is_empty() {
                feed.send(WriterMessage::Addresses(names)).ok()?;
            }
        }
        self.waiting = self.waiting.saturating_add(drained.records);
        if drained.ended || self.waiting >= TARGET_PER_TURN || self.handed_on.elapsed() >= HAND_ON_EVERY {
            (self.waiting, self.handed_on) = (0, Instant::now());
            let batch = self.decoder.release(source);
            self.see_stacks(&batch);
            hand_on(batch, feed, messages)?;
        }
        if let Some(tally) = self.decoder.tally(Instant::now()) {
            messages.send(Message::Tallied(tally)).ok()?;
        }
        if self.counted.is_none_or(|at| at.elapsed() >= self.counts_every) {
            self.counted = Some(Instant::now());
            self.count(source, messages);
            let goroutines = self.requests.is_some().then(|| self.count_goroutines(SHORTEST));
            if let Some(goroutines) = goroutines.filter(|goroutines| !goroutines.is_empty()) {
                feed.send(WriterMessage::Goroutines(goroutines)).ok()?;
            }
        }
        if let Some((requests, awaited)) = self.requests.as_mut().and_then(|reader| reader.read(source)) {
            feed.send(WriterMessage::Awaited(awaited)).ok()?;
            if let Some(requests) = requests {
                feed.send(WriterMessage::Requests(requests)).ok()?;
            }
        }
        self.interval = next_interval(self.interval, drained.records, source.longest_pause());
        Some(match drained {
            _ if drained.ended => Turn::Ended,
            _ if drained.more => Turn::More,
            _ => Turn::Empty,
        })
    }

    /// Passes on new mappings. `None`: the receiver has ended.
    fn hand_on_mappings(&self, source: &mut dyn EventSource, feed: &SyncSender<WriterMessage>) -> Option<()> {
        self.hand_on_these(source.take_mappings(), feed)
    }

    fn hand_on_these(&self, mappings: Vec<MappingFact>, feed: &SyncSender<WriterMessage>) -> Option<()> {
        if mappings.is_empty() {
            return Some(());
        }
        if let Some(namer) = &self.code {
            namer.mappings(&mappings);
        }
        if let Some(looks) = &self.goroutines {
            looks.processes(mappings.iter().map(|mapping| mapping.pid));
        }
        feed.send(WriterMessage::Mappings(mappings)).ok()
    }

    /// What goroutines have done, if it is known within `patience`. Asks for the names of their code.
    fn count_goroutines(&mut self, patience: Duration) -> Vec<GoroutineFact> {
        let Some(looks) = &mut self.goroutines else { return Vec::new() };
        let (facts, stacks) = looks.counts(patience);
        if let Some(namer) = &self.code {
            namer.stacks(&stacks);
        }
        facts
    }

    fn see_stacks(&mut self, batch: &Batch) {
        self.decoder.see_stacks(&batch.notes);
        if let Some(namer) = &self.code {
            namer.stacks(&batch.notes);
            namer.locks(self.decoder.take_lock_stacks());
        }
    }

    fn count(&mut self, source: &mut dyn EventSource, messages: &UnboundedSender<Message>) -> LossCounts {
        let probed = source.take_probed();
        let loss = self.decoder.read_loss(source);
        let overhead = source.overhead();
        let counts = LiveCounts {
            samples: source.samples(),
            events: self.decoder.events(),
            loss,
            overhead,
            recent_overhead: overhead.map(|now| self.recent(now)),
        };
        self.decoder.overhead = overhead;
        // The main loop may have ended already: then this message is not needed.
        if probed != Probed::default() {
            let _ = messages.send(Message::Probed(probed));
        }
        let _ = messages.send(Message::Counts(Box::new(counts)));
        loss
    }

    /// The cost of recording in the last seconds.
    fn recent(&mut self, now: Overhead) -> Overhead {
        let from_ns = now.wall_ns.saturating_sub(RECENT_NS);
        while self.costs.get(1).is_some_and(|next| next.wall_ns <= from_ns) {
            self.costs.pop_front();
        }
        self.costs.push_back(now);
        now.since(self.costs.front().unwrap_or(&Overhead::default()))
    }

    fn end(
        mut self,
        mut source: Box<dyn EventSource>,
        attach_results: AttachResults,
        feed: &SyncSender<WriterMessage>,
        messages: &UnboundedSender<Message>,
        at_end: impl FnOnce() -> (Vec<ThreadFact>, Option<OtherPrograms>),
    ) {
        attach_results.stop();
        self.contexts.iter().for_each(ContextPlaces::end);
        let mut end_ns = source.end();
        let (threads, others) = at_end();
        self.decoder.see_threads(&threads);
        for done in attach_results.finish() {
            let _ = feed.send(done);
        }
        let started = Instant::now();
        loop {
            let drained = self.decoder.drain(&mut *source);
            // Mappings must precede the stacks that lie in them.
            let _ = self.hand_on_mappings(&mut *source, feed);
            if drained.ended || drained.complete_to_ns.is_some_and(|to| to >= end_ns) {
                self.decoder.compare(&mut *source, end_ns);
                break;
            }
            if started.elapsed() > LONGEST_STOP {
                // Records are complete only up to where the slowest ring was read.
                end_ns = end_ns.min(self.decoder.watermark_ns());
                break;
            }
            let batch = self.decoder.release(&mut *source);
            self.see_stacks(&batch);
            if hand_on(batch, feed, messages).is_none() {
                break;
            }
        }
        let mut batch = self.decoder.finish(&mut *source, end_ns);
        let loss = self.count(&mut *source, messages);
        let (pending, kernel_locks) = (source.take_pending(), source.take_kernel_locks());
        let (requests, awaited) = (source.take_requests(), source.awaited());
        let goroutines = self.count_goroutines(LAST_WAIT_OF_A_VIEW);
        let overhead = source.overhead();
        // Probes are removed first: reading symbols may take long.
        let Late { notes, mappings, samples } = source.stop(self.last_wait);
        let _ = self.hand_on_these(mappings, feed);
        batch.notes.extend(notes);
        self.see_stacks(&batch);
        // A receiver that has ended has reported the reason itself.
        if hand_on(batch, feed, messages).is_some() {
            if let Some(namer) = self.namer {
                namer.ask(self.decoder.take_asks());
                let _ = feed.send(WriterMessage::Addresses(namer.finish()));
            }
            if let Some(namer) = self.code {
                let _ = feed.send(WriterMessage::Code(namer.finish()));
            }
            let left_out = LeftOut::default();
            let end = WindowEnd {
                end_ns,
                threads,
                loss,
                pending,
                overhead,
                samples,
                kernel_locks,
                requests,
                awaited,
                goroutines,
                others,
                left_out,
            };
            let _ = feed.send(WriterMessage::End(end));
        }
    }
}

/// Starts the thread that names code if the source is live.
fn code_namer(
    source: &dyn EventSource,
    poll_intervals: PollIntervals,
    messages: &UnboundedSender<Message>,
) -> Option<CodeNamer> {
    let started = source.is_live().then(|| CodeNamer::start(poll_intervals, messages.clone()))?;
    started.inspect_err(|error| log::warn!("sampled code gets no names: {error}")).ok()
}

fn namer(
    source: &dyn EventSource,
    poll_intervals: PollIntervals,
    messages: &UnboundedSender<Message>,
) -> Option<Namer> {
    let started =
        source.is_live().then(|| Namer::start(poll_intervals, messages.clone(), source.launched()))?;
    started.inspect_err(|error| log::warn!("locks have addresses in place of names: {error}")).ok()
}

/// The next pause: half the last one after many records, twice the last one after few. It is at most `longest`, and at
/// least `SHORTEST` or a quarter of `longest`.
fn next_interval(last: Duration, records: usize, longest: Duration) -> Duration {
    let next = if records > TARGET_PER_TURN {
        last / 2
    } else if records < TARGET_PER_TURN / 4 {
        last * 2
    } else {
        last
    };
    next.clamp(SHORTEST.min(longest / 4), longest)
}

fn hand_on(
    batch: Batch,
    feed: &SyncSender<WriterMessage>,
    messages: &UnboundedSender<Message>,
) -> Option<()> {
    for note in &batch.notes {
        match &note.kind {
            NoteKind::ProbesOff { functions, .. } => {
                messages.send(Message::TakenOff(functions.clone())).ok()?;
            }
            NoteKind::ProbesOn { functions, .. } => messages.send(Message::BackOn(functions.clone())).ok()?,
            NoteKind::Gap { reason: GapReason::OperationsOff { family, tried }, .. } => {
                if let Some(family) = SyncFamily::from_number(*family) {
                    messages.send(Message::OperationsOff(family, *tried)).ok()?;
                }
            }
            _ => {}
        }
    }
    // Waits while the writer is behind: memory stays bounded, and the kernel counts records that find no room.
    feed.send(WriterMessage::Batch(batch)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::event::Note;

    const LONGEST: Duration = Duration::from_millis(50);

    #[test]
    fn turns_come_sooner_under_load_and_later_when_idle() {
        let mut interval = LONGEST;
        for _ in 0..10 {
            interval = next_interval(interval, 1_000_000, LONGEST);
        }
        assert_eq!(interval, SHORTEST);
        for _ in 0..10 {
            interval = next_interval(interval, 0, LONGEST);
        }
        assert_eq!(interval, LONGEST);
        assert_eq!(next_interval(interval, TARGET_PER_TURN / 2, LONGEST), interval);
        let short = Duration::from_millis(5);
        assert_eq!(next_interval(interval, 0, short), short);
        assert_eq!(next_interval(short, 1_000_000, short), short / 2);
        assert_eq!(next_interval(short / 4, 1_000_000, short), short / 4);
    }

    /// Functions that got their probes back must not be reported as having none.
    #[test]
    fn functions_that_lost_or_regained_probes_are_messages_to_the_main_loop() {
        let (messages, mut inbox) = tokio::sync::mpsc::unbounded_channel();
        let (feed, _fed) = std::sync::mpsc::sync_channel(1);
        let note = |time_ns, kind| Note { time_ns, kind };
        let batch = Batch {
            notes: vec![
                note(1, NoteKind::ProbesOff { functions: vec![3, 4], rates: vec![0, 0] }),
                note(2, NoteKind::ProbesOn { functions: vec![4], pid: None }),
            ],
            ..Batch::default()
        };
        hand_on(batch, &feed, &messages).expect("somebody listens");
        assert!(matches!(inbox.try_recv(), Ok(Message::TakenOff(functions)) if functions == [3, 4]));
        assert!(matches!(inbox.try_recv(), Ok(Message::BackOn(functions)) if functions == [4]));
    }
}
