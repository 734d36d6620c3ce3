//! Names of synchronization objects: their variable, else the line or function of their first use, else their address.

use super::function_origin::takes_the_gil;
use super::names::{GIL, unique};
use crate::event::{AddressFact, SyncObject};
use crate::timeline::{FirstUse, Lock, Timeline};
use rustc_hash::FxHashMap;

/// Endings of addresses' names that stand for further words of a read-write lock, by offset
/// (`event::read_write_words`).
const WORDS_INSIDE: [&str; 3] = ["+0x4", "+0x8", "+0xc"];
/// Offsets of the words inside a condition variable; programs build resources from condition variables.
const WORDS_OF_CONDITIONS: [&str; 2] = ["+0x28", "+0x20"];

/// Facts about addresses, for look-up.
#[derive(Debug, Default)]
pub(crate) struct Addresses<'a> {
    /// For each process and address: the facts, oldest first.
    facts: FxHashMap<(u32, u64), Vec<&'a AddressFact>>,
}

impl<'a> Addresses<'a> {
    pub(crate) fn new(facts: &'a [AddressFact]) -> Addresses<'a> {
        let mut all: FxHashMap<(u32, u64), Vec<&'a AddressFact>> = FxHashMap::default();
        for fact in facts {
            all.entry((fact.pid, fact.address)).or_default().push(fact);
        }
        all.values_mut().for_each(|facts| facts.sort_by_key(|fact| fact.since_ns));
        Addresses { facts: all }
    }

    /// The fact about what was at the address at that time.
    pub(crate) fn at(&self, pid: u32, address: u64, time_ns: u64) -> Option<&'a AddressFact> {
        let facts = self.facts.get(&(pid, address))?;
        facts.iter().rev().find(|fact| fact.since_ns <= time_ns).copied()
    }

    /// The variable at the address of an object, if known.
    pub(crate) fn variable(&self, pid: u32, address: u64, first: &FirstUse) -> Option<&'a str> {
        self.at(pid, address, first.time.0)?.name.as_deref().filter(|name| !name.is_empty())
    }

    /// The variable that is a lock. The address of a lock that is put back is one of its words, which threads waited for.
    pub(crate) fn lock_variable(&self, lock: &Lock) -> Option<&'a str> {
        let name = self.variable(lock.pid, lock.address, &lock.first)?;
        let inside: &[&str] = match lock.kind {
            SyncObject::RwLock if lock.put_back => &WORDS_INSIDE,
            SyncObject::Semaphore if lock.put_back => &WORDS_OF_CONDITIONS,
            _ => &[],
        };
        Some(inside.iter().find_map(|offset| name.strip_suffix(offset)).unwrap_or(name))
    }

    /// `file:line` of an object's first use, without folders.
    pub(crate) fn first_line(&self, pid: u32, first: &FirstUse) -> Option<&'a str> {
        let location = self.at(pid, first.caller, first.time.0)?.location.as_deref()?;
        let name = location.rsplit('/').next().unwrap_or(location);
        (first.caller != 0 && !name.is_empty()).then_some(name)
    }

    /// The function of an object's first use.
    pub(crate) fn first_function(&self, pid: u32, first: &FirstUse) -> Option<&'a str> {
        let name = self.at(pid, first.caller, first.time.0)?.name.as_deref()?;
        (first.caller != 0 && !name.is_empty()).then_some(name)
    }
}

/// The name of an object before a number makes it unique, such as `mutex at hash.c:12`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Base {
    /// Name from a variable: only one object at a time has this name.
    Variable(String),
    /// Name from the line or function of the first use, which many objects may share.
    Line(String),
    /// Name from the address.
    Address(String),
}

impl Base {
    fn of(lock: &Lock, addresses: &Addresses<'_>) -> Base {
        let Lock { pid, address, kind, first, .. } = lock;
        let function = || addresses.first_function(*pid, first);
        if let Some(variable) = addresses.lock_variable(lock) {
            Base::Variable(format!("{kind} {variable}"))
        } else if let Some(of) = function().and_then(in_java) {
            Base::Line(format!("{kind} {of}"))
        } else if let Some(line) = addresses.first_line(*pid, first) {
            Base::Line(format!("{kind} at {line}"))
        } else if let Some(function) = function() {
            Base::Line(format!("{kind} first used in {function}"))
        } else {
            Base::Address(format!("{kind} {address:#x}"))
        }
    }
}

