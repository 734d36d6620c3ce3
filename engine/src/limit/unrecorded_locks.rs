//! Waits for locks whose operations were not recorded. They are replayed as they were, so that nothing that is taken away shows
//! what such a lock costs.

use super::Kind;
use super::uses::LockUse;
use crate::event::SyncObject;
use crate::finding::Finding;
use crate::program::names::GIL;
use crate::program::{ObjectKind, ObjectMeaning, Primitive, Program, Recorded, RecordedObject, is_java_wait};
use probe_abi::SyncFamily;

/// Words that are waited for less than this share of the time are not shown, nor more than this number.
const SHOWN: f64 = 0.01;
const MOST: usize = 4;
/// The word that this share of the waiting is for is what limits.
const MOST_OF: f64 = 0.5;
/// Who waits for longer than this each time waits for work, or for time to pass: service threads of a runtime.
const FOR_WORK_NS: u64 = 20_000_000;
const CONDITION: ObjectKind = ObjectKind::Sync(SyncObject::Condition);
/// Service threads of a JVM wait once or twice in all their lives, in the words that others wait for locks in.
const FEWEST_IN_JAVA: u64 = 10;

/// What was not recorded.
#[derive(Clone, Debug)]
pub(super) struct UnrecordedLocks {
    word: String,
    /// How many threads wait for it on average.
    pub(super) waiting: f64,
    /// It is used as a lock is.
    pub(super) is_lock: bool,
    is_lost: bool,
    cost: Option<f64>,
    /// The futex words that are waited for, as recorded, the longest first.
    pub(super) words: Vec<LockUse>,
}

impl UnrecordedLocks {
    /// The futex word that is waited for longest, if mutexes had no probes for some of the time, or for most of it not yet.
    pub(super) fn of(program: &Program, recorded: &Recorded) -> Option<UnrecordedLocks> {
        let is_off = |finding: &Finding| matches!(finding, Finding::OperationsOff { family, .. } if family == SyncFamily::Mutex.name());
        let wall_ns = program.overhead.map(|cost| cost.wall_ns).filter(|wall_ns| *wall_ns > 0)?;
        let is_late = |finding: &Finding| matches!(finding, Finding::LocksLate { missing_ns, .. } if *missing_ns > wall_ns / 2);
        // What goroutines wait for is decided in Go's runtime: no operation of a lock would show it.
        let findings = &program.findings;
        let is_lost = findings.iter().any(of_lost);
        let is_unrecorded = is_lost || findings.iter().any(|finding| is_off(finding) || is_late(finding));
        // Nor is it for Java's locks, in any recording.
        let is_java = |object: &RecordedObject| object.group.as_deref().is_some_and(is_java_wait);
        // The lock of a Python interpreter that could not be made of its mutex and condition.
        let has_gil = program.meanings().any(|meaning| meaning == ObjectMeaning::Gil);
        let is_gil = |object: &RecordedObject| !has_gil && object.is_gil_condition();
        let is_own = |object: &RecordedObject| is_java(object) || is_gil(object);
        let is_own_only = !is_unrecorded && recorded.objects.iter().any(is_own);
        if findings.iter().any(Finding::is_of_go) || !(is_unrecorded || is_own_only) {
            return None;
        }
        // One whose uses were put back is simulated.
        let words = recorded.objects.iter();
        // Of lost operations the objects are known, but not who had them.
        let may_be_lock = |object: &RecordedObject| match object.kind {
            ObjectKind::Futex => true,
            ObjectKind::Sync(SyncObject::Mutex | SyncObject::Condition | SyncObject::RwLock) => is_lost,
            _ => false,
        };
        let words = words.filter(|object| match is_own_only {
            true => is_own(object),
            false => (may_be_lock(object) || is_own(object)) && object.put_back.is_none(),
        });
        // Threads of a pool give each other work, and wait for it in a condition.
        let is_held_long = |object: &RecordedObject| is_lock(object) && object.kind != CONDITION;
        let words = words.filter(|object| is_held_long(object) || !is_for_work(object));
        let words = words.filter(|object| object.waits >= FEWEST_IN_JAVA || !is_java(object));
        let mut words: Vec<&RecordedObject> = words.collect();
        words.sort_by_key(|object| std::cmp::Reverse(object.wait_ns));
        let word = *words.first()?;
        // Locks that were first used in one place are one: each thread of a runtime may have its own.
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
        let tried = |finding: &Finding| match finding {
            Finding::OperationsOff { family, tried: Some(tried), .. }
                if family == SyncFamily::Mutex.name() =>
            {
                tried.calls.map(|_| tried.cost_ppm as f64 / 1e6)
            }
            _ => None,
        };
        let cost = program.findings.iter().find_map(tried);
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
        Some(UnrecordedLocks { word: name, waiting, is_lock, is_lost, cost, words })
    }

    /// In the program's words.
    pub(super) fn kind(&self) -> Kind {
        Kind::LocksNotRecorded {
            word: self.word.clone(),
            waiting: self.waiting,
            is_lock: self.is_lock,
            is_lost: self.is_lost,
            cost: self.cost,
        }
    }
}

/// Whether lost operations were of locks.
fn of_lost(finding: &Finding) -> bool {
    let is_lock = |families: &[String]| families.iter().any(|family| family == SyncFamily::Mutex.name());
    matches!(finding, Finding::OperationsLost { families } if is_lock(families))
}

/// A lock's waits are ended by threads that wait for it, too; some of those may have waited only before the recording.
fn is_lock(word: &RecordedObject) -> bool {
    match word.primitive {
        Some(primitive) if word.group.is_none() => primitive == Primitive::Lock,
        // Of Java's locks, too, only who ended the waits tells.
        _ => word.by_waiters.saturating_mul(2) > word.waits,
    }
}

fn is_for_work(word: &RecordedObject) -> bool {
    word.wait_ns / word.waits.max(1) > FOR_WORK_NS
}
