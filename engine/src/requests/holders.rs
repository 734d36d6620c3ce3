//! Finds which thread held a lock at which time, from recorded operations.

use crate::program::Occurrences;
use rustc_hash::FxHashMap;

/// For each lock: its sections in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Holders(FxHashMap<u32, Vec<Holder>>);

/// The begin of a section: the thread holds the lock from `from` on, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    pub(super) from: u64,
    pub(super) thread: u32,
    /// The thread had waited for the lock.
    pub(super) waited: bool,
}

/// A thread's section is searched among this many of the lock's sections: rarely do more lie in between.
const NEAR: usize = 64;

impl Holders {
    pub(super) fn of(occurrences: &Occurrences<'_>) -> Holders {
        let mut holders: FxHashMap<u32, Vec<Holder>> = FxHashMap::default();
        for section in occurrences.lock_sections() {
            let holder =
                Holder { from: section.from.0, thread: section.thread, waited: section.waited_ns > 0 };
            holders.entry(section.object).or_default().push(holder);
        }
        holders.values_mut().for_each(|sections| sections.sort_unstable());
        Holders(holders)
    }

    /// The last section of `thread` that began before `time`; the thread released the lock at about that time.
    pub(super) fn of_thread(&self, object: u32, thread: u32, time: u64) -> Option<Holder> {
        let mut before = self.before_backwards(object, time).take(NEAR);
        before.find(|holder| holder.thread == thread)
    }

    /// The last section of any thread that began before `time`.
    pub(super) fn before(&self, object: u32, time: u64) -> Option<Holder> {
        self.before_backwards(object, time).next()
    }

    fn before_backwards(&self, object: u32, time: u64) -> impl Iterator<Item = Holder> + '_ {
        let all = self.0.get(&object).map_or(&[][..], Vec::as_slice);
        let end = all.partition_point(|holder| holder.from < time);
        all.get(..end).unwrap_or_default().iter().rev().copied()
    }
}
