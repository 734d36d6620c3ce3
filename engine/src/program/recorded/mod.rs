//! What a recording shows of synchronization objects and waits, independent of the number of CPUs: which objects there
//! are, the threads that waited for each, the longest queue of each, and what threads slept for.

mod deadlock;
mod entered_again;
mod for_nothing;
mod goroutine_work;
mod goroutines;
mod model;
mod objects;
mod queues;
mod stacks;
mod threads;
mod wait_kinds;
mod waited_for;

use super::Program;
use super::lock_replay::{Nesting, sections};
use super::naming::lock_names::Addresses;
use crate::event::FunctionId;
use crate::finding::Finding;
use crate::timeline::{State, Timeline};
pub(super) use deadlock::LastWaits;
pub(super) use entered_again::EnteredAgain;
pub use goroutine_work::{GoroutineGroup, GoroutineWait, GoroutineWork};
pub use goroutines::GoroutineWaits;
pub use model::{
    AwaitedPart, KernelShare, LockWaits, ObjectKind, Primitive, PutBackUses, Queue, Recorded, RecordedObject,
    RecordedWait, Share, SharedLine, SupportWork, WaitStack,
};
pub(super) use objects::ends_joining;
use rustc_hash::FxHashMap;
use threads::Context;
pub(super) use wait_kinds::{ended_by, is_idle, is_in_kernel, wait_name};
pub use waited_for::WaitedFor;

/// Recorded objects and waits of a timeline, and the waits that did not end.
///
/// `functions`: ids of the program's functions, in their order. `threads`: index in the timeline → index in the program.
pub(super) fn of(
    timeline: &Timeline,
    program: &Program,
    functions: &[FunctionId],
    threads: &FxHashMap<u32, super::ThreadId>,
) -> (Recorded, LastWaits) {
    let nesting = Nesting::of(timeline);
    let context = Context::new(timeline, program, functions, threads);
    let addresses = Addresses::new(&timeline.addresses);
    let for_nothing = for_nothing::ForNothing::of(timeline, &nesting);
    let mut objects = objects::all(timeline, program, &nesting, &for_nothing, &context, &addresses);
    let sections = sections(timeline, &nesting);
    for (object, queue) in queues::longest(timeline, &sections, &context) {
        if let Some(object) = objects.get_mut(object as usize) {
            object.queue = Some(queue);
        }
    }
    let last = deadlock::find(timeline, &sections, &context, &addresses);
    let waits = wait_kinds::all(timeline, &nesting, &context);
    let goroutines = goroutines::waits(timeline, program, threads);
    let goroutine_work = goroutine_work::all(timeline, program);
    (
        Recorded {
            objects,
            waits,
            goroutines,
            goroutine_work,
            asleep_ns: asleep_ns(timeline),
            ..Recorded::default()
        },
        last,
    )
}

/// Total time in which all threads were asleep, nanoseconds. Unknown time counts as awake.
fn asleep_ns(timeline: &Timeline) -> u64 {
    let mut awake: Vec<(u64, u64)> = Vec::new();
    let spans = timeline.threads.iter().flat_map(|thread| thread.spans());
    for (from, until, _) in spans.filter(|(.., state)| !matches!(state, State::Blocked(_))) {
        match awake.last_mut() {
            // Joins stretches of running and being runnable.
            Some(last) if last.1 == from.0 => last.1 = until.0,
            _ => awake.push((from.0, until.0)),
        }
    }
    awake.sort_unstable();
    let (mut asleep, mut at) = (0u64, timeline.began().0);
    for (from, until) in awake {
        asleep = asleep.saturating_add(from.saturating_sub(at));
        at = at.max(until);
    }
    asleep.saturating_add(timeline.end.0.saturating_sub(at))
}

/// The finding about uses of locks that were not recorded.
pub(super) fn unseen(timeline: &Timeline, recorded: &Recorded) -> Option<Finding> {
    if timeline.counts.events == 0 {
        return None;
    }
    let is_go = |object: &&RecordedObject| timeline.go.binary_search(&object.pid).is_ok();
    let is_unseen = |object: &&RecordedObject| !object.uncontended_visible && object.put_back.is_none();
    let unseen = recorded.objects.iter().filter(|object| is_unseen(object) && object.may_be_acquired());
    let (objects, go) = (unseen.filter(|object| !is_go(object)).count(), !timeline.go.is_empty());
    // If no operation was recorded, uses of locks without a wait are not visible. If probes were removed, another
    // finding says so.
    let has_none = timeline.lock_operations.is_empty() && timeline.families_removed.is_empty();
    let all_locks = objects == 0 && !go && has_none;
    let rust = objects == 0 && !go && !all_locks && timeline.rust;
    (objects > 0 || go || all_locks || rust).then_some(Finding::Uncontended { objects, all_locks, rust, go })
}
