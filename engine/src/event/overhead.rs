//! The cost of recording: of one probe hit, and of a complete recording.

use serde::{Deserialize, Serialize};

/// CPU time of one probe hit in its thread, measured on the recorded machine at the start of the recording.
///
/// A hit is a trap into the kernel, the program that writes the record, and the return. The record's time is read
/// during the hit: the hit begins `before_ns` before that time and ends `after_ns` after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HitCost {
    /// Time from the thread's own code to the record's time, nanoseconds.
    pub before_ns: u32,
    /// Time from the record's time back to the thread's own code, nanoseconds.
    pub after_ns: u32,
    /// Width of the range that contains half of the measured hits, nanoseconds.
    pub spread_ns: u32,
}

impl HitCost {
    /// Length of a hit from beginning to end, nanoseconds.
    pub fn total_ns(&self) -> u64 {
        u64::from(self.before_ns) + u64::from(self.after_ns)
    }
}

/// Costs of hits, by what the kernel must do for the probed instruction.
///
/// Measured in loops over small functions of longpole itself, with warm caches: a hit in a real program costs this much or
/// more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HitCosts {
    /// The entry of a function whose first instruction the kernel emulates.
    pub entry: HitCost,
    /// The entry of a function whose first instruction must be single-stepped, which takes a second trap.
    pub entry_stepped: HitCost,
    /// The exit of a function: a `ret`, which is single-stepped, too.
    pub exit: HitCost,
}

/// The cost of a recording or of a part of it. All fields but the budget are sums: subtracting an earlier value gives
/// the cost since then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overhead {
    /// The goal, in millionths of [`Overhead::base_ns`]; `None`: no limit.
    pub budget_ppm: Option<u32>,
    /// Length of the recording, nanoseconds.
    pub wall_ns: u64,
    /// CPU time of the recorded processes, without that added by recording, nanoseconds.
    pub target_ns: u64,
    /// Hits of function probes.
    pub hits: u64,
    /// Their cost by [`HitCosts`], nanoseconds of the recorded threads.
    pub hit_ns: u64,
    /// Scheduler and other kernel events written.
    pub events: u64,
    /// CPU time of the kernel programs that write these events, as far as the kernel reports it, nanoseconds.
    pub event_ns: u64,
    /// Synchronization operations recorded by the library in the processes; not among the events.
    pub operations: u64,
    /// CPU time that the program's threads spend on recording synchronization operations, nanoseconds, extrapolated
    /// from measured calls.
    pub operation_ns: u64,
    /// Mutex operations that the library did not record on purpose; the other counts do not include them.
    pub left_out: u64,
    /// CPU time that the program's threads spend on deciding whether to record an operation, nanoseconds, as measured
    /// there.
    pub left_out_ns: u64,
    /// Stacks taken as samples; not among the events.
    pub samples: u64,
    /// CPU time of taking samples, nanoseconds of the recorded threads.
    pub sample_ns: u64,
    /// CPU time that longpole uses once, independent of the length: its start, and the processes that read symbols;
    /// nanoseconds. No other number contains it.
    pub once_ns: u64,
    /// CPU time of all of longpole's threads while it records, nanoseconds.
    pub collector_ns: u64,
    /// The part of `collector_ns` that unwinding of samples took.
    pub unwinding_ns: u64,
    /// CPU time of all other programs on the machine and of hypervisors during the recording, nanoseconds.
    pub others_ns: u64,
    /// Number of hosts whose costs these are together, in a joined recording; otherwise 0.
    #[serde(skip_serializing_if = "crate::json::is_zero")]
    pub hosts: u64,
}

impl Overhead {
    /// All of the cost while the processes ran, nanoseconds of CPU time.
    pub fn spent_ns(&self) -> u64 {
        self.in_threads_ns().saturating_add(self.collector_ns)
    }

    /// The cost in the recorded threads, nanoseconds. All other cost is longpole's own, on any free CPU.
    pub fn in_threads_ns(&self) -> u64 {
        let programs_ns = self.event_ns.saturating_add(self.sample_ns);
        programs_ns.saturating_add(self.hit_ns).saturating_add(self.inside_ns())
    }

    /// The cost even without any function probe or sample, nanoseconds: the budget cannot change it.
    pub fn fixed_ns(&self) -> u64 {
        let collector_ns = self.collector_ns.saturating_sub(self.unwinding_ns);
        self.event_ns.saturating_add(self.inside_ns()).saturating_add(collector_ns)
    }

    /// The library's CPU time in the threads of the processes, nanoseconds.
    fn inside_ns(&self) -> u64 {
        self.operation_ns.saturating_add(self.left_out_ns)
    }

    /// The time of which costs are shares, nanoseconds: the recorded processes' CPU time, or one CPU for the length of
    /// the recording if that is more. In a program that mostly sleeps, nobody notices a share of its little CPU time.
    pub fn base_ns(&self) -> u64 {
        self.target_ns.max(self.wall_ns.saturating_mul(self.hosts.max(1)))
    }

    /// Cost while the processes ran ÷ [`Overhead::base_ns`]; `None` if nothing was recorded.
    pub fn share(&self) -> Option<f64> {
        ratio(self.spent_ns(), self.base_ns())
    }

    /// [`Overhead::in_threads_ns`] ÷ [`Overhead::base_ns`]; `None` if nothing was recorded.
    pub fn share_in_threads(&self) -> Option<f64> {
        ratio(self.in_threads_ns(), self.base_ns())
    }

    /// Whole cost, and cost in the threads, ÷ the recorded processes' CPU time; `None` if they used none.
    ///
    /// Times in the recording may be wrong by this much.
    pub fn shares_of_target(&self) -> Option<(f64, f64)> {
        ratio(self.spent_ns(), self.target_ns).zip(ratio(self.in_threads_ns(), self.target_ns))
    }

