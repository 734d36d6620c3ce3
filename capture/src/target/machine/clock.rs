//! The kernel's clock of all events, and the lengths of its ticks.

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_getres, clock_gettime};

/// `CLOCK_MONOTONIC` now, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// Nanoseconds between two ticks of the kernel's clock (`CONFIG_HZ`): the coarse clock advances with each tick.
pub fn kernel_tick_ns() -> Option<u64> {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    u64::try_from(tick.tv_nsec).ok().filter(|&ns| ns > 1 && tick.tv_sec == 0)
}

/// Length of one tick of the times in /proc/PID/stat, nanoseconds.
pub fn tick_ns() -> u64 {
    1_000_000_000 / clock_ticks_per_second().max(1)
}
