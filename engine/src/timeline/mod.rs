//! The timeline of a recording: intervals without gaps that cover each thread's life in the window exactly, its stack
//! of probed functions over time, and which thread woke which.
//!
//! | interval | begins | ends |
//! |---|---|---|
//! | `Running{cpu}` | `Switch` to the thread | `Switch` from it |
//! | `Runnable` | first `Waking` of a sleep, first waking of a new thread, `Switch` from it with state 0 or pre-empted | `Switch` to it |
//! | `Blocked` | `Switch` from it with a sleeping state | first `Waking` |
//! | `Unknown` | last proof of the state before | next proof of a state |
//!
//! The first event of a thread shows its state at the window's start: a change before it would have been recorded. The
//! same holds after a gap or a contradiction, when records are complete again. A thread without events has its state
//! from /proc. A second waking of a sleep, and a waking of an awake thread, end nothing. A waking may be recorded
//! before the switch that takes the sleeper off its CPU: then the waking ends that sleep at once. While records are
//! missing ([`crate::event::GapReason::RingFull`]), a thread is `Unknown` unless it stays on a CPU whose records are
//! complete.

mod builder;
mod calls;
mod cpus;
mod deadline;
mod expand_bursts;
mod finish;
mod function_costs;
mod gaps;
mod lifecycle;
mod locks;
mod model;
mod operation_count;
mod operations;
mod part;
mod probe_intervals;
mod put_back;
mod request_waits;
mod samples;
mod socket_requests;
mod stretches;
mod thread;
mod thread_contexts;
mod thread_end;
mod unprobed_locks;

pub use model::{
    BaseStack, Birth, Counts, External, FirstUse, Hit, InKernel, Interval, Lock, LockOperation, NO_OBJECT,
    NO_STACK, PutBack, Stack, StackSample, State, Step, StepKind, Thread, Timeline, UnknownReason, Wait,
    Wake, Wakeup,
};
pub use part::excerpt::{beginning_at, excerpt};
pub use part::extent::extent;
pub use part::pauses::Pauses;
pub use part::typical::{Census, Effort, Places, RecordStretch, Typical, Wanted, typical, typical_among};
pub use part::window::Window;
pub use socket_requests::SocketRequest;
pub use stretches::Stretch;
pub use thread::probe_time::ProbeTime;
pub use thread::wait_reason::WaitReason;
pub use thread_contexts::{Trace, TraceStretch};

use crate::event::{Facts, Recording};

/// The timeline of a recording, from [`Facts::start_ns`] to the window's end, or to the last event if the end is missing.
///
/// Never fails: contradictions become `Unknown` and a finding.
pub fn build(recording: &Recording) -> Timeline {
    build_with(recording, expand_bursts::MOST_PAIRS)
}

/// Like `build`, with a limit for the pairs of operations made from bursts.
fn build_with(recording: &Recording, most_pairs: u64) -> Timeline {
    let facts = &recording.facts;
    let last_ns = || recording.events.iter().map(|event| event.header().time_ns).max();
    let end_ns = facts.end.as_ref().map(|end| end.end_ns).or_else(last_ns).unwrap_or(0).max(facts.start_ns);
    let mut builder = builder::Builder::new(facts, &recording.notes, end_ns);
    builder.probe_intervals.begin_at_execs(&recording.events);
    for event in &recording.events {
        builder.record(event);
    }
    finish::finish(builder, recording, end_ns, most_pairs)
}

/// The facts for a window of the same recording that begins at `start_ns`, from all earlier records.
pub fn facts_at(recording: &Recording, start_ns: u64) -> Facts {
    let Some(limit_ns) = start_ns.checked_sub(1).filter(|&limit| limit >= recording.facts.start_ns) else {
        return recording.facts.clone();
    };
    let mut builder = builder::Builder::new(&recording.facts, &recording.notes, limit_ns);
    builder.probe_intervals.begin_at_execs(&recording.events);
    for event in &recording.events {
        if event.header().time_ns > limit_ns {
            break;
        }
        builder.record(event);
    }
    builder.advance_to(limit_ns);
    part::resume::facts(&builder.threads, &recording.facts, start_ns)
}

#[cfg(test)]
mod tests;
