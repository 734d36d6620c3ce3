//! Computes the share of each thread in its process's computing.

use crate::timeline::Timeline;
use rustc_hash::FxHashMap;

/// A thread with less than this fraction (one part in `HARDLY`) of its process's computing does housekeeping (Go's
/// `sysmon`): no thread waits for it.
const HARDLY: u64 = 100;

/// Running times of threads and processes, ns.
pub(super) struct Shares {
    threads: Vec<u64>,
    processes: FxHashMap<u32, u64>,
}

impl Shares {
    pub(super) fn of(timeline: &Timeline) -> Shares {
        let threads: Vec<u64> = timeline.threads.iter().map(|thread| thread.ran().0).collect();
        let mut processes: FxHashMap<u32, u64> = FxHashMap::default();
        for (thread, ran) in timeline.threads.iter().zip(&threads) {
            let sum = processes.entry(thread.pid).or_insert(0);
            *sum = sum.saturating_add(*ran);
        }
        Shares { threads, processes }
    }

    pub(super) fn of_thread(&self, index: usize) -> u64 {
        self.threads.get(index).copied().unwrap_or(0)
    }

    /// Whether the thread does more than housekeeping.
    pub(super) fn works(&self, timeline: &Timeline, index: usize) -> bool {
        self.of_process(timeline, index) <= self.of_thread(index).saturating_mul(HARDLY)
    }

    /// Running time of all threads of the thread's process, ns.
    pub(super) fn of_process(&self, timeline: &Timeline, index: usize) -> u64 {
        let pid = timeline.threads.get(index).map(|thread| thread.pid);
        pid.and_then(|pid| self.processes.get(&pid)).copied().unwrap_or(0)
    }
}
