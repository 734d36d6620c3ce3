//! Samples inside stretches of requests.

use crate::event::{SupportSubject, runtime_work};
use crate::program::{Function, FunctionRef, Program};
use crate::timeline::{NO_STACK, Timeline};
use probe_abi::SampleReason;

/// A sample's stack, and the sample's index among the thread's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampledStack {
    /// Index in [`crate::timeline::Thread::samples`].
    pub(super) place: u32,
    /// Number in [`crate::program::Samples::stacks`].
    pub(super) stack: u32,
}

/// Clock samples of a thread from one time up to another. `left`: how many samples may still be read; a stretch with
/// more samples gets none.
pub(super) fn between<'t>(
    timeline: &'t Timeline,
    thread: u32,
    from: u64,
    to: u64,
    left: &mut u64,
) -> impl Iterator<Item = SampledStack> + use<'t> {
    let all = timeline.threads.get(thread as usize).map_or(&[][..], |thread| thread.samples.as_slice());
    let first = all.partition_point(|sample| sample.time.0 < from);
    let until = all.partition_point(|sample| sample.time.0 < to);
    let found = all.get(first..until).unwrap_or_default();
    let is_room = found.len() as u64 <= *left;
    *left = left.saturating_sub(found.len() as u64);
    (first..)
        .zip(if is_room { found } else { &[] })
        .filter(|(_, sample)| sample.reason == SampleReason::Tick && sample.stack != NO_STACK)
        .filter_map(|(place, sample)| {
            Some(SampledStack { place: u32::try_from(place).ok()?, stack: sample.stack })
        })
}

/// What a thread computes at a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Work {
    /// This function; `None`: not known.
    Function(Option<FunctionRef>),
    /// Work of a runtime.
    Runtime(SupportSubject),
}

/// For each function of a program: the work of a runtime that it and all functions below it do.
pub(super) fn runtimes(program: &Program) -> Vec<Option<SupportSubject>> {
    let of = |function: &Function| runtime_work(&function.name, function.module.as_deref());
    program.functions.iter().map(|function| of(function).filter(|subject| subject.is_whole())).collect()
}

/// The innermost function of a stack that a user can change, else the innermost function.
pub(super) fn users_function(program: &Program, stack: u32) -> Option<FunctionRef> {
    program
        .users_function(stack)
        .or_else(|| program.samples.stack(stack).next().map(|(_, place)| place.function))
}
