//! Decides which objects are simulated: those whose records make sense as operations of such an object. Other objects are
//! replayed, with a finding.

use super::nesting::{NONE, Nesting, may_be_for_an_object};
use super::sections::{Section, Sections};
use super::threads::Threads;
use crate::event::SyncObject;
use crate::finding::ReplayReason;
use crate::timeline::{External, LockOperation, NO_OBJECT, Timeline, Wake};
use probe_abi::SyncFamily;
use rustc_hash::FxHashMap;

/// Largest percentage of unexplained waits for a lock that is put back (its sections are estimated): other threads may
/// end such waits outside of the estimated sections.
const UNEXPLAINED_PERCENT: usize = 5;

/// For each object: the reason why it is replayed; `None`: it is simulated.
#[derive(Clone, Debug)]
pub(super) struct ReplayDecisions(Vec<Option<ReplayReason>>);

impl ReplayDecisions {
    /// All objects are simulated.
    pub(super) fn new(objects: usize) -> ReplayDecisions {
        ReplayDecisions(vec![None; objects])
    }

    /// Whether the object is simulated; false for `NO_OBJECT`.
    pub(super) fn is_simulated(&self, object: u32) -> bool {
        self.0.get(object as usize).is_some_and(Option::is_none)
    }

    pub(super) fn replay(&mut self, object: u32, reason: ReplayReason) {
        if let Some(decision) = self.0.get_mut(object as usize) {
            decision.get_or_insert(reason);
        }
    }

    /// Replayed objects, with the reasons.
    pub(super) fn replayed(&self) -> impl Iterator<Item = (u32, ReplayReason)> + '_ {
        (0u32..).zip(&self.0).filter_map(|(object, decision)| Some((object, (*decision)?)))
    }

    /// Whether operations of the object's family were lost in its process.
    pub(super) fn is_lost(&self, object: u32) -> bool {
        matches!(self.0.get(object as usize), Some(Some(ReplayReason::Lost)))
    }

    /// Replays locks of families with lost operations: a lock whose release was lost would be held forever.
    pub(super) fn check_loss(&mut self, timeline: &Timeline) {
        for (lock, object) in timeline.locks.iter().zip(0u32..) {
            let is_its =
                |(pid, family): &(u32, SyncFamily)| *pid == lock.pid && lock.kind.family() == *family;
            if timeline.lossy.iter().any(is_its) {
                self.replay(object, ReplayReason::Lost);
            }
        }
    }

    /// Checks that no two threads hold a lock at once, and that a thread that releases a lock held it.
    pub(super) fn check_locks(&mut self, timeline: &Timeline, sections: &Sections) {
        let mut by_object: Vec<Vec<&Section>> = vec![Vec::new(); timeline.locks.len()];
        for section in &sections.all {
            if let Some(list) = by_object.get_mut(section.object as usize) {
                list.push(section);
            }
        }
        for (list, object) in by_object.iter_mut().zip(0u32..) {
            // Sections that are put back may overlap: samples show how long they are, not when.
            if timeline.locks.get(object as usize).is_some_and(|lock| lock.put_back) {
                continue;
            }
            list.sort_by_key(|section| (section.from, section.to));
            // End of the last section so far, and of the last section that was not for reading.
            let (mut all, mut alone) = (0, 0);
            for section in list.iter() {
                if section.from < if section.reads { alone } else { all } {
                    self.replay(object, ReplayReason::HadTwice);
                    break;
                }
                all = all.max(section.to);
                if !section.reads {
                    alone = alone.max(section.to);
                }
            }
        }
        for &stray in &sections.strays {
            let Some(used) = timeline.lock_operations.get(stray as usize) else { continue };
            let list = by_object.get(used.object as usize).map_or(&[][..], Vec::as_slice);
            // A lock taken before the recording must be released before another thread takes it. A section without a known
            // release may have ended where operations are missing.
            let earlier = list.iter().take_while(|section| section.from < used.began.0);
            if earlier.filter(|section| section.thread != used.thread).any(|section| section.given_by == NONE)
            {
                self.replay(used.object, ReplayReason::GivenByAnother);
            }
        }
    }

    /// Checks that a thread that ends a wait for an object does so in an operation on this object.
    pub(super) fn check_wakers(
        &mut self,
        timeline: &Timeline,
        nesting: &Nesting,
        sections: &Sections,
        threads: &Threads,
    ) {
        // An unlock call is recorded when it has returned: at the recording's end it may be missing although it has woken.
        let held: FxHashMap<(u32, u32), u64> =
            sections.still_open().map(|section| ((section.thread, section.object), section.from)).collect();
        // For each lock that is put back (estimated): number of its waits, and number of those that are not explained.
        let mut estimated: FxHashMap<u32, (usize, usize)> = FxHashMap::default();
        for (index, thread) in timeline.threads.iter().enumerate() {
            let waits = nesting.wait_in.get(index).map_or(&[][..], Vec::as_slice);
            for (wait, &number) in thread.waits.iter().zip(waits) {
                let Some(used) = timeline.lock_operations.get(number as usize) else { continue };
                if !may_be_for_an_object(wait) {
                    continue;
                }
                let is_explained = match wait.wake {
                    Wake::By(wakeup) => {
                        let woken = timeline.wakeups.get(wakeup as usize);
                        let (waker, woken_ns) = woken.map_or((NONE, 0), |woken| (woken.waker, woken.time.0));
                        let given_in = nesting.wake_in.get(wakeup as usize).copied().unwrap_or(NONE);
                        let other = |around: u32| timeline.lock_operations.get(around as usize);
                        let is_held =
                            |object: u32| held.get(&(waker, object)).is_some_and(|from| *from <= woken_ns);
                        threads.joined(number) == Some(waker)
                            || [used.object, used.second].into_iter().any(is_held)
                            || nesting.around(given_in).filter_map(other).any(|other| share(used, other))
                    }
                    Wake::External(External::Task) => false,
                    _ => true,
                };
                let object = awaited(timeline, used, wait);
                if timeline.locks.get(object as usize).is_some_and(|lock| lock.put_back) {
                    let (waits, unexplained) = estimated.entry(object).or_default();
                    (*waits, *unexplained) = (*waits + 1, *unexplained + usize::from(!is_explained));
                } else if !is_explained {
                    self.replay(object, ReplayReason::WokenFromOutside);
                }
            }
        }
        for (object, (waits, unexplained)) in estimated {
            if unexplained * 100 > waits * UNEXPLAINED_PERCENT {
                self.replay(object, ReplayReason::WokenFromOutside);
            }
        }
    }
}

/// Whether two operations are on the same object.
fn share(one: &LockOperation, other: &LockOperation) -> bool {
    let is = |object: u32| object != NO_OBJECT && (object == other.object || object == other.second);
    is(one.object) || is(one.second)
}

/// The object for which the wait inside an operation is: in a condition wait, that may be the mutex.
pub(super) fn awaited(timeline: &Timeline, used: &LockOperation, wait: &crate::timeline::Wait) -> u32 {
    if let crate::timeline::WaitReason::Futex(futex) = wait.reason
        && let Some(mutex) = timeline.locks.get(used.second as usize)
        && (mutex.address..mutex.address.saturating_add(SyncObject::Mutex.most_bytes())).contains(&futex.word)
    {
        return used.second;
    }
    used.object
}
