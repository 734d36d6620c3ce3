//! Collects finished synchronization operations, each with the object that was at its address at that time.
//! `program::lock_replay` decides what the operations mean for the program.

use super::model::{FirstUse, Lock, LockOperation, NO_OBJECT};
use crate::event::{Effect, SyncObject, meaning};
use crate::time::Timestamp;
use probe_abi::{Burst, Header, Operation, SyncFamily, SyncOperation};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// All objects and operations of a window.
#[derive(Clone, Debug, Default)]
pub(super) struct Locks {
    pub(super) all: Vec<Lock>,
    pub(super) lock_operations: Vec<LockOperation>,
    /// Operations recorded as sums; [`super::expand_bursts`] makes `lock_operations` of them.
    pub(super) bursts: Vec<RecordedBurst>,
    /// For each process, number of its execs, and address: the object that is there now.
    live: FxHashMap<(u32, u32, u64), Lifetime>,
    /// For each process: number of its execs.
    programs: FxHashMap<u32, u32>,
    /// For each thread with a sequence of its own: sequence number and family of its last record.
    last: FxHashMap<u32, (u32, SyncFamily)>,
    /// Families, each with its process, of operations just before or after a hole: some of their operations may be
    /// lost.
    pub(super) lossy: BTreeSet<(u32, SyncFamily)>,
    /// Families, each with its process, whose operations are recorded by probes.
    pub(super) probed: BTreeSet<(u32, SyncFamily)>,
    /// Places where a thread's operations are missing.
    pub(super) holes: u64,
}

/// Several operations of a thread on one object that were recorded as a sum.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedBurst {
    pub(super) burst: Burst,
    pub(super) thread: u32,
    pub(super) object: u32,
    /// Operations of the same thread before this burst are missing.
    pub(super) after_hole: bool,
}

/// An object at an address, from its initialization or first use on.
#[derive(Clone, Copy, Debug)]
struct Lifetime {
    object: u32,
    /// Start of this object, and index of the object that preceded it: an operation that began earlier is about that
    /// one.
    since_ns: u64,
    before: u32,
    /// The recorded initialization, if the object was not used yet.
    born: Option<FirstUse>,
}

impl Locks {
    /// Whether operations of the thread just before this record are missing.
    pub(super) fn is_after_hole(&mut self, thread: u32, header: &Header, family: SyncFamily) -> bool {
        if header.cpu != Header::NO_CPU {
            self.probed.insert((header.pid, family));
            return false;
        }
        let Some((last, before)) = self.last.insert(thread, (header.sequence, family)) else { return false };
        let after_hole = header.sequence != last.wrapping_add(1);
        if after_hole {
            self.holes += 1;
            self.lossy.extend([(header.pid, before), (header.pid, family)]);
        }
        after_hole
    }

    /// After exec, addresses mean other objects.
    pub(super) fn exec(&mut self, pid: u32) {
        let programs = self.programs.entry(pid).or_insert(0);
        *programs = programs.wrapping_add(1);
    }

    /// The object of an operation, and the mutex of a condition wait.
    pub(super) fn objects(
        &mut self,
        record: &Operation,
        operation: SyncOperation,
        began_ns: u64,
        thread: u32,
    ) -> (u32, u32) {
        let pid = record.header.pid;
        let program = self.programs.get(&pid).copied().unwrap_or(0);
        let (Some(kind), effect) = meaning(operation) else { return (NO_OBJECT, NO_OBJECT) };
        let key = (pid, program, record.object);
        let time_ns = record.header.time_ns;
        let first = FirstUse { time: Timestamp(time_ns), thread, caller: record.caller };
        if matches!(effect, Effect::Made | Effect::Gone) {
            let before = self.live.get(&key).map_or(NO_OBJECT, |life| life.object);
            if record.outcome == 0 {
                let born = (effect == Effect::Made).then_some(first);
                self.live.insert(key, Lifetime { object: NO_OBJECT, since_ns: time_ns, before, born });
            }
            // An object that is only initialized is no object of the program. Barriers and semaphores are: their count is
            // needed.
            let has_count = matches!(kind, SyncObject::Barrier | SyncObject::Semaphore);
            let counts = has_count && effect == Effect::Made && record.outcome == 0;
            return (if counts { self.at(key, kind, time_ns, first) } else { before }, NO_OBJECT);
        }
        let object = self.at(key, kind, began_ns, first);
        let second = match effect {
            Effect::Await => self.at((pid, program, record.second), SyncObject::Mutex, began_ns, first),
            _ => NO_OBJECT,
        };
        (object, second)
    }

    /// The object at this address; the one before it, if the operation began before that ended.
    fn at(&mut self, key: (u32, u32, u64), kind: SyncObject, began_ns: u64, first: FirstUse) -> u32 {
        let life = self.live.get(&key).copied();
        let is_kind = |object: u32| self.all.get(object as usize).is_some_and(|lock| lock.kind == kind);
        match life {
            Some(life) if began_ns < life.since_ns && is_kind(life.before) => return life.before,
            Some(life) if is_kind(life.object) => return life.object,
            _ => {}
        }
        let (since_ns, before, born) = match life {
            // The object of another kind at this address has ended.
            Some(life) if life.object != NO_OBJECT => (first.time.0, life.object, None),
            Some(life) => (life.since_ns, life.before, life.born),
            None => (0, NO_OBJECT, None),
        };
        let object = u32::try_from(self.all.len()).unwrap_or(NO_OBJECT);
        self.all.push(Lock {
            pid: key.0,
            address: key.2,
            kind,
            first: born.unwrap_or(first),
            put_back: false,
        });
        self.live.insert(key, Lifetime { object, since_ns, before, born: None });
        object
    }
}
