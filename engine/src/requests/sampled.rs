//! Samples inside stretches of requests.

use super::cause::PathPart;
use crate::program::{FunctionRef, Program};
use crate::timeline::{NO_STACK, State, Timeline};
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

/// Time that the part's thread ran during the part, ns. `left`: how many intervals may still be read; a part with more
/// intervals gets 0.
pub(super) fn ran_ns(timeline: &Timeline, part: &PathPart, left: &mut u64) -> u64 {
    let Some(thread) = timeline.threads.get(part.thread as usize) else { return 0 };
    let first = thread.intervals.partition_point(|interval| interval.start <= part.from).saturating_sub(1);
    let until = thread.intervals.partition_point(|interval| interval.start < part.to);
    let intervals = thread.intervals.get(first..until).unwrap_or_default();
    if intervals.len() as u64 > *left {
        return 0;
    }
    *left -= intervals.len() as u64;
    let ends = intervals.iter().skip(1).map(|next| next.start).chain([part.to.min(thread.end)]);
    let ran = intervals.iter().zip(ends).filter(|(interval, _)| matches!(interval.state, State::Running { .. }));
    ran.map(|(interval, end)| end.0.saturating_sub(interval.start.max(part.from).0)).fold(0, u64::saturating_add)
}

/// The innermost function of a stack that a user can change, else the innermost function.
pub(super) fn users_function(program: &Program, stack: u32) -> Option<FunctionRef> {
    program
        .users_function(stack)
        .or_else(|| program.samples.stack(stack).next().map(|(_, place)| place.function))
}
