//! Chooses the CPUs on which the sampling clock ticks: those that are online and where recorded threads have run lately.
//! Pure: the online CPUs and the observations come in, changes go out.
//!
//! A tick interrupts the running thread, and wakes a sleeping CPU: a program with two threads on a machine
//! with sixty-four CPUs has no use for ticks on the other sixty-two. At first all CPUs tick. Where no
//! recorded thread has run for a while, the clock stops. It starts again with the first look that finds
//! a recorded thread there, and the ticks missed until then are counted. A CPU that went offline and came back has
//! lost its clock.

use std::collections::BTreeMap;
use std::time::Duration;

/// The clock of a CPU stops when no recorded thread has run there for this long: threads return to earlier CPUs.
const REST_AFTER: Duration = Duration::from_secs(10);
/// How long the clock runs on a CPU on which no recorded thread has run yet.
const REST_UNUSED: Duration = Duration::from_secs(2);

/// What is known about the use of one CPU.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    /// The CPU's count of recorded activity at the last check.
    count: u64,
    /// Time at which the count was last found larger, ns.
    busy_ns: u64,
    /// Whether the count was ever found larger.
    used: bool,
    ticks: bool,
}

/// Which CPUs were online at the last check, and which of them need a sampling clock.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    cpus: BTreeMap<u32, Cpu>,
    looked_ns: u64,
}

/// Clocks to start and to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// CPUs whose clock must start.
    pub(crate) on: Vec<u32>,
    /// CPUs whose clock must stop, or which are offline.
    pub(crate) off: Vec<u32>,
    /// CPU time in which recorded threads may have run without a tick, nanoseconds.
    pub(crate) missed_ns: u64,
}

impl Coverage {
    /// Decides about all CPUs. `counted`: a count for each CPU that grows whenever a recorded thread runs there.
    pub(crate) fn look(&mut self, now_ns: u64, online: &[u32], counted: &dyn Fn(u32) -> u64) -> Changes {
        let mut changes = Changes::default();
        let since_look_ns = now_ns.saturating_sub(std::mem::replace(&mut self.looked_ns, now_ns));
        let first = self.cpus.is_empty();
        self.cpus.retain(|cpu, known| {
            let stays = online.contains(cpu);
            if !stays && known.ticks {
                changes.off.push(*cpu);
            }
            stays
        });
        for &cpu in online {
            let count = counted(cpu);
            // Recorded threads may run at once on a CPU that has just come online.
            let known =
                self.cpus.entry(cpu).or_insert(Cpu { count, busy_ns: now_ns, used: false, ticks: false });
            if known.count != count {
                (known.count, known.busy_ns, known.used) = (count, now_ns, true);
                if !known.ticks && !first {
                    changes.missed_ns = changes.missed_ns.saturating_add(since_look_ns);
                }
            }
            let rest_after = if known.used { REST_AFTER } else { REST_UNUSED };
            let wanted = u128::from(now_ns.saturating_sub(known.busy_ns)) < rest_after.as_nanos();
            if wanted != known.ticks {
                known.ticks = wanted;
                if wanted { &mut changes.on } else { &mut changes.off }.push(cpu);
            }
        }
        changes
    }

    /// CPUs whose clock ticks.
    pub(crate) fn ticking(&self) -> Vec<u32> {
        self.cpus.iter().filter(|(_, cpu)| cpu.ticks).map(|(cpu, _)| *cpu).collect()
    }

    /// Notes that the clocks of these CPUs could not be started: the next check tries again.
    pub(crate) fn not_ticking(&mut self, cpus: &[u32]) {
        for cpu in cpus {
            if let Some(cpu) = self.cpus.get_mut(cpu) {
                cpu.ticks = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn on(changes: &Changes) -> (&[u32], &[u32]) {
        (&changes.on, &changes.off)
    }

    #[test]
    fn sampling_clocks_follow_the_program_and_missed_time_is_counted() {
        let mut coverage = Coverage::default();
        let all: Vec<u32> = (0..64).collect();
        let first = coverage.look(5 * SECOND, &all, &|_| 0);
        assert_eq!((&first.on, first.missed_ns), (&all, 0), "nobody knows yet where it runs");
        // Two threads stay on their CPUs.
        assert_eq!(coverage.look(6 * SECOND, &all, &|cpu| if cpu < 2 { 6 } else { 0 }), Changes::default());
        let changes = coverage.look(7 * SECOND, &all, &|cpu| if cpu < 2 { 7 } else { 0 });
        assert_eq!(on(&changes), (&[][..], &all[2..]));
        assert_eq!(coverage.ticking(), [0, 1]);
        // One thread moves to another CPU.
        let at = 16 * SECOND + SECOND / 10;
        coverage.look(16 * SECOND, &all, &|cpu| if cpu < 2 { 15 } else { 0 });
        let changes = coverage
            .look(at, &all, &|cpu| if [0, 40].contains(&cpu) { 17 } else { 15 * u64::from(cpu == 1) });
        assert_eq!((&changes.on[..], changes.missed_ns), (&[40][..], SECOND / 10));
        let changes = coverage
            .look(at + 1, &all, &|cpu| if [0, 40].contains(&cpu) { 18 } else { 15 * u64::from(cpu == 1) });
        assert_eq!(changes, Changes::default());
        // A clock that could not be started is tried again.
        coverage.not_ticking(&[40]);
        let changes = coverage
            .look(at + 2, &all, &|cpu| if [0, 40].contains(&cpu) { 18 } else { 15 * u64::from(cpu == 1) });
        assert_eq!(changes.on, [40]);
    }

    /// A CPU that comes online during the recording gets a clock, too.
    #[test]
    fn cpus_that_come_and_go_gain_and_lose_their_sampling_clock() {
        let mut coverage = Coverage::default();
        let count = |_| 7;
        assert_eq!(coverage.look(SECOND, &[0], &count).on, [0]);
        assert_eq!(on(&coverage.look(2 * SECOND, &[0, 1, 3], &count)), (&[1, 3][..], &[][..]));
        assert_eq!(on(&coverage.look(3 * SECOND, &[0, 3], &count)), (&[][..], &[1, 0][..]));
        assert_eq!(coverage.ticking(), [3], "none has run on the first in two seconds");
        assert_eq!(on(&coverage.look(3 * SECOND + 1, &[0, 1, 3], &count)), (&[1][..], &[][..]), "anew");
        let moved = |cpu| 7 + u64::from(cpu == 1);
        assert_eq!(on(&coverage.look(4 * SECOND, &[0, 1, 3], &moved)), (&[][..], &[3][..]));
        assert_eq!(on(&coverage.look(13 * SECOND, &[0, 1, 3], &moved)), (&[][..], &[][..]));
        assert_eq!(on(&coverage.look(14 * SECOND, &[0, 1, 3], &moved)), (&[][..], &[1][..]));
    }
}
