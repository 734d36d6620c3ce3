//! Work of the kernel and of runtimes for a program's threads, from ticks of the clock (a method of longpole's own). A
//! system call takes CPU time of its thread, and so does a page fault: more CPUs do not reduce it. Changes of memory
//! that threads share are serialized (`mmap_lock`, Linux `Documentation/mm/process_addrs.rst`).

use super::sampled_code::SampledCode;
use crate::event::{SupportSubject, kernel_work, runtime_work};
use crate::program::Program;
use crate::program::recorded::{LockWaits, Share, SupportWork};
use crate::timeline::{Stack, Thread, Timeline};
use probe_abi::SampleReason;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Least number of samples that count.
pub(in crate::program) const FEWEST: u64 = 10;

/// A thread with this many times fewer samples than another hardly causes the work.
const HARDLY: u64 = 20;

/// Samples of work of one subject.
#[derive(Default)]
struct Found {
    calls: BTreeMap<&'static str, u64>,
    functions: BTreeMap<u32, u64>,
    /// For each function through which the user's functions call the work: its samples.
    via: BTreeMap<u32, u64>,
    /// Samples by process and thread.
    threads: BTreeMap<u32, FxHashMap<usize, u64>>,
    samples: u64,
}

/// Work by subject, in descending order of samples.
pub(in crate::program) fn of(
    timeline: &Timeline,
    sampled: &SampledCode,
    program: &Program,
) -> Vec<SupportWork> {
    let stacks = of_stacks(timeline, program);
    let waiting = sampled.waiting(timeline);
    let mut all = 0u64;
    let mut subjects: BTreeMap<SupportSubject, Found> = BTreeMap::new();
    for (place, thread) in timeline.threads.iter().filter(|thread| thread.has_lived()).enumerate() {
        for sample in thread.samples.iter().filter(|sample| sample.reason == SampleReason::Tick) {
            all += 1;
            let Some(stack) = timeline.stacks.get(sample.stack as usize) else { continue };
            let Some(&Some((name, subject))) = stacks.get(sample.stack as usize) else { continue };
            // Polling is waiting, but going to sleep is work.
            if waiting.get(sample.stack as usize) == Some(&true) && name != "futex" {
                continue;
            }
            let found = subjects.entry(subject).or_default();
            *found.calls.entry(name).or_insert(0) += 1;
            if let Some(function) = program.users_function(sample.stack) {
                *found.functions.entry(function.0).or_insert(0) += 1;
            }
            if let Some(function) = program.called_by_user(sample.stack) {
                *found.via.entry(function.0).or_insert(0) += 1;
            }
            *found.threads.entry(stack.pid).or_default().entry(place).or_insert(0) += 1;
            found.samples += 1;
        }
    }
    let mut works: Vec<SupportWork> = subjects
        .into_iter()
        .filter(|(_, found)| found.samples >= FEWEST)
        .map(|(subject, found)| {
            let lock_waits = lock_waits(subject, &found, timeline);
            SupportWork { lock_waits, ..work(subject, found, all, program) }
        })
        .collect();
    works.sort_by_key(|work| std::cmp::Reverse(work.samples));
    works
}

/// For each stack: name and subject of the support work that it shows.
fn of_stacks(timeline: &Timeline, program: &Program) -> Vec<Option<(&'static str, SupportSubject)>> {
    let of_place = |function: u32| {
        let function = program.functions.get(function as usize)?;
        runtime_work(&function.name, function.module.as_deref())
    };
    let of_functions: Vec<Option<SupportSubject>> =
        (0u32..).take(program.functions.len()).map(of_place).collect();
    let of_stack = |(number, stack): (u32, &Stack)| {
        let places = program.samples.stack(number);
        let subjects = places.filter_map(|(_, place)| *of_functions.get(place.function.0 as usize)?);
        let mut subjects: Vec<SupportSubject> = subjects.collect();
        subjects.sort_unstable();
        let runtimes = |subject: &SupportSubject| (subject.name(), *subject);
        let whole = subjects.iter().find(|subject| subject.is_whole()).map(runtimes);
        let kernels = || stack.in_kernel.map(|in_kernel| kernel_work(in_kernel.call));
        whole.or_else(kernels).or_else(|| subjects.first().map(runtimes))
    };
    (0u32..).zip(&timeline.stacks).map(of_stack).collect()
}

/// The threads of a process that cause the work. A thread that starts the other threads has a sample or two, too.
fn causing(threads: &FxHashMap<usize, u64>) -> impl Iterator<Item = usize> + '_ {
    let most = threads.values().max().copied().unwrap_or(0);
    threads.iter().filter(move |(_, samples)| samples.saturating_mul(HARDLY) >= most).map(|(place, _)| *place)
}

