//! Share of each function's CPU time in the kernel, from ticks of the clock (a method of longpole's own): system calls,
//! page faults, interrupts.

use super::support_work::FEWEST;
use crate::program::recorded::KernelShare;
use crate::program::{FunctionRef, Program};
use crate::timeline::{NO_STACK, Timeline};
use probe_abi::SampleReason;
use std::collections::BTreeMap;

/// Largest number of functions in the list.
const MOST: usize = 256;

/// Shares of functions with enough samples, in descending order of samples; empty if no tick was in the kernel.
pub(in crate::program) fn of(timeline: &Timeline, program: &Program) -> Vec<KernelShare> {
    let mut ticks: BTreeMap<u32, u64> = BTreeMap::new();
    let samples =
        timeline.threads.iter().filter(|thread| thread.has_lived()).flat_map(|thread| &thread.samples);
    for sample in samples.filter(|sample| sample.reason == SampleReason::Tick && sample.stack != NO_STACK) {
        *ticks.entry(sample.stack).or_insert(0) += 1;
    }
    let mut functions: BTreeMap<FunctionRef, (u64, u64)> = BTreeMap::new();
    for (stack, ticks) in ticks {
        let innermost = || program.samples.stack(stack).next().map(|(_, place)| place.function);
        let Some(function) = program.users_function(stack).or_else(innermost) else { continue };
        let is_in_kernel = timeline.stacks.get(stack as usize).is_some_and(|stack| stack.in_kernel.is_some());
        let (in_kernel, samples) = functions.entry(function).or_default();
        *samples += ticks;
        *in_kernel += if is_in_kernel { ticks } else { 0 };
    }
    let enough = functions.into_iter().filter(|(_, (_, samples))| *samples >= FEWEST);
    let mut shares: Vec<KernelShare> = enough
        .filter_map(|(function, (in_kernel, samples))| {
            let function = program.functions.get(function.0 as usize)?.name.clone();
            Some(KernelShare { function, in_kernel, samples })
        })
        .collect();
    if shares.iter().all(|share| share.in_kernel == 0) {
        return Vec::new();
    }
    shares.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.function.cmp(&b.function)));
    shares.truncate(MOST);
    shares
}
