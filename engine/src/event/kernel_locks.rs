//! How long threads waited for locks of the kernel, from its tracepoints `contention_begin` and `contention_end` (Linux
//! `include/trace/events/lock.h`).

use crate::json::is_zero;
use probe_abi::ContentionFlags;
use serde::{Deserialize, Serialize};

/// Waits for locks of the kernel in a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelLocks {
    /// Sums, by process, system call and kind of lock, ascending.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<KernelLockWaits>,
    /// Waits that could not be counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
}

impl KernelLocks {
    /// The part of the waits that belongs to a share of the records, assuming that waits are distributed evenly.
    pub(crate) fn scaled(mut self, share: f64) -> KernelLocks {
        let part = |whole: &mut u64| *whole = (*whole as f64 * share) as u64;
        for waits in &mut self.waits {
            part(&mut waits.count);
            part(&mut waits.total_ns);
            part(&mut waits.spun_ns);
        }
        self
    }
}

/// All waits of a process for locks of one kind, in one system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelLockWaits {
    /// Host process id.
    pub pid: u32,
    /// Number of the system call; `None`: a page fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// [`ContentionFlags`]: the kind of lock.
    pub flags: u32,
    /// Number of waits.
    pub count: u64,
    /// Total time of the waits, nanoseconds.
    pub total_ns: u64,
    /// Time for which threads spun in these waits, nanoseconds of CPU time. In the remaining time they slept or were
    /// runnable.
    #[serde(skip_serializing_if = "is_zero")]
    pub spun_ns: u64,
    /// Time of the longest wait, nanoseconds.
    pub longest_ns: u64,
}

impl KernelLockWaits {
    /// Whether threads only spin in these waits.
    pub fn is_spin(&self) -> bool {
        self.flags & (ContentionFlags::SPIN | ContentionFlags::MUTEX) == ContentionFlags::SPIN
    }

    /// Time in which threads did not spin, nanoseconds.
    pub fn slept_ns(&self) -> u64 {
        if self.is_spin() { 0 } else { self.total_ns.saturating_sub(self.spun_ns) }
    }

    /// Adds further waits of the same kind.
    pub fn add(&mut self, other: &KernelLockWaits) {
        self.count = self.count.saturating_add(other.count);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.spun_ns = self.spun_ns.saturating_add(other.spun_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_mutex_s_wait_without_its_spinning_is_sleep() {
        let mut mutex = KernelLockWaits {
            flags: ContentionFlags::MUTEX,
            count: 1,
            total_ns: 50,
            spun_ns: 20,
            longest_ns: 50,
            ..KernelLockWaits::default()
        };
        assert_eq!((mutex.is_spin(), mutex.slept_ns()), (false, 30));
        mutex.add(&KernelLockWaits { count: 2, total_ns: 8, longest_ns: 7, ..mutex });
        assert_eq!((mutex.count, mutex.total_ns, mutex.spun_ns, mutex.longest_ns), (3, 58, 40, 50));
        let spin = KernelLockWaits { flags: ContentionFlags::SPIN, total_ns: 9, spun_ns: 8, ..mutex };
        assert_eq!((spin.is_spin(), spin.slept_ns()), (true, 0));
    }
}
