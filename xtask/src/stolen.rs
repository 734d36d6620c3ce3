//! What the host of a virtual machine takes of its CPUs.

/// Time of all CPUs since the machine started, in the kernel's ticks (`/proc/stat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    all: u64,
    stolen: u64,
}

impl CpuTicks {
    /// Now; zeros if /proc does not tell.
    pub fn now() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
        // user, nice, system, idle, iowait, irq, softirq, steal; what follows is part of user and nice.
        let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).take(8).collect();
        let all = ticks.iter().fold(0u64, |sum, ticks| sum.saturating_add(*ticks));
        Self { all, stolen: ticks.get(7).copied().unwrap_or_default() }
    }

    /// The share of the CPUs' time since `earlier` in which they were ready to run and were not let; 0 to 1.
    pub fn stolen_since(&self, earlier: &Self) -> f64 {
        let all = self.all.saturating_sub(earlier.all).max(1);
        self.stolen.saturating_sub(earlier.stolen) as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eighth_column_is_the_hosts() {
        let before = CpuTicks::parse("cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 2 3\n");
        let after = CpuTicks::parse("cpu  20 0 20 120 0 0 0 40 9 0\n");
        assert_eq!(after.stolen_since(&before), 0.3);
        assert_eq!(after.stolen_since(&after), 0.0);
        assert_eq!(CpuTicks::parse("intr 5\n"), CpuTicks::default());
    }
}
