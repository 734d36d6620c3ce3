//! A part of a recording, and which one is most like all of it.

use super::*;
use crate::event::{LossCounts, Overhead, SampleCounts};
use crate::timeline::{excerpt, typical};

/// Calls of functions by thread A at equal distances: how many, of which in turns, how far apart.
fn calls(parts: &[(u64, &[&str], u64)]) -> Recording {
    let mut all = recording("A runs");
    let mut time_ns = 10;
    for (count, functions, apart_ns) in parts {
        for number in 0..*count {
            time_ns += apart_ns;
            let function = functions[(number % functions.len() as u64) as usize];
            all.events.push(record(time_ns, 0, "A", &["enters", function, "100"]));
        }
    }
    all.facts.end = Some(WindowEnd { end_ns: time_ns, ..WindowEnd::default() });
    all
}

#[test]
fn the_part_that_is_most_like_all_of_it_is_chosen() {
    let all = calls(&[(1_000, &["f"], 10), (8_000, &["g", "h"], 100), (1_000, &["g"], 50)]);
    let found = typical(&all, 2_000).expect("a part");
    // A tenth of its calls are of the first function, as in all of it; of the others one is called more often there.
    assert!(found.from_ns < 10_000 && found.to_ns > 100_000, "{found:?}");
    assert!((0.01..0.06).contains(&found.apart), "{found:?}");
    let cut = excerpt(all.clone(), found.from_ns, found.to_ns);
    assert!((1_900..=2_000).contains(&cut.events.len()), "{}", cut.events.len());
    assert_eq!(typical(&all, all.events.len()), None, "it has no more");
    assert_eq!(typical(&all, 0), None);
}

#[test]
fn a_quiet_phase_makes_every_part_unlike_all_of_it() {
    let mut all = calls(&[(1_000, &["f"], 10)]);
    all.facts.end = Some(WindowEnd { end_ns: 40_000, ..WindowEnd::default() });
    let found = typical(&all, 100).expect("a part");
    assert!((0.5..0.7).contains(&found.apart), "four times as many in a second: {found:?}");
}

#[test]
fn records_at_one_instant_and_clocks_that_go_back_do_no_harm() {
    let mut back = calls(&[(3_000, &["f"], 3)]);
    back.events.reverse();
    for mut all in [calls(&[(3_000, &["f"], 0)]), back] {
        all.facts.end = Some(WindowEnd { end_ns: 4, ..WindowEnd::default() });
        let found = typical(&all, 10).expect("a part");
        assert!((0.0..=1.0).contains(&found.apart), "{found:?}");
        drop(build(&excerpt(all, found.from_ns, found.to_ns)));
    }
}

#[test]
fn a_part_has_its_share_of_the_cost_and_threads_as_they_were() {
    let mut all = recording("A runs\n 10 0 A sleeps\n 30 0 idle wakes A\n 40 0 idle to A\n 80 0 A sleeps");
    if let Some(end) = &mut all.facts.end {
        end.loss = LossCounts { dropped: 3, ..LossCounts::default() };
        end.samples = Some(SampleCounts { taken: 40, ..SampleCounts::default() });
        end.overhead = Some(Overhead { event_ns: 1_000, once_ns: 70, ..Overhead::default() });
    }
    let cut = excerpt(all.clone(), 20, 50);
    let end = cut.facts.end.clone().expect("an end");
    let cost = end.overhead.expect("a cost");
    assert_eq!((cut.facts.start_ns, end.end_ns, cut.events.len()), (20, 50, 2));
    assert_eq!((cost.event_ns, cost.once_ns, end.samples.map(|samples| samples.taken)), (500, 70, Some(20)));
    // The count of what was lost is that of all of it: when that was is only in the notes.
    assert_eq!(end.loss.dropped, 3);
    let ran = |recording: &Recording| build(recording).threads[0].ran().0;
    assert_eq!((ran(&cut), ran(&all)), (10, 10 + 40));
    assert_eq!(excerpt(all.clone(), 0, u64::MAX).events, all.events);
}
