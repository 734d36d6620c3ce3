//! Threads of a pool that are woken for tasks so small that handing each over takes longer than the task. (This method is
//! longpole's own.)
//!
//! What a thread computes from one wake-up to the next includes going to sleep. If that is a few microseconds, and the kernel
//! puts threads to sleep and wakes them for much of the CPU time, then more tasks at a time need fewer wake-ups.

use super::shared_lines::computing;
use crate::experiment::Edit;
use crate::limit::search::Search;
use crate::limit::threads::thread_group::Group;
use crate::limit::watched_run::WatchedRun;
use crate::program::{ObjectId, Operation};
use crate::time::Ticks;
use rustc_hash::FxHashMap;

/// To go to sleep, to be woken and to be put on a CPU takes 5 to 20 µs of CPU time: a task with at most this much CPU time for
/// each wake-up, nanoseconds, is smaller than that.
const SMALL_NS: f64 = 25_000.0;
/// Least share of the CPU time in which the kernel puts threads to sleep and wakes them.
const MUCH: f64 = 0.1;
/// Least number of wake-ups in a second.
const A_SECOND: f64 = 1_000.0;

/// Which threads let others go on.
#[derive(Default)]
struct Wakers {
    /// By recorded wake-up.
    edges: FxHashMap<u32, usize>,
    /// By semaphore or condition: how often each thread posted it.
    posts: FxHashMap<ObjectId, FxHashMap<usize, u64>>,
}

impl Search {
    /// The least time, nanoseconds, with larger tasks: without the kernel's work for threads that sleep and wake each other.
    pub(in crate::limit) fn without_small_tasks(&self, run: &WatchedRun) -> Option<(Edit, f64)> {
        let kernels = self.kernel_work_of_waiting();
        if self.hidden || kernels < MUCH {
            return None;
        }
        let wakers = self.wakers();
        let several = self.groups.iter().filter(|group| group.threads.len() > 1);
        let small = several.filter_map(|group| {
            let wakings = self.wakings(group, &wakers, run)?;
            let task_ns = Ticks(self.computed(group)).as_ns_f64() / wakings as f64;
            let often = wakings as f64 >= A_SECOND * run.time_ns() / 1e9;
            (often && task_ns <= SMALL_NS).then_some((wakings, task_ns, group))
        });
        let (wakings, task_ns, group) = small.max_by_key(|(wakings, ..)| *wakings)?;
        let edit = Edit::LargerTasks { threads: group.threads.clone(), wakings, task_ns: task_ns as u64 };
        Some((edit, run.time_ns() * (1.0 - kernels * computing(run))))
    }

    fn wakers(&self) -> Wakers {
        let mut wakers = Wakers::default();
        for (number, thread) in self.program().threads.iter().enumerate() {
            for operation in &thread.operations {
                match operation {
                    Operation::Release(edge) => drop(wakers.edges.insert(edge.0, number)),
                    Operation::SemPost(of)
                    | Operation::Signal(of)
                    | Operation::CondSignal(of)
                    | Operation::CondBroadcast(of) => {
                        *wakers.posts.entry(*of).or_default().entry(number).or_insert(0) += 1;
                    }
                    _ => {}
                }
            }
        }
        wakers
    }

    /// How often threads outside of the group woke its threads; `None`: its own threads did so more often, or nobody did.
    fn wakings(&self, group: &Group, wakers: &Wakers, run: &WatchedRun) -> Option<u64> {
        let is_own = |thread: &usize| group.threads.contains(thread);
        let (mut by_own, mut by_others) = (0u64, 0u64);
        let mut objects: FxHashMap<ObjectId, u64> = FxHashMap::default();
        let threads = group.threads.iter().filter_map(|thread| self.program().threads.get(*thread));
        for operation in threads.flat_map(|thread| &thread.operations) {
            match operation {
                Operation::Await(edge) => match wakers.edges.get(&edge.0) {
                    Some(waker) if is_own(waker) => by_own += 1,
                    Some(_) => by_others += 1,
                    None => {}
                },
                Operation::SemWait(of) | Operation::Wait(of) | Operation::CondWait(of, _) => {
                    *objects.entry(*of).or_insert(0) += 1;
                }
                _ => {}
            }
        }
        for (object, times) in objects {
            let waits = run.base.objects.get(object.0 as usize).map_or(0, |used| used.waits.min(times));
            let posts = || wakers.posts.get(&object).into_iter().flatten();
            let own: u64 = posts().filter(|(thread, _)| is_own(thread)).map(|(_, count)| count).sum();
            let all: u64 = posts().map(|(_, count)| count).sum();
            *(if own.saturating_mul(2) > all { &mut by_own } else { &mut by_others }) += waits;
        }
        (by_others > by_own).then_some(by_others)
    }
}
