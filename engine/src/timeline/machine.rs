//! What one thread is doing, moved on event by event. Every method is one kind of evidence; what contradicts the
//! state makes the time since the last proof `Unknown`, and the next event tells what followed.

use super::model::{Birth, External, Interval, State, Thread, UnknownReason, Wait, WaitReason, Wake, Wakeup};
use super::stack::Stacks;
use crate::event::{FutexFact, ThreadState};
use crate::time::Timestamp;

/// The thread's state now. The interval it makes is written when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Now {
    /// No event yet since `since`, when events became complete: the first one will tell.
    Unseen(Unseen),
    /// Forked by this thread (if recorded), and not yet woken for the first time.
    Forked { parent: Option<u32> },
    /// On a CPU.
    Running { cpu: u16 },
    /// Waits for a CPU.
    Runnable,
    /// Asleep.
    Blocked { reason: WaitReason },
    /// In a gap.
    Gap,
    /// Gone.
    Dead,
}

/// Why nothing is known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unseen {
    /// At the start of the window, with what /proc said and when.
    Listed { state: ThreadState, seen_ns: u64 },
    /// At the start of the window, and /proc did not list it.
    NotListed,
    /// Since a contradiction.
    Contradiction,
    /// Since a gap.
    Gap,
}

/// A waking of which it is not yet known which sleep it ends: the waker may be faster than the switch that takes
/// the sleeper off its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Woken {
    pub(super) time_ns: u64,
    pub(super) wake: Wake,
}

/// How a thread left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    /// Pre-empted or yielding.
    Runnable,
    /// To sleep, with these `TASK_*` bits.
    Blocked { task_state: u32 },
    /// For good.
    Dead,
}

/// What the whole window counts while threads move on.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) wakeups: Vec<Wakeup>,
    pub(super) wakes: u64,
    pub(super) unmatched: u64,
    pub(super) spurious: u64,
    pub(super) censored: u64,
    pub(super) contradictions: u64,
    pub(super) stray_exits: u64,
}

/// One thread and everything needed to go on with it.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) out: Thread,
    pub(super) now: Now,
    /// Start of the open interval, and the number of steps then.
    pub(super) since_ns: u64,
    since_step: u32,
    /// Last instant at which events proved the state.
    pub(super) last_ns: u64,
    /// The open interval began before something known.
    cut_at_start: bool,
    pub(super) woken: Option<Woken>,
    pub(super) futex: Option<FutexFact>,
    /// It may be in a futex call that began before anything was recorded of it.
    pub(super) maybe_in_call: bool,
    pub(super) exiting: bool,
    pub(super) functions_lost: bool,
    pub(super) stacks: Stacks,
    /// When /proc was read at the start, and the CPU time it gave.
    pub(super) cpu_time: Option<(u64, u64)>,
}

impl Machine {
    pub(super) fn new(out: Thread, now: Now, cut_at_start: bool) -> Machine {
        let since_ns = out.start.0;
        Machine {
            out,
            now,
            since_ns,
            since_step: 0,
            last_ns: since_ns,
            cut_at_start,
            woken: None,
            futex: None,
            maybe_in_call: matches!(now, Now::Unseen(_)),
            exiting: false,
            functions_lost: false,
            stacks: Stacks::default(),
            cpu_time: None,
        }
    }

    /// The thread does something on this CPU, on which something else was last seen at `others_ns`.
    pub(super) fn acts(&mut self, time_ns: u64, cpu: u16, others_ns: Option<u64>, tally: &mut Tally) {
        match self.now {
            Now::Running { cpu: known } if known == cpu => {}
            Now::Unseen(why) => {
                let slept = self.listed_asleep(why, self.woken.map_or(time_ns, |woken| woken.time_ns));
                let arrived = others_ns.is_some_and(|others_ns| others_ns >= self.since_ns);
                let state = match why {
                    Unseen::NotListed => State::Unknown(UnknownReason::NotListed),
                    _ if slept || arrived => self.contradicted(tally),
                    _ => State::Running { cpu: Some(cpu) },
                };
                self.close(time_ns, state);
            }
            Now::Gap => self.close(time_ns, State::Unknown(UnknownReason::Gap)),
            Now::Forked { parent } => {
                self.born(self.since_ns, parent.map_or(Birth::Unknown, Birth::By));
                self.contradict(time_ns, tally);
            }
            Now::Running { .. } | Now::Runnable | Now::Blocked { .. } => self.contradict(time_ns, tally),
            Now::Dead => return,
        }
        self.now = Now::Running { cpu };
        self.last_ns = time_ns;
    }

