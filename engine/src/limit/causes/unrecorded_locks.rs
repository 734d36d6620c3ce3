//! Waits for locks whose operations were not recorded. They are replayed as recorded, so no simulated change shows what such
//! a lock costs.

use crate::event::SyncObject;
use crate::finding::Finding;
use crate::limit::LimitKind;
use crate::limit::threads::uses::LockUse;
use crate::program::naming::names::GIL;
use crate::program::{ObjectKind, ObjectMeaning, Primitive, Program, Recorded, RecordedObject, is_java_wait};
use probe_abi::SyncFamily;
use serde::Serialize;

/// Words with waits of less than this share of the time are not shown, nor more than `MOST` words.
const SHOWN: f64 = 0.01;
const MOST: usize = 4;
/// A futex word is the limit if more than this share of all waiting is for the word.
const MOST_OF: f64 = 0.5;
/// A word whose mean wait is longer than this is waited in for work or for time, as by service threads of a runtime.
const FOR_WORK_NS: u64 = 20_000_000;
const CONDITION: ObjectKind = ObjectKind::Sync(SyncObject::Condition);
/// Words of Java with fewer waits are ignored: service threads of a JVM wait once or twice, in words of the same kind as locks.
const FEWEST_IN_JAVA: u64 = 10;

/// Why waits for a lock are not simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotSimulated {
    /// Lock operations were not recorded.
    #[default]
    NotRecorded,
    /// Many lock operations were lost.
    Lost,
    /// The operations contradict each other, or other code ends waits for the lock.
    Contradicted,
}

/// The futex word that may be a lock whose operations were not recorded, and how threads wait for it.
#[derive(Clone, Debug)]
pub(in crate::limit) struct UnrecordedLocks {
    word: String,
    /// Number of threads that wait for the word, on average.
    pub(in crate::limit) waiting: f64,
    /// Whether most waits are for the word, and threads use it as a lock.
    pub(in crate::limit) is_lock: bool,
    why: NotSimulated,
    cost: Option<f64>,
    /// The futex words that threads wait for, as recorded, the longest waits first.
    pub(in crate::limit) words: Vec<LockUse>,
}

