//! Measures how busy CPUs are, with all processes.

use super::clock::tick_ns;
use crate::target::CpuList;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for which each CPU has not been idle since the machine started (`/proc/stat`, ticks of 10 ms), including time
/// that the hypervisor took from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusyTimes(BTreeMap<usize, Duration>);

impl BusyTimes {
    /// The times now; empty if they cannot be read from /proc.
    pub fn now() -> BusyTimes {
        BusyTimes::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default(), tick_ns())
    }

    pub(in crate::target) fn parse(text: &str, tick_ns: u64) -> BusyTimes {
        let busy = text.lines().filter_map(|line| {
            let (name, numbers) = line.split_once(' ')?;
            let cpu = name.strip_prefix("cpu")?.parse::<usize>().ok()?;
            let numbers: Vec<u64> = numbers.split_whitespace().map_while(|word| word.parse().ok()).collect();
            // user, nice, system, idle, iowait, irq, softirq, steal; the fields after these are parts of user and nice.
            let idle = |place: usize| matches!(place, 3 | 4);
            let busy = numbers.iter().take(8).enumerate().filter(|(place, _)| !idle(*place));
            let ticks = busy.fold(0u64, |sum, (_, ticks)| sum.saturating_add(*ticks));
            Some((cpu, Duration::from_nanos(ticks.saturating_mul(tick_ns))))
        });
        BusyTimes(busy.collect())
    }

    /// The sum of the time that all CPUs have been busy since `earlier`.
    pub fn all_since(&self, earlier: &BusyTimes) -> Duration {
        self.0.keys().fold(Duration::ZERO, |sum, cpu| sum.saturating_add(self.of(*cpu, earlier)))
    }

    /// Sum of the time for which these CPUs have been busy since `earlier`.
    pub fn since(&self, earlier: &BusyTimes, cpus: &CpuList) -> Duration {
        cpus.iter().fold(Duration::ZERO, |sum, cpu| sum.saturating_add(self.of(cpu, earlier)))
    }

    fn of(&self, cpu: usize, earlier: &BusyTimes) -> Duration {
        let at = |times: &BusyTimes| times.0.get(&cpu).copied().unwrap_or_default();
        at(self).saturating_sub(at(earlier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_disk_waits_do_not_count_as_busy() {
        let before = "cpu  9 9 9 9\ncpu0 10 1 5 1000 50 2 3 4 8 0\ncpu1 0 0 0 0\nintr 5\n";
        let after = "cpu  9 9 9 9\ncpu0 20 1 5 2000 90 2 3 5 18 0\ncpu1 7 0 0 9\n";
        let (before, after) = (BusyTimes::parse(before, 10), BusyTimes::parse(after, 10));
        let cpus = |text| CpuList::parse(text).expect("CPUs");
        assert_eq!(after.since(&before, &cpus("0")), Duration::from_nanos(110));
        assert_eq!(after.since(&before, &cpus("0-1")), Duration::from_nanos(180));
        assert_eq!(after.since(&before, &cpus("5")), Duration::ZERO);
        assert_eq!(after.all_since(&before), Duration::from_nanos(180));
        assert_eq!(BusyTimes::parse("cpux 1\ncpu0 a\n", 10).0.len(), 1);
    }

    #[test]
    fn this_machine_s_busy_times_can_be_read() {
        assert!(!BusyTimes::now().0.is_empty());
    }
}
