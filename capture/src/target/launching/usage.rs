//! CPU time of ended children.

use std::time::Duration;

/// CPU time, user and kernel, of all children of this process that have ended and been waited for, and of their
/// descendants in the same way. Zero if the kernel refuses, which does not happen.
pub fn children_cpu_time() -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a valid place for one rusage for the time of the call.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) } != 0 {
        return Duration::ZERO;
    }
    // SAFETY: zeroed at first, which is a valid rusage, and filled by the kernel since.
    let usage = unsafe { usage.assume_init() };
    [usage.ru_utime, usage.ru_stime].iter().fold(Duration::ZERO, |sum, time| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let microseconds = u64::try_from(time.tv_usec).unwrap_or(0);
        sum.saturating_add(Duration::from_secs(seconds)).saturating_add(Duration::from_micros(microseconds))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_computes_adds_to_the_children_s_cpu_time() {
        let before = children_cpu_time();
        let status = std::process::Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"])
            .status()
            .expect("sh");
        assert!(status.success());
        assert!(children_cpu_time() > before);
    }
}
