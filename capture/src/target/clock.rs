//! The kernel's clock that all events are stamped with.

/// `CLOCK_MONOTONIC` now, in nanoseconds; 0 if the kernel refuses, which it does not.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for one timespec for the time of the call.
    if unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) } != 0 {
        return 0;
    }
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// Nanoseconds between two ticks of the kernel's clock (`CONFIG_HZ`): the coarse clock goes on with each of them.
pub fn kernel_tick_ns() -> Option<u64> {
    let mut tick = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `tick` is a valid place for one timespec for the time of the call.
    if unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut tick) } != 0 || tick.tv_sec != 0 {
        return None;
    }
    u64::try_from(tick.tv_nsec).ok().filter(|&ns| ns > 1)
}

/// Nanoseconds of one tick of the times in /proc/PID/stat.
pub fn tick_ns() -> u64 {
    // SAFETY: sysconf only reads its argument.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1_000_000_000 / u64::try_from(per_second).unwrap_or(100).max(1)
}
