//! A recording of a command on some CPUs as a [`CpuRun`]: time, CPU time, and the functions with most samples.

use crate::event::{CpuRun, FunctionSamples};
use crate::program::Program;
use crate::timeline::Timeline;
use probe_abi::SampleReason;
use std::collections::BTreeMap;

/// Largest number of functions that are listed.
const MOST_FUNCTIONS: usize = 64;

/// Describes this recording as a run on `cpus` CPUs; `None` if it has no CPU time. `program` must be made from
/// `timeline`. `others_ns`: time in which other programs used the CPUs, nanoseconds.
pub fn cpu_run(
    timeline: &Timeline,
    program: &Program,
    (cpus, round): (u32, u32),
    others_ns: u64,
) -> Option<CpuRun> {
    let cost = program.overhead.filter(|cost| cost.wall_ns > 0 && cost.target_ns > 0)?;
    let mut found: BTreeMap<u32, u64> = BTreeMap::new();
    let mut samples = 0u64;
    let ticks = timeline.threads.iter().flat_map(|thread| &thread.samples);
    for sample in ticks.filter(|sample| sample.reason == SampleReason::Tick) {
        samples += 1;
        if let Some(function) = program.users_function(sample.stack) {
            *found.entry(function.0).or_insert(0) += 1;
        }
    }
    let named = |(function, samples): (u32, u64)| {
        let name = program.functions.get(function as usize)?.name.clone();
        Some(FunctionSamples { name, samples })
    };
    let mut functions: Vec<FunctionSamples> = found.into_iter().filter_map(named).collect();
    functions.sort_by_key(|function| std::cmp::Reverse(function.samples));
    functions.truncate(MOST_FUNCTIONS);
    Some(CpuRun { cpus, round, time_ns: cost.wall_ns, cpu_ns: cost.target_ns, others_ns, samples, functions })
}
