//! Finds out why a runnable thread did not run: which threads used the CPU that it got next.

use super::cause::Cause;
use crate::timeline::{State, Timeline};
use rustc_hash::FxHashMap;

/// A wake-up on a free CPU takes at most this many times the measured median.
const TIMES_USUAL: u64 = 10;
/// The least upper bound for a wake-up, ns, also without a measurement: virtual machines are slow to continue an idle CPU.
const LONGEST_WAKE_NS: u64 = 200_000;

/// Times at which threads of the recording used each CPU.
#[derive(Debug, Default)]
pub(super) struct CpuWaits {
    /// For each CPU: the stretches in which threads of the recording ran on it, ascending.
    busy: FxHashMap<u16, Vec<Stretch>>,
    /// The longest time that a wake-up itself takes, ns.
    longest_wake_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: u64,
    to: u64,
    before: u64,
}

/// The wait of a runnable thread for a CPU, with its beginning and end, ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) from: u64,
    pub(super) to: u64,
    /// The CPU that the thread got in the end, if known.
    pub(super) cpu: Option<u16>,
    /// The thread had slept before; otherwise it had lost its CPU.
    pub(super) woken: bool,
}

impl CpuWaits {
    pub(super) fn of(timeline: &Timeline) -> CpuWaits {
        let mut spans: FxHashMap<u16, Vec<(u64, u64)>> = FxHashMap::default();
        for thread in &timeline.threads {
            for (from, to, state) in thread.spans() {
                if let State::Running { cpu: Some(cpu) } = state
                    && from < to
                {
                    spans.entry(cpu).or_default().push((from.0, to.0));
                }
            }
        }
        let measured = timeline.idle_wake.map_or(0, |wake| wake.latency_ns.saturating_mul(TIMES_USUAL));
        let busy = spans.into_iter().map(|(cpu, spans)| (cpu, summed(spans))).collect();
        CpuWaits { busy, longest_wake_ns: measured.max(LONGEST_WAKE_NS) }
    }

    /// Time for which threads of the recording used the CPU before `time`, summed, ns.
    fn busy_until(&self, cpu: u16, time: u64) -> u64 {
        let all = self.busy.get(&cpu).map_or(&[][..], Vec::as_slice);
        let next = all.partition_point(|stretch| stretch.from < time);
        let last = next.checked_sub(1).and_then(|last| all.get(last));
        last.map_or(0, |last| last.before.saturating_add(time.min(last.to).saturating_sub(last.from)))
    }

    /// The causes of the wait with their lengths, ns, which add up to the wait: first the program's own threads, then
    /// everything else.
    pub(super) fn split(&self, wish: Wish) -> [(Cause, u64); 2] {
        let length = wish.to.saturating_sub(wish.from);
        let own = wish
            .cpu
            .map_or(0, |cpu| self.busy_until(cpu, wish.to).saturating_sub(self.busy_until(cpu, wish.from)));
        let own = own.min(length);
        let rest = length - own;
        let is_hand_over = rest <= self.longest_wake_ns && (wish.woken || own > 0);
        let cause = if is_hand_over { Cause::Woken } else { Cause::NoCpuOthers };
        [(Cause::NoCpu, own), (cause, rest)]
    }
}

/// Stretches in order and without overlap; inconsistent records may show two threads on a CPU at once.
fn summed(mut spans: Vec<(u64, u64)>) -> Vec<Stretch> {
    spans.sort_unstable();
    let mut all: Vec<Stretch> = Vec::with_capacity(spans.len());
    for (from, to) in spans {
        let (from, before) = match all.last() {
            Some(last) => (from.max(last.to), last.before.saturating_add(last.to - last.from)),
            None => (from, 0),
        };
        if from < to {
            all.push(Stretch { from, to, before });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_a_cpu_is_split_into_own_threads_others_and_the_wake_up() {
        let busy = FxHashMap::from_iter([(3, summed(vec![(100, 300), (200, 400), (1_000, 2_000)]))]);
        let waits = CpuWaits { busy, longest_wake_ns: 50 };
        let split = |from, to, cpu, woken| waits.split(Wish { from, to, cpu, woken });
        assert_eq!(split(150, 420, Some(3), true), [(Cause::NoCpu, 250), (Cause::Woken, 20)]);
        assert_eq!(split(400, 440, Some(3), true), [(Cause::NoCpu, 0), (Cause::Woken, 40)]);
        assert_eq!(split(400, 500, Some(3), true), [(Cause::NoCpu, 0), (Cause::NoCpuOthers, 100)]);
        assert_eq!(split(400, 440, Some(3), false), [(Cause::NoCpu, 0), (Cause::NoCpuOthers, 40)]);
        assert_eq!(split(0, 5_000, Some(3), true), [(Cause::NoCpu, 1_300), (Cause::NoCpuOthers, 3_700)]);
        assert_eq!(split(0, 10, None, true), [(Cause::NoCpu, 0), (Cause::Woken, 10)]);
    }
}
