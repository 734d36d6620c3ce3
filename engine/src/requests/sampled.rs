//! Samples inside stretches of requests.

use crate::program::{FunctionRef, Program};
use crate::timeline::{NO_STACK, Timeline};
use probe_abi::SampleReason;

/// A sample of a thread, and where it lies among the thread's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampledStack {
    /// Place in [`crate::timeline::Thread::samples`].
    pub(super) place: u32,
    /// Number in [`crate::program::Samples::stacks`].
    pub(super) stack: u32,
}

/// The clock's samples of a thread from one instant up to another.
pub(super) fn between(
    timeline: &Timeline,
    thread: u32,
    from: u64,
    to: u64,
) -> impl Iterator<Item = SampledStack> + '_ {
    let all = timeline.threads.get(thread as usize).map_or(&[][..], |thread| thread.samples.as_slice());
    let first = all.partition_point(|sample| sample.time.0 < from);
    let rest = all.get(first..).unwrap_or_default().iter();
    (first..)
        .zip(rest.take_while(move |sample| sample.time.0 < to))
        .filter(|(_, sample)| sample.reason == SampleReason::Tick && sample.stack != NO_STACK)
        .filter_map(|(place, sample)| {
            Some(SampledStack { place: u32::try_from(place).ok()?, stack: sample.stack })
        })
}

/// The user's function nearest to the innermost place of a stack, else the innermost function.
pub(super) fn users_function(program: &Program, stack: u32) -> Option<FunctionRef> {
    program
        .users_function(stack)
        .or_else(|| program.samples.stack(stack).next().map(|(_, place)| place.function))
}
