//! The path of a run: where its time went, followed backwards from its end (a method of longpole's own; the line that
//! a person would draw through the chart of the predicted run). A stretch of a thread on a processor begins at the
//! later of two events. Either the thread becomes ready, by its own previous step, a waker, a device or a timer; or
//! another thread leaves the processor. The stretch is a child of the stretch that ends with that event. So the
//! ancestors of a moment fill the time from the start to that moment, without hole or overlap. The ancestors of the
//! run's end are its path: each tick belongs to one of them.
//!
//! O(1) for each event. All in integers.

use super::cpu_accounting::SimulatedState;
use super::result::DelayKind;
use super::run_path::{OnPath, PathStretch, RunPath, Visit};
use crate::program::ObjectId;
use crate::schedule::machine::Why;
use crate::time::Ticks;

/// A moment with its explanation: the stretch `stretch` and its ancestors fill the time up to `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cause {
    stretch: u32,
    end: u64,
}

/// The content of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// The start of the program.
    Start,
    /// A part of a run of compute operations, from this offset in ticks.
    Run { run: u32, from: u64 },
    /// A thread computes the cost of waking other threads.
    Waking,
    /// A delay, in which nothing of the program is computed.
    Delay(DelayKind),
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// Index of the parent stretch.
    above: u32,
    length: u64,
    what: What,
}

/// A thread's present place in the tree.
#[derive(Clone, Copy, Debug)]
struct ThreadCursor {
    cause: Cause,
    /// The thread's present run, and how many ticks of it are done.
    run: u32,
    done: u64,
    /// Processor time charged for waking others and not computed yet.
    debt: u64,
    spins_for: Option<ObjectId>,
    /// The kind under which the latency counts when the thread next gets a processor.
    latency: DelayKind,
    /// The moment that the present wait by the clock is measured from; `None`: its beginning.
    origin: Option<Cause>,
    /// Whether the thread waits for its timer.
    times: bool,
    /// The timer's last end.
    timer: Option<Cause>,
}

/// All stretches of a run.
#[derive(Debug)]
pub(in crate::schedule) struct CauseTree {
    stretches: Vec<Stretch>,
    threads: Vec<ThreadCursor>,
    /// For each processor: the moment at which its last thread left it.
    processors: Vec<Cause>,
    /// For each thread: whether it is a background thread, on which nothing depends.
    background: Vec<bool>,
    /// The thread that acted last.
    last: u32,
}

impl CauseTree {
    /// A tree without stretches. `background`: for each thread, whether it runs only as long as other threads do.
    pub(in crate::schedule) fn new(background: Vec<bool>, processors: usize) -> CauseTree {
        let cursor = ThreadCursor {
            cause: Cause::default(),
            run: u32::MAX,
            done: 0,
            debt: 0,
            spins_for: None,
            latency: DelayKind::Woken(None),
            origin: None,
            times: false,
            timer: None,
        };
        CauseTree {
            stretches: vec![Stretch { above: 0, length: 0, what: What::Start }],
            threads: vec![cursor; background.len()],
            processors: vec![Cause::default(); processors],
            background,
            last: 0,
        }
    }

    fn cursor(&mut self, thread: u32) -> &mut ThreadCursor {
        &mut self.threads[thread as usize]
    }

    /// The moment `length` ticks after `cause`, with a new stretch between the two.
    fn after(&mut self, cause: Cause, length: u64, what: What) -> Cause {
        if length == 0 {
            return cause;
        }
        let stretch = u32::try_from(self.stretches.len()).unwrap_or(u32::MAX);
        self.stretches.push(Stretch { above: cause.stretch, length, what });
        Cause { stretch, end: cause.end.saturating_add(length) }
    }

    /// Explains the thread's time on its processor until `now`.
    fn reach(&mut self, thread: u32, now: u64) -> Cause {
        let cursor = self.threads[thread as usize];
        let passed = now.saturating_sub(cursor.cause.end);
        if passed == 0 {
            return cursor.cause;
        }
        let cause = match cursor.spins_for {
            Some(object) => self.after(cursor.cause, passed, What::Delay(DelayKind::Spinning(object))),
            None => {
                let waking = passed.min(cursor.debt);
                let cause = self.after(cursor.cause, waking, What::Waking);
                let computed = passed - waking;
                let cursor = self.cursor(thread);
                cursor.debt -= waking;
                let (run, from) = (cursor.run, cursor.done);
                cursor.done = from.saturating_add(computed);
                self.after(cause, computed, What::Run { run, from })
            }
        };
        self.cursor(thread).cause = cause;
        cause
    }

    /// The thread, which has a processor, begins its next run of compute operations.
    pub(in crate::schedule) fn begins_run(&mut self, thread: u32, run: u32, now: u64) {
        self.reach(thread, now);
        let cursor = self.cursor(thread);
        (cursor.run, cursor.done) = (run, 0);
    }

    /// The thread's next computation is longer by `debt`, the cost of waking others.
    pub(in crate::schedule) fn charged(&mut self, thread: u32, debt: u64) {
        self.cursor(thread).debt = debt;
    }

    /// The thread becomes ready; `did` is its state until now.
    pub(in crate::schedule) fn woken(&mut self, thread: u32, by: Option<u32>, did: SimulatedState, now: u64) {
        let why = match did {
            SimulatedState::Blocked(why) => Some(why),
            _ => None,
        };
        match (by, why) {
            (Some(by), _) => self.cursor(thread).cause = self.reach(by, now),
            (None, Some(why)) => self.waited(thread, why, now),
            (None, None) => {}
        }
        let cursor = self.cursor(thread);
        cursor.latency = DelayKind::Woken(why);
        cursor.origin = None;
    }

