//! Walks through a thread's states one after the other.

use super::measured::Measured;
use crate::program::WaitWords;
use crate::time::Timestamp;
use crate::timeline::{State, UnknownReason, Wake};

/// A stretch of a thread's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadState {
    /// First instant, ns.
    pub start: Timestamp,
    /// Last instant, ns; never before `start`, and equal only for a wait that ended at once.
    pub end: Timestamp,
    /// The thread's activity.
    pub doing: ThreadActivity,
}

/// A thread's activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ThreadActivity {
    /// On a CPU, computing.
    Running {
        /// The CPU, if known.
        cpu: Option<u16>,
    },
    /// On a CPU, busy waiting.
    Spinning {
        /// The CPU, if known.
        cpu: Option<u16>,
    },
    /// Wants a CPU.
    Ready,
    /// Sleeps.
    Blocked {
        /// What the thread waits for.
        wait: WaitWords,
        /// Index in [`Measured::wakes`] of the wake-up that ended the wait, if a thread of the recording ended it.
        wakeup: Option<u32>,
    },
    /// The activity is not known.
    Unknown(UnknownReason),
}

impl ThreadActivity {
    /// One word for the activity, for machine-readable output.
    pub fn word(&self) -> &'static str {
        self.into()
    }

    /// The CPU on which the thread is; `None` if it is on none, or on an unknown one.
    pub fn cpu(&self) -> Option<u16> {
        match self {
            ThreadActivity::Running { cpu } | ThreadActivity::Spinning { cpu } => *cpu,
            _ => None,
        }
    }

    /// What the thread waits for, or why its state is unknown.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            ThreadActivity::Blocked { wait, .. } => Some(wait.name),
            ThreadActivity::Unknown(reason) => Some(match reason {
                UnknownReason::Gap => "records lost",
                UnknownReason::Contradiction => "events contradict each other",
                UnknownReason::NotListed => "not seen before",
                UnknownReason::NoEvidence => "nothing seen",
            }),
            _ => None,
        }
    }
}

/// Walks through a thread's intervals, and cuts running ones where the thread begins or stops spinning.
pub(super) struct States<'m> {
    measured: &'m Measured<'m>,
    thread: usize,
    interval: usize,
    /// Time up to which the present interval has been given.
    at: Timestamp,
    spins: &'m [(Timestamp, Timestamp)],
}

impl<'m> States<'m> {
    pub(super) fn of(measured: &'m Measured<'_>, thread: usize) -> States<'m> {
        let start = measured.timeline.threads.get(thread).map_or(Timestamp(0), |thread| thread.start);
        States { measured, thread, interval: 0, at: start, spins: measured.occurrences.spins(thread) }
    }

    /// Whether a running thread spins from `at` on, and until when, `end` at most.
    fn spins_until(&mut self, end: Timestamp) -> (bool, Timestamp) {
        while self.spins.first().is_some_and(|(_, to)| *to <= self.at) {
            self.spins = self.spins.get(1..).unwrap_or_default();
        }
        match self.spins.first() {
            Some((from, to)) if *from <= self.at => (true, (*to).min(end)),
            Some((from, _)) => (false, (*from).min(end)),
            None => (false, end),
        }
    }
}

impl Iterator for States<'_> {
    type Item = ThreadState;

    fn next(&mut self) -> Option<ThreadState> {
        let thread = self.measured.timeline.threads.get(self.thread)?;
        let interval = thread.intervals.get(self.interval)?;
        let start = self.at.max(interval.start);
        self.at = start;
        let end = thread.intervals.get(self.interval + 1).map_or(thread.end, |next| next.start).max(start);
        let (doing, until) = match interval.state {
            State::Running { cpu } => match self.spins_until(end) {
                (true, until) => (ThreadActivity::Spinning { cpu }, until),
                (false, until) => (ThreadActivity::Running { cpu }, until),
            },
            State::Runnable => (ThreadActivity::Ready, end),
            State::Blocked(number) => {
                let wait = self.measured.occurrences.wait(self.thread, number);
                let wakeup = thread.waits.get(number as usize).and_then(|wait| match wait.wake {
                    Wake::By(wakeup) => Some(wakeup),
                    _ => None,
                });
                match wait {
                    Some(wait) => (ThreadActivity::Blocked { wait, wakeup }, end),
                    None => (ThreadActivity::Unknown(UnknownReason::NoEvidence), end),
                }
            }
            State::Unknown(reason) => (ThreadActivity::Unknown(reason), end),
        };
        self.at = until;
        if until >= end {
            self.interval += 1;
        }
        Some(ThreadState { start, end: until, doing })
    }
}
