//! Decides a thread's state when events are missing or contradict each other: contradictions, gaps, the window's end.
//! An event that contradicts the state makes the time since the last proof `Unknown`; the next event shows the new
//! state.

use super::thread_tracker::{RunState, Tally, ThreadTracker, Unseen};
use super::wait_reason::WaitReason;
use crate::event::ThreadState;
use crate::time::Timestamp;
use crate::timeline::model::{Interval, State, UnknownReason, Wake};
use probe_abi::Call;

/// What /proc showed of a thread at the end of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::timeline) struct AtEnd {
    pub(in crate::timeline) state: ThreadState,
    /// How much of the window the thread ran, if its CPU time was read at both ends.
    pub(in crate::timeline) ran: Option<Ran>,
}

/// CPU time of a thread against the length of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::timeline) enum Ran {
    /// Next to nothing.
    Nothing,
    /// More than nothing, less than nearly all.
    Some,
    /// Nearly all of the window.
    All,
}

impl ThreadTracker {
    /// Another thread runs on the CPU on which this thread was believed to run.
    pub(in crate::timeline) fn displaced(&mut self, time_ns: u64, tally: &mut Tally) {
        if self.exiting {
            return self.dies_at_last_proof();
        }
        self.contradict(time_ns, tally);
        self.unseen(Unseen::Contradiction, time_ns);
    }

    /// Records of other threads prove that this thread has ended; the exact time of its death is not known.
    pub(in crate::timeline) fn gone(&mut self, time_ns: u64, tally: &mut Tally) {
        if self.exiting {
            return self.dies_at_last_proof();
        }
        match self.state {
            RunState::Dead => return,
            RunState::Forked { .. } => self.out.start = Timestamp(self.since_ns),
            RunState::Unseen(_) | RunState::Gap => self.resolve(time_ns, None, tally),
            _ => self.contradict(time_ns, tally),
        }
        self.out.end = Timestamp(self.since_ns);
        self.out.died = true;
        self.state = RunState::Dead;
    }

    /// Records of the thread may be missing from here on.
    pub(in crate::timeline) fn gap_begins(&mut self, time_ns: u64, tally: &mut Tally) {
        match self.state {
            RunState::Dead | RunState::Forked { .. } | RunState::Gap => return,
            _ => self.resolve(time_ns, None, tally),
        }
        self.functions_lost = true;
        self.stretches.forget(&|_| true);
        self.woken = None;
        self.state = RunState::Gap;
        self.last_ns = time_ns;
    }

    /// Records of the thread are complete again.
    pub(in crate::timeline) fn gap_ends(&mut self, time_ns: u64) {
        if self.state == RunState::Gap {
            self.close(time_ns, State::Unknown(UnknownReason::Gap));
            self.unseen(Unseen::Gap, time_ns);
        }
    }

    /// The window ends; `at_end` is the state that /proc shows then.
    pub(in crate::timeline) fn window_ends(&mut self, time_ns: u64, at_end: AtEnd, tally: &mut Tally) {
        match self.state {
            RunState::Dead => return,
            // Never woken for the first time: it has no life in the window.
            RunState::Forked { .. } => self.out.start = Timestamp(self.since_ns),
            _ if self.exiting => return self.dies_at_last_proof(),
            _ => self.resolve(time_ns, Some(at_end), tally),
        }
        self.out.end = Timestamp(self.since_ns);
    }

    /// Closes the open interval at a gap, a death or the window's end, using all that is known about the thread.
    pub(super) fn resolve(&mut self, time_ns: u64, at_end: Option<AtEnd>, tally: &mut Tally) {
        let woken = self.woken;
        let cut = if at_end.is_some() { Wake::CutAtEnd } else { Wake::CutByUnknown };
        match self.state {
            RunState::Running { cpu } => self.close(time_ns, State::Running { cpu: Some(cpu) }),
            RunState::Runnable => self.close(time_ns, State::Runnable),
            RunState::Blocked { reason } => match woken {
                // /proc shows the thread asleep, so the pending waking was for an earlier sleep.
                Some(woken) if at_end.is_some_and(|end| end.state == ThreadState::Sleeping) => {
                    self.woken_before_sleep(woken, tally);
                    self.wait(time_ns, reason, cut, tally);
                }
                Some(woken) => {
                    if !self.cut_at_start {
                        self.wait(self.since_ns, reason.or_in(&woken), woken.wake, tally);
                    }
                    self.close(time_ns, State::Runnable);
                }
                None => self.wait(time_ns, reason, cut, tally),
            },
            RunState::Unseen(why) => self.resolve_unseen(time_ns, why, at_end, tally),
            RunState::Gap => self.close(time_ns, State::Unknown(UnknownReason::Gap)),
            RunState::Forked { .. } | RunState::Dead => {}
        }
    }

