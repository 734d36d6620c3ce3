//! What threads did while they held the mutex of a condition variable. A *visit* goes from taking the mutex to
//! releasing it; waits for conditions divide it into parts. The mutex puts all parts in one order.

use super::super::nesting::NONE;
use super::super::sections::Sections;
use crate::event::{Effect, effect};
use crate::timeline::{NO_OBJECT, Timeline};
use probe_abi::SyncOperation as S;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// The kernel's `ETIMEDOUT`.
const TIMED_OUT: i32 = 110;

/// A visit: the time in which a thread holds the mutex, including its waits for a condition in between.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    /// The operation that took the mutex.
    pub(super) taken_by: u32,
    /// The operation that finally released the mutex; [`NONE`]: not recorded.
    pub(super) given_by: u32,
    /// Return address of the call that took the mutex.
    pub(super) place: u64,
    /// Hash of `place`, the place of the release, and the signals given with the mutex held.
    pub(super) shape: u64,
    /// The beginning of the visit was not recorded.
    pub(super) is_cut: bool,
}

/// A stretch of a visit with the mutex held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) visit: u32,
    pub(super) section: u32,
    pub(super) from: u64,
    pub(super) to: u64,
    /// The condition wait that ends the part, and the condition variable; `NONE` and `NO_OBJECT` if the part ends
    /// otherwise.
    pub(super) wait: u32,
    pub(super) condition: u32,
    pub(super) timed_out: bool,
}

/// A signal or a broadcast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Give {
    pub(super) used: u32,
    pub(super) is_broadcast: bool,
    /// Given while the thread held the mutex, not later.
    pub(super) is_inside: bool,
}

/// All visits of one mutex, by all threads.
#[derive(Clone, Debug, Default)]
pub(super) struct MutexHistory {
    pub(super) visits: Vec<Visit>,
    /// Ordered by time.
    pub(super) parts: Vec<Part>,
    /// For each part, by its index in `parts`: signals given in the part, or after it and before the thread's next
    /// part.
    pub(super) gives: FxHashMap<u32, Vec<(u32, Give)>>,
}

/// All operations on one condition variable.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    pub(super) waits: Vec<u32>,
    pub(super) gives: Vec<u32>,
    /// The mutexes that threads used in waits for the condition variable.
    pub(super) mutexes: Vec<u32>,
}

/// Collects the operations on each condition variable, by the variable's index.
pub(super) fn by_condition(timeline: &Timeline) -> FxHashMap<u32, Uses> {
    let mut all: FxHashMap<u32, Uses> = FxHashMap::default();
    for (used, number) in timeline.lock_operations.iter().zip(0u32..) {
        if used.object == NO_OBJECT {
            continue;
        }
        match effect(used.operation) {
            Effect::Await => {
                let uses = all.entry(used.object).or_default();
                uses.waits.push(number);
                if !uses.mutexes.contains(&used.second) {
                    uses.mutexes.push(used.second);
                }
            }
            Effect::Signal => {
                all.entry(used.object).or_default().gives.push(number);
            }
            _ => {}
        }
    }
    all
}

impl MutexHistory {
    /// The visits of a mutex, with the signals of its conditions.
    ///
    /// `sections` must be those of the mutex, ascending and so ordered by thread and time. `None` if a thread signals
    /// without having had the mutex before.
    pub(super) fn of(
        timeline: &Timeline,
        all: &Sections,
        sections: &[u32],
        gives: &[u32],
    ) -> Option<MutexHistory> {
        let mut history = MutexHistory::default();
        // For each section in `sections`: its visit.
        let mut visits: Vec<u32> = Vec::with_capacity(sections.len());
        for &number in sections {
            let section = all.all.get(number as usize)?;
            let caller =
                |used: u32| timeline.lock_operations.get(used as usize).map_or(0, |used| used.caller);
            let before = if section.after_wait {
                let before = all.given.get(section.taken_by as usize);
                let place = before.and_then(|before| sections.binary_search(before).ok());
                place.and_then(|place| visits.get(place)).copied()
            } else {
                None
            };
            let visit = before.unwrap_or_else(|| {
                history.visits.push(Visit {
                    taken_by: section.taken_by,
                    given_by: NONE,
                    place: caller(section.taken_by),
                    shape: 0,
                    is_cut: section.after_wait,
                });
                u32::try_from(history.visits.len() - 1).unwrap_or(NONE)
            });
            visits.push(visit);
            let ends_in = timeline.lock_operations.get(section.given_by as usize);
            let waits = ends_in.filter(|used| effect(used.operation) == Effect::Await);
            if waits.is_none()
                && let Some(visit) = history.visits.get_mut(visit as usize)
            {
                visit.given_by = section.given_by;
            }
            history.parts.push(Part {
                visit,
                section: number,
                from: section.from,
                to: section.to,
                wait: waits.map_or(NONE, |_| section.given_by),
                condition: waits.map_or(NO_OBJECT, |used| used.object),
                timed_out: waits.is_some_and(|used| used.outcome == TIMED_OUT),
            });
        }
        history.attach(timeline, all, gives)?;
        history.shape(timeline);
        Some(history)
    }

    /// Sorts the parts, and adds each signal to the part in or after which it was given.
    fn attach(&mut self, timeline: &Timeline, all: &Sections, gives: &[u32]) -> Option<()> {
        self.parts.sort_by_key(|part| (part.from, part.to, part.section));
        let mut by_thread: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (part, place) in self.parts.iter().zip(0u32..) {
            let thread = all.all.get(part.section as usize)?.thread;
            by_thread.entry(thread).or_default().push(place);
        }
        for &number in gives {
            let used = timeline.lock_operations.get(number as usize)?;
            let own = by_thread.get(&used.thread)?;
            let from = |place: u32| self.parts.get(place as usize).map_or(0, |part| part.from);
            let after = own.partition_point(|&place| from(place) <= used.began.0);
            let place = *own.get(after.checked_sub(1)?)?;
            let part = self.parts.get(place as usize)?;
            let is_open = all.all.get(part.section as usize)?.given_by == NONE;
            let give = Give {
                used: number,
                is_broadcast: used.operation == S::ConditionBroadcast,
                is_inside: is_open || used.began.0 < part.to,
            };
            self.gives.entry(place).or_default().push((used.object, give));
        }
        Some(())
    }

    fn shape(&mut self, timeline: &Timeline) {
        let mut hashes: Vec<FxHasher> = vec![FxHasher::default(); self.visits.len()];
        for (part, place) in self.parts.iter().zip(0u32..) {
            let Some(hash) = hashes.get_mut(part.visit as usize) else { continue };
            for (object, give) in self.gives.get(&place).into_iter().flatten() {
                let caller = timeline.lock_operations.get(give.used as usize).map_or(0, |used| used.caller);
                (object, give.is_broadcast, caller).hash(hash);
            }
        }
        for (visit, mut hash) in self.visits.iter_mut().zip(hashes) {
            let given_at =
                timeline.lock_operations.get(visit.given_by as usize).map_or(0, |used| used.caller);
            (visit.place, given_at).hash(&mut hash);
            visit.shape = hash.finish();
        }
    }
}
