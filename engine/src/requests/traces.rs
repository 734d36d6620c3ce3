//! Requests that the program marks: each trace for which its threads work is one, from when a thread is first seen to work for it
//! until the last one is. That is known between two looks at a thread.

use super::calls::{Calls, Request};
use crate::timeline::{Timeline, TraceStretch};

/// The traces for which threads worked. A trace that comes again is the same request.
pub fn traces(timeline: &Timeline) -> Calls {
    let mut calls = Calls::default();
    for stretches in timeline.traces.chunk_by(|one, next| one.trace == next.trace) {
        calls.requests.extend(request(timeline, stretches, &mut calls.stretches));
    }
    calls
}

/// The request of one trace; adds its stretches.
fn request(timeline: &Timeline, of: &[TraceStretch], stretches: &mut Vec<Request>) -> Option<Request> {
    let place = u32::try_from(stretches.len()).ok()?;
    let count = u32::try_from(of.len()).ok()?;
    let first = of.first()?;
    let within = |stretch: &TraceStretch| Request {
        begin_thread: stretch.thread,
        begin: stretch.begin.min(timeline.end),
        taken: stretch.begin.min(timeline.end),
        end_thread: stretch.thread,
        end: stretch.end.map(|end| end.min(timeline.end)),
        began_before: stretch.began_before,
        stretches: (0, 0),
    };
    stretches.extend(of.iter().map(within));
    let own = stretches.get_mut(place as usize..)?;
    // An open stretch is the last to end.
    own.sort_by_key(|stretch| {
        std::cmp::Reverse(stretch.end.map_or((true, stretch.begin), |end| (false, end)))
    });
    let last = own.first()?;
    Some(Request {
        begin_thread: first.thread,
        end_thread: last.end_thread,
        end: last.end,
        began_before: of.iter().any(|stretch| stretch.began_before),
        stretches: (place, count),
        ..within(first)
    })
}
