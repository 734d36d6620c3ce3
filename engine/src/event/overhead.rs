//! What recording costs: one hit of a probe, and a recording as a whole.

use serde::{Deserialize, Serialize};

/// What one hit of a probe takes of its thread's CPU time, measured on the recorded machine when the recording began.
///
/// A hit is a trap into the kernel, the program that writes the record, and the way back; the record's time is taken
/// on the way. So the hit begins `before_ns` before it and ends `after_ns` after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HitCost {
    /// From the thread's own code to the record's time, nanoseconds.
    pub before_ns: u32,
    /// From the record's time to the thread's own code, nanoseconds.
    pub after_ns: u32,
    /// Half of the measured hits were within this of each other, nanoseconds.
    pub spread_ns: u32,
}

impl HitCost {
    /// The whole hit, nanoseconds.
    pub fn total_ns(&self) -> u64 {
        u64::from(self.before_ns) + u64::from(self.after_ns)
    }
}

/// Hits by what the kernel has to do for the probed instruction. Measured on small functions of longpole's own, again
/// and again, so with everything in the caches: a hit in a real program costs this much or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HitCosts {
    /// The entry of a function whose first instruction the kernel emulates.
    pub entry: HitCost,
    /// The entry of a function whose first instruction has to be stepped over, which takes a second trap.
    pub entry_stepped: HitCost,
    /// The exit of a function: a `ret`, which is stepped over, too.
    pub exit: HitCost,
}

/// What a recording, or a part of it, cost. All of it is sums, so that the difference of two is the cost in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overhead {
    /// What was allowed: millionths of [`Overhead::base_ns`]; `None`: no limit.
    pub budget_ppm: Option<u32>,
    /// Length, nanoseconds.
    pub wall_ns: u64,
    /// CPU time of the recorded processes, without what recording added to it, nanoseconds.
    pub target_ns: u64,
    /// Hits of function probes.
    pub hits: u64,
    /// Their cost as measured ([`HitCosts`]), nanoseconds of the recorded threads.
    pub hit_ns: u64,
    /// Scheduler and other kernel events written.
    pub events: u64,
    /// CPU time of the kernel programs at them, as far as the kernel reports it, nanoseconds.
    pub event_ns: u64,
    /// Synchronization operations that were recorded in the processes themselves; not among the events.
    pub operations: u64,
    /// What that took of their threads' CPU time, as measured of some of them where they were called, nanoseconds.
    pub operation_ns: u64,
    /// Mutex operations that were left out in the processes themselves; the other counts do not include them.
    pub left_out: u64,
    /// What the checks whether they are recorded took of their threads' CPU time, as measured there,
    /// nanoseconds.
    pub left_out_ns: u64,
    /// Stacks taken as samples; not among the events.
    pub samples: u64,
    /// CPU time of taking them, nanoseconds of the recorded threads.
    pub sample_ns: u64,
    /// CPU time that longpole uses once, however long it records: its start, before the recording begins, and the processes
    /// that read symbols for it; nanoseconds. No other number contains it.
    pub once_ns: u64,
    /// CPU time of all of longpole's threads while it records, nanoseconds.
    pub collector_ns: u64,
    /// Of that, what making samples of stacks took.
    pub unwinding_ns: u64,
    /// CPU time of all other programs on the machine meanwhile, and what a hypervisor took, nanoseconds.
    pub others_ns: u64,
}

impl Overhead {
    /// All of it while the processes ran, nanoseconds of CPU time.
    pub fn spent_ns(&self) -> u64 {
        self.in_threads_ns().saturating_add(self.collector_ns)
    }

    /// What it took of the recorded threads' time, nanoseconds: the rest is longpole's own, on any CPU that is free.
    pub fn in_threads_ns(&self) -> u64 {
        let programs_ns = self.event_ns.saturating_add(self.sample_ns);
        programs_ns.saturating_add(self.hit_ns).saturating_add(self.inside_ns())
    }

    /// What is there even without a single function probe or sample, nanoseconds: the budget cannot change it.
    pub fn fixed_ns(&self) -> u64 {
        let collector_ns = self.collector_ns.saturating_sub(self.unwinding_ns);
        self.event_ns.saturating_add(self.inside_ns()).saturating_add(collector_ns)
    }

    /// What the library in the processes took of their threads' CPU time, nanoseconds.
    fn inside_ns(&self) -> u64 {
        self.operation_ns.saturating_add(self.left_out_ns)
    }

    /// What costs are a share of, nanoseconds: the recorded processes' own CPU time, or one CPU for the length of the
    /// recording if that is more. Of a program that sleeps most of the time nobody feels a share of what it computes.
    pub fn base_ns(&self) -> u64 {
        self.target_ns.max(self.wall_ns)
    }

    /// Cost while the processes ran ÷ [`Overhead::base_ns`]; `None` if nothing was recorded.
    pub fn share(&self) -> Option<f64> {
        ratio(self.spent_ns(), self.base_ns())
    }

    /// [`Overhead::in_threads_ns`] likewise.
    pub fn share_in_threads(&self) -> Option<f64> {
        ratio(self.in_threads_ns(), self.base_ns())
    }

    /// Cost ÷ the recorded processes' own CPU time, all of it and what it took of their threads: how far what is seen of
    /// them may be off. `None` if they used none.
    pub fn shares_of_target(&self) -> Option<(f64, f64)> {
        ratio(self.spent_ns(), self.target_ns).zip(ratio(self.in_threads_ns(), self.target_ns))
    }

    /// What is allowed, as a share of [`Overhead::base_ns`].
    pub fn budget(&self) -> Option<f64> {
        self.budget_ppm.map(|ppm| f64::from(ppm) / 1e6)
    }

    /// What a part of the recording with this share of its records cost.
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
        }
    }

    /// The cost since an earlier look at the same recording.
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
        }
    }
}

fn ratio(part_ns: u64, of_ns: u64) -> Option<f64> {
    (of_ns > 0).then(|| part_ns as f64 / of_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recording of a program that slept was reported to cost 74 %.
    #[test]
    fn a_share_is_of_the_targets_own_time_or_of_one_cpu() {
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

/// What a trial of a family's functions has shown, before any of them got probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationsTried {
    /// Calls in a second of the process's CPU time; `None`: they could not be counted.
    pub calls: Option<u64>,
    /// What probes would have cost, in millionths of the process's CPU time.
    pub cost_ppm: u64,
}

/// What an atomic change of a cache line takes, picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LineTransfer {
    /// By a thread that has the line for itself.
    pub alone_ps: u64,
    /// How long the line serves one CPU while another wants it, with some work between changes: without any, a CPU changes a line
    /// several times before it gives it away.
    pub shared_ps: u64,
}

/// What waking a thread on an idle CPU takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdleWake {
    /// From the waker's call to the woken thread's first instruction, the middle, ns.
    pub latency_ns: u64,
    /// How much longer the waker's call takes than if it wakes a thread of its own CPU, the middle, ns.
    pub cost_ns: u64,
}