    /// The goal, as a share of [`Overhead::base_ns`].
    pub fn budget(&self) -> Option<f64> {
        self.budget_ppm.map(|ppm| f64::from(ppm) / 1e6)
    }

    /// The cost of a part of the recording that has this share of its records.
    pub fn scaled(&self, share: f64) -> Overhead {
        let part = |count: u64| (count as f64 * share).round() as u64;
        Overhead {
            budget_ppm: self.budget_ppm,
            wall_ns: part(self.wall_ns),
            target_ns: part(self.target_ns),
            hits: part(self.hits),
            hit_ns: part(self.hit_ns),
            events: part(self.events),
            event_ns: part(self.event_ns),
            operations: part(self.operations),
            operation_ns: part(self.operation_ns),
            left_out: part(self.left_out),
            left_out_ns: part(self.left_out_ns),
            samples: part(self.samples),
            sample_ns: part(self.sample_ns),
            once_ns: self.once_ns,
            collector_ns: part(self.collector_ns),
            unwinding_ns: part(self.unwinding_ns),
            others_ns: part(self.others_ns),
            hosts: self.hosts,
        }
    }

    /// The cost since `earlier`, measured in the same recording.
    pub fn since(&self, earlier: &Overhead) -> Overhead {
        Overhead {
            budget_ppm: self.budget_ppm,
            wall_ns: self.wall_ns.saturating_sub(earlier.wall_ns),
            target_ns: self.target_ns.saturating_sub(earlier.target_ns),
            hits: self.hits.saturating_sub(earlier.hits),
            hit_ns: self.hit_ns.saturating_sub(earlier.hit_ns),
            events: self.events.saturating_sub(earlier.events),
            event_ns: self.event_ns.saturating_sub(earlier.event_ns),
            operations: self.operations.saturating_sub(earlier.operations),
            operation_ns: self.operation_ns.saturating_sub(earlier.operation_ns),
            left_out: self.left_out.saturating_sub(earlier.left_out),
            left_out_ns: self.left_out_ns.saturating_sub(earlier.left_out_ns),
            samples: self.samples.saturating_sub(earlier.samples),
            sample_ns: self.sample_ns.saturating_sub(earlier.sample_ns),
            once_ns: self.once_ns.saturating_sub(earlier.once_ns),
            collector_ns: self.collector_ns.saturating_sub(earlier.collector_ns),
            unwinding_ns: self.unwinding_ns.saturating_sub(earlier.unwinding_ns),
            others_ns: self.others_ns.saturating_sub(earlier.others_ns),
            hosts: self.hosts,
        }
    }
}

fn ratio(part_ns: u64, of_ns: u64) -> Option<f64> {
    (of_ns > 0).then(|| part_ns as f64 / of_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cost of recording a program that sleeps must be a share of one CPU: as a share of the program's little CPU
    /// time it would be reported as 74 %.
    #[test]
    fn the_cost_s_share_is_of_the_target_s_cpu_time_or_of_one_cpu() {
        let asleep =
            Overhead { wall_ns: 10_000, target_ns: 100, hit_ns: 20, collector_ns: 80, ..Overhead::default() };
        assert_eq!((asleep.share(), asleep.share_in_threads()), (Some(0.01), Some(0.002)));
        assert_eq!(asleep.shares_of_target(), Some((1.0, 0.2)));
        let started = Overhead { once_ns: 80_000_000, ..asleep };
        assert_eq!((started.share(), started.since(&asleep).once_ns), (Some(0.01), 80_000_000));
        assert_eq!(Overhead { target_ns: 0, ..asleep }.shares_of_target(), None);
        let cost =
            Overhead { target_ns: 1_000, hit_ns: 10, event_ns: 5, collector_ns: 5, ..Overhead::default() };
        assert_eq!(cost.share(), Some(0.02));
        assert_eq!(Overhead::default().share(), None);
        assert_eq!(cost.since(&cost).spent_ns(), 0);
        let operations = Overhead { operations: 4, operation_ns: 40, ..cost };
        assert_eq!((operations.share(), operations.fixed_ns()), (Some(0.06), 50));
        assert_eq!(operations.since(&cost).spent_ns(), 40);
        let left_out = Overhead { left_out: 5, left_out_ns: 10, ..operations };
        assert_eq!((left_out.share(), left_out.fixed_ns()), (Some(0.07), 60));
        assert_eq!(left_out.since(&operations).spent_ns(), 10);
        let most = Overhead { hit_ns: u64::MAX, event_ns: 1, ..Overhead::default() };
        assert_eq!(most.spent_ns(), u64::MAX);
    }
}

/// Result of a trial of a family's functions before any function of the family has probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationsTried {
    /// Calls per second of the process's CPU time; `None`: they could not be counted.
    pub calls: Option<u64>,
    /// Estimated cost of probes, in millionths of the process's CPU time.
    pub cost_ppm: u64,
}

/// Time of an atomic change of a cache line, picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LineTransfer {
    /// Time of an access if one thread alone uses the line, picoseconds.
    pub alone_ps: u64,
    /// If another CPU wants the line, and with some work between changes: without it, a CPU changes a line several times
    /// before another one gets it.
    pub shared_ps: u64,
}

/// Time to wake a thread on an idle CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdleWake {
    /// Median time from the waker's call to the first instruction of the woken thread, ns.
    pub latency_ns: u64,
    /// Median additional time of the waker's call compared with waking a thread on the waker's own CPU, ns.
    pub cost_ns: u64,
}
