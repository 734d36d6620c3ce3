//! Lowers recorded operations: into operations at their begin and end, and whether the computing in between is the thread's
//! own work or the cost of a wait.

use super::condvar_model::CondvarModel;
use super::contention::Contention;
use super::decision::ReplayDecisions;
use super::join_order::JoinOrder;
use super::nesting::{NONE, Nesting};
use super::object_init::ObjectInit;
use super::sections::{Section, Sections};
use super::threads::Threads;
use crate::event::{Effect, SyncObject, effect, may_wait};
use crate::program::{EdgeId, ObjectId, Operation, ThreadId};
use crate::time::Ticks;
use crate::timeline::{LockOperation, Timeline};
use probe_abi::OperationFlags;
use rustc_hash::{FxHashMap, FxHashSet};

/// All that is known of a recording's operations.
#[derive(Clone, Debug)]
pub(super) struct Known<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) nesting: Nesting,
    pub(super) contention: Contention,
    pub(super) sections: Sections,
    pub(super) joined: Threads,
    pub(super) decisions: ReplayDecisions,
    pub(super) object_init: ObjectInit,
    pub(super) conditions: CondvarModel,
    /// `once` objects whose code does more than compute: index of their edge, counted from `first_extra_edge`.
    pub(super) extra_edges: FxHashMap<u32, usize>,
    pub(super) first_extra_edge: usize,
    /// Joins by a thread with a lock that the joined thread had used.
    pub(super) join_order: JoinOrder,
    /// Index in the timeline → index in the program.
    pub(super) numbers: &'a FxHashMap<u32, ThreadId>,
    /// Whether operations of threads that were alone in their process are missing.
    pub(super) left_out: bool,
}

/// The lowered form of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lowered {
    pub(super) begin: Vec<Operation>,
    pub(super) end: Vec<Operation>,
    /// Computing inside is the cost of waiting, or of waking waiters.
    pub(super) muted: bool,
}