impl UnrecordedLocks {
    /// The word with the longest waits, if mutexes lost their probes or operations, got probes late, or are replayed as
    /// recorded. Otherwise only words of Java or Python count.
    pub(in crate::limit) fn of(program: &Program, recorded: &Recorded) -> Option<UnrecordedLocks> {
        let is_off = |finding: &Finding| matches!(finding, Finding::OperationsOff { family, .. } if family == SyncFamily::Mutex.name());
        let wall_ns = program.overhead.map(|cost| cost.wall_ns).filter(|wall_ns| *wall_ns > 0)?;
        let is_late = |finding: &Finding| matches!(finding, Finding::LocksLate { missing_ns, .. } if *missing_ns > wall_ns / 2);
        // Goroutines wait in Go's runtime: no lock operation would show these waits.
        let findings = &program.findings;
        let is_lost = findings.iter().any(of_lost);
        let replayed: Vec<&str> = findings.iter().flat_map(replayed).collect();
        let is_replayed = |object: &RecordedObject| {
            matches!(object.kind, ObjectKind::Sync(SyncObject::Mutex | SyncObject::RwLock))
                && replayed.contains(&object.name.as_str())
        };
        let is_unrecorded = is_lost
            || findings.iter().any(|finding| is_off(finding) || is_late(finding))
            || recorded.objects.iter().any(is_replayed);
        // Java's locks leave no lock operations in any recording.
        let is_java = |object: &RecordedObject| object.group.as_deref().is_some_and(is_java_wait);
        // A Python interpreter's lock that could not be recognized from its mutex and condition.
        let has_gil = program.meanings().any(|meaning| meaning == ObjectMeaning::Gil);
        let is_gil = |object: &RecordedObject| !has_gil && object.is_gil_condition();
        let is_own = |object: &RecordedObject| is_java(object) || is_gil(object);
        let is_own_only = !is_unrecorded && recorded.objects.iter().any(is_own);
        if findings.iter().any(Finding::is_of_go) || !(is_unrecorded || is_own_only) {
            return None;
        }
        // If a word's lock was estimated from samples and waits (`put_back`), it is simulated and therefore no
        // candidate.
        let words = recorded.objects.iter();
        // If operations were lost, the objects are known, but not which thread held each of them.
        let may_be_lock = |object: &RecordedObject| match object.kind {
            ObjectKind::Futex => true,
            ObjectKind::Sync(SyncObject::Mutex | SyncObject::Condition | SyncObject::RwLock) => {
                is_lost || is_replayed(object)
            }
            _ => false,
        };
        let words = words.filter(|object| match is_own_only {
            true => is_own(object),
            false => (may_be_lock(object) || is_own(object)) && object.put_back.is_none(),
        });
        // Threads of a pool give each other work, and wait for work by a condition variable, which is not a lock.
        let is_held_long = |object: &RecordedObject| is_lock(object) && object.kind != CONDITION;
        let words = words.filter(|object| is_held_long(object) || !is_for_work(object));
        let words = words.filter(|object| object.waits >= FEWEST_IN_JAVA || !is_java(object));
        let mut words: Vec<&RecordedObject> = words.collect();
        words.sort_by_key(|object| std::cmp::Reverse(object.wait_ns));
        let word = *words.first()?;
        // Locks that were first used in one place count as one lock: each thread of a runtime may have its own.
        let is_alike = |object: &&&RecordedObject| {
            let of_one = is_lost || is_java(object);
            of_one && word.group.is_some() && object.group == word.group && object.kind == word.kind
        };
        let alike = words.iter().filter(is_alike).fold(0u64, |sum, word| sum.saturating_add(word.wait_ns));
        let waiting = word.wait_ns.max(alike) as f64 / wall_ns as f64;
        let all = words.iter().fold(0u64, |sum, word| sum.saturating_add(word.wait_ns));
        let is_lock =
            word.wait_ns.max(alike) as f64 > MOST_OF * all as f64 && (is_lock(word) || is_gil(word));
        if is_own_only && !is_lock {
            return None;
        }
        let cost = program.findings.iter().find_map(cost_of_trial);
        let shown = words.iter().filter(|object| object.wait_ns as f64 >= SHOWN * wall_ns as f64);
        let row = |object: &&RecordedObject| LockUse {
            lock: object.name.clone(),
            locks: 1,
            held_share: 0.0,
            as_recorded: true,
            waits: object.waits,
            waited_ns: object.wait_ns as f64,
            under: Vec::new(),
        };
        let words = shown.take(MOST).map(row).collect();
        let name = match &word.group {
            _ if is_gil(word) => GIL.to_owned(),
            Some(group) if alike > word.wait_ns => format!("{} {group}", word.kind),
            _ => word.name.clone(),
        };
        let why = match is_lost {
            true => NotSimulated::Lost,
            false if is_replayed(word) => NotSimulated::Contradicted,
            false => NotSimulated::NotRecorded,
        };
        Some(UnrecordedLocks { word: name, waiting, is_lock, why, cost, words })
    }

    /// The kind of limit, in the program's words.
    pub(in crate::limit) fn kind(&self) -> LimitKind {
        LimitKind::LocksNotRecorded {
            word: self.word.clone(),
            waiting: self.waiting,
            is_lock: self.is_lock,
            why: self.why,
            cost: self.cost,
        }
    }
}

/// The share of the CPU time that recording mutexes would cost, if that was tried.
fn cost_of_trial(finding: &Finding) -> Option<f64> {
    match finding {
        Finding::OperationsOff { family, tried: Some(tried), .. } if family == SyncFamily::Mutex.name() => {
            tried.calls.map(|_| tried.cost_ppm as f64 / 1e6)
        }
        _ => None,
    }
}

/// The names of objects that the finding says are replayed as recorded.
fn replayed(finding: &Finding) -> impl Iterator<Item = &str> {
    let objects = match finding {
        Finding::Replayed { objects, .. } => &objects[..],
        _ => &[],
    };
    objects.iter().map(|object| object.name.as_str())
}

/// Whether the finding says that operations of locks were lost.
fn of_lost(finding: &Finding) -> bool {
    let is_lock = |families: &[String]| families.iter().any(|family| family == SyncFamily::Mutex.name());
    matches!(finding, Finding::OperationsLost { families } if is_lock(families))
}

/// Whether waits for the word are ended by threads that also wait for it, as with a lock. Some of them may have waited
/// only before the recording.
fn is_lock(word: &RecordedObject) -> bool {
    match word.primitive {
        Some(primitive) if word.group.is_none() => primitive == Primitive::Lock,
        // For Java's locks, too, only the threads that ended the waits show whether the word is a lock.
        _ => word.by_waiters.saturating_mul(2) > word.waits,
    }
}

fn is_for_work(word: &RecordedObject) -> bool {
    word.wait_ns / word.waits.max(1) > FOR_WORK_NS
}
