//! Finds the purpose of condition variables (a method of longpole's own).
//!
//! Replayed signals would be lost as soon as their order changes, and a thread that did not wait on one CPU may have to on
//! eight. The condition itself is not recorded, but which threads waited when, and which did not, shows its purpose:
//!
//! 1. *A barrier* (`barrier`), 2. *a lock* (`user_lock`), 3. *a count* (`semaphore`): the condition becomes a `barrier`, or
//!    operations of a lock or a semaphore around the mutex. Accepted only if every recorded wait, and every visit without
//!    one, agrees.
//! 4. Otherwise it is replayed: the mutex is released, the recorded wake-up awaited and the mutex taken again. A signal
//!    without a waiter then has no effect, so no signal can be lost.

mod barrier;
mod mutex_history;
mod semaphore;
mod user_lock;

use super::decision::ReplayDecisions;
use super::forced_replay::ForcedReplay;
use super::nesting::NONE;
use super::sections::Sections;
use crate::event::SyncObject;
use crate::program::{ObjectId, Operation};
use crate::timeline::Timeline;
use barrier::BarrierPattern;
use mutex_history::{MutexHistory, Uses};
use rustc_hash::{FxHashMap, FxHashSet};
use semaphore::{Counted, Giving, Kind, Question};
use std::collections::{BTreeMap, BTreeSet};
use user_lock::Turns;
pub(super) use user_lock::{UserLock, UserLocks};

/// Largest product of a mutex's visits and its conditions that is examined. With more, the conditions are replayed.
const MOST_WORK: usize = 20_000_000;

/// Largest number of distances between mutexes and conditions that are tried.
const MOST_DISTANCES: usize = 64;

/// The purposes of a recording's condition variables, by recorded operation.
#[derive(Clone, Debug, Default)]
pub(super) struct CondvarModel {
    /// Waits decided by the simulation.
    decided: FxHashSet<u32>,
    /// Waits during which the thread keeps the mutex, because it waits before it takes the mutex.
    keeps: FxHashSet<u32>,
    /// Operations at the begin of a signal, a broadcast or a wait.
    gives: FxHashMap<u32, Vec<Operation>>,
    /// Operations to write before a mutex is taken or released.
    before_take: FxHashMap<u32, Vec<Operation>>,
    before_give: FxHashMap<u32, Vec<Operation>>,
    simulated: FxHashSet<u32>,
    /// Initial counts of semaphores.
    pub(super) first: Vec<Operation>,
    /// Condition variables that are replayed.
    pub(super) replayed: Vec<u32>,
    /// Condition variables that are signalled but never waited for.
    pub(super) unawaited: Vec<u32>,
}

/// The purpose of a condition. It is used for other conditions of the same kind: those at the same distance from their
/// mutex, as in objects of one type.
#[derive(Clone, Debug)]
struct Lesson {
    giving: Giving,
    takers: FxHashSet<u64>,
    initial: u32,
}

impl CondvarModel {
    /// Examines all condition variables except those that `forced` keeps as recorded.
    pub(super) fn of(
        timeline: &Timeline,
        sections: &Sections,
        decisions: &ReplayDecisions,
        forced: &ForcedReplay,
    ) -> CondvarModel {
        let mut conditions = CondvarModel::default();
        let all = mutex_history::by_condition(timeline);
        let is_open = |object: u32| decisions.is_simulated(object) && !forced.is_kept_as_recorded(object);
        let by_mutex = conditions.sort(timeline, &all, is_open);
        let mut own: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (section, number) in sections.all.iter().zip(0u32..) {
            if by_mutex.contains_key(&section.object) {
                own.entry(section.object).or_default().push(number);
            }
        }
        let mut histories: BTreeMap<u32, Option<MutexHistory>> = BTreeMap::new();
        for (mutex, of_mutex) in &by_mutex {
            let own = own.get(mutex).map_or(&[][..], Vec::as_slice);
            let gives = of_mutex.iter().filter_map(|condition| all.get(condition));
            let gives: Vec<u32> = gives.flat_map(|uses: &Uses| uses.gives.iter().copied()).collect();
            let history = MutexHistory::of(timeline, sections, own, &gives);
            let work = own.len().saturating_mul(of_mutex.len());
            let is_whole = |history: &MutexHistory| {
                work <= MOST_WORK && history.visits.iter().all(|visit| !visit.is_cut)
            };
            histories.insert(*mutex, history.filter(is_whole));
        }
        let pairs =
            || by_mutex.iter().flat_map(|(mutex, list)| list.iter().map(|condition| (*mutex, *condition)));
        let (awaited, others): (Vec<_>, Vec<_>) =
            pairs().partition(|(_, condition)| all.get(condition).is_some_and(|uses| !uses.waits.is_empty()));
        let mut lessons: FxHashMap<u64, Lesson> = FxHashMap::default();
        for (mutex, condition) in awaited {
            let history = histories.get(&mutex).and_then(Option::as_ref);
            match history.and_then(|history| conditions.understand(history, sections, mutex, condition)) {
                Some(Some(lesson)) => {
                    lessons.entry(distance(timeline, mutex, condition)).or_insert(lesson);
                }
                Some(None) => {}
                None => conditions.replayed.push(condition),
            }
        }
        for (mutex, condition) in others {
            let history = histories.get(&mutex).and_then(Option::as_ref);
            let lesson = lessons.get(&distance(timeline, mutex, condition));
            if !history
                .zip(lesson)
                .is_some_and(|(history, lesson)| conditions.infer(history, condition, lesson))
            {
                conditions.unawaited.push(condition);
            }
        }
        conditions.replayed.sort_unstable();
        conditions.unawaited.sort_unstable();
        conditions
    }

