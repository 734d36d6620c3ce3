//! Waits for locks of the kernel: attaches the programs that count them, and reads the sums.

use aya::Ebpf;
use aya::maps::{MapData, PerCpuArray, PerCpuHashMap};
use engine::event::{KernelLockWaits, KernelLocks};
use probe_abi::{Call, ContentionCounts, ContentionKey};
use std::collections::BTreeMap;

use super::counters::ProgramCost;
use crate::probe::kernel::{KernelLayout, Link, attach_tracepoint, load_together};

/// The programs in attaching order: every wait that is seen to begin is seen to end.
const PROGRAMS: [&str; 2] = ["contention_end", "contention_begin"];

/// Largest number of sums that are kept: those with the longest total time.
const MOST: usize = 256;

/// Attaches the programs that count waits for locks of the kernel. Nothing else depends on them, so a kernel that refuses
/// them or lacks the tracepoints (before Linux 5.19) is good enough; then there are no links.
pub(crate) fn attach(ebpf: &mut Ebpf, kernel: &KernelLayout) -> Vec<Link> {
    let loaded = load_together(ebpf, kernel, &PROGRAMS);
    let links = loaded.and_then(|()| PROGRAMS.iter().map(|name| attach_tracepoint(ebpf, name)).collect());
    links.unwrap_or_else(|error| {
        log::debug!("waits for locks of the kernel are not counted: {error}");
        Vec::new()
    })
}

/// Whether this program writes no records, so that runs that the kernel leaves out lose none.
pub(crate) fn counts_only(program: &ProgramCost) -> bool {
    PROGRAMS.contains(&program.name.as_str())
}

/// The sums so far; `None` if they cannot be read. `missed`: runs of the programs that the kernel skipped.
pub(crate) fn counted(ebpf: &Ebpf, missed: u64) -> Option<KernelLocks> {
    const KEY: usize = size_of::<ContentionKey>() / 4;
    const WORDS: usize = size_of::<ContentionCounts>() / 8;
    let map = ebpf.map("CONTENTIONS")?;
    let map = PerCpuHashMap::<&MapData, [u32; KEY], [u64; WORDS]>::try_from(map).ok()?;
    let mut sums: BTreeMap<(u32, Option<u32>, u32), KernelLockWaits> = BTreeMap::new();
    for (key, of_cpus) in map.iter().filter_map(Result::ok) {
        let key: ContentionKey = zerocopy::transmute!(key);
        let call = (key.call != Call::NONE.number).then_some(key.call);
        let none = KernelLockWaits { pid: key.pid, call, flags: key.flags, ..KernelLockWaits::default() };
        let sum = sums.entry((key.pid, call, key.flags)).or_insert(none);
        for &words in of_cpus.iter() {
            let counts: ContentionCounts = zerocopy::transmute!(words);
            let ContentionCounts { count, total_ns, spun_ns, longest_ns } = counts;
            sum.add(&KernelLockWaits { count, total_ns, spun_ns, longest_ns, ..none });
        }
    }
    let lost = ebpf.map("CONTENTIONS_LOST").and_then(|map| PerCpuArray::<&MapData, u64>::try_from(map).ok());
    let lost = lost.and_then(|map| map.get(&0, 0).ok());
    let lost =
        lost.iter().flat_map(|of_cpus| of_cpus.iter()).fold(missed, |sum, one| sum.saturating_add(*one));
    Some(longest(sums.into_values().collect(), lost))
}

/// Keeps the sums with the longest time; the waits of all other sums count as lost.
fn longest(mut waits: Vec<KernelLockWaits>, mut lost: u64) -> KernelLocks {
    if waits.len() > MOST {
        waits.sort_by_key(|of| std::cmp::Reverse(of.total_ns));
        lost = waits.drain(MOST..).fold(lost, |sum, of| sum.saturating_add(of.count));
        waits.sort_by_key(|of| (of.pid, of.call, of.flags));
    }
    KernelLocks { waits, lost }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lock_waits_beyond_the_limit_are_counted_as_lost() {
        let of =
            |pid| KernelLockWaits { pid, count: 3, total_ns: u64::from(pid), ..KernelLockWaits::default() };
        let all: Vec<KernelLockWaits> = (1..=MOST as u32 + 2).map(of).collect();
        let kept = longest(all.clone(), 5);
        assert_eq!((kept.waits.as_slice(), kept.lost), (&all[2..], 11));
        assert_eq!(longest(all[..9].to_vec(), 5).lost, 5);
    }
}
