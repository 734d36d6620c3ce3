//! The state of one thread, which events advance one by one. Each method handles one kind of evidence. `inconsistent`
//! has the rules for missing or contradicting evidence; `write` writes intervals.

use super::pending_wakeup::PendingWakeup;
use super::stack::Stacks;
use super::wait_reason::WaitReason;
use crate::event::{FutexFact, ThreadState};
use crate::time::{Nanos, Timestamp};
use crate::timeline::model::{Birth, External, Interval, State, Thread, UnknownReason, Wake, Wakeup};
use crate::timeline::stretches::Stretches;
use probe_abi::Call;

/// The thread's state now. Its interval is written when the state ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::timeline) enum RunState {
    /// No event since events became complete: the first one will tell the state.
    Unseen(Unseen),
    /// Forked by `parent`, if that is recorded, and not yet woken for the first time.
    Forked { parent: Option<u32> },
    /// On a CPU.
    Running { cpu: u16 },
    /// Waits for a CPU.
    Runnable,
    /// Asleep.
    Blocked { reason: WaitReason },
    /// The thread's state is unknown because of a gap.
    Gap,
    /// The thread has ended.
    Dead,
}

/// Why a thread's state is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::timeline) enum Unseen {
    /// Listed by /proc at the window's start: its state there, and when it was read.
    Listed { state: ThreadState, seen_ns: u64 },
    /// /proc did not list the thread at the window's start.
    NotListed,
    /// Since a contradiction.
    Contradiction,
    /// Since a gap.
    Gap,
}

/// How and why a thread left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::timeline) enum SwitchOut {
    /// Pre-empted or yielding.
    Runnable,
    /// To sleep.
    Blocked(WaitReason),
    /// Permanently.
    Dead,
}

/// Sums over all threads.
#[derive(Clone, Debug, Default)]
pub(in crate::timeline) struct Tally {
    pub(in crate::timeline) wakeups: Vec<Wakeup>,
    pub(in crate::timeline) wakes: u64,
    pub(in crate::timeline) unmatched: u64,
    pub(in crate::timeline) spurious: u64,
    pub(in crate::timeline) truncated_waits: u64,
    pub(in crate::timeline) contradictions: u64,
    /// Switches that the kernel did not report; their times come from CPU time in `Ran` records.
    pub(in crate::timeline) inferred: u64,
    pub(in crate::timeline) stray_exits: u64,
}

/// One thread, with all that is needed to process its next event.
#[derive(Clone, Debug)]
pub(in crate::timeline) struct ThreadTracker {
    pub(in crate::timeline) out: Thread,
    pub(in crate::timeline) state: RunState,
    /// Start of the open interval, and the number of steps at that time.
    pub(in crate::timeline) since_ns: u64,
    pub(super) since_step: u32,
    /// Last instant at which events proved the state.
    pub(in crate::timeline) last_ns: u64,
    /// The start of the open interval is not known; the state began earlier.
    pub(in crate::timeline) cut_at_start: bool,
    pub(in crate::timeline) woken: Option<PendingWakeup>,
    /// Whether the thread is runnable because it was pre-empted, not because it was woken.
    pub(in crate::timeline) preempted: bool,
    /// Whether the thread was runnable when the last contradiction came.
    pub(super) was_ready: bool,
    pub(in crate::timeline) exiting: bool,
    /// longpole holds the command until everything is ready: its life begins when it is released.
    pub(in crate::timeline) held: bool,
    pub(in crate::timeline) functions_lost: bool,
    pub(in crate::timeline) stacks: Stacks,
    pub(in crate::timeline) stretches: Stretches,
    /// Time at which /proc was read at the start, and the thread's CPU time at that time.
    pub(in crate::timeline) cpu_time: Option<(u64, u64)>,
}

impl ThreadTracker {
    pub(in crate::timeline) fn new(out: Thread, state: RunState, cut_at_start: bool) -> ThreadTracker {
        let since_ns = out.start.0;
        ThreadTracker {
            out,
            state,
            since_ns,
            since_step: 0,
            last_ns: since_ns,
            cut_at_start,
            woken: None,
            preempted: false,
            was_ready: false,
            exiting: false,
            held: false,
            functions_lost: false,
            stacks: Stacks::default(),
            stretches: Stretches::default(),
            cpu_time: None,
        }
    }

