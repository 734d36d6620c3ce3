//! The parallelism of measured runs, against brute force on the threads' true states.

use super::cases::case;
use super::nonsense::nonsense;
use crate::tests::parallelism::adds_up;
use crate::tests::parallelism::brute::{assert_is, by_hand};
use engine::parallelism::measured;
use engine::timeline::{State, build};
use engine::translation::from_timeline;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn measured_parallelism_is_that_of_brute_force(case in case()) {
        let timeline = build(&case.generated.recording());
        let program = from_timeline(&timeline);
        let lived = timeline.threads.iter().filter(|thread| !thread.intervals.is_empty() || !thread.steps.is_empty());
        let start = timeline.start.0;
        let computes: Vec<(usize, u64, u64)> = lived
            .enumerate()
            .flat_map(|(number, thread)| {
                let running = thread.spans().filter(|(.., state)| matches!(state, State::Running { .. }));
                running.map(move |(from, to, _)| (number, from.0 - start, to.0 - start))
            })
            .collect();
        let (expected, nobody) = by_hand(program.threads.len(), &computes, timeline.end.0 - start);
        assert_is(&measured(&timeline, &program, false), &program, &expected, nobody);
    }

    #[test]
    fn measured_parallelism_of_arbitrary_records_adds_up(recording in nonsense()) {
        let timeline = build(&recording);
        adds_up(&measured(&timeline, &from_timeline(&timeline), false));
    }
}
