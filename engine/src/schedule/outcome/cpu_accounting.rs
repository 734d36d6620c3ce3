//! Accounts of a run: each thread's time by state, and the number of busy processors over time.

use crate::program::{ObjectId, ThreadId};
use crate::schedule::machine::Why;
use crate::time::Ticks;

/// A thread's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedState {
    /// Has not begun, or has ended.
    Nothing,
    /// Computes.
    Busy,
    /// Keeps a processor busy, waiting for this spin lock.
    Spinning(ObjectId),
    /// Wants a processor.
    Ready,
    /// Waits without a processor.
    Blocked(Why),
}

/// A stretch of a thread's life in a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The thread.
    pub thread: ThreadId,
    /// Time at which the interval began.
    pub start: Ticks,
    /// Time at which the interval ended.
    pub end: Ticks,
    /// The thread's state.
    pub doing: SimulatedState,
    /// The processor that the thread used; `None` if it used none.
    pub cpu: Option<u32>,
}

/// A function that receives every interval when the interval ends.
pub type Watcher<'w> = Box<dyn FnMut(Interval) + 'w>;

/// A function that receives every change when it happens: the thread, the time, and the thread's new state.
pub(super) type ChangeWatcher<'w> = Box<dyn FnMut(u32, u64, SimulatedState) + 'w>;

/// Time that a thread spent in each state, ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUse {
    /// Computing.
    pub busy: u64,
    /// Keeping a processor busy, waiting for spin locks.
    pub spinning: u64,
    /// Wanting a processor.
    pub ready: u64,
    /// Waiting without a processor.
    pub blocked: u64,
}

/// Time for which all threads together waited for one object, ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::schedule) struct Waiting {
    pub(in crate::schedule) waits: u64,
    pub(in crate::schedule) blocked: u64,
    pub(in crate::schedule) spun: u64,
}

/// Sums of the threads' times in one run.
pub(in crate::schedule) struct CpuAccounting<'w> {
    states: Vec<(SimulatedState, u64)>,
    pub(in crate::schedule) threads: Vec<ThreadUse>,
    pub(in crate::schedule) objects: Vec<Waiting>,
    /// Time by the number of busy processors.
    pub(in crate::schedule) busy: Vec<u64>,
    executing: usize,
    since: u64,
    watcher: Option<Watcher<'w>>,
    told: Option<ChangeWatcher<'w>>,
}

impl std::fmt::Debug for CpuAccounting<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("CpuAccounting")
            .field("threads", &self.threads)
            .field("busy", &self.busy)
            .finish_non_exhaustive()
    }
}

impl<'w> CpuAccounting<'w> {
    pub(in crate::schedule) fn new(
        threads: usize,
        objects: usize,
        watcher: Option<Watcher<'w>>,
    ) -> CpuAccounting<'w> {
        CpuAccounting {
            states: vec![(SimulatedState::Nothing, 0); threads],
            threads: vec![ThreadUse::default(); threads],
            objects: vec![Waiting::default(); objects],
            busy: Vec::new(),
            executing: 0,
            since: 0,
            watcher,
            told: None,
        }
    }

    /// Reports every change from now on.
    pub(in crate::schedule) fn tell(&mut self, told: ChangeWatcher<'w>) {
        self.told = Some(told);
    }

    #[inline]
    pub(in crate::schedule) fn doing(&self, thread: u32) -> SimulatedState {
        self.states[thread as usize].0
    }

    /// Changes what the thread does from now on; it may stay the same. `cpu` is the processor until now. Returns the
    /// time since the last change.
    pub(in crate::schedule) fn change(
        &mut self,
        thread: u32,
        now: u64,
        doing: SimulatedState,
        cpu: Option<u32>,
    ) -> u64 {
        let (before, since) = std::mem::replace(&mut self.states[thread as usize], (doing, now));
        let length = now.saturating_sub(since);
        if let Some(told) = &mut self.told {
            told(thread, now, doing);
        }
        let account = &mut self.threads[thread as usize];
        match before {
            SimulatedState::Nothing => {}
            SimulatedState::Busy => account.busy += length,
            SimulatedState::Ready => account.ready += length,
            SimulatedState::Spinning(object) => {
                account.spinning += length;
                self.objects[object.0 as usize].spun += length;
            }
            SimulatedState::Blocked(why) => {
                account.blocked += length;
                if let Why::Object(object) = why {
                    self.objects[object.0 as usize].blocked += length;
                }
            }
        }
        if let SimulatedState::Blocked(Why::Object(object)) = doing {
            self.objects[object.0 as usize].waits += 1;
        }
        let executes =
            |doing: SimulatedState| matches!(doing, SimulatedState::Busy | SimulatedState::Spinning(_));
        if executes(before) != executes(doing) {
            self.flow(now);
            self.executing =
                if executes(doing) { self.executing + 1 } else { self.executing.saturating_sub(1) };
        }
        if length > 0
            && before != SimulatedState::Nothing
            && let Some(watcher) = &mut self.watcher
        {
            let cpu = cpu.filter(|_| executes(before));
            watcher(Interval {
                thread: ThreadId(thread),
                start: Ticks(since),
                end: Ticks(now),
                doing: before,
                cpu,
            });
        }
        length
    }

    /// Moves `length` of the thread's last interval from `before` to waiting for a processor. With shared processors,
    /// how much of it was waiting is known only at its end.
    pub(in crate::schedule) fn waited(&mut self, thread: u32, before: SimulatedState, length: u64) {
        let account = &mut self.threads[thread as usize];
        account.ready += length;
        match before {
            SimulatedState::Busy => account.busy = account.busy.saturating_sub(length),
            SimulatedState::Spinning(object) => {
                account.spinning = account.spinning.saturating_sub(length);
                let spun = &mut self.objects[object.0 as usize].spun;
                *spun = spun.saturating_sub(length);
            }
            _ => {}
        }
    }

    /// Accounts for the time up to now, during which `executing` threads ran.
    fn flow(&mut self, now: u64) {
        if self.busy.len() <= self.executing {
            self.busy.resize(self.executing + 1, 0);
        }
        self.busy[self.executing] += now.saturating_sub(self.since);
        self.since = now;
    }

    /// Ends all intervals at the end of the run.
    pub(in crate::schedule) fn close(&mut self, now: u64) {
        for thread in 0..self.states.len() {
            let doing = self.states[thread].0;
            self.change(thread as u32, now, doing, None);
        }
        self.flow(now);
    }
}
