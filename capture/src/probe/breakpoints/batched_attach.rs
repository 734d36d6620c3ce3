//! Attaching and removing breakpoints without disturbing the target.
//!
//! For each breakpoint the kernel takes the target's memory map for writing, for some 15 µs. Threads that map or unmap
//! memory wait during that time, as do page faults that need the map, and the attaching thread uses a CPU. With 4,096
//! breakpoints in one link, threads waited up to 16 ms (50 threads on two CPUs that mapped memory all the time). With
//! 64 in a link and a pause after each link, the longest waits were those without probes. Closing links had no effect
//! in any size: the kernel mostly sleeps while it closes one.

use std::time::Duration;

/// Number of breakpoints in one link: attaching this number takes less than a millisecond.
const POINTS: usize = 64;
/// Pause between two links.
const PAUSE: Duration = Duration::from_millis(2);
/// Niceness while attaching, as the ring reader's.
const NICE: i32 = -10;

/// Cuts into groups of at most `POINTS` breakpoints; an item with more is a group of its own.
pub(crate) fn in_small_groups<T>(all: &[T], points: impl Fn(&T) -> usize) -> impl Iterator<Item = &[T]> {
    let mut rest = all;
    std::iter::from_fn(move || {
        let mut sum = 0usize;
        let fit = rest.iter().take_while(|one| {
            sum = sum.saturating_add(points(one));
            sum <= POINTS
        });
        let count = fit.count().max(1).min(rest.len());
        let (group, later) = rest.split_at(count);
        rest = later;
        (!group.is_empty()).then_some(group)
    })
}

/// Sleeps, so that the target can run before the next link.
pub(crate) fn pause() {
    std::thread::sleep(PAUSE);
}

/// Raises the calling thread's priority until this is dropped, as far as rights allow. On a fully used machine the thread
/// could lose its CPU while it holds the target's memory map, and the target would wait until it has a CPU again.
pub(crate) fn with_high_priority() -> Option<HighPriority> {
    let before = rustix::process::getpriority_process(None).ok()?;
    rustix::process::setpriority_process(None, before.min(NICE)).ok()?;
    Some(HighPriority(before))
}

/// Raises the thread's priority, and restores its niceness when dropped.
pub(crate) struct HighPriority(i32);

impl Drop for HighPriority {
    fn drop(&mut self) {
        if let Err(error) = rustix::process::setpriority_process(None, self.0) {
            log::debug!("priority stays: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attach_groups_are_small_and_contain_everything() {
        let sizes = [1, 63, 1, 64, 65, 200, 2, 2];
        let groups: Vec<Vec<usize>> = in_small_groups(&sizes, |size| *size).map(<[usize]>::to_vec).collect();
        assert_eq!(groups, [vec![1, 63], vec![1], vec![64], vec![65], vec![200], vec![2, 2]]);
        assert_eq!(in_small_groups(&[] as &[usize], |size| *size).count(), 0);
    }
}
