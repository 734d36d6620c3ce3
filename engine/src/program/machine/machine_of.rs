//! Measures the recorded machine from a timeline.

use std::collections::BTreeMap;

use super::machine_facts::{DeviceFact, MachineFacts};
use crate::event::{CallKind, Overhead};
use crate::program::naming::names;
use crate::timeline::{External, State, Thread, Timeline, Wait, Wake};
use rustc_hash::FxHashMap;

/// Least number of cases for a median.
const FEWEST: usize = 10;
/// Least number of cases for a share in per mille.
const FEWEST_BESIDE_IDLE: u32 = 30;
/// Least number of cases for the 99th percentile.
const FEWEST_FOR_SLOWEST: usize = 100;
/// A CPU that a thread left at most this long ago in order to wait has most likely been idle since, ns.
const JUST_LEFT_NS: u64 = 200_000;
/// A thread that reaches an idle CPU later than this after its wake-up, ns, had queued on another CPU before.
const AT_ONCE_NS: u64 = 200_000;
/// If other programs had more than this share of the CPUs, a CPU that a recorded thread left was probably not idle.
const MOST_BY_OTHERS: f64 = 0.1;
/// Enough cases; the search then ends.
const MOST: usize = 1 << 20;

/// A stretch of time in which a CPU ran a recorded thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    start: u64,
    end: u64,
    /// Time at which the thread began to want a CPU, ns.
    wanted: u64,
}

/// The stretches of each CPU, ascending.
type Occupied = FxHashMap<u16, Vec<Stretch>>;

/// Facts about the recording's machine.
pub(in crate::program) fn machine(timeline: &Timeline) -> MachineFacts {
    let occupied = occupied(timeline);
    let taken = taken(timeline);
    let mut cases = Cases::default();
    for thread in &timeline.threads {
        // The last state with its start, and the state that preceded it.
        let mut before: Option<(u64, State)> = None;
        let mut earlier: Option<State> = None;
        let mut last_cpu: Option<u16> = None;
        for (start, _, state) in thread.spans() {
            if let (Some((woken, State::Runnable)), State::Running { cpu: Some(cpu) }) = (before, state)
                && let Some(State::Blocked(wait)) = earlier
                && let Some(wait) = thread.waits.get(wait as usize)
                && !wait.cut_at_start
                && is_idle(&occupied, cpu, woken, start.0)
            {
                let latency = start.0.saturating_sub(woken);
                match wait.wake {
                    Wake::By(_) => cases.by_threads.push(latency),
                    Wake::External(_) => cases.by_others.push(latency),
                    Wake::CutAtEnd | Wake::CutByUnknown => {}
                }
            }
            if let (Some((woken, State::Runnable)), State::Running { cpu: Some(cpu) }) = (before, state)
                && let (Some(State::Blocked(_)), Some(last)) = (earlier, last_cpu)
                && !is_idle(&occupied, last, woken, woken.saturating_add(1))
                && just_left(&occupied, &taken, woken)
            {
                cases.beside_idle += 1;
                cases.found += u32::from(cpu != last && start.0.saturating_sub(woken) <= AT_ONCE_NS);
            }
            if let State::Running { cpu: Some(cpu) } = state {
                last_cpu = Some(cpu);
            }
            // Pre-empted by another recorded thread that had wanted the CPU for the whole slice. A thread just woken
            // that takes the CPU at once shows nothing about slices. Neither does a thread that got the CPU because
            // another one went to sleep: slices end at ticks, so its first slice is shorter.
            if let (Some((began, State::Running { cpu: Some(cpu) })), State::Runnable) = (before, state)
                && follower(&occupied, cpu, start.0).is_some_and(|next| next.wanted <= began)
                && taken.get(&cpu).is_some_and(|taken| taken.binary_search(&began).is_ok())
            {
                cases.slices.push(start.0.saturating_sub(began));
            }
            earlier = before.map(|(_, state)| state);
            before = Some((start.0, state));
        }
        if cases.by_threads.len().max(cases.by_others.len()).max(cases.slices.len()) > MOST {
            break;
        }
    }
    let latencies =
        if cases.by_threads.len() < FEWEST { &mut cases.by_others } else { &mut cases.by_threads };
    let wake_latency_ns = quantile(latencies, 50, FEWEST);
    latencies.retain(|latency| *latency <= AT_ONCE_NS);
    let slow = quantile(latencies, 90, FEWEST_FOR_SLOWEST).zip(quantile(latencies, 99, FEWEST_FOR_SLOWEST));
    let is_shared = by_others(timeline.overhead, occupied.len()) > MOST_BY_OTHERS;
    MachineFacts {
        wake_latency_ns,
        slow_wakes_ns: slow.filter(|_| !is_shared).map(Into::into),
        idle_found: cases.idle_found().filter(|_| !is_shared),
        idle_wake: timeline.idle_wake,
        line_transfer: timeline.line_transfer,
        cpu_runs: timeline.cpu_runs.clone(),
        hosts: timeline.hosts.len() as u64,
        tick_ns: timeline.tick_ns,
        idle_tick_ns: timeline.idle_tick_ns,
        // In the recording a switch takes no time: its cost is in the compute times around it.
        switch_cost_ns: (!occupied.is_empty()).then_some(0),
        slice_ns: quantile(&mut cases.slices, 50, FEWEST),
        cpu_quota: timeline.cpu_quota,
        // Masks of several hosts are of different CPUs.
        cpus_allowed: cpus_allowed(&timeline.threads).filter(|_| timeline.hosts.is_empty()),
        cpus_used: u32::try_from(occupied.len()).ok().filter(|cpus| *cpus > 0),
        // Cache lines and locks' work are known from samples, which this function does not use.
        lines: Vec::new(),
        lock_work: None,
        devices: devices(timeline),
    }
}

