//! The thread that looks at goroutines of Go programs.

use super::source::EventSource;
use crate::live::main_loop::Message;
use crate::threads;
use capture::goroutines::{Counts, GoProgram, NotLooked};
use engine::event::{GoroutineFact, Note, NoteKind};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use symbols::Parsers;
use tokio::sync::mpsc::UnboundedSender;

/// Shortest time between two looks.
const EVERY: Duration = Duration::from_millis(5);
/// The time between two looks is at least this many times as long as a look takes.
const TIMES: u32 = 100;
/// Length of a period of a live window, which has the last one or two.
const PERIOD: Duration = Duration::from_secs(2);
/// Largest number of processes that are looked at.
const MOST_PROCESSES: usize = 64;
/// Largest number of stacks whose names were asked for that are remembered.
const MOST_ASKED: usize = 1 << 14;

enum Ask {
    /// A process has new code.
    Process(u32),
    /// The counts so far are wanted.
    Counts(Sender<Vec<GoroutineFact>>),
}

/// Sends processes to the thread and receives counts.
#[derive(Debug)]
pub(super) struct GoroutineLooks {
    asks: Sender<Ask>,
    asked: HashSet<(u32, Vec<u64>)>,
}

impl GoroutineLooks {
    /// Looks at the processes of a source; `None` if the source is not live. `forgets`: counts are of the last seconds only.
    pub(super) fn of(
        source: &dyn EventSource,
        forgets: bool,
        messages: &UnboundedSender<Message>,
    ) -> Option<GoroutineLooks> {
        let started = source.is_live().then(|| GoroutineLooks::start(forgets, messages.clone()))?;
        started.inspect_err(|error| log::warn!("goroutines are not looked at: {error}")).ok()
    }

    fn start(forgets: bool, news: UnboundedSender<Message>) -> io::Result<GoroutineLooks> {
        let (asks, inbox) = channel();
        threads::spawn("goroutines", news, (), move || {
            threads::before_others();
            Looks { forgets, programs: HashMap::new(), parsers: Parsers::of_longpole() }.run(&inbox);
        })?;
        Ok(GoroutineLooks { asks, asked: HashSet::new() })
    }

    /// Processes that have new code.
    pub(super) fn processes(&self, pids: impl Iterator<Item = u32>) {
        let pids: HashSet<u32> = pids.collect();
        for pid in pids {
            // A thread that has ended has reported the reason itself.
            let _ = self.asks.send(Ask::Process(pid));
        }
    }

    /// The counts so far, and stacks in them that were not returned before, which need names. Waits at most `patience`: the
    /// thread may be opening a large program, and meanwhile rings fill up.
    pub(super) fn counts(&mut self, patience: Duration) -> (Vec<GoroutineFact>, Vec<Note>) {
        let (answer, counts) = channel();
        let _ = self.asks.send(Ask::Counts(answer));
        let facts = counts.recv_timeout(patience).unwrap_or_default();
        if self.asked.len() >= MOST_ASKED {
            self.asked.clear();
        }
        let mut notes = Vec::new();
        for fact in &facts {
            let starts = fact.starts.iter().map(|of| vec![of.start]);
            for frames in starts.chain(fact.acts.iter().map(|act| act.frames.clone())) {
                if !frames.is_empty() && self.asked.insert((fact.pid, frames.clone())) {
                    let kind = NoteKind::Stack { id: 0, pid: fact.pid, frames, cut: false };
                    notes.push(Note { time_ns: u64::MAX, kind });
                }
            }
        }
        (facts, notes)
    }
}

struct Looks {
    forgets: bool,
    programs: HashMap<u32, Looked>,
    parsers: Parsers,
}

/// A process with its counts. One that has ended keeps them.
#[derive(Default)]
struct Looked {
    program: Option<GoProgram>,
    counts: Counts,
    /// Counts of the period before.
    before: Option<Counts>,
}

impl Looks {
    fn run(mut self, inbox: &Receiver<Ask>) {
        let (mut due, mut period) = (Instant::now(), Instant::now());
        loop {
            let is_idle = self.programs.values().all(|looked| looked.program.is_none());
            let received = match is_idle {
                true => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => inbox.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match received {
                Ok(Ask::Process(pid)) => self.open(pid),
                Ok(Ask::Counts(answer)) => _ = answer.send(self.facts()),
                Err(RecvTimeoutError::Timeout) => {
                    let began = Instant::now();
                    self.programs.values_mut().for_each(Looked::look);
                    due = Instant::now() + EVERY.max(began.elapsed().saturating_mul(TIMES));
                    if self.forgets && period.elapsed() >= PERIOD {
                        period = Instant::now();
                        self.programs.values_mut().for_each(Looked::next_period);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn open(&mut self, pid: u32) {
        let is_known = self.programs.get(&pid).is_some_and(|looked| looked.program.is_some());
        if is_known || (self.programs.len() >= MOST_PROCESSES && !self.programs.contains_key(&pid)) {
            return;
        }
        match GoProgram::of(pid, &self.parsers) {
            Ok(program) => self.programs.entry(pid).or_default().program = Some(program),
            Err(NotLooked::NotGo) => {}
            Err(reason) => log::debug!("goroutines of process {pid} are not looked at: {reason:?}"),
        }
    }

    fn facts(&self) -> Vec<GoroutineFact> {
        let fact = |(pid, looked): (&u32, &Looked)| {
            let now = looked.counts.fact(*pid);
            match &looked.before {
                // The first looks of a period are too few.
                Some(before) if now.as_ref().is_none_or(|now| now.looks < before.looks() / 2) => {
                    before.fact(*pid)
                }
                _ => now,
            }
        };
        let mut facts: Vec<GoroutineFact> = self.programs.iter().filter_map(fact).collect();
        facts.sort_unstable_by_key(|fact| fact.pid);
        facts
    }
}

impl Looked {
    fn look(&mut self) {
        if let Some(program) = &mut self.program
            && program.look(&mut self.counts).is_none()
        {
            self.program = None;
        }
    }

    fn next_period(&mut self) {
        self.before = Some(std::mem::take(&mut self.counts));
    }
}
