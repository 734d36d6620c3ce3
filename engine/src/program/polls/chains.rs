//! Finds timed waits that a thread begins again when their time limit ends.

use super::occupied::Occupied;
use super::poll::{Poll, helps, set};
use crate::event::CallKind;
use crate::program::lock_replay::Plan;
use crate::time::Timestamp;
use crate::timeline::{External, State, Thread, Wait, WaitReason, Wake};
use rustc_hash::FxHashMap;

/// A check takes at most this fraction (one part in `LOOK`) of the preceding wait. A thread that computes longer does
/// real work.
const LOOK: u64 = 20;
/// After a short sleep, a check may always take this long, nanoseconds.
const ANY_LOOK_NS: u64 = 10_000;
/// Sleeps last up to 50 µs longer than requested (the kernel's timer slack), so a sleep below this length was mostly slack,
/// nanoseconds.
const SHORT_SLEEP_NS: u64 = 100_000;
/// Stands for a futex word, for sleeps that do not wait for time.
const WHATEVER: u64 = u64::MAX;

/// A wait that its time limit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Limited {
    pub(super) wait: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Whether the thread only made a check and waited again; `None` if it did not wait again.
    looks: Option<bool>,
}

/// Successive waits of a thread for the same thing, and whether a recorded thread ended the wait after them.
type Chain = (Vec<Limited>, bool);

/// A thread's waits for one thing that were ended by time limits.
#[derive(Clone, Debug, Default)]
struct OneThing {
    /// Waits since the thread last woke another thread, or since one of its waits for the thing ended in another way.
    open: Vec<Limited>,
    /// Longest check after the last of the open waits, and the thread's running time before it, ns.
    looking: (u64, u64),
    /// Earlier waits.
    chains: Vec<Chain>,
}

impl OneThing {
    /// The thread waits again; `ran` is its running time so far, ns.
    fn looked(&mut self, ran: u64) {
        if let Some(last) = self.open.last_mut() {
            let (most, before) = self.looking;
            last.looks.get_or_insert(ran.saturating_sub(before) <= most);
        }
    }

    /// The thread woke another one, so it did more than a check.
    fn acted(&mut self) {
        if let Some(last) = self.open.last_mut() {
            last.looks.get_or_insert(false);
        }
        self.close(false);
    }

    fn close(&mut self, by_thread: bool) {
        let open = std::mem::take(&mut self.open);
        if !open.is_empty() {
            self.chains.push((open, by_thread));
        }
    }

    /// Whether the thread mostly did nothing but a check when its time limits ended.
    fn is_polled(&self) -> bool {
        let all = || self.chains.iter().flat_map(|(waits, _)| waits).chain(&self.open);
        let looks = all().filter(|wait| wait.looks == Some(true)).count();
        looks > 0 && 2 * looks >= all().count()
    }
}

/// What a thread's own waits show about its timed waits.
pub(super) struct Chains {
    pub(super) polls: Vec<Poll>,
    /// Waits after which the thread continued although it does not depend on time, each with the earlier waits of its
    /// chain.
    pub(super) gone_on: Vec<(Limited, Vec<u32>)>,
}

impl Chains {
    /// The chains of a thread's waits. `occupied`: for a housekeeping thread, when other threads of its process have
    /// work.
    pub(super) fn of(index: usize, thread: &Thread, plan: &Plan, occupied: Option<&Occupied>) -> Chains {
        let mut chains = Chains { polls: vec![Poll::Time; thread.waits.len()], gone_on: Vec::new() };
        if !thread.waits.iter().any(|wait| matches!(wait.wake, Wake::External(External::Timer))) {
            return chains;
        }
        // A thread that acts after every sleep depends on time: only its short sleeps are for other threads.
        let looks = |things: &Things| things.of.get(&WHATEVER).is_some_and(OneThing::is_polled);
        let things = occupied.map(|occupied| Things::of(thread, plan, Some(occupied))).filter(looks);
        let Things { of: things, goes_on } = things.unwrap_or_else(|| Things::of(thread, plan, None));
        for (what, mut thing) in things {
            if goes_on || what == WHATEVER {
                thing.close(false);
            }
            let is_polled = what == WHATEVER || thing.is_polled();
            for (waits, by_thread) in thing.chains {
                let is_decided = waits.iter().any(|limited| plan.is_decided(index, limited.wait));
                chains.add(&waits, by_thread, is_polled && !is_decided);
            }
        }
        chains.gone_on.sort_unstable();
        chains
    }