    /// The thread's wait by the clock is over.
    fn waited(&mut self, thread: u32, why: Why, now: u64) {
        let cursor = self.cursor(thread);
        let from = cursor.origin.take().unwrap_or(cursor.cause);
        let cause = self.after(from, now.saturating_sub(from.end), What::Delay(DelayKind::Clock(why)));
        let cursor = self.cursor(thread);
        cursor.cause = cause;
        if std::mem::take(&mut cursor.times) {
            cursor.timer = Some(cause);
        }
    }

    /// A device begins to serve `thread` when it has finished serving `before`.
    pub(in crate::schedule) fn served_after(&mut self, thread: u32, before: u32, device: ObjectId, now: u64) {
        self.waited(before, Why::Object(device), now);
        self.cursor(thread).cause = self.threads[before as usize].cause;
    }

    /// The end of the thread's new wait counts from the start of the program.
    pub(in crate::schedule) fn waits_from_start(&mut self, thread: u32) {
        self.cursor(thread).origin = Some(Cause::default());
    }

    /// The end of the thread's new wait is measured from the last end of the thread's timer, if there was one.
    pub(in crate::schedule) fn waits_for_timer(&mut self, thread: u32) {
        let cursor = self.cursor(thread);
        cursor.origin = cursor.timer;
        cursor.times = true;
    }

    /// A ready thread gets a processor, after this latency and the time for switching.
    pub(in crate::schedule) fn given(
        &mut self,
        thread: u32,
        processor: u32,
        now: u64,
        latency: u64,
        switching: u64,
    ) {
        let (ready, free) = (self.threads[thread as usize].cause, self.processors[processor as usize]);
        // A background thread uses the processor whenever it can. If both causes have the same time, it waited for the
        // processor.
        let is_background = self.background.get(thread as usize) == Some(&true);
        let later = if free.end > ready.end || is_background && free.end == ready.end { free } else { ready };
        let scheduling = What::Delay(DelayKind::Scheduling);
        let taken = self.after(later, now.saturating_sub(later.end), scheduling);
        let latency_of = std::mem::replace(&mut self.cursor(thread).latency, DelayKind::Scheduling);
        let arrived = self.after(taken, latency, What::Delay(latency_of));
        self.cursor(thread).cause = self.after(arrived, switching, scheduling);
    }

    /// The thread leaves its processor, voluntarily or not.
    pub(in crate::schedule) fn sched_out(&mut self, thread: u32, processor: u32, now: u64) {
        self.processors[processor as usize] = self.reach(thread, now);
        self.cursor(thread).spins_for = None;
    }

    /// The thread begins to spin on its processor for a lock.
    pub(in crate::schedule) fn spins(&mut self, thread: u32, object: ObjectId, now: u64) {
        self.reach(thread, now);
        self.cursor(thread).spins_for = Some(object);
    }

    /// `by` has freed the lock that the thread spins for.
    pub(in crate::schedule) fn spun(&mut self, thread: u32, by: u32, now: u64) {
        let cause = self.reach(by, now);
        let cursor = self.cursor(thread);
        cursor.cause = cause;
        cursor.spins_for = None;
    }

    /// Notes that this thread had its turn: the one that had the last turn ends the run.
    pub(in crate::schedule) fn acted(&mut self, thread: u32) {
        self.last = thread;
    }

    /// The path to the end of the run. The thread that acted last ends it.
    pub(in crate::schedule) fn path(mut self, end: u64) -> RunPath {
        let mut path = RunPath::default();
        for stretch in &self.stretches {
            path.note(stretch.what.delay(), stretch.length, false);
        }
        for stretch in self.back_from(end) {
            match stretch.what {
                What::Run { run, from } => {
                    path.visits.push(Visit { run, from, to: from.saturating_add(stretch.length) });
                }
                other => path.note(other.delay(), stretch.length, true),
            }
        }
        path
    }

    /// The path stretch by stretch, from the start to the end.
    pub(in crate::schedule) fn route(mut self, end: u64) -> Vec<PathStretch> {
        let stretches = self.back_from(end).map(|stretch| PathStretch {
            length: Ticks(stretch.length),
            what: match stretch.what {
                What::Run { run, from } => OnPath::Computes { run, from },
                What::Start | What::Waking => OnPath::Waking,
                What::Delay(delay) => OnPath::Delay(delay),
            },
        });
        let mut stretches: Vec<PathStretch> = stretches.collect();
        stretches.reverse();
        stretches
    }

    /// The stretches of the path, from the end to the start.
    fn back_from(&mut self, end: u64) -> impl Iterator<Item = Stretch> + '_ {
        let mut cause = self.threads.get(self.last as usize).map_or(Cause::default(), |cursor| cursor.cause);
        // The last thread may already be in a latency that ends after the run.
        while cause.end > end {
            let Some(stretch) = self.stretches.get(cause.stretch as usize) else { break };
            cause = Cause { stretch: stretch.above, end: cause.end.saturating_sub(stretch.length) };
        }
        let rest = end.saturating_sub(cause.end);
        debug_assert!(rest == 0, "the last to act explains the end: {rest} of {end} are missing");
        let last = self.after(cause, rest, What::Delay(DelayKind::Scheduling)).stretch;
        let stretch = |at: u32| self.stretches.get(at as usize).filter(|stretch| stretch.length > 0).copied();
        std::iter::successors(stretch(last), move |below| stretch(below.above))
    }
}

impl What {
    /// The delay of a stretch; the inner `None` is computing the cost of waking other threads.
    fn delay(self) -> Option<Option<DelayKind>> {
        match self {
            What::Start | What::Run { .. } => None,
            What::Waking => Some(None),
            What::Delay(delay) => Some(Some(delay)),
        }
    }
}
