//! Sleeps with a mutex held (a method of longpole's own). While a thread waits for a mutex, each release wakes one
//! waiter. So a thread that wakes a waiter has held the mutex since the waiter came, or since the release before. If it
//! slept in that time, for a device or a timer, the sleep is part of the section. Such a sleep cannot deadlock:
//! simulated, it takes as long as recorded.

use super::super::model::{State, Thread, Timeline, Wake};
use super::futex_words::sleeps;
use super::lock::Lock;
use crate::timeline::thread::wait::{External, Wait};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A sleep in which the thread holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asleep {
    /// Index of the lock.
    pub(super) lock: usize,
    /// Time at which the thread released the lock, ns.
    pub(super) released_ns: u64,
}

/// Sleeps with a lock held, by the thread's index and the time at which the sleep began.
pub(super) type AllAsleep = BTreeMap<(u32, u64), Asleep>;

/// A stretch in which a thread holds a lock, until it wakes a waiter.
#[derive(Clone, Copy, Debug)]
struct Held {
    lock: usize,
    until_ns: u64,
    /// Time of the lock's last release before this stretch, ns.
    after_ns: u64,
    /// Time at which the waiter began to wait, ns.
    awaited_ns: u64,
}

/// Finds sleeps of threads that hold one of the mutexes among `locks` while another thread waits for that mutex.
pub(super) fn find(timeline: &Timeline, locks: &[Lock<'_>]) -> AllAsleep {
    let mut held = held(timeline, locks);
    let mut all = AllAsleep::new();
    for (index, thread) in (0u32..).zip(&timeline.threads) {
        let Some(held) = held.get_mut(&index) else { continue };
        held.sort_by_key(|held| (held.until_ns, held.lock));
        for (began_ns, ended_ns) in device_waits(thread) {
            let next = held.partition_point(|held| held.until_ns < ended_ns);
            let own = |held: &&Held| held.after_ns <= began_ns && held.awaited_ns < ended_ns;
            // Of several locks held at once, the one that is released first is the inner one.
            if let Some(held) = held.get(next..).and_then(|held| held.first()).filter(own) {
                all.insert((index, began_ns), Asleep { lock: held.lock, released_ns: held.until_ns });
            }
        }
    }
    all
}

/// Holds of mutexes that ended with a wake-up, by thread.
fn held(timeline: &Timeline, locks: &[Lock<'_>]) -> FxHashMap<u32, Vec<Held>> {
    let mutexes = (0..).zip(locks).filter(|(_, lock)| lock.word.side.is_none());
    let numbers: FxHashMap<(u32, u64), usize> = mutexes.map(|(number, lock)| (lock.key(), number)).collect();
    let mut wakes: Vec<(usize, u64, u32, u64)> = Vec::new();
    for slept in sleeps(timeline) {
        let Some(&lock) = numbers.get(&slept.key) else { continue };
        let Wake::By(wakeup) = slept.wait.wake else { continue };
        let Some(wakeup) = timeline.wakeups.get(wakeup as usize) else { continue };
        wakes.push((lock, wakeup.time.0, wakeup.waker, slept.start_ns));
    }
    wakes.sort_unstable();
    let mut all: FxHashMap<u32, Vec<Held>> = FxHashMap::default();
    let mut last = (usize::MAX, 0);
    for (lock, until_ns, waker, awaited_ns) in wakes {
        let after_ns = if last.0 == lock { last.1 } else { 0 };
        all.entry(waker).or_default().push(Held { lock, until_ns, after_ns, awaited_ns });
        last = (lock, until_ns);
    }
    all
}

/// Begin and end of each wait that no thread of the program ended.
fn device_waits(thread: &Thread) -> impl Iterator<Item = (u64, u64)> {
    thread.spans().filter_map(|(start, end, state)| {
        let State::Blocked(number) = state else { return None };
        thread.waits.get(number as usize).filter(|wait| is_for_device(wait)).map(|_| (start.0, end.0))
    })
}

fn is_for_device(wait: &Wait) -> bool {
    let is_seen = !matches!(wait.wake, Wake::External(External::BeforeWindow | External::NotSeen));
    matches!(wait.wake, Wake::External(_)) && is_seen && !wait.reason.is_stop()
}