    pub(super) fn resolve_unseen(
        &mut self,
        time_ns: u64,
        why: Unseen,
        at_end: Option<AtEnd>,
        tally: &mut Tally,
    ) {
        let woken = self.woken;
        let nothing = WaitReason::of(0, Call::NONE);
        let reason = woken.map_or(nothing, |woken| nothing.or_in(&woken));
        let unknown = match why {
            Unseen::Listed { .. } => UnknownReason::NoEvidence,
            Unseen::NotListed => UnknownReason::NotListed,
            Unseen::Contradiction => UnknownReason::Contradiction,
            Unseen::Gap => UnknownReason::Gap,
        };
        let end = at_end.unwrap_or_default();
        let slept_at_end = matches!(end.state, ThreadState::Sleeping | ThreadState::Stopped)
            && !self.listed_awake(why, time_ns)
            && why != Unseen::NotListed;
        let ran = end.ran.filter(|_| matches!(why, Unseen::Listed { .. }));
        match (woken, ran) {
            // Woken and not switched to since: it slept until the waking, unless /proc had seen it awake before.
            (Some(woken), _) if !self.listed_awake(why, woken.time_ns) && why != Unseen::NotListed => {
                self.wait(woken.time_ns, reason, woken.wake, tally);
                self.close(time_ns, State::Runnable);
            }
            // The thread has no event at all: its state never changed, and its CPU time shows which state it was.
            (None, Some(Ran::All)) if !self.listed_asleep(why, time_ns) => {
                self.close(time_ns, State::Running { cpu: None });
            }
            (None, ran) if self.listed_asleep(why, time_ns) || (slept_at_end && ran != Some(Ran::All)) => {
                if ran.is_some_and(|ran| ran != Ran::Nothing) {
                    let state = self.contradicted(tally);
                    self.close(time_ns, state);
                } else {
                    let cut = if at_end.is_some() { Wake::CutAtEnd } else { Wake::CutByUnknown };
                    self.wait(time_ns, reason, cut, tally);
                }
            }
            (None, Some(Ran::Nothing)) => self.close(time_ns, State::Runnable),
            _ => self.close(time_ns, State::Unknown(unknown)),
        }
    }

    /// Ends the last proven state at its last proof; from there to `time_ns` the state is unknown.
    pub(super) fn contradict(&mut self, time_ns: u64, tally: &mut Tally) {
        let last = self.last_ns;
        self.was_ready = self.state == RunState::Runnable;
        match self.state {
            RunState::Running { cpu } => self.close(last, State::Running { cpu: Some(cpu) }),
            RunState::Runnable => self.close(last, State::Runnable),
            RunState::Blocked { reason } if last > self.since_ns => {
                self.wait(last, reason, Wake::CutByUnknown, tally);
            }
            _ => {}
        }
        let state = self.contradicted(tally);
        self.close(time_ns, state);
        self.woken = None;
    }

    /// The thread came to this CPU at `came_ns`, as its CPU time in the kernel showed later.
    pub(in crate::timeline) fn came(&mut self, came_ns: u64, cpu: u16, tally: &mut Tally) {
        match self.state {
            RunState::Running { cpu: known } if known == cpu => self.came_before(came_ns, tally),
            RunState::Dead | RunState::Gap | RunState::Running { .. } => {}
            _ => {
                tally.inferred += 1;
                self.sched_in(came_ns.max(self.last_ns), cpu, tally);
            }
        }
    }

    /// CPU time proves that the thread ran before its first record on this CPU, so the unknown stretch before that
    /// record gets shorter.
    fn came_before(&mut self, came_ns: u64, tally: &mut Tally) {
        let Some(&unknown) = self.out.intervals.last() else { return };
        let doubtful = unknown.state == State::Unknown(UnknownReason::Contradiction);
        if !doubtful || came_ns >= self.since_ns || self.since_ns <= unknown.start.0 {
            return;
        }
        tally.inferred += 1;
        self.since_ns = came_ns.max(unknown.start.0);
        if !self.was_ready && self.since_ns > unknown.start.0 {
            return;
        }
        // The thread was waiting for a CPU before the contradiction, so it waited until it ran.
        self.out.intervals.pop();
        tally.contradictions = tally.contradictions.saturating_sub(1);
        let waits = self.out.intervals.last().is_some_and(|before| before.state == State::Runnable);
        if self.since_ns > unknown.start.0 && !waits {
            self.out.intervals.push(Interval { state: State::Runnable, ..unknown });
        }
    }

    pub(super) fn contradicted(&mut self, tally: &mut Tally) -> State {
        tally.contradictions += 1;
        State::Unknown(UnknownReason::Contradiction)
    }

    pub(in crate::timeline) fn unseen(&mut self, why: Unseen, time_ns: u64) {
        self.state = RunState::Unseen(why);
        self.last_ns = time_ns;
        self.cut_at_start = true;
        self.woken = None;
    }

    /// The thread's exit was recorded, but not its last switch: its life ends with its last event.
    pub(super) fn dies_at_last_proof(&mut self) {
        let last = self.last_ns;
        match self.state {
            RunState::Running { cpu } => self.close(last, State::Running { cpu: Some(cpu) }),
            RunState::Gap => self.close(last, State::Unknown(UnknownReason::Gap)),
            _ => {}
        }
        self.out.end = Timestamp(self.since_ns);
        self.out.died = true;
        self.state = RunState::Dead;
    }

    /// Whether /proc showed the thread asleep, and no event of the thread came before `time_ns`.
    pub(super) fn listed_asleep(&self, why: Unseen, time_ns: u64) -> bool {
        matches!(why, Unseen::Listed { state: ThreadState::Sleeping | ThreadState::Stopped, seen_ns }
            if seen_ns < time_ns)
    }

    /// Whether /proc showed the thread awake, and no event of the thread came before `time_ns`.
    pub(super) fn listed_awake(&self, why: Unseen, time_ns: u64) -> bool {
        matches!(why, Unseen::Listed { state: ThreadState::Running, seen_ns } if seen_ns < time_ns)
    }
}
