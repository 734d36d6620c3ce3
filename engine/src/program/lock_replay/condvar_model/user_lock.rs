//! Locks that programs make of a mutex, a condition variable and a flag (a method of longpole's own): CPython's GIL,
//! locks with a time limit or a fair order. The mutex only guards the flag and is nearly always free; threads hold the
//! flag.
//!
//! Visits of the mutex are of two kinds, by the place where it is taken: takers wait for the condition at times, givers
//! signal it. It is a lock if, in the mutex's order, each acquisition is followed by a release of the same thread before
//! another thread acquires. Queues fail this (another thread releases), and so do pools of two (two acquire in a row). One
//! exception is enough.
//!
//! The lock goes around visits of the mutex and is simulated like others. Where that is impossible, it is replayed and its
//! holds are marked ([`Operation::Held`], [`Operation::Freed`]).

use super::super::nesting::NONE;
use super::super::sections::Sections;
use super::mutex_history::{self, MutexHistory, Uses, Visit};
use crate::program::{LockFact, ObjectId, Operation};
use crate::time::Ticks;
use crate::timeline::Timeline;
use rustc_hash::{FxHashMap, FxHashSet};

/// Fewer turns may alternate by coincidence.
const FEWEST: u64 = 8;

/// All user locks of a recording.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct UserLocks {
    /// Facts about each lock, with the index of its condition variable, and the lock's mutex.
    pub(in super::super) all: Vec<UserLock>,
    /// Marks at begins of recorded operations, and at ends.
    begins: FxHashMap<u32, Operation>,
    ends: FxHashMap<u32, Operation>,
}

/// A lock that a program builds from a mutex, a condition variable and a flag.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct UserLock {
    pub(in super::super) fact: LockFact,
    pub(in super::super) mutex: u32,
    /// Return address of a call that takes the mutex to acquire the lock.
    pub(in super::super) taken_at: u64,
}

impl UserLocks {
    /// Finds user locks. `is_decided`: whether a condition variable is simulated.
    pub(in super::super) fn of(
        timeline: &Timeline,
        sections: &Sections,
        is_decided: impl Fn(u32) -> bool,
    ) -> UserLocks {
        let mut made = UserLocks::default();
        let conditions = mutex_history::by_condition(timeline);
        let mut numbers: Vec<u32> = conditions.keys().copied().collect();
        numbers.sort_unstable();
        let mutexes: FxHashSet<u32> = conditions.values().filter_map(only_mutex).collect();
        let mut own: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (section, number) in sections.all.iter().zip(0u32..) {
            if mutexes.contains(&section.object) {
                own.entry(section.object).or_default().push(number);
            }
        }
        let mut work = 0usize;
        for condition in numbers {
            let Some(uses) = conditions.get(&condition) else { continue };
            let Some(mutex) = only_mutex(uses) else { continue };
            let own = own.get(&mutex).map_or(&[][..], Vec::as_slice);
            work = work.saturating_add(own.len());
            if work > super::MOST_WORK {
                break;
            }
            if let Some(history) = MutexHistory::of(timeline, sections, own, &uses.gives) {
                made.look(&history, sections, (mutex, condition), is_decided(condition));
            }
        }
        made
    }

    fn look(
        &mut self,
        history: &MutexHistory,
        sections: &Sections,
        (mutex, condition): (u32, u32),
        is_decided: bool,
    ) {
        let Some(turns) = Turns::of(history, sections, condition) else { return };
        let object = ObjectId(condition);
        let mut fact = LockFact { object, ..LockFact::default() };
        for turn in &turns.all {
            let waited = Ticks::from_ns(if turn.has_waited { turn.waited.max(1) } else { 0 });
            let held = Ticks::from_ns(turn.held);
            fact.acquisitions += 1;
            fact.contended += u64::from(turn.has_waited);
            fact.waited.0 = fact.waited.0.saturating_add(waited.0);
            fact.held.0 = fact.held.0.saturating_add(held.0);
            if is_decided {
                continue;
            }
            let used = |visit: u32, used: fn(&Visit) -> u32| history.visits.get(visit as usize).map(used);
            if let Some(begin) = used(turn.taken, |visit| visit.given_by) {
                self.begins.insert(begin, Operation::Held(object, waited));
            }
            if let Some(end) = used(turn.given, |visit| visit.taken_by) {
                self.ends.insert(end, Operation::Freed(object, held));
            }
        }
        self.all.push(UserLock { fact, mutex, taken_at: turns.taken_at });
    }

