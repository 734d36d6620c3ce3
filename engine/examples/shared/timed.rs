//! Measures how long a benchmark's work takes.

use std::time::Instant;

/// The work's result, and the wall and processor time that it takes, nanoseconds. On a shared machine the wall clock
/// says little.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, u128, u64) {
    let (start, start_cpu) = (Instant::now(), processor_ns());
    let answer = work();
    (answer, start.elapsed().as_nanos(), processor_ns().saturating_sub(start_cpu))
}

/// Processor time of this thread so far, nanoseconds.
fn processor_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}
