//! Waits that a time limit ended, after which the thread waited for the same thing again at once, until another thread of the
//! recording ended that. All of them are one wait, for what that thread did: CPython's threads ask every 5 ms for its lock.

use crate::program::lock_replay::Nesting;
use crate::timeline::{LockOperation, NO_OBJECT, State, Timeline, Wait, WaitReason, Wake};
use rustc_hash::{FxHashMap, FxHashSet};

/// The thread only had a look in between if it ran for at most this fraction (one part in `LOOK`) of its wait.
const LOOK: u64 = 20;
/// It may run for so long, nanoseconds.
const ANY_LOOK_NS: u64 = 10_000;

/// See the module: by thread of the timeline and wait.
#[derive(Clone, Debug, Default)]
pub(in crate::program) struct EnteredAgain(FxHashSet<(usize, u32)>);

/// The waits so far for one thing.
#[derive(Default)]
struct Open {
    waits: Vec<u32>,
    /// The thread had run for so long after the last of them, and may have a look until then, nanoseconds.
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

/// What is waited for, and where: the object and the return address of the call, or the futex word.
fn thing(wait: &Wait, used: Option<&LockOperation>) -> Option<(u64, u64)> {
    match (used, wait.reason) {
        (Some(used), _) if used.object != NO_OBJECT => Some((u64::from(used.object), used.caller)),
        (None, WaitReason::Futex(futex)) => Some((futex.word, u64::MAX)),
        _ => None,
    }
}