    /// A record proves that the thread is on this CPU. `others_ns`: when the CPU last proved to have another thread.
    pub(in crate::timeline) fn seen_running(
        &mut self,
        time_ns: u64,
        cpu: u16,
        others_ns: Option<u64>,
        tally: &mut Tally,
    ) {
        match self.state {
            RunState::Running { cpu: known } if known == cpu => {}
            RunState::Unseen(why) => {
                let slept = self.listed_asleep(why, self.woken.map_or(time_ns, |woken| woken.time_ns));
                let arrived = others_ns.is_some_and(|others_ns| others_ns >= self.since_ns);
                let state = match why {
                    Unseen::NotListed => State::Unknown(UnknownReason::NotListed),
                    _ if slept || arrived => self.contradicted(tally),
                    _ => State::Running { cpu: Some(cpu) },
                };
                self.close(time_ns, state);
            }
            RunState::Gap => self.close(time_ns, State::Unknown(UnknownReason::Gap)),
            RunState::Forked { parent } => {
                self.born(self.since_ns, parent.map_or(Birth::Unknown, Birth::By));
                self.contradict(time_ns, tally);
            }
            RunState::Running { .. } | RunState::Runnable | RunState::Blocked { .. } => {
                self.contradict(time_ns, tally)
            }
            RunState::Dead => return,
        }
        self.state = RunState::Running { cpu };
        self.last_ns = time_ns;
    }

    /// The thread is active: it did not sleep after the pending waking.
    pub(in crate::timeline) fn settle_pending_wakeup(&mut self, time_ns: u64, tally: &mut Tally) {
        let Some(woken) = self.woken.take() else { return };
        let RunState::Running { cpu } = self.state else { return };
        // The thread was woken in a waiting futex call before it could sleep: a dependency that takes no time.
        if let (Some(futex), Wake::By(_)) = (woken.futex, woken.wake) {
            self.close(woken.time_ns.min(time_ns), State::Running { cpu: Some(cpu) });
            self.wait(self.since_ns, WaitReason::Futex(futex), woken.wake, tally);
        } else {
            tally.spurious += 1;
        }
    }

    /// The thread reads a message that is there already: it would have had to wait for a later one.
    pub(in crate::timeline) fn reads(
        &mut self,
        time_ns: u64,
        reason: WaitReason,
        wake: Wake,
        tally: &mut Tally,
    ) {
        let RunState::Running { cpu } = self.state else { return };
        self.close(time_ns, State::Running { cpu: Some(cpu) });
        self.wait(time_ns, reason, wake, tally);
    }

    /// The thread is switched to.
    pub(in crate::timeline) fn sched_in(&mut self, time_ns: u64, cpu: u16, tally: &mut Tally) {
        let woken = self.woken.take();
        match self.state {
            RunState::Runnable => {
                self.close(time_ns, State::Runnable);
                // The thread was woken after it had been pre-empted on its way to sleep: the next event shows whether
                // it slept.
                self.woken = woken;
            }
            RunState::Blocked { reason } => match woken {
                // The waking was recorded before the switch that took the thread off its CPU.
                Some(woken) => {
                    if !self.cut_at_start {
                        self.wait(self.since_ns, reason.or_in(&woken), woken.wake, tally);
                        self.moved(&woken);
                    }
                    self.close(time_ns, State::Runnable);
                }
                None => {
                    self.wait(time_ns, reason, Wake::External(External::NotSeen), tally);
                }
            },
            RunState::Unseen(why) => self.arrives_unseen(time_ns, why, woken, tally),
            RunState::Forked { parent } => {
                self.born(self.since_ns, parent.map_or(Birth::Unknown, Birth::By));
                self.close(time_ns, State::Runnable);
            }
            RunState::Gap => self.close(time_ns, State::Unknown(UnknownReason::Gap)),
            RunState::Running { .. } => self.contradict(time_ns, tally),
            RunState::Dead => return,
        }
        self.preempted = false;
        self.state = RunState::Running { cpu };
        self.last_ns = time_ns;
    }

