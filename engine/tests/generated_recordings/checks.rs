//! Invariants of the timeline and the program of any recording.

use engine::program::{EdgeId, Operation, Program};
use engine::report::{Cpus, Detail, report};
use engine::timeline::{State, Timeline};

/// Intervals tile each thread's life, which lies in the window.
pub fn assert_tiles(timeline: &Timeline) {
    for thread in &timeline.threads {
        assert!(timeline.start <= thread.start && thread.end <= timeline.end, "{thread:#?}");
        // The first evidence of a wait may come in the instant in which it ends.
        assert!(!thread.intervals.is_empty() || thread.start == thread.end, "{thread:#?}");
        let mut now = thread.start;
        let mut steps = 0;
        for (start, end, state) in thread.spans() {
            assert_eq!(start, now, "{thread:#?}");
            let may_be_empty = matches!(state, State::Blocked(_));
            assert!(start < end || (may_be_empty && start == end), "{thread:#?}");
            now = end;
        }
        for interval in &thread.intervals {
            assert!(steps <= interval.first_step && interval.first_step as usize <= thread.steps.len());
            steps = interval.first_step;
        }
        assert_eq!(now, thread.end, "{thread:#?}");
        assert!(thread.steps.is_sorted_by_key(|step| step.time));
        let blocked = thread.intervals.iter().filter(|i| matches!(i.state, State::Blocked(_)));
        assert_eq!(blocked.count(), thread.waits.len());
    }
}

/// A program from a recording can always be scheduled to its end.
pub fn assert_no_deadlock(program: &Program) {
    program.check().expect("a valid program");
    let answer = report(program, &[Cpus::Infinite], Detail::Functions);
    let bad = ["deadlock", "invalid_program", "never_released", "created_twice", "released_twice"];
    let found: Vec<_> = answer.findings.iter().filter(|f| bad.contains(&f.kind())).collect();
    assert!(found.is_empty(), "{found:?}\n{program:#?}");
    // Release and await are paired one to one.
    let operations = || program.threads.iter().flat_map(|thread| &thread.operations);
    for edge in 0..program.edges.len() as u32 {
        let releases = operations().filter(|o| **o == Operation::Release(EdgeId(edge))).count();
        let awaits = operations().filter(|o| **o == Operation::Await(EdgeId(edge))).count();
        assert_eq!((releases, awaits), (1, 1), "edge {edge} of {program:#?}");
    }
}
