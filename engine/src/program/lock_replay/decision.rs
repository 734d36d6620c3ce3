//! Which objects can be simulated: those whose recorded operations make sense as operations of such an object. The
//! others stay as they were recorded, and the report says so.

use super::nesting::{NONE, Nesting, may_be_for_an_object};
use super::sections::{Section, Sections};
use super::threads::Threads;
use crate::event::SyncObject;
use crate::finding::ReplayReason;
use crate::timeline::{External, LockOperation, NO_OBJECT, Timeline, Wake};
use probe_abi::SyncFamily;
use rustc_hash::FxHashMap;

/// Of a hundred waits for a lock that is put back this number may be ended outside its operations: where these lie is estimated.
const UNEXPLAINED_PERCENT: usize = 5;

/// Why each object stays as recorded; `None`: it is simulated.
#[derive(Clone, Debug)]
pub(super) struct ReplayDecisions(Vec<Option<ReplayReason>>);

impl ReplayDecisions {
    /// All objects are simulated.
    pub(super) fn new(objects: usize) -> ReplayDecisions {
        ReplayDecisions(vec![None; objects])
    }

    /// Whether it is; there is nothing to simulate without an object.
    pub(super) fn is_simulated(&self, object: u32) -> bool {
        self.0.get(object as usize).is_some_and(Option::is_none)
    }

    pub(super) fn replay(&mut self, object: u32, reason: ReplayReason) {
        if let Some(decision) = self.0.get_mut(object as usize) {
            decision.get_or_insert(reason);
        }
    }

    /// Objects that stay as they were recorded.
    pub(super) fn replayed(&self) -> impl Iterator<Item = (u32, ReplayReason)> + '_ {
        (0u32..).zip(&self.0).filter_map(|(object, decision)| Some((object, (*decision)?)))
    }

    /// Whether operations on it were lost, or on others of its family in its process.
    pub(super) fn is_lost(&self, object: u32) -> bool {
        matches!(self.0.get(object as usize), Some(Some(ReplayReason::Lost)))
    }

    /// Half of the operations of a lock is not half the truth: what lost its release is held for ever.
    pub(super) fn check_loss(&mut self, timeline: &Timeline) {
        for (lock, object) in timeline.locks.iter().zip(0u32..) {
            let is_its =
                |(pid, family): &(u32, SyncFamily)| *pid == lock.pid && lock.kind.family() == *family;
            if timeline.lossy.iter().any(is_its) {
                self.replay(object, ReplayReason::Lost);
            }
        }
    }

    /// No thread holds what another one holds, and a thread that releases a lock held it.
    pub(super) fn check_locks(&mut self, timeline: &Timeline, sections: &Sections) {
        let mut by_object: Vec<Vec<&Section>> = vec![Vec::new(); timeline.locks.len()];
        for section in &sections.all {
            if let Some(list) = by_object.get_mut(section.object as usize) {
                list.push(section);
            }
        }
        for (list, object) in by_object.iter_mut().zip(0u32..) {
            // What is put back into each thread by itself may overlap: samples tell how long, not when.
            if timeline.locks.get(object as usize).is_some_and(|lock| lock.put_back) {
                continue;
            }
            list.sort_by_key(|section| (section.from, section.to));
            // The end of the last section so far, and of the last that was not for reading.
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
            // A lock taken before the recording saw it is released before another thread takes it. A lock
            // that a thread is not known to have released may have been released where operations are
            // missing.
            let earlier = list.iter().take_while(|section| section.from < used.began.0);
            if earlier.filter(|section| section.thread != used.thread).any(|section| section.given_by == NONE)
            {
                self.replay(used.object, ReplayReason::GivenByAnother);
            }
        }
    }

    /// The thread that ends a wait for an object does an operation on it.
    pub(super) fn check_wakers(&mut self, timeline: &Timeline, nesting: &Nesting, threads: &Threads) {
        // Of a lock that is put back: its waits, and those of them that are not explained.
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
                        let waker = timeline.wakeups.get(wakeup as usize).map_or(NONE, |wakeup| wakeup.waker);
                        let given_in = nesting.wake_in.get(wakeup as usize).copied().unwrap_or(NONE);
                        let other = |around: u32| timeline.lock_operations.get(around as usize);
                        threads.joined(number) == Some(waker)
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

/// Whether two operations are about one object.
fn share(one: &LockOperation, other: &LockOperation) -> bool {
    let is = |object: u32| object != NO_OBJECT && (object == other.object || object == other.second);
    is(one.object) || is(one.second)
}

/// Which of its objects the wait inside an operation is for: inside a condition wait also the mutex.
pub(super) fn awaited(timeline: &Timeline, used: &LockOperation, wait: &crate::timeline::Wait) -> u32 {
    if let crate::timeline::WaitReason::Futex(futex) = wait.reason
        && let Some(mutex) = timeline.locks.get(used.second as usize)
        && (mutex.address..mutex.address.saturating_add(SyncObject::Mutex.most_bytes())).contains(&futex.word)
    {
        return used.second;
    }
    used.object
}
