//! Decides which nice values and CPU masks belong to the program, not to the recorded machine.

use crate::event::{HostFact, host_of};
use crate::timeline::{self, Timeline};

/// A host has at most this number of CPUs; a damaged file may say more.
const MOST_CPUS: u32 = 1024;

/// A thread's nice value, and the CPUs that it may use; an empty list stands for all CPUs.
pub(super) type Placement = (i8, Vec<u32>);

/// The placement of each thread: in a recording of several hosts, the CPUs of its host. Otherwise its last one, since the time of a change is not known.
///
/// A mask from the recording's start (set by `taskset` or a container), or one that all threads have, belongs to the recorded
/// machine: on another machine they may use all CPUs. A nice value that all threads have changes nothing.
pub(in crate::program) fn placements<'a>(
    timeline: &Timeline,
    threads: impl Iterator<Item = &'a timeline::Thread> + Clone,
) -> Vec<Placement> {
    if !timeline.hosts.is_empty() {
        return threads.map(|thread| (0, of_host(&timeline.hosts, thread))).collect();
    }
    let mut known = threads.clone().filter(|thread| !thread.cpus.is_empty()).map(|thread| &thread.cpus);
    let first = known.next();
    let differ = known.any(|cpus| Some(cpus) != first);
    let mut nice = threads.clone().map(|thread| thread.nice);
    let common = nice.next().flatten().filter(|first| nice.all(|nice| nice == Some(*first)));
    threads
        .map(|thread| {
            let own = differ && !timeline.first_cpus.contains(&thread.cpus);
            let cpus = if own { thread.cpus.clone() } else { Vec::new() };
            let nice = if common.is_some() { 0 } else { thread.nice.unwrap_or(0) };
            (nice.clamp(-20, 19), cpus)
        })
        .collect()
}

/// A thread stays on its host's CPUs, or on those of them that it may use.
fn of_host(hosts: &[HostFact], thread: &timeline::Thread) -> Vec<u32> {
    let Some((host, _)) = host_of(hosts, thread.pid) else { return Vec::new() };
    let all = host.first_cpu..host.first_cpu.saturating_add(host.cpus.min(MOST_CPUS));
    let own: Vec<u32> = thread.cpus.iter().copied().filter(|cpu| all.contains(cpu)).collect();
    if own.is_empty() { all.collect() } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(first: &[&[u32]], threads: &[(Option<i8>, &[u32])]) -> Vec<Placement> {
        let timeline =
            Timeline { first_cpus: first.iter().map(|cpus| cpus.to_vec()).collect(), ..Timeline::default() };
        let threads: Vec<timeline::Thread> = threads
            .iter()
            .map(|(nice, cpus)| timeline::Thread { nice: *nice, cpus: cpus.to_vec(), ..Default::default() })
            .collect();
        placements(&timeline, threads.iter())
    }

    #[test]
    fn the_mask_of_taskset_is_dropped_and_a_thread_s_own_mask_stays() {
        let of = placed(&[&[0, 1]], &[(Some(0), &[0, 1]), (Some(0), &[0, 1]), (Some(0), &[1])]);
        assert_eq!(of, [(0, vec![]), (0, vec![]), (0, vec![1])]);
    }

    #[test]
    fn a_mask_and_a_nice_value_of_all_threads_are_dropped() {
        let of = placed(&[&[0, 1, 2]], &[(Some(5), &[0]), (Some(5), &[0]), (Some(5), &[])]);
        assert_eq!(of, [(0, vec![]), (0, vec![]), (0, vec![])]);
    }

    #[test]
    fn threads_that_differ_keep_their_masks_and_nice_values() {
        let of = placed(&[], &[(Some(0), &[0]), (Some(10), &[1]), (None, &[])]);
        assert_eq!(of, [(0, vec![0]), (10, vec![1]), (0, vec![])]);
    }
}
