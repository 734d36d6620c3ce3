//! Objects that are replayed because the simulated program would not finish otherwise.

use crate::event::SyncObject;
use crate::finding;
use crate::program::recorded::is_in_kernel;
use crate::program::{EdgeId, ObjectId};
use crate::timeline::{Timeline, WaitReason, Wakeup};
use std::collections::BTreeSet;

/// Objects with which the simulated program deadlocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::program) struct ForcedReplay {
    objects: BTreeSet<u32>,
    /// Condition variables whose assumed count is wrong.
    kept_as_recorded: BTreeSet<u32>,
    /// Wake-ups without an edge: the waits that they ended keep their recorded length.
    cut: BTreeSet<u32>,
    all: bool,
}

impl ForcedReplay {
    /// Replays everything.
    pub(in crate::program) fn everything() -> ForcedReplay {
        ForcedReplay { all: true, ..ForcedReplay::default() }
    }

    /// Whether everything is replayed.
    pub(in crate::program) fn is_all(&self) -> bool {
        self.all
    }

    /// Adds objects; returns whether one of them is new.
    pub(in crate::program) fn add(&mut self, others: &[ObjectId]) -> bool {
        let before = self.objects.len();
        self.objects.extend(others.iter().map(|object| object.0));
        self.objects.len() > before
    }

    /// Cuts stuck wake-ups that ended waits for locks of the kernel, such as the lock of a process's memory: these
    /// waits keep their recorded length. Returns whether a wake-up was newly cut.
    ///
    /// In a simulation, the thread that released such a lock may come later than another thread that would have.
    /// `edges` are the edges of all wake-ups. Waits by users of a resource that is put back (estimated) are cut, too:
    /// the times of their permits are estimates.
    pub(in crate::program) fn cut(
        &mut self,
        timeline: &Timeline,
        edges: &[Option<EdgeId>],
        stuck: &DeadEnd,
    ) -> bool {
        let before = self.cut.len();
        let numbered = || (0u32..).zip(edges).zip(&timeline.wakeups);
        let is_stuck = |edge: &Option<EdgeId>| edge.is_some_and(|edge| stuck.edges.contains(&edge));
        let word = |wakeup: &Wakeup| {
            let (wakee, wait) = timeline.ended_by(wakeup)?;
            let WaitReason::Futex(futex) = wait.reason else { return None };
            Some((wakee.pid, futex.word))
        };
        let is_resource = |object: u32| {
            let lock = timeline.locks.get(object as usize);
            lock.is_some_and(|lock| lock.put_back && lock.kind == SyncObject::Semaphore)
        };
        let stuck_for = |object: u32| is_resource(object) && stuck.objects.contains(&ObjectId(object));
        let uses = timeline.lock_operations.iter().filter(|used| stuck_for(used.object));
        let users: BTreeSet<u32> = uses.map(|used| used.thread).collect();
        let own = numbered().filter(|((_, edge), woken)| is_stuck(edge) && users.contains(&woken.wakee));
        let words: BTreeSet<(u32, u64)> = own.filter_map(|(_, woken)| word(woken)).collect();
        let is_cut = numbered().filter(|((_, edge), wakeup)| {
            let in_kernel =
                || timeline.ended_by(wakeup).is_some_and(|(of, wait)| is_in_kernel(timeline, of.pid, wait));
            is_stuck(edge) && in_kernel()
                || edge.is_some() && word(wakeup).is_some_and(|word| words.contains(&word))
        });
        self.cut.extend(is_cut.map(|((number, _), _)| number));
        self.cut.len() > before
    }

    /// Whether the wait that this wake-up ended keeps its recorded length.
    pub(super) fn is_cut(&self, wakeup: u32) -> bool {
        self.cut.contains(&wakeup)
    }

    /// Replays the condition variables among these objects, since their counts are assumptions, which a deadlock
    /// refutes. Returns whether one was not replayed before.
    pub(in crate::program) fn keep_as_recorded(&mut self, timeline: &Timeline, others: &[ObjectId]) -> bool {
        let before = self.kept_as_recorded.len();
        let is_condition = |object: &u32| {
            timeline.locks.get(*object as usize).is_some_and(|lock| lock.kind == SyncObject::Condition)
        };
        self.kept_as_recorded.extend(others.iter().map(|object| object.0).filter(is_condition));
        self.kept_as_recorded.len() > before
    }

    /// Whether the condition variable must stay as recorded.
    pub(super) fn is_kept_as_recorded(&self, condition: u32) -> bool {
        self.kept_as_recorded.contains(&condition)
    }