/// Number of CPUs in all known masks. Threads without a known mask are assumed to have inherited one of these.
fn cpus_allowed(threads: &[Thread]) -> Option<u32> {
    let mut all: Vec<u32> = threads.iter().flat_map(|thread| thread.cpus.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    u32::try_from(all.len()).ok().filter(|cpus| *cpus > 0)
}

/// The share of `cpus` CPUs' time that other programs used.
fn by_others(overhead: Option<Overhead>, cpus: usize) -> f64 {
    let overhead = overhead.unwrap_or_default();
    let all_ns = overhead.wall_ns as f64 * cpus as f64;
    if all_ns > 0.0 { overhead.others_ns as f64 / all_ns } else { 0.0 }
}

#[derive(Default)]
struct Cases {
    /// Latencies of wake-ups by threads of the recording.
    by_threads: Vec<u64>,
    /// Latencies of wake-ups by anything else.
    by_others: Vec<u64>,
    slices: Vec<u64>,
    /// Number of wake-ups at which the thread's last CPU was busy and another CPU had just become idle; in `found`, the
    /// number of those that got an idle CPU.
    beside_idle: u32,
    found: u32,
}

impl Cases {
    fn idle_found(&self) -> Option<u16> {
        let found = u64::from(self.found) * 1000 / u64::from(self.beside_idle.max(1));
        u16::try_from(found).ok().filter(|_| self.beside_idle >= FEWEST_BESIDE_IDLE)
    }
}

fn occupied(timeline: &Timeline) -> Occupied {
    let mut occupied = Occupied::default();
    for thread in &timeline.threads {
        let mut before: Option<(u64, State)> = None;
        for (start, end, state) in thread.spans() {
            if let State::Running { cpu: Some(cpu) } = state
                && end > start
            {
                let wanted = match before {
                    Some((since, State::Runnable)) => since,
                    _ => start.0,
                };
                occupied.entry(cpu).or_default().push(Stretch { start: start.0, end: end.0, wanted });
            }
            before = Some((start.0, state));
        }
    }
    occupied.values_mut().for_each(|stretches| stretches.sort_unstable());
    occupied
}

/// For each CPU: times at which a running thread was pre-empted, ascending, ns.
fn taken(timeline: &Timeline) -> FxHashMap<u16, Vec<u64>> {
    let mut taken: FxHashMap<u16, Vec<u64>> = FxHashMap::default();
    for thread in &timeline.threads {
        let mut before = None;
        for (start, _, state) in thread.spans() {
            if let (Some(State::Running { cpu: Some(cpu) }), State::Runnable) = (before, state) {
                taken.entry(cpu).or_default().push(start.0);
            }
            before = Some(state);
        }
    }
    taken.values_mut().for_each(|times| times.sort_unstable());
    taken
}

/// Whether the CPU ran no recorded thread between `from` and `to`.
fn is_idle(occupied: &Occupied, cpu: u16, from: u64, to: u64) -> bool {
    let Some(stretches) = occupied.get(&cpu) else { return true };
    // A CPU runs one thread at a time, so the ends of stretches ascend, as their starts do.
    let next = stretches.partition_point(|stretch| stretch.end <= from);
    stretches.get(next).is_none_or(|stretch| stretch.start >= to)
}

/// The stretch that begins on the CPU at this very instant.
fn follower(occupied: &Occupied, cpu: u16, at: u64) -> Option<&Stretch> {
    let stretches = occupied.get(&cpu)?;
    let place = stretches.partition_point(|stretch| stretch.start < at);
    stretches.get(place).filter(|stretch| stretch.start == at)
}

/// Whether a recorded thread has just left a CPU to wait, and no recorded thread has run there since.
fn just_left(occupied: &Occupied, taken: &FxHashMap<u16, Vec<u64>>, at: u64) -> bool {
    let is_left = |(cpu, stretches): &(&u16, &Vec<Stretch>)| {
        let next = stretches.partition_point(|stretch| stretch.start <= at);
        let Some(last) = next.checked_sub(1).and_then(|last| stretches.get(last)) else { return false };
        let is_taken = || taken.get(*cpu).is_some_and(|taken| taken.binary_search(&last.end).is_ok());
        last.end <= at && at - last.end <= JUST_LEFT_NS && !is_taken()
    };
    occupied.iter().any(|stretches| is_left(&stretches))
}

/// The value below which `percent` of the values are; `None` if there are fewer than `fewest`.
fn quantile(values: &mut [u64], percent: usize, fewest: usize) -> Option<u64> {
    if values.len() < fewest {
        return None;
    }
    let place = values.len() * percent / 100;
    Some(*values.select_nth_unstable(place).1)
}

/// Whether the wait is for something that serves a limited number of threads at once. For the network and for other
/// processes, the recording does not show how many requests they can serve.
fn is_device(wait: &Wait) -> bool {
    match wait.wake {
        Wake::External(External::Block | External::Device) => !wait.is_idle(),
        Wake::External(External::Task | External::Idle) => wait.kind() == CallKind::Sync,
        _ => false,
    }
}

/// For each device: the largest number of threads that waited for it at once.
fn devices(timeline: &Timeline) -> Vec<DeviceFact> {
    let mut changes: BTreeMap<&'static str, Vec<(u64, i32)>> = BTreeMap::new();
    for thread in &timeline.threads {
        for (start, end, state) in thread.spans() {
            if let State::Blocked(wait) = state
                && end > start
                && let Some(wait) = thread.waits.get(wait as usize).filter(|wait| is_device(wait))
            {
                // If one wait ends and another begins at the same time, the end counts first.
                changes.entry(names::device(wait)).or_default().extend([(start.0, 1), (end.0, -1)]);
            }
        }
    }
    let facts = changes.into_iter().map(|(name, mut changes)| {
        changes.sort_unstable();
        let mut now = 0_i32;
        let most = changes.into_iter().map(|(_, change)| {
            now = now.saturating_add(change);
            now
        });
        DeviceFact { name: name.to_owned(), most_at_once: most.max().unwrap_or(0).unsigned_abs().max(1) }
    });
    facts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_that_threads_masks_allow_are_counted() {
        let threads = |masks: &[&[u32]]| -> Vec<Thread> {
            masks.iter().map(|mask| Thread { cpus: mask.to_vec(), ..Thread::default() }).collect()
        };
        assert_eq!(cpus_allowed(&threads(&[&[], &[]])), None);
        assert_eq!(cpus_allowed(&threads(&[&[0], &[], &[0]])), Some(1));
        assert_eq!(cpus_allowed(&threads(&[&[0, 1], &[1, 5]])), Some(3));
    }

    /// On a loaded machine no wake-up finds an idle CPU: a program with one lock must not be predicted to gain nothing from
    /// more CPUs.
    #[test]
    fn other_programs_cpu_time_is_a_share_of_the_cpus_used() {
        let overhead = |others_ns| Some(Overhead { wall_ns: 1_000, others_ns, ..Overhead::default() });
        assert_eq!(by_others(overhead(500), 2), 0.25);
        assert!(by_others(overhead(100), 2) < MOST_BY_OTHERS);
        assert_eq!((by_others(None, 2), by_others(overhead(5), 0)), (0.0, 0.0));
    }
}
