//! Finds timed waits that a thread entered again at once for the same thing, until another recorded thread ended the
//! last one. Together they are one wait for that other thread's work: CPython's threads ask for their lock every 5 ms.

use crate::program::lock_replay::Nesting;
use crate::timeline::{LockOperation, NO_OBJECT, State, Timeline, Wait, WaitReason, Wake};
use rustc_hash::{FxHashMap, FxHashSet};

/// A thread only made a check if it ran for at most this fraction (one part in `LOOK`) of the preceding wait.
const LOOK: u64 = 20;
/// A check may always take this long, nanoseconds.
const ANY_LOOK_NS: u64 = 10_000;

/// Such waits: index of the thread in the timeline, and of the wait.
#[derive(Clone, Debug, Default)]
pub(in crate::program) struct EnteredAgain(FxHashSet<(usize, u32)>);

/// The waits of a thread for one thing so far.
#[derive(Default)]
struct Open {
    waits: Vec<u32>,
    /// Running time of the thread until which a check after the last wait may last, nanoseconds.
    until: u64,
}

impl EnteredAgain {
    pub(in crate::program) fn of(timeline: &Timeline, nesting: &Nesting) -> EnteredAgain {
        let mut again = FxHashSet::default();
        for (index, thread) in timeline.threads.iter().enumerate() {
            if !thread.waits.iter().any(Wait::timed_out) {
                continue;
            }
            let mut open: FxHashMap<(u64, u64), Open> = FxHashMap::default();
            let mut ran = 0u64;
            for (start, end, state) in thread.spans() {
                let length_ns = end.0.saturating_sub(start.0);
                let number = match state {
                    State::Running { .. } => {
                        ran = ran.saturating_add(length_ns);
                        continue;
                    }
                    State::Blocked(number) => number,
                    _ => continue,
                };
                let Some(wait) = thread.waits.get(number as usize) else { continue };
                let used = nesting.operation(timeline, index, number);
                let Some(thing) = thing(wait, used) else { continue };
                let so_far = open.entry(thing).or_default();
                if ran > so_far.until {
                    so_far.waits.clear();
                }
                match wait.wake {
                    Wake::By(_) => again.extend(so_far.waits.drain(..).map(|wait| (index, wait))),
                    _ if wait.timed_out() => {
                        so_far.waits.push(number);
                        so_far.until = ran.saturating_add((length_ns / LOOK).max(ANY_LOOK_NS));
                    }
                    _ => so_far.waits.clear(),
                }
            }
        }
        EnteredAgain(again)
    }

    pub(in crate::program) fn contains(&self, thread: usize, wait: u32) -> bool {
        self.0.contains(&(thread, wait))
    }
}

/// A number for the thing that a wait is for: object and return address of the call around it, or its futex word.
fn thing(wait: &Wait, used: Option<&LockOperation>) -> Option<(u64, u64)> {
    match (used, wait.reason) {
        (Some(used), _) if used.object != NO_OBJECT => Some((u64::from(used.object), used.caller)),
        (None, WaitReason::Futex(futex)) => Some((futex.word, u64::MAX)),
        _ => None,
    }
}