    /// The objects with an index below `count` that must be replayed.
    pub(super) fn objects(&self, count: usize) -> impl Iterator<Item = u32> + '_ {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        (0..count).filter(|object| self.all || self.objects.contains(object))
    }
}

/// A simulated deadlock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeadEnd {
    /// Objects that threads wait for forever.
    pub(crate) objects: Vec<ObjectId>,
    /// Edges of wake-ups that threads wait for forever.
    pub(crate) edges: Vec<EdgeId>,
    /// The stuck threads, and what each waits for.
    pub(crate) threads: finding::Stuck,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FutexFact;
    use crate::time::Timestamp;
    use crate::timeline::{FirstUse, Lock, LockOperation, NO_OBJECT, Thread, Wait, WaitReason, Wake, Wakeup};
    use probe_abi::{Call, Descriptor, SyncOperation};

    /// A thread with a mutex waits for a lock of the kernel that another thread holds in a page fault. The mutex must still
    /// be simulated.
    #[test]
    fn after_a_deadlock_a_wait_for_a_kernel_lock_is_cut() {
        let wait = |reason, wakeup| Wait {
            reason,
            wake: Wake::By(wakeup),
            cut_at_start: false,
            moved_to: None,
            from_now: false,
        };
        let fault = WaitReason::Kernel { task_state: 2, call: Call::NONE, descriptor: Descriptor::Unknown };
        let futex = WaitReason::Futex(FutexFact { word: 64, operation: 128, words: 0 });
        let waits = vec![wait(fault, 0), wait(futex, 1), wait(fault, 2)];
        let wakeup = |number| Wakeup { time: Timestamp(1), waker: 1, wakee: 0, ended: Some(number) };
        let timeline = Timeline {
            threads: vec![Thread { waits, ..Thread::default() }, Thread::default()],
            wakeups: (0..3).map(wakeup).collect(),
            ..Timeline::default()
        };
        // The third wait is decided by the simulation and has no edge.
        let edges = [Some(EdgeId(0)), Some(EdgeId(1)), None];
        let mut forced = ForcedReplay::default();
        let stuck = |edges: &[u32]| DeadEnd {
            edges: edges.iter().copied().map(EdgeId).collect(),
            ..DeadEnd::default()
        };
        assert!(!forced.cut(&timeline, &edges, &stuck(&[1])), "another thread's doing is waited for");
        assert!(forced.cut(&timeline, &edges, &stuck(&[0, 1])));
        assert!(!forced.cut(&timeline, &edges, &stuck(&[0])), "it is cut already");
        assert_eq!([0, 1, 2].map(|wakeup| forced.is_cut(wakeup)), [true, false, false]);
    }

    /// A pool's condition variable has words for which a waker with a permit may wait, too.
    #[test]
    fn after_a_deadlock_words_waited_for_with_a_put_back_permit_are_cut() {
        let waits = [64, 72, 64].into_iter().zip(0..).map(|(word, number)| Wait {
            reason: WaitReason::Futex(FutexFact { word, operation: 128, words: 0 }),
            wake: Wake::By(number),
            cut_at_start: false,
            moved_to: None,
            from_now: false,
        });
        let first = FirstUse::default();
        let lock = Lock { pid: 0, address: 40, kind: SyncObject::Semaphore, first, put_back: true };
        let used = LockOperation {
            began: Timestamp(0),
            ended: Timestamp(0),
            value: 0,
            caller: 0,
            thread: 0,
            object: 0,
            second: NO_OBJECT,
            outcome: 0,
            operation: SyncOperation::SemaphorePost,
            flags: 0,
            after_hole: false,
            times: 1,
        };
        let mut timeline = Timeline {
            threads: vec![Thread { waits: waits.collect(), ..Thread::default() }, Thread::default()],
            wakeups: (0..3)
                .map(|number| Wakeup { time: Timestamp(1), waker: 1, wakee: 0, ended: Some(number) })
                .collect(),
            locks: vec![lock],
            lock_operations: vec![used],
            ..Timeline::default()
        };
        let edges = [0, 1, 2].map(|number| Some(EdgeId(number)));
        let stuck = DeadEnd { objects: vec![ObjectId(0)], edges: vec![EdgeId(0)], ..DeadEnd::default() };
        let mut forced = ForcedReplay::default();
        assert!(forced.cut(&timeline, &edges, &stuck));
        assert_eq!([0, 1, 2].map(|wakeup| forced.is_cut(wakeup)), [true, false, true]);
        timeline.lock_operations = vec![LockOperation { thread: 1, ..used }];
        assert!(!ForcedReplay::default().cut(&timeline, &edges, &stuck), "it has no permit");
    }
}