    /// The marks to write at the beginning of this operation, and at its end.
    pub(in super::super) fn marks(&self, number: u32) -> (Option<Operation>, Option<Operation>) {
        (self.begins.get(&number).copied(), self.ends.get(&number).copied())
    }
}

fn only_mutex(uses: &Uses) -> Option<u32> {
    match uses.mutexes[..] {
        [mutex] => Some(mutex),
        _ => None,
    }
}

/// A thread holds the lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    thread: u32,
    /// Index of the visits in which the lock is acquired and released; [`NONE`]: not recorded.
    pub(super) taken: u32,
    pub(super) given: u32,
    from: u64,
    has_waited: bool,
    waited: u64,
    held: u64,
}

pub(super) struct Turns {
    pub(super) all: Vec<Turn>,
    taken_at: u64,
}

impl Turns {
    /// The acquisitions of the lock; `None` if the condition is not that of a lock.
    pub(super) fn of(history: &MutexHistory, sections: &Sections, condition: u32) -> Option<Turns> {
        let place = |visit: u32| history.visits.get(visit as usize).map_or(0, |visit| visit.place);
        let waits = history.parts.iter().filter(|part| part.condition == condition);
        let waited: FxHashSet<u32> = waits.map(|part| part.visit).collect();
        let takers: FxHashSet<u64> = waited.iter().map(|visit| place(*visit)).collect();
        let mut givers: FxHashSet<u64> = FxHashSet::default();
        for (part, gives) in &history.gives {
            if gives.iter().any(|(object, _)| *object == condition) {
                givers.insert(place(history.parts.get(*part as usize)?.visit));
            }
        }
        if takers.is_empty() || !takers.is_disjoint(&givers) {
            return None;
        }
        // Begin of each visit.
        let mut came: FxHashMap<u32, u64> = FxHashMap::default();
        let mut all: Vec<Turn> = Vec::new();
        let mut is_held = None;
        let mut threads: FxHashSet<u32> = FxHashSet::default();
        for part in &history.parts {
            let visit = history.visits.get(part.visit as usize)?;
            let thread = sections.all.get(part.section as usize)?.thread;
            let first = *came.entry(part.visit).or_insert(part.from);
            let is_last = part.wait == NONE;
            if takers.contains(&visit.place) && is_last {
                // Acquired again without a release: a record is missing, or it is no lock.
                if is_held == Some(true) {
                    return None;
                }
                is_held = Some(true);
                threads.insert(thread);
                all.push(Turn {
                    thread,
                    taken: part.visit,
                    given: NONE,
                    from: part.to,
                    has_waited: waited.contains(&part.visit),
                    waited: part.from.saturating_sub(first),
                    held: 0,
                });
            } else if givers.contains(&visit.place) {
                match (is_held, all.last_mut()) {
                    (Some(true), Some(turn)) if turn.thread == thread => {
                        turn.given = part.visit;
                        turn.held = part.from.saturating_sub(turn.from);
                    }
                    // Acquired before the recording began.
                    (None, _) => {}
                    _ => return None,
                }
                is_held = Some(false);
            }
        }
        let taken_at = takers.iter().copied().min()?;
        (all.len() as u64 >= FEWEST && threads.len() > 1).then_some(Turns { all, taken_at })
    }
}
