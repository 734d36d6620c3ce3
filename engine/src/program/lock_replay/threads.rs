//! Finds which thread a join waits for. A `pthread_t` belongs to the thread that was forked inside the create call
//! which returned it; a later thread may get the same `pthread_t`.

use crate::event::{Effect, effect};
use crate::timeline::{StepKind, Timeline};
use probe_abi::SyncOperation as S;
use rustc_hash::FxHashMap;

/// For each successful join: index in the timeline of the thread that it waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct Threads(FxHashMap<u32, u32>);

/// Process and `pthread_t` → times of forks and the threads, in order of time.
pub(in crate::program) type MadeThreads = FxHashMap<(u32, u64), Vec<(u64, u32)>>;

impl Threads {
    pub(super) fn of(timeline: &Timeline) -> Threads {
        let made = made(timeline);
        let mut joined = FxHashMap::default();
        for (used, number) in timeline.lock_operations.iter().zip(0u32..) {
            if !matches!(effect(used.operation), Effect::Join { .. }) || used.outcome != 0 {
                continue;
            }
            let pid = timeline.threads.get(used.thread as usize).map_or(0, |thread| thread.pid);
            let Some(lives) = made.get(&(pid, used.value)) else { continue };
            let before = lives.partition_point(|(forked, _)| *forked <= used.began.0);
            if let Some((_, child)) = before.checked_sub(1).and_then(|place| lives.get(place))
                && *child != used.thread
            {
                joined.insert(number, *child);
            }
        }
        Threads(joined)
    }

    /// All joins: index of the operation, and the joined thread.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.0.iter().map(|(number, child)| (*number, *child))
    }

    /// The thread that this operation joined.
    pub(super) fn joined(&self, used: u32) -> Option<u32> {
        self.0.get(&used).copied()
    }
}

/// Threads created in the window by a recorded call.
pub(in crate::program) fn made(timeline: &Timeline) -> MadeThreads {
    let mut made = MadeThreads::default();
    for thread in &timeline.threads {
        let mut forked = None;
        for step in &thread.steps {
            match step.kind {
                StepKind::Create(child) => forked = Some((step.time.0, child)),
                StepKind::Operated(number) => {
                    let Some(used) = timeline.lock_operations.get(number as usize) else { continue };
                    if used.operation == S::ThreadCreate
                        && let Some((time, child)) = forked.take()
                        && used.outcome == 0
                        && time >= used.began.0
                    {
                        made.entry((thread.pid, used.value)).or_default().push((time, child));
                    }
                }
                _ => {}
            }
        }
    }
    made.values_mut().for_each(|lives| lives.sort_unstable());
    made
}