    /// The thread is seen past any sleep it may have been about to begin.
    pub(super) fn passes_sleep(&mut self, time_ns: u64, tally: &mut Tally) {
        let Some(woken) = self.woken.take() else { return };
        let Now::Running { cpu } = self.now else { return };
        // Woken inside a waiting futex call before it could sleep: a dependency that took no time.
        if let (Some(futex), Wake::By(_)) = (self.futex, woken.wake) {
            self.close(time_ns, State::Running { cpu: Some(cpu) });
            self.wait(time_ns, WaitReason::Futex(futex), woken.wake, tally);
        } else {
            tally.spurious += 1;
        }
    }

    /// The thread is switched to.
    pub(super) fn arrives(&mut self, time_ns: u64, cpu: u16, tally: &mut Tally) {
        let woken = self.woken.take();
        match self.now {
            Now::Runnable => self.close(time_ns, State::Runnable),
            Now::Blocked { reason } => match woken {
                // Woken before the switch that took it off its CPU was recorded.
                Some(woken) => {
                    if !self.cut_at_start {
                        self.wait(self.since_ns, reason, woken.wake, tally);
                    }
                    self.close(time_ns, State::Runnable);
                }
                None => {
                    self.wait(time_ns, reason, Wake::External(External::NotSeen), tally);
                }
            },
            Now::Unseen(why) => self.arrives_unseen(time_ns, why, woken, tally),
            Now::Forked { parent } => {
                self.born(self.since_ns, parent.map_or(Birth::Unknown, Birth::By));
                self.close(time_ns, State::Runnable);
            }
            Now::Gap => self.close(time_ns, State::Unknown(UnknownReason::Gap)),
            Now::Running { .. } => self.contradict(time_ns, tally),
            Now::Dead => return,
        }
        self.now = Now::Running { cpu };
        self.last_ns = time_ns;
    }

    fn arrives_unseen(&mut self, time_ns: u64, why: Unseen, woken: Option<Woken>, tally: &mut Tally) {
        if why == Unseen::NotListed {
            return self.close(time_ns, State::Unknown(UnknownReason::NotListed));
        }
        match woken {
            Some(woken) if self.listed_awake(why, woken.time_ns) => {
                let state = self.contradicted(tally);
                self.close(woken.time_ns, state);
            }
            Some(woken) => {
                let reason = self.wait_reason(0);
                self.wait(woken.time_ns, reason, woken.wake, tally);
            }
            None if self.listed_asleep(why, time_ns) => {
                let state = self.contradicted(tally);
                return self.close(time_ns, state);
            }
            None => {}
        }
        self.close(time_ns, State::Runnable);
    }

    /// The thread leaves its CPU; [`Machine::acts`] has been called for the same instant.
    pub(super) fn leaves(&mut self, time_ns: u64, how: Leaving, tally: &mut Tally) {
        let Now::Running { cpu } = self.now else { return };
        if !matches!(how, Leaving::Blocked { .. }) {
            self.passes_sleep(time_ns, tally);
        }
        self.close(time_ns, State::Running { cpu: Some(cpu) });
        self.last_ns = time_ns;
        self.now = match how {
            Leaving::Runnable => Now::Runnable,
            Leaving::Blocked { task_state } => Now::Blocked { reason: self.wait_reason(task_state) },
            Leaving::Dead => {
                self.out.end = Timestamp(time_ns);
                self.out.died = true;
                Now::Dead
            }
        };
    }

    /// Something makes the sleeping thread runnable. Says whether that may end a wait.
    pub(super) fn woken_by(&mut self, time_ns: u64, wake: Wake, tally: &mut Tally) {
        match self.now {
            Now::Blocked { reason } => {
                if self.woken.take().is_some() {
                    tally.spurious += 1;
                }
                self.wait(time_ns, reason, wake, tally);
                self.now = Now::Runnable;
                self.last_ns = time_ns;
            }
            Now::Running { .. } | Now::Unseen(_) if self.woken.is_none() => {
                self.woken = Some(Woken { time_ns, wake });
            }
            _ => tally.spurious += 1,
        }
    }