    fn add(&mut self, waits: &[Limited], by_thread: bool, is_polled: bool) {
        let numbers = |waits: &[Limited]| waits.iter().map(|limited| limited.wait).collect::<Vec<u32>>();
        if !is_polled {
            if by_thread {
                set(&mut self.polls, numbers(waits), Poll::Nothing);
            }
            return;
        }
        for part in waits.split_inclusive(|limited| limited.looks != Some(true)) {
            match part.split_last() {
                Some((last, before)) if last.looks != Some(true) => {
                    self.gone_on.push((*last, numbers(before)));
                }
                _ if by_thread => set(&mut self.polls, numbers(part), Poll::Nothing),
                // No waker is known, so the thread waited for time.
                _ => {}
            }
        }
    }
}

/// Whether a thread sleeps for longer than the kernel's timer slack.
pub(super) fn sleeps(thread: &Thread) -> bool {
    let is_sleep = |wait: &Wait| {
        wait.kind() == CallKind::Sleep
            && matches!(wait.wake, Wake::External(External::Timer))
            && !wait.has_deadline()
    };
    let is_long = |(start, end, state): (Timestamp, Timestamp, State)| {
        matches!(state, State::Blocked(number)
            if end.0.saturating_sub(start.0) > SHORT_SLEEP_NS
                && thread.waits.get(number as usize).is_some_and(is_sleep))
    };
    thread.spans().any(is_long)
}

/// A thread's waits by the thing that [`thing`] returns.
struct Things {
    of: FxHashMap<u64, OneThing>,
    /// Whether the thread wakes another one after the last of its waits.
    goes_on: bool,
}

impl Things {
    fn of(thread: &Thread, plan: &Plan, occupied: Option<&Occupied>) -> Things {
        let mut things: FxHashMap<u64, OneThing> = FxHashMap::default();
        // Things with open waits.
        let mut open: Vec<u64> = Vec::new();
        let (mut seen, mut ran) = (0, 0_u64);
        for ((start, end, state), interval) in thread.spans().zip(&thread.intervals) {
            let length = end.0.saturating_sub(start.0);
            let State::Blocked(number) = state else {
                let running = matches!(state, State::Running { .. });
                ran = ran.saturating_add(if running { length } else { 0 });
                continue;
            };
            let mut until = interval.first_step as usize;
            // Steps at the time at which a wait begins precede the wait.
            while thread.steps.get(until).is_some_and(|step| step.time.0 <= start.0) {
                until += 1;
            }
            let steps = thread.steps.get(seen..until).unwrap_or_default();
            seen = seen.max(until);
            if !open.is_empty() && steps.iter().any(|step| helps(step.kind, plan)) {
                for what in open.drain(..) {
                    things.entry(what).or_default().acted();
                }
            }
            if let Some(sleeps) = things.get_mut(&WHATEVER) {
                sleeps.looked(ran);
            }
            let Some(wait) = thread.waits.get(number as usize) else { continue };
            let Some(what) = thing(wait, (start.0, end.0), occupied) else { continue };
            let by_limit = matches!(wait.wake, Wake::External(External::Timer));
            if by_limit {
                let thing = things.entry(what).or_default();
                thing.looked(ran);
                if thing.open.is_empty() {
                    open.push(what);
                }
                thing.open.push(Limited { wait: number, start: start.0, end: end.0, looks: None });
                let look = length / LOOK;
                thing.looking = (if what == WHATEVER { look.max(ANY_LOOK_NS) } else { look }, ran);
            } else if let Some(thing) = things.get_mut(&what) {
                thing.looked(ran);
                if let Wake::By(_) = wait.wake {
                    thing.close(true);
                } else {
                    thing.open.clear();
                }
            }
        }
        let steps = thread.steps.get(seen..).unwrap_or_default();
        let goes_on = steps.iter().any(|step| helps(step.kind, plan));
        Things { of: things, goes_on }
    }
}

/// A number for the thing that a wait is for. It is the eight bytes around a futex word, since glibc's condition
/// variables have two words there, one for each group of waiters. All short sleeps have the same value, and all sleeps
/// of a housekeeping thread while others have work.
fn thing(wait: &Wait, (start, end): (u64, u64), occupied: Option<&Occupied>) -> Option<u64> {
    match wait.reason {
        WaitReason::Futex(futex) => Some(futex.word & !7),
        WaitReason::Kernel { .. } => {
            let sleeps = wait.kind() == CallKind::Sleep && !wait.has_deadline();
            let is_over = sleeps && matches!(wait.wake, Wake::External(External::Timer));
            let is_short = || end.saturating_sub(start) <= SHORT_SLEEP_NS;
            let is_beside = || occupied.is_some_and(|occupied| occupied.covers(start, end));
            (is_over && (is_short() || is_beside())).then_some(WHATEVER)
        }
    }
}
