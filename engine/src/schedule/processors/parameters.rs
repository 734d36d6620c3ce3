//! The parameters of a machine with a scheduler.

use crate::time::Ticks;

/// The number of processors, the parameters of their scheduler, and the scheduler's costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerParameters {
    /// Processors, at least 1.
    pub cpus: u32,
    /// How long a thread may run while another thread wants its processor (EEVDF's base slice).
    pub slice: Ticks,
    /// Cost of taking one thread off a processor and putting another one on it.
    pub switch_cost: Ticks,
    /// Time from waking a thread to its first instruction, on an idle processor.
    pub wake_latency: Ticks,
    /// The slowest tenth of wake-up latencies is longer than the first value, the slowest hundredth longer than the
    /// second. 0: all latencies are about [`SchedulerParameters::wake_latency`].
    pub slow_wakes: [Ticks; 2],
    /// Of a thousand wake-ups of threads whose last processor is busy while another is idle, how many get an idle one.
    /// The other threads queue: kernels examine few processors, or prefer to keep idle ones idle (`select_idle_cpu` in
    /// kernel/sched/fair.c).
    pub idle_found: u32,
    /// Processor time that waking a thread on an idle processor costs its waker, in addition to the time that its
    /// computing already contains: it sends an interrupt to the other processor. A thread that wakes several wakes them
    /// one after the other.
    pub wake_cost: Ticks,
    /// Period of the kernel's clock, for kernels whose idle processors ask for a waiting thread only by chance
    /// ([`super::newidle_chance`]); 0: an idle processor takes a waiting thread at once.
    pub tick: Ticks,
    /// Processor time of all threads together, in hundredths of a processor (cgroup's `cpu.max`).
    pub quota: Option<u32>,
    /// Seed for what the parameters leave open; 0: the plain order of processors and threads.
    pub seed: u64,
}

impl SchedulerParameters {
    /// Parameters for this number of processors, without any costs.
    pub fn free(cpus: u32) -> SchedulerParameters {
        SchedulerParameters {
            cpus: cpus.max(1),
            slice: base_slice(cpus),
            switch_cost: Ticks(0),
            wake_latency: Ticks(0),
            slow_wakes: [Ticks(0); 2],
            idle_found: 1000,
            wake_cost: Ticks(0),
            tick: Ticks(0),
            quota: None,
            seed: 0,
        }
    }
}

/// EEVDF's base slice on a number of processors: 0.7 ms × (1 + log2 of them, at most 8 counted);
/// kernel/sched/fair.c, `sysctl_sched_base_slice` and `get_update_sysctl_factor`, since Linux 6.15 (before:
/// 0.75 ms).
pub fn base_slice(cpus: u32) -> Ticks {
    Ticks::from_ns(700_000 * u64::from(1 + cpus.clamp(1, 8).ilog2()))
}

/// Load weights by nice value from −20 to 19: a step is a quarter more or less (kernel/sched/core.c,
/// `sched_prio_to_weight`).
const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121,
    2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29,
    23, 18, 15,
];

/// The load weight of nice 0.
pub(super) const UNIT: u64 = 1024;

/// The load weight of a nice value.
pub(super) fn weight(nice: i8) -> u32 {
    WEIGHTS[usize::from((i16::from(nice.clamp(-20, 19)) + 20).unsigned_abs())]
}