/// The name by which a Java programmer knows an object of the JVM, found by the JVM's function that created it or waits
/// for it.
///
/// Each thread has one object for waits at monitors, and one for `LockSupport.park`, on which `java.util.concurrent` is
/// built.
pub(in crate::program) fn in_java(function: &str) -> Option<&'static str> {
    const STARTS: [(&str, &str); 6] = [
        ("os::PlatformEvent::", "of a Java monitor"),
        ("os::PlatformParker::", "in LockSupport.park"),
        ("Parker::park(", "in LockSupport.park"),
        ("os::PlatformMonitor::", "of the JVM"),
        ("os::PlatformMutex::", "of the JVM"),
        ("Monitor::Monitor(int, char const*, bool, Mutex::Safepoint", "of the JVM"),
    ];
    STARTS.iter().find(|(start, _)| function.starts_with(start)).map(|(_, of)| *of)
}

/// Names by [`in_java`] of words in which threads wait for Java's locks. Each thread has its own word, whatever the lock.
const JAVA_WAITS: [&str; 2] = ["of a Java monitor", "in LockSupport.park"];

/// Whether a name, or a part of it, is that of a futex word in which threads wait for Java's locks.
pub fn is_java_wait(name: &str) -> bool {
    JAVA_WAITS.iter().any(|wait| name.contains(wait))
}

/// The name of a recorded object without its kind, as users type it: `cache` for `mutex cache`.
pub fn bare_name(object: &str) -> &str {
    const KINDS: [&str; 8] =
        ["lock ", "mutex ", "rwlock ", "spin lock ", "condition ", "semaphore ", "barrier ", "once "];
    KINDS.iter().find_map(|kind| object.strip_prefix(kind)).unwrap_or(object)
}

/// The part of the name that a lock shares with all first used on the same line: `at hash.c:12`. `None` for other names.
pub(in crate::program) fn group(lock: &Lock, addresses: &Addresses<'_>) -> Option<String> {
    match Base::of(lock, addresses) {
        Base::Line(name) => name.strip_prefix(lock.kind.name()).map(|group| group.trim_start().to_owned()),
        Base::Variable(_) | Base::Address(_) => None,
    }
}

/// Name of a lock that a program made of a mutex and a condition variable: `lock GIL` in Python, `lock pool.free` of
/// `pool.free.mutex` and `pool.free.changed`, else by its condition variable.
pub(in crate::program) fn user_lock(
    timeline: &Timeline,
    names: &[String],
    condition: u32,
    mutex: u32,
    taken_at: u64,
) -> String {
    let addresses = Addresses::new(&timeline.addresses);
    let first = timeline.locks.get(condition as usize);
    let taken_in = first.and_then(|lock| addresses.at(lock.pid, taken_at, u64::MAX)?.name.as_deref());
    let name = |object: u32| names.get(object as usize).map_or("", String::as_str);
    let of_process =
        name(condition).rfind(" of ").map_or("", |at| name(condition).get(at..).unwrap_or_default());
    let base = if taken_in.is_some_and(takes_the_gil) {
        format!("{GIL}{of_process}")
    } else {
        let (own, of_mutex) = (bare_name(name(condition)), bare_name(name(mutex)));
        let parts = own.rsplit_once('.').zip(of_mutex.rsplit_once('.'));
        match parts {
            Some(((one, _), (other, _))) if one == other => format!("lock {one}{of_process}"),
            _ => format!("lock of {}", name(condition)),
        }
    };
    // Several locks of the same name are distinguished by their condition variables.
    if names.contains(&base) { format!("{base} ({})", name(condition)) } else { base }
}

/// Unique names of the recorded locks: with the process if there are several, and with a number if names are the same.
///
/// Of several locks that had the same place in turn, the first one has no number. Several first used on one line all have
/// numbers.
pub(in crate::program) fn names(all: &[Lock], timeline: &Timeline) -> Vec<String> {
    let addresses = Addresses::new(&timeline.addresses);
    let several = all.iter().any(|lock| all.first().is_some_and(|first| first.pid != lock.pid));
    let bases: Vec<(String, bool)> = all
        .iter()
        .map(|lock| {
            let (name, numbered) = match Base::of(lock, &addresses) {
                Base::Variable(name) | Base::Address(name) => (name, false),
                Base::Line(name) => (name, true),
            };
            (if several { format!("{name} of {}", lock.pid) } else { name }, numbered)
        })
        .collect();
    let mut uses: FxHashMap<&str, u32> = FxHashMap::default();
    for (base, _) in &bases {
        *uses.entry(base.as_str()).or_insert(0) += 1;
    }
    let mut lives: FxHashMap<&str, u32> = FxHashMap::default();
    let mut taken = FxHashMap::default();
    let names = bases.iter().map(|(base, numbered)| {
        let single = uses.get(base.as_str()).is_none_or(|uses| *uses < 2);
        let life = lives.entry(base.as_str()).or_insert(0);
        *life += 1;
        let name = if single || (*life == 1 && !numbered) { base.clone() } else { format!("{base} #{life}") };
        unique(name, &mut taken)
    });
    names.collect()
}