    /// The conditions of each mutex: those waited for with it, and those never waited for whose distance from it is the same
    /// as that of other conditions from their mutex.
    fn sort(
        &mut self,
        timeline: &Timeline,
        all: &FxHashMap<u32, Uses>,
        is_open: impl Fn(u32) -> bool,
    ) -> BTreeMap<u32, Vec<u32>> {
        let mut by_mutex: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut distances: BTreeSet<u64> = BTreeSet::new();
        let mut numbers: Vec<u32> = all.keys().copied().collect();
        numbers.sort_unstable();
        let mut unawaited = Vec::new();
        for number in numbers {
            let Some(uses) = all.get(&number) else { continue };
            match uses.mutexes.as_slice() {
                [] => unawaited.push(number),
                [mutex] if is_open(*mutex) && is_open(number) => {
                    distances.insert(distance(timeline, *mutex, number));
                    by_mutex.entry(*mutex).or_default().push(number);
                }
                _ => self.replayed.push(number),
            }
        }
        let mut mutexes: FxHashMap<(u32, u64), u32> = FxHashMap::default();
        for (lock, number) in
            timeline.locks.iter().zip(0u32..).filter(|(lock, _)| lock.kind == SyncObject::Mutex)
        {
            mutexes.insert((lock.pid, lock.address), number);
        }
        for number in unawaited {
            let lock = timeline.locks.get(number as usize);
            let near = distances.iter().take(MOST_DISTANCES).filter_map(|distance| {
                mutexes.get(&(lock?.pid, lock?.address.wrapping_sub(*distance))).copied()
            });
            match near.collect::<Vec<u32>>().as_slice() {
                [mutex] if is_open(*mutex) && is_open(number) => {
                    by_mutex.entry(*mutex).or_default().push(number);
                }
                _ => self.unawaited.push(number),
            }
        }
        by_mutex
    }

    /// Finds the purpose of a condition; `None` if that fails. The inner value is what applies to others of its kind.
    fn understand(
        &mut self,
        history: &MutexHistory,
        sections: &Sections,
        mutex: u32,
        condition: u32,
    ) -> Option<Option<Lesson>> {
        let ask = |kind| Question { history, condition, kind, takers: FxHashSet::default() };
        let by_place = ask(Kind::Place);
        if let Some(barrier) = by_place.as_barrier() {
            self.barrier(history, sections, mutex, condition, &barrier);
            return Some(None);
        }
        if let Some(turns) = Turns::of(history, sections, condition) {
            self.locked(history, condition, &turns);
            return Some(None);
        }
        let by_visit = [Giving::Visits, Giving::Countdown, Giving::Signals, Giving::Broadcasts];
        for kind in [Kind::Place, Kind::Shape] {
            let question = ask(kind);
            for giving in by_visit {
                if let Some(counted) = question.ask(giving) {
                    self.counted(history, condition, &counted);
                    let lesson = Lesson { giving, takers: question.takers(), initial: counted.initial };
                    return Some((kind == Kind::Place).then_some(lesson));
                }
            }
        }
        let gives = history.gives.values().flatten().filter(|(object, _)| *object == condition).count();
        if gives == 1
            && let Some(counted) = by_place.ask(Giving::Opening)
        {
            self.counted(history, condition, &counted);
            return Some(None);
        }
        None
    }

    /// Finds the purpose of a condition that no thread waited for, if its recording agrees with other conditions of its
    /// kind. Its initial count is at least theirs.
    fn infer(&mut self, history: &MutexHistory, condition: u32, lesson: &Lesson) -> bool {
        let takers = lesson.takers.clone();
        let question = Question { history, condition, kind: Kind::Place, takers };
        let Some(mut counted) = question.ask(lesson.giving) else { return false };
        counted.initial = counted.initial.max(lesson.initial);
        self.counted(history, condition, &counted);
        true
    }

