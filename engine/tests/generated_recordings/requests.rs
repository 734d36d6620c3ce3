//! Requests of generated recordings: the parts of each add up, whatever was recorded.

use super::cases::case;
use super::nonsense::nonsense;
use crate::tests::requests::{assert_adds_up, assert_sums};
use engine::program::Occurrences;
use engine::requests::{Calls, Paths, Request, calls, summarize, traces};
use engine::time::Timestamp;
use engine::timeline::{Timeline, TraceStretch, build};
use engine::translation::unsimulated_from_timeline;
use proptest::prelude::*;

/// Checks calls of two functions, and requests from anywhere to anywhere.
fn check(timeline: &Timeline, anywhere: &[(u32, u64, u32, u64)]) {
    let length = timeline.end.0.saturating_sub(timeline.start.0) + 2;
    let threads = timeline.threads.len() as u32 + 1;
    let mut found = calls(timeline, &[0, 2]);
    for &(begin_thread, begin, end_thread, end) in anywhere {
        let [begin, end] = [begin, end].map(|time| Timestamp(timeline.start.0 + time % length));
        found.requests.push(Request {
            begin_thread: begin_thread % threads,
            begin: begin.min(end),
            taken: Timestamp(begin.0.min(end.0) + (end.0.abs_diff(begin.0)) / 3),
            end_thread: end_thread % threads,
            end: Some(begin.max(end)),
            ..Request::default()
        });
    }
    let program = unsimulated_from_timeline(timeline);
    let occurrences = Occurrences::of(timeline, &program);
    let mut paths = Paths::new(timeline, &program, &occurrences, &found.requests);
    for request in found.requests.iter().filter(|request| request.latency_ns().is_some()) {
        assert_adds_up(paths.path(request), request);
    }
    let of_calls = summarize(timeline, &program, &calls(timeline, &[0, 2]));
    assert_sums(&of_calls);
    assert_sums(&summarize(timeline, &program, &Calls { requests: found.requests, ..Calls::default() }));
    check_traces(timeline.clone(), anywhere);
}

/// Checks traces that are in any threads at any times.
fn check_traces(mut timeline: Timeline, anywhere: &[(u32, u64, u32, u64)]) {
    let length = timeline.end.0.saturating_sub(timeline.start.0) + 2;
    let threads = timeline.threads.len() as u32 + 1;
    let stretches = anywhere.iter().map(|&(thread, begin, trace, end)| {
        let [begin, end] = [begin, end].map(|time| Timestamp(timeline.start.0 + time % length));
        TraceStretch {
            trace: [u64::from(trace % 3), 0],
            thread: thread % threads,
            begin: begin.min(end),
            end: (trace % 16 != 0).then_some(begin.max(end)),
            began_before: false,
        }
    });
    timeline.traces.extend(stretches);
    timeline.traces.sort_by_key(|stretch| (stretch.trace, stretch.begin));
    let found = traces(&timeline);
    let program = unsimulated_from_timeline(&timeline);
    let occurrences = Occurrences::of(&timeline, &program);
    let mut paths = Paths::of(&timeline, &program, &occurrences, &found);
    for request in found.requests.iter().filter(|request| request.latency_ns().is_some()) {
        assert_adds_up(paths.path(request), request);
    }
    assert_sums(&summarize(&timeline, &program, &found));
}

fn anywhere() -> impl Strategy<Value = Vec<(u32, u64, u32, u64)>> {
    prop::collection::vec((any::<u32>(), any::<u64>(), any::<u32>(), any::<u64>()), 0..9)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parts_of_requests_of_a_generated_recording_add_up(case in case(), anywhere in anywhere()) {
        check(&build(&case.generated.recording()), &anywhere);
    }

    #[test]
    fn parts_of_requests_of_arbitrary_records_add_up(recording in nonsense(), anywhere in anywhere()) {
        check(&build(&recording), &anywhere);
    }
}