impl Known<'_> {
    /// Lowers this operation. `passed` has the `once` objects that the thread has used before.
    pub(super) fn lower(&self, number: u32, passed: &mut FxHashSet<u32>) -> Lowered {
        let mut lowered = Lowered::default();
        let Some(used) = self.timeline.lock_operations.get(number as usize) else { return lowered };
        let object = ObjectId(used.object);
        let simulated = self.decisions.is_simulated(used.object);
        match effect(used.operation) {
            Effect::Await => self.condition_wait(number, used, &mut lowered),
            Effect::Signal => {
                self.conditions.gives(number, &mut lowered.begin);
                lowered.muted = self.has_waker(number) && self.conditions.is_simulated(used.object);
            }
            Effect::Meet if simulated && matches!(used.outcome, 0 | -1) => {
                if let Some(count) = self.object_init.barriers.get(&used.object) {
                    lowered.end.push(Operation::Barrier(object, *count));
                }
                lowered.muted = self.is_held_up(number);
            }
            Effect::TakeOne { tries } if simulated && used.outcome == 0 => {
                // A try-operation that waited with a lock held could deadlock: others may wait for that lock.
                if !tries || !self.holds_any(number) {
                    lowered.end.push(Operation::SemWait(object));
                }
                lowered.muted = self.is_held_up(number);
            }
            Effect::AddOne if simulated && used.outcome == 0 => {
                lowered.begin.push(Operation::SemPost(object));
                lowered.muted = self.is_held_up(number);
            }
            Effect::Join { tries } => self.join(number, tries, &mut lowered),
            Effect::RunOnce if simulated && used.outcome == 0 => {
                self.once(number, used, passed, &mut lowered)
            }
            _ => self.lock(number, &mut lowered),
        }
        lowered
    }

    /// Releases a lock that the thread held before this operation and may have released where operations are missing.
    pub(super) fn forget(&self, number: u32, section: u32, lowered: &mut Lowered) {
        let Some(operation) = self.give_at_hole(section) else { return };
        let section = self.sections.all.get(section as usize);
        let late = section.is_some_and(|section| self.is_late(number, section));
        let list = if late { &mut lowered.end } else { &mut lowered.begin };
        list.insert(0, operation);
    }

    /// The release of a lock that a thread held when operations went missing.
    pub(super) fn give_at_hole(&self, section: u32) -> Option<Operation> {
        let section = self.sections.all.get(section as usize)?;
        (!self.decisions.is_lost(section.object)).then(|| self.give(section, 0))
    }

    /// Whether the simulation decides this wait of a thread: the wait and its wake-up then leave no operation.
    pub(super) fn decides(&self, thread: usize, wait: usize) -> bool {
        let number = self.nesting.of_wait(thread, wait).unwrap_or(NONE);
        let (Some(used), Some(wait)) = (
            self.timeline.lock_operations.get(number as usize),
            self.timeline.threads.get(thread).and_then(|thread| thread.waits.get(wait)),
        ) else {
            return false;
        };
        if !super::nesting::may_be_for_an_object(wait) || !may_wait(used.operation) {
            return false;
        }
        let awaited = super::decision::awaited(self.timeline, used, wait);
        let simulated = self.decisions.is_simulated(awaited);
        match effect(used.operation) {
            Effect::Await if awaited == used.object => self.conditions.decides(number),
            Effect::Await => simulated,
            Effect::Signal => true,
            Effect::Join { .. } => self.joins(number).is_some(),
            _ if !matches!(used.outcome, 0 | -1 | super::sections::EOWNERDEAD) => false,
            Effect::Meet => simulated && self.object_init.barriers.contains_key(&used.object),
            Effect::RunOnce => simulated && self.object_init.onces.contains_key(&used.object),
            _ => simulated,
        }
    }

    fn lock(&self, number: u32, lowered: &mut Lowered) {
        let index = number as usize;
        let section = |list: &[u32]| {
            let section = list.get(index).copied().unwrap_or(NONE);
            self.sections.all.get(section as usize).filter(|section| !self.decisions.is_lost(section.object))
        };
        if let Some(given) = section(&self.sections.given) {
            let late = self.is_late(number, given);
            let list = if late { &mut lowered.end } else { &mut lowered.begin };
            self.conditions.before_give(number, list);
            list.push(self.give(given, given.to.saturating_sub(given.from)));
            list.extend(self.join_order.released_by(number).map(Operation::Release));
            lowered.muted = self.is_simulated(given) && self.is_held_up(number);
        }
        if let Some(taken) = section(&self.sections.taken) {
            self.conditions.before_take(number, &mut lowered.end);
            lowered.end.push(self.take(taken));
            // The release may be the first operation that was not recorded; no other thread can have waited for it.
            let section = self.sections.taken.get(index).copied().unwrap_or(NONE);
            if self.left_out && self.is_open(taken.thread, section) {
                lowered.end.push(self.give(taken, 0));
            }
            lowered.muted = self.is_simulated(taken) && self.is_held_up(number);
        }
    }

    fn condition_wait(&self, number: u32, used: &LockOperation, lowered: &mut Lowered) {
        let given = self.sections.given.get(number as usize).copied().unwrap_or(NONE);
        let has_mutex = given != NONE;
        if !(has_mutex && self.conditions.keeps_mutex(number)) {
            self.lock(number, lowered);
            self.conditions.gives(number, &mut lowered.begin);
        }
        lowered.muted = self.decisions.is_simulated(used.second);
    }

    fn join(&self, number: u32, tries: bool, lowered: &mut Lowered) {
        let Some(child) = self.joins(number) else { return };
        // A try-join with a lock held must not wait, like a try-operation on a semaphore.
        if !tries || !self.holds_any(number) {
            for (section, edge) in self.join_order.awaited_by(number) {
                let Some(section) = self.sections.all.get(*section as usize) else { continue };
                lowered.end.extend([self.give(section, 0), Operation::Await(*edge), self.take(section)]);
            }
            lowered.end.push(Operation::Join(child));
        }
        lowered.muted = self.is_held_up(number);
    }

    /// The program's thread that a join waits for.
    fn joins(&self, number: u32) -> Option<ThreadId> {
        self.numbers.get(&self.joined.joined(number)?).copied()
    }

    /// If the code of a `once` only computes, the first thread to arrive runs it; otherwise the thread that ran it in
    /// the recording does.
    fn once(&self, number: u32, used: &LockOperation, passed: &mut FxHashSet<u32>, lowered: &mut Lowered) {
        let Some(&runner) = self.object_init.onces.get(&used.object) else { return };
        if !passed.insert(used.object) {
            return;
        }
        let edge =
            self.extra_edges.get(&used.object).map(|gate| edge(self.first_extra_edge.saturating_add(*gate)));
        match (self.plain_once(runner), edge) {
            (Some(length), _) => {
                lowered.end.push(Operation::Once(ObjectId(used.object), length));
                lowered.muted = number == runner || self.is_held_up(number);
            }
            (None, Some(edge)) if number == runner => lowered.end.push(Operation::Release(edge)),
            (None, Some(edge)) => {
                let done = self
                    .timeline
                    .lock_operations
                    .get(runner as usize)
                    .map_or(u64::MAX, |runner| runner.ended.0);
                if used.ended.0 >= done {
                    lowered.end.push(Operation::Await(edge));
                }
                lowered.muted = self.is_held_up(number);
            }
            (None, None) => {}
        }
    }

    /// The computing of a `once` initialization, if it does nothing else.
    pub(super) fn plain_once(&self, runner: u32) -> Option<Ticks> {
        let used = self.timeline.lock_operations.get(runner as usize)?;
        let is_plain = used.flags & OperationFlags::RAN != 0 && self.nesting.is_plain(runner);
        is_plain.then(|| Ticks::from_ns(super::contention::ran(self.timeline, used)))
    }

    /// Whether the operation waited, or woke a waiter.
    fn is_held_up(&self, number: u32) -> bool {
        self.contention.contended.get(number as usize) == Some(&true) || self.has_waker(number)
    }

    fn has_waker(&self, number: u32) -> bool {
        self.nesting.woke.get(number as usize) == Some(&true)
    }

    /// Whether the thread holds a lock during this operation.
    fn holds_any(&self, number: u32) -> bool {
        self.sections.holding.contains(&number)
    }

    /// Whether the operation begins before the section that it ends began; that happens only in malformed recordings.
    fn is_late(&self, number: u32, given: &Section) -> bool {
        !self.nesting.is_after(number, given.taken_by)
    }

    pub(super) fn is_simulated(&self, section: &Section) -> bool {
        self.decisions.is_simulated(section.object) && !section.tried_under_another
    }

    fn take(&self, section: &Section) -> Operation {
        let object = ObjectId(section.object);
        let kind = self.timeline.locks.get(section.object as usize).map(|lock| lock.kind);
        match kind {
            _ if !self.is_simulated(section) => Operation::Held(object, Ticks::from_ns(section.waited)),
            Some(SyncObject::RwLock) if section.reads => Operation::ReadLock(object),
            Some(SyncObject::RwLock) => Operation::WriteLock(object),
            Some(SyncObject::SpinLock) => Operation::SpinLock(object),
            _ => Operation::Lock(object),
        }
    }

    /// The release of a section. `held_ns`: time held, for a replayed lock.
    pub(super) fn give(&self, section: &Section, held_ns: u64) -> Operation {
        let object = ObjectId(section.object);
        let kind = self.timeline.locks.get(section.object as usize).map(|lock| lock.kind);
        match kind {
            _ if !self.is_simulated(section) => Operation::Freed(object, Ticks::from_ns(held_ns)),
            Some(SyncObject::RwLock) => Operation::ReadWriteUnlock(object),
            Some(SyncObject::SpinLock) => Operation::SpinUnlock(object),
            _ => Operation::Unlock(object),
        }
    }

    /// Whether the thread still holds the lock of this section when the thread ends.
    fn is_open(&self, thread: u32, section: u32) -> bool {
        self.sections.open.get(thread as usize).is_some_and(|open| open.contains(&section))
    }

    /// Releases of locks that the thread still holds at its end. In the simulation other threads may take these locks
    /// later.
    pub(super) fn at_end(&self, thread: usize) -> Vec<Operation> {
        let open = self.sections.open.get(thread).filter(|_| !self.left_out).map_or(&[][..], Vec::as_slice);
        let sections = open.iter().filter_map(|&section| self.sections.all.get(section as usize));
        sections.filter(|section| self.is_simulated(section)).map(|section| self.give(section, 0)).collect()
    }
}

/// The edge with this number, counted after the edges of wake-ups.
pub(super) fn edge(number: usize) -> EdgeId {
    EdgeId(u32::try_from(number).unwrap_or(u32::MAX))
}