/// Waits of threads for locks of the kernel in calls of this subject.
fn lock_waits(subject: SupportSubject, found: &Found, timeline: &Timeline) -> Option<LockWaits> {
    let locks = timeline.kernel_locks.as_ref()?;
    let lived: Vec<&Thread> = timeline.threads.iter().filter(|thread| thread.has_lived()).collect();
    let life = |place: usize| {
        let thread = lived.get(place)?;
        Some(thread.end.0.saturating_sub(thread.intervals.first()?.start.0))
    };
    let of_ns = found.threads.values().flat_map(causing).filter_map(life).fold(0, u64::saturating_add);
    let none = LockWaits { of_ns, ..LockWaits::default() };
    let of = locks.waits.iter().filter(|waits| kernel_work(waits.call).1 == subject);
    Some(of.fold(none, |sum, waits| LockWaits {
        count: sum.count.saturating_add(waits.count),
        slept_ns: sum.slept_ns.saturating_add(waits.slept_ns()),
        spun_ns: sum.spun_ns.saturating_add(waits.total_ns.saturating_sub(waits.slept_ns())),
        longest_ns: sum.longest_ns.max(waits.longest_ns),
        of_ns,
    }))
}

fn work(subject: SupportSubject, found: Found, all: u64, program: &Program) -> SupportWork {
    let mut calls: Vec<Share> =
        found.calls.iter().map(|(name, count)| Share { name: (*name).to_owned(), count: *count }).collect();
    calls.sort_by_key(|call| std::cmp::Reverse(call.count));
    let most = |functions: &BTreeMap<u32, u64>| {
        let most = functions.iter().max_by_key(|(_, count)| **count);
        let most = most.filter(|(_, count)| 2 * **count > found.samples);
        most.and_then(|(function, _)| program.functions.get(*function as usize))
            .map(|function| function.name.clone())
    };
    // A function with the same name as the system call adds no information.
    let is_call = |name: &str| {
        calls.iter().any(|call| name.trim_start_matches("__").trim_end_matches("64") == call.name)
    };
    let via = most(&found.via).filter(|name| !is_call(name));
    let function = found.functions.iter().max_by_key(|(_, count)| **count);
    let function = function.and_then(|(function, _)| program.functions.get(*function as usize));
    SupportWork {
        subject,
        calls,
        function: function.map(|function| function.name.clone()),
        via,
        threads: found.threads.values().map(|threads| causing(threads).count() as u64).max().unwrap_or(0),
        samples: found.samples,
        all,
        lock_waits: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{KernelLockWaits, KernelLocks};
    use crate::time::Timestamp;
    use crate::timeline::{InKernel, Interval, StackSample};
    use probe_abi::ContentionFlags;

    #[test]
    fn ticks_in_the_kernel_are_counted_by_subject_and_system_call() {
        let stack = |in_kernel| Stack { pid: 7, frames: vec![1], in_kernel, ..Stack::default() };
        let in_call = |call| Some(InKernel { call });
        let stacks =
            vec![stack(None), stack(in_call(None)), stack(in_call(Some(11))), stack(in_call(Some(202)))];
        let sample = |stack, reason| StackSample { time: Timestamp(1), stack, reason, truncated: false };
        let tick = |stack| sample(stack, SampleReason::Tick);
        let mut samples: Vec<StackSample> = Vec::new();
        samples.extend([tick(0); 20]);
        samples.extend([tick(1); 24]);
        samples.extend([tick(2); 8]);
        samples.extend([tick(3); 9]);
        samples.extend([sample(3, SampleReason::Block); 30]);
        let lived = Interval {
            start: Timestamp(0),
            state: crate::timeline::State::Running { cpu: Some(0) },
            first_step: 0,
        };
        let thread =
            Thread { pid: 7, samples, intervals: vec![lived], end: Timestamp(100), ..Thread::default() };
        let once = Thread { samples: vec![tick(1)], ..thread.clone() };
        let waits = |call, flags, count| KernelLockWaits {
            call,
            flags,
            count,
            total_ns: 10 * count,
            spun_ns: if flags == ContentionFlags::SPIN { 10 * count } else { 0 },
            longest_ns: 12,
            ..KernelLockWaits::default()
        };
        let waits = vec![
            waits(None, ContentionFlags::READ, 2),
            waits(Some(11), ContentionFlags::SPIN, 1),
            waits(Some(202), ContentionFlags::SPIN, 5),
        ];
        let timeline = Timeline {
            stacks,
            threads: vec![thread, once],
            kernel_locks: Some(KernelLocks { waits, lost: 0 }),
            ..Timeline::default()
        };
        let works = of(&timeline, &SampledCode::default(), &Program::default());
        assert_eq!(works.len(), 1, "nine samples show nothing: {works:?}");
        let SupportWork { subject, calls, threads, samples, all, .. } = &works[0];
        assert_eq!((*subject, *threads, *samples, *all), (SupportSubject::Memory, 1, 33, 62));
        let calls: Vec<(&str, u64)> = calls.iter().map(|call| (call.name.as_str(), call.count)).collect();
        assert_eq!(calls, [("page faults", 25), ("munmap", 8)]);
        let waits = works[0].lock_waits.expect("recorded");
        let counted = LockWaits { count: 3, slept_ns: 20, spun_ns: 10, longest_ns: 12, of_ns: 100 };
        assert_eq!((waits, waits.share()), (counted, 0.3), "of the one thread that causes it");
        let unknown = Timeline { kernel_locks: None, ..timeline };
        let works = of(&unknown, &SampledCode::default(), &Program::default());
        assert_eq!(works[0].lock_waits, None);
    }
}
