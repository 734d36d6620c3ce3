//! CPU time that threads take to lock, from ticks of the clock (a method of longpole's own). On one CPU hardly any thread waits
//! for a lock: only one runs, and few are interrupted while they hold one. So most of this time is absent there.

use super::support_work::FEWEST;
use crate::event::kernel_work;
use crate::program::spinning::busy_wait;
use crate::program::{LineFact, LineThread, Program};
use crate::timeline::Timeline;
use probe_abi::SampleReason;
use std::collections::BTreeMap;

/// Least share of the CPU time that the kernel needs to put threads to sleep at locks and to wake them. With less, threads take
/// locks that are free, which costs as much on one CPU.
const LEAST: f64 = 0.05;

/// Parts of names of functions that wait for something other than a lock, and call lock functions.
const OTHER_WAITS: [&str; 6] = ["cond", "Cond", "sem_", "barrier", "join", "once"];

/// Where a stack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Elsewhere,
    /// In a lock function.
    Lock,
    /// In the kernel, for a lock function.
    KernelOfLock,
}

/// Adds the facts about locks to those of the machine.
pub(in crate::program) fn add(timeline: &Timeline, program: &mut Program) {
    let lock_work = of(timeline, program);
    program.machine.iter_mut().for_each(|machine| machine.lock_work.clone_from(&lock_work));
}

/// Samples of threads in lock functions, as if these locks were one cache line. `None`: the kernel has little work with locks,
/// or only one thread takes them.
fn of(timeline: &Timeline, program: &Program) -> Option<LineFact> {
    let stacks = of_stacks(timeline, program);
    let mut fact = LineFact::default();
    let mut in_kernel = 0u64;
    for (number, thread) in (0u32..).zip(timeline.threads.iter().filter(|thread| thread.has_lived())) {
        let mut counts: BTreeMap<bool, u64> = BTreeMap::new();
        for sample in thread.samples.iter().filter(|sample| sample.reason == SampleReason::Tick) {
            let at = stacks.get(sample.stack as usize).copied().unwrap_or(At::Elsewhere);
            in_kernel += u64::from(at == At::KernelOfLock);
            *counts.entry(at != At::Elsewhere).or_insert(0) += 1;
        }
        let of = |is_lock| counts.get(&is_lock).copied().unwrap_or(0);
        let samples = of(true) + of(false);
        fact.samples += samples;
        if of(true) > 0 {
            fact.threads.push(LineThread { thread: number, at_line: of(true), samples });
        }
    }
    let is_enough = in_kernel >= FEWEST && in_kernel as f64 >= LEAST * fact.samples as f64;
    (is_enough && fact.threads.len() > 1).then_some(fact)
}

fn of_stacks(timeline: &Timeline, program: &Program) -> Vec<At> {
    let of_stack = |(number, in_kernel): (u32, Option<Option<u32>>)| {
        let users = program.users_function(number);
        let inner = program.samples.stack(number).take_while(|(_, place)| Some(place.function) != users);
        let names: Vec<&str> = inner
            .filter_map(|(_, place)| program.functions.get(place.function.0 as usize))
            .map(|function| function.name.as_str())
            .collect();
        let is_other = names.iter().any(|name| OTHER_WAITS.iter().any(|part| name.contains(part)));
        let mut is_lock = names.iter().map(|name| busy_wait::is_sleeping_lock(name));
        match in_kernel {
            _ if is_other => At::Elsewhere,
            Some(call) if kernel_work(call).0 == "futex" && is_lock.any(|is_lock| is_lock) => {
                At::KernelOfLock
            }
            None if is_lock.next() == Some(true) => At::Lock,
            _ => At::Elsewhere,
        }
    };
    let stacks = timeline.stacks.iter().map(|stack| stack.in_kernel.map(|in_kernel| in_kernel.call));
    (0u32..).zip(stacks).map(of_stack).collect()
}