    fn arrives_unseen(&mut self, time_ns: u64, why: Unseen, woken: Option<PendingWakeup>, tally: &mut Tally) {
        if why == Unseen::NotListed {
            return self.close(time_ns, State::Unknown(UnknownReason::NotListed));
        }
        match woken {
            Some(woken) if self.listed_awake(why, woken.time_ns) => {
                let state = self.contradicted(tally);
                self.close(woken.time_ns, state);
            }
            // longpole's own threads are not recorded. A waking by a recorded thread is a later one: the release is lost.
            Some(woken) if self.held && !matches!(woken.wake, Wake::By(_)) => {
                self.born(woken.time_ns, Birth::BeforeWindow);
            }
            Some(woken) => {
                let reason = WaitReason::of(0, Call::NONE).or_in(&woken);
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

    /// The thread is about to leave its CPU by `sched_yield`.
    pub(in crate::timeline) fn yields(&mut self, time_ns: u64) {
        if let RunState::Running { .. } = self.state {
            let length = time_ns.saturating_sub(self.since_ns);
            self.out.yields = self.out.yields.saturating_add(1);
            self.out.yielded = Nanos(self.out.yielded.0.saturating_add(length));
        }
    }

    /// The thread leaves its CPU. [`ThreadTracker::seen_running`] must have been called for the same time.
    pub(in crate::timeline) fn sched_out(&mut self, time_ns: u64, how: SwitchOut, tally: &mut Tally) {
        let RunState::Running { cpu } = self.state else { return };
        if !matches!(how, SwitchOut::Blocked(_)) {
            self.settle_pending_wakeup(time_ns, tally);
        }
        self.close(time_ns, State::Running { cpu: Some(cpu) });
        self.last_ns = time_ns;
        self.preempted = how == SwitchOut::Runnable;
        self.state = match how {
            SwitchOut::Runnable => RunState::Runnable,
            SwitchOut::Blocked(reason) => RunState::Blocked { reason },
            SwitchOut::Dead => {
                self.out.end = Timestamp(time_ns);
                self.out.died = true;
                RunState::Dead
            }
        };
    }

    /// A waking of the thread: ends its sleep, or is kept until the sleep is known.
    pub(in crate::timeline) fn wakeup(&mut self, woken: PendingWakeup, tally: &mut Tally) {
        match self.state {
            RunState::Blocked { reason } => {
                if let Some(earlier) = self.woken.take() {
                    self.woken_before_sleep(earlier, tally);
                }
                self.wait(woken.time_ns, reason.or_in(&woken), woken.wake, tally);
                self.moved(&woken);
                self.state = RunState::Runnable;
                self.last_ns = woken.time_ns;
            }
            RunState::Running { .. } => {
                // The first waking makes the thread awake. So the next one, which finds the thread falling asleep
                // again, is for another sleep.
                self.settle_pending_wakeup(woken.time_ns, tally);
                self.woken = Some(woken);
            }
            RunState::Unseen(_) if self.woken.is_none() => self.woken = Some(woken),
            // The thread was pre-empted in a futex call after it had set its sleeping state. Woken now, it will not
            // sleep.
            RunState::Runnable if self.preempted && woken.futex.is_some() && self.woken.is_none() => {
                self.woken = Some(woken);
            }
            _ => tally.spurious += 1,
        }
    }

    /// If the wait that was just written ended on another futex word than it began with, notes that word.
    fn moved(&mut self, woken: &PendingWakeup) {
        if let Some(word) = woken.other_word
            && let Some(wait) = self.out.waits.last_mut()
            && let WaitReason::Futex(FutexFact { words: 0, word: first, .. }) = wait.reason
            && first != word
        {
            wait.moved_to = Some(word);
        }
    }

    /// The thread becomes runnable for the first time.
    pub(in crate::timeline) fn born(&mut self, time_ns: u64, birth: Birth) {
        self.out.start = Timestamp(time_ns);
        self.out.birth = birth;
        if let [base] = self.out.base_stacks.as_mut_slice() {
            base.time = Timestamp(time_ns);
        }
        self.since_ns = time_ns;
        self.last_ns = time_ns;
        self.cut_at_start = false;
        self.woken = None;
        self.state = RunState::Runnable;
    }

    /// Another waking has ended the open sleep. This earlier one came before a sleep and prevented it: a wait of no length in
    /// the interval before.
    pub(super) fn woken_before_sleep(&mut self, woken: PendingWakeup, tally: &mut Tally) {
        let before = self.out.intervals.last().copied();
        let (Some(futex), Wake::By(wakeup), Some(Interval { start, state: State::Running { cpu }, .. })) =
            (woken.futex, woken.wake, before)
        else {
            tally.spurious += 1;
            return;
        };
        let at = Timestamp(woken.time_ns.max(start.0).min(self.since_ns));
        let index = self.no_length(at, WaitReason::Futex(futex), woken.wake, false);
        if at.0 < self.since_ns {
            let running = State::Running { cpu };
            self.out.intervals.push(Interval { start: at, state: running, first_step: self.since_step });
        }
        tally.ended_by(wakeup, index);
    }
}