    /// The thread becomes runnable for the first time.
    pub(super) fn born(&mut self, time_ns: u64, birth: Birth) {
        self.out.start = Timestamp(time_ns);
        self.out.birth = birth;
        if let [base] = self.out.base_stacks.as_mut_slice() {
            base.time = Timestamp(time_ns);
        }
        self.since_ns = time_ns;
        self.last_ns = time_ns;
        self.cut_at_start = false;
        self.woken = None;
        self.now = Now::Runnable;
    }

    /// Another thread is on the CPU on which this one was thought to be.
    pub(super) fn displaced(&mut self, time_ns: u64, tally: &mut Tally) {
        if self.exiting {
            return self.dies_at_last_proof();
        }
        self.contradict(time_ns, tally);
        self.unseen(Unseen::Contradiction, time_ns);
    }

    /// The thread is gone, as others tell; when exactly is not known.
    pub(super) fn gone(&mut self, time_ns: u64, tally: &mut Tally) {
        if self.exiting {
            return self.dies_at_last_proof();
        }
        match self.now {
            Now::Dead => return,
            Now::Forked { .. } => self.out.start = Timestamp(self.since_ns),
            Now::Unseen(_) | Now::Gap => self.resolve(time_ns, None, tally),
            _ => self.contradict(time_ns, tally),
        }
        self.out.end = Timestamp(self.since_ns);
        self.out.died = true;
        self.now = Now::Dead;
    }

    /// Records of the thread may be missing from here on.
    pub(super) fn gap_begins(&mut self, time_ns: u64, tally: &mut Tally) {
        match self.now {
            Now::Dead | Now::Forked { .. } | Now::Gap => return,
            _ => self.resolve(time_ns, None, tally),
        }
        self.functions_lost = true;
        self.woken = None;
        self.futex = None;
        self.maybe_in_call = false;
        self.now = Now::Gap;
        self.last_ns = time_ns;
    }

    /// Records of the thread are complete again.
    pub(super) fn gap_ends(&mut self, time_ns: u64) {
        if self.now == Now::Gap {
            self.close(time_ns, State::Unknown(UnknownReason::Gap));
            self.unseen(Unseen::Gap, time_ns);
        }
    }

    /// The window ends; `at_end` is what /proc then said.
    pub(super) fn window_ends(&mut self, time_ns: u64, at_end: AtEnd, tally: &mut Tally) {
        match self.now {
            Now::Dead => return,
            // Never woken: it has not lived yet.
            Now::Forked { .. } => self.out.start = Timestamp(self.since_ns),
            _ if self.exiting => return self.dies_at_last_proof(),
            _ => self.resolve(time_ns, Some(at_end), tally),
        }
        self.out.end = Timestamp(self.since_ns);
    }

    /// Writes the open interval as what is known of it, when nothing more will be told.
    fn resolve(&mut self, time_ns: u64, at_end: Option<AtEnd>, tally: &mut Tally) {
        let woken = self.woken;
        let cut = if at_end.is_some() { Wake::CutAtEnd } else { Wake::CutByUnknown };
        match self.now {
            Now::Running { cpu } => self.close(time_ns, State::Running { cpu: Some(cpu) }),
            Now::Runnable => self.close(time_ns, State::Runnable),
            Now::Blocked { reason } => match woken {
                Some(woken) => {
                    if !self.cut_at_start {
                        self.wait(self.since_ns, reason, woken.wake, tally);
                    }
                    self.close(time_ns, State::Runnable);
                }
                None => self.wait(time_ns, reason, cut, tally),
            },
            Now::Unseen(why) => self.resolve_unseen(time_ns, why, at_end, tally),
            Now::Gap => self.close(time_ns, State::Unknown(UnknownReason::Gap)),
            Now::Forked { .. } | Now::Dead => {}
        }
    }