    fn barrier(
        &mut self,
        history: &MutexHistory,
        sections: &Sections,
        mutex: u32,
        condition: u32,
        barrier: &BarrierPattern,
    ) {
        self.simulated.insert(condition);
        let meet = Operation::Barrier(ObjectId(condition), barrier.count);
        for &wait in &barrier.waits {
            self.decided.insert(wait);
            self.gives.insert(wait, vec![meet]);
        }
        self.decided.extend(&barrier.further);
        self.keeps.extend(&barrier.further);
        let mut under: FxHashSet<u32> = FxHashSet::default();
        for (place, gives) in &history.gives {
            let section = history.parts.get(*place as usize).map(|part| part.section);
            let section = section.and_then(|section| sections.all.get(section as usize));
            if section.is_some_and(|section| !section.tried_under_another) {
                under.extend(gives.iter().filter(|(_, give)| give.is_inside).map(|(_, give)| give.used));
            }
        }
        let mutex = ObjectId(mutex);
        for &broadcast in &barrier.broadcasts {
            // The last thread in the recording need not be the last in the simulation, so it must not hold the mutex
            // while it waits.
            let list = if under.contains(&broadcast) {
                vec![Operation::Unlock(mutex), meet, Operation::Lock(mutex)]
            } else {
                vec![meet]
            };
            self.gives.insert(broadcast, list);
        }
    }

    /// A lock around the mutex: taken before the mutex, and released before the mutex.
    fn locked(&mut self, history: &MutexHistory, condition: u32, turns: &Turns) {
        self.simulated.insert(condition);
        let object = ObjectId(condition);
        let visit = |number: u32| history.visits.get(number as usize);
        for turn in &turns.all {
            if let Some(visit) = visit(turn.taken) {
                self.before_take.entry(visit.taken_by).or_default().push(Operation::Lock(object));
            }
            if let Some(visit) = visit(turn.given) {
                self.before_give.entry(visit.given_by).or_default().push(Operation::Unlock(object));
            }
        }
        for part in history.parts.iter().filter(|part| part.condition == condition) {
            self.decided.insert(part.wait);
            self.keeps.insert(part.wait);
        }
    }

    fn counted(&mut self, history: &MutexHistory, condition: u32, counted: &Counted) {
        self.simulated.insert(condition);
        let object = ObjectId(condition);
        if counted.initial > 0 {
            self.first.push(Operation::SemInit(object, counted.initial));
        }
        let visit = |number: u32| history.visits.get(number as usize);
        let many = |operation: Operation, count: u32| std::iter::repeat_n(operation, count as usize);
        let mut taken: FxHashSet<u32> = FxHashSet::default();
        for &(number, count) in &counted.takes {
            let Some(visit) = visit(number) else { continue };
            taken.insert(number);
            self.before_take
                .entry(visit.taken_by)
                .or_default()
                .extend(many(Operation::SemWait(object), count));
        }
        for &(used, count) in &counted.gives {
            self.gives.entry(used).or_default().extend(many(Operation::SemPost(object), count));
        }
        for visit in counted.given_by.iter().filter_map(|&number| visit(number)) {
            self.before_give.entry(visit.given_by).or_default().push(Operation::SemPost(object));
        }
        for part in history.parts.iter().filter(|part| part.condition == condition) {
            if taken.contains(&part.visit) {
                self.decided.insert(part.wait);
                self.keeps.insert(part.wait);
            }
        }
    }

    /// Appends the operations at the beginning of this signal, broadcast or wait.
    pub(super) fn gives(&self, number: u32, list: &mut Vec<Operation>) {
        list.extend(self.gives.get(&number).into_iter().flatten());
    }

    /// Whether a condition is simulated.
    pub(super) fn is_simulated(&self, object: u32) -> bool {
        self.simulated.contains(&object)
    }

    /// Whether the simulation decides how long this wait sleeps.
    pub(super) fn decides(&self, number: u32) -> bool {
        self.decided.contains(&number)
    }

    /// Whether the thread keeps the mutex during this wait.
    pub(super) fn keeps_mutex(&self, number: u32) -> bool {
        self.keeps.contains(&number)
    }

    /// Appends the operations before this operation releases a mutex.
    pub(super) fn before_give(&self, number: u32, list: &mut Vec<Operation>) {
        if number != NONE {
            list.extend(self.before_give.get(&number).into_iter().flatten());
        }
    }

    /// Appends the operations before this operation takes a mutex.
    pub(super) fn before_take(&self, number: u32, list: &mut Vec<Operation>) {
        list.extend(self.before_take.get(&number).into_iter().flatten());
    }
}

/// Bytes from a mutex to a condition.
fn distance(timeline: &Timeline, mutex: u32, condition: u32) -> u64 {
    let address = |object: u32| timeline.locks.get(object as usize).map_or(0, |lock| lock.address);
    address(condition).wrapping_sub(address(mutex))
}
