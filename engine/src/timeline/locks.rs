//! Who has which lock, from records of finished operations. A lock counts as taken when the call came back, and as
//! given back when its release began: between the two nobody else can have it.

use super::builder::Builder;
use super::model::{FirstUse, Lock, LockUse, StepKind};
use crate::time::{Nanos, Timestamp};
use probe_abi::{Header, Operation, OperationFlags, SyncOperation};
use rustc_hash::FxHashMap;

/// The owner of a robust mutex died: the next one has it all the same.
const EOWNERDEAD: i32 = 130;

/// All locks of a window.
#[derive(Clone, Debug, Default)]
pub(super) struct Locks {
    pub(super) all: Vec<Lock>,
    pub(super) uses: Vec<LockUse>,
    /// Process and address → the lock that lives there now.
    live: FxHashMap<(u32, u64), u32>,
    /// Process and address → the initialization of the lock that will live there.
    born: FxHashMap<(u32, u64), FirstUse>,
    /// Thread → locks that it has now: how often and since when.
    held: FxHashMap<u32, Vec<Held>>,
    /// Thread → the number of its last record, where threads number their own.
    last: FxHashMap<u32, u32>,
    /// Places where a thread's operations are missing.
    pub(super) holes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    lock: u32,
    depth: u32,
    since_ns: u64,
}

/// What an operation does to a lock.
enum Deed {
    Take,
    GiveBack,
    /// Gives the second object back while it waits, and takes it again.
    Wait,
    /// The lock at this address is a new one from here on.
    Renew,
}

fn deed(operation: SyncOperation) -> Option<(Deed, &'static str)> {
    use SyncOperation as S;
    Some(match operation {
        S::MutexLock | S::MutexTryLock | S::MutexTimedLock => (Deed::Take, "mutex"),
        S::MutexUnlock => (Deed::GiveBack, "mutex"),
        S::ConditionWait | S::ConditionTimedWait => (Deed::Wait, "mutex"),
        S::RwLockRead
        | S::RwLockTryRead
        | S::RwLockTimedRead
        | S::RwLockWrite
        | S::RwLockTryWrite
        | S::RwLockTimedWrite => (Deed::Take, "rwlock"),
        S::RwLockUnlock => (Deed::GiveBack, "rwlock"),
        S::SpinLock | S::SpinTryLock => (Deed::Take, "spin lock"),
        S::SpinUnlock => (Deed::GiveBack, "spin lock"),
        S::MutexInit | S::MutexDestroy => (Deed::Renew, "mutex"),
        S::RwLockInit | S::RwLockDestroy => (Deed::Renew, "rwlock"),
        S::SpinInit | S::SpinDestroy => (Deed::Renew, "spin lock"),
        _ => return None,
    })
}

impl Builder {
    pub(super) fn operation(&mut self, record: &Operation) {
        let header = record.header;
        let Some(thread) = self.find(header.pid, header.tid, true) else { return };
        self.past_sleep(Some(thread));
        if header.cpu == Header::NO_CPU
            && let Some(last) = self.locks.last.insert(thread, header.sequence)
            && header.sequence != last.wrapping_add(1)
        {
            self.hole(thread, header.time_ns);
        }
        let Some((deed, kind)) = SyncOperation::from_number(record.operation).and_then(deed) else { return };
        let (pid, now_ns) = (header.pid, header.time_ns);
        let first = FirstUse { time: Timestamp(now_ns), thread, caller: record.caller };
        match deed {
            Deed::Renew => {
                self.locks.live.remove(&(pid, record.object));
                self.locks.born.insert((pid, record.object), first);
            }
            Deed::Take if record.outcome == 0 || record.outcome == EOWNERDEAD => {
                let lock = self.locks.at(pid, record.object, kind, first);
                // Where the library cannot look into the lock, the scheduler tells who slept for it.
                let contended = record.flags & OperationFlags::CONTENDED != 0
                    || self.thread(Some(thread)).is_some_and(|thread| thread.slept_since(record.began_ns));
                let waited_ns = if contended { now_ns.saturating_sub(record.began_ns).max(1) } else { 0 };
                self.take(thread, lock, now_ns, waited_ns);
            }
            Deed::GiveBack if record.outcome == 0 => {
                let lock = self.locks.at(pid, record.object, kind, first);
                self.give_back(thread, lock, now_ns, record.began_ns);
            }
            Deed::Wait => {
                let lock = self.locks.at(pid, record.second, kind, first);
                self.give_back(thread, lock, now_ns, record.began_ns);
                self.take(thread, lock, now_ns, 0);
            }
            // Failed: nothing has changed hands.
            Deed::Take | Deed::GiveBack => {}
        }
    }

    /// Operations of a thread are missing: what it had before it may have given back.
    fn hole(&mut self, thread: u32, now_ns: u64) {
        self.locks.holes += 1;
        for held in self.locks.held.remove(&thread).unwrap_or_default() {
            let number = self.locks.used(held.lock, 0);
            self.step(thread, now_ns, StepKind::GiveBack(number));
        }
    }

    fn take(&mut self, thread: u32, lock: u32, now_ns: u64, waited_ns: u64) {
        let held = self.locks.held.entry(thread).or_default();
        if let Some(again) = held.iter_mut().find(|held| held.lock == lock) {
            again.depth = again.depth.saturating_add(1);
            return;
        }
        held.push(Held { lock, depth: 1, since_ns: now_ns });
        let number = self.locks.used(lock, waited_ns);
        self.step(thread, now_ns, StepKind::Take(number));
    }

    fn give_back(&mut self, thread: u32, lock: u32, now_ns: u64, began_ns: u64) {
        // One that was taken before the recording saw it is not there.
        let Some(held) = self.locks.held.get_mut(&thread) else { return };
        let Some(place) = held.iter().position(|held| held.lock == lock) else { return };
        held[place].depth = held[place].depth.saturating_sub(1);
        if held[place].depth > 0 {
            return;
        }
        let length_ns = began_ns.saturating_sub(held.remove(place).since_ns);
        let number = self.locks.used(lock, length_ns);
        self.step(thread, now_ns, StepKind::GiveBack(number));
    }
}

impl Locks {
    fn at(&mut self, pid: u32, address: u64, kind: &'static str, first: FirstUse) -> u32 {
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let Locks { all, born, live, .. } = self;
        *live.entry((pid, address)).or_insert_with(|| {
            let first = born.remove(&(pid, address)).unwrap_or(first);
            all.push(Lock { pid, address, kind, first });
            number
        })
    }

    fn used(&mut self, lock: u32, length_ns: u64) -> u32 {
        let number = u32::try_from(self.uses.len()).unwrap_or(u32::MAX);
        self.uses.push(LockUse { lock, length: Nanos(length_ns) });
        number
    }
}