    fn resolve_unseen(&mut self, time_ns: u64, why: Unseen, at_end: Option<AtEnd>, tally: &mut Tally) {
        let reason = self.wait_reason(0);
        let woken = self.woken;
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
            // Woken, and no switch to it since: it slept until then, unless /proc saw it awake before.
            (Some(woken), _) if !self.listed_awake(why, woken.time_ns) && why != Unseen::NotListed => {
                self.wait(woken.time_ns, reason, woken.wake, tally);
                self.close(time_ns, State::Runnable);
            }
            // No event at all: it was in one state all the time, and its CPU time says in which.
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

    /// What was seen last stays; from there to now it is not known what happened.
    fn contradict(&mut self, time_ns: u64, tally: &mut Tally) {
        let last = self.last_ns;
        match self.now {
            Now::Running { cpu } => self.close(last, State::Running { cpu: Some(cpu) }),
            Now::Runnable => self.close(last, State::Runnable),
            Now::Blocked { reason } if last > self.since_ns => {
                self.wait(last, reason, Wake::CutByUnknown, tally);
            }
            _ => {}
        }
        let state = self.contradicted(tally);
        self.close(time_ns, state);
        self.woken = None;
    }

    fn contradicted(&mut self, tally: &mut Tally) -> State {
        tally.contradictions += 1;
        State::Unknown(UnknownReason::Contradiction)
    }

    fn unseen(&mut self, why: Unseen, time_ns: u64) {
        self.now = Now::Unseen(why);
        self.last_ns = time_ns;
        self.cut_at_start = true;
        self.woken = None;
    }

    /// It was seen to exit, and nothing says when it left its CPU: its life ends with its last event.
    fn dies_at_last_proof(&mut self) {
        let last = self.last_ns;
        match self.now {
            Now::Running { cpu } => self.close(last, State::Running { cpu: Some(cpu) }),
            Now::Gap => self.close(last, State::Unknown(UnknownReason::Gap)),
            _ => {}
        }
        self.out.end = Timestamp(self.since_ns);
        self.out.died = true;
        self.now = Now::Dead;
    }

    /// Whether /proc saw it asleep, with no event of it until `time_ns`.
    fn listed_asleep(&self, why: Unseen, time_ns: u64) -> bool {
        matches!(why, Unseen::Listed { state: ThreadState::Sleeping | ThreadState::Stopped, seen_ns }
            if seen_ns < time_ns)
    }

    /// Whether /proc saw it awake, with no event of it until `time_ns`.
    fn listed_awake(&self, why: Unseen, time_ns: u64) -> bool {
        matches!(why, Unseen::Listed { state: ThreadState::Running, seen_ns } if seen_ns < time_ns)
    }

    pub(super) fn wait_reason(&self, task_state: u32) -> WaitReason {
        self.futex.map_or(WaitReason::Kernel { task_state }, WaitReason::Futex)
    }

    /// Writes the open interval as a wait that ends now.
    fn wait(&mut self, until_ns: u64, reason: WaitReason, wake: Wake, tally: &mut Tally) {
        let empty = until_ns <= self.since_ns;
        if empty && !matches!(wake, Wake::By(_)) {
            if !matches!(wake, Wake::CutAtEnd | Wake::CutByUnknown) {
                tally.spurious += 1;
            }
            return;
        }
        let index = u32::try_from(self.out.waits.len()).unwrap_or(u32::MAX);
        let cut_at_start = self.cut_at_start;
        if empty {
            let interval = self.interval(State::Blocked(index));
            self.out.intervals.push(interval);
            self.since_step = u32::try_from(self.out.steps.len()).unwrap_or(u32::MAX);
            self.cut_at_start = false;
        } else {
            self.close(until_ns, State::Blocked(index));
        }
        self.out.waits.push(Wait { reason, wake, result: None, cut_at_start });
        match wake {
            Wake::By(wakeup) => {
                tally.wakes += 1;
                if let Some(wakeup) = tally.wakeups.get_mut(wakeup as usize) {
                    wakeup.ended = Some(index);
                }
            }
            Wake::External(External::NotSeen) => tally.unmatched += 1,
            Wake::External(_) => tally.wakes += 1,
            Wake::CutAtEnd | Wake::CutByUnknown => {}
        }
        if cut_at_start || wake == Wake::CutAtEnd {
            tally.censored += 1;
        }
    }

    /// Writes the open interval, and opens the next at its end.
    fn close(&mut self, until_ns: u64, state: State) {
        if until_ns > self.since_ns {
            let interval = self.interval(state);
            if self.out.intervals.last().is_none_or(|last| last.state != state) {
                self.out.intervals.push(interval);
            }
            self.since_ns = until_ns;
            self.since_step = u32::try_from(self.out.steps.len()).unwrap_or(u32::MAX);
        }
        self.cut_at_start = false;
    }

    fn interval(&self, state: State) -> Interval {
        Interval { start: Timestamp(self.since_ns), state, first_step: self.since_step }
    }
}

/// What /proc said at the end of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AtEnd {
    pub(super) state: ThreadState,
    /// How much of the window it ran, if CPU time was read at both ends.
    pub(super) ran: Option<Ran>,
}

/// CPU time of a thread against the length of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// Next to nothing.
    Nothing,
    /// Neither.
    Some,
    /// Nearly all of it.
    All,
}
