//! Stretches between two places with probes.

use super::{check, function_id, recording};
use crate::timeline::build;

/// The stretches of the first thread: pair, begin, end.
fn stretches(script: &str) -> Vec<(u32, u64, Option<u64>)> {
    let timeline = build(&recording(script));
    assert_eq!((timeline.counts.stray_exits, timeline.counts.contradictions), (0, 0));
    let of_first = timeline.threads[0].stretches.iter();
    of_first.map(|stretch| (stretch.function, stretch.begin.0, stretch.end.map(|end| end.0))).collect()
}

#[test]
fn stretches_are_outermost_and_an_end_alone_is_none() {
    let (p, q) = (function_id("p"), function_id("q"));
    let script = "A runs
         5 0 A leaves p 0
         10 0 A enters p 0
         20 0 A enters q 0
         30 0 A enters p 0
         40 0 A leaves p 0
         50 0 A leaves p 0
         60 0 A leaves q 0
         70 0 A enters p 0";
    assert_eq!(stretches(script), [(p, 10, Some(40)), (q, 20, Some(60)), (p, 70, None)]);
}

/// A request may begin in one function and end in another, after the first one has returned.
#[test]
fn stretches_leave_the_open_functions_alone() {
    check(
        "A runs
         10 0 A enters f 900
         15 0 A enters p 0
         20 0 A leaves f 900
         30 0 A enters g 950
         35 0 A leaves p 0
         40 0 A leaves g 950",
        "A ==========\n  stack: 10:f 20:. 30:g 40:.",
    );
}

#[test]
fn a_stretch_whose_end_may_be_lost_is_forgotten() {
    let p = function_id("p");
    let rest = "50 0 A enters p 0
         60 0 A leaves p 0";
    for lost in ["gap 20 30", "off p 20", "off p 20\non p 45"] {
        let script = format!("A runs\n{lost}\n10 0 A enters p 0\n40 0 A leaves p 0\n{rest}");
        let wanted: &[_] = if lost == "off p 20" { &[] } else { &[(p, 50, Some(60))] };
        assert_eq!(stretches(&script), wanted, "{lost}");
    }
    let exec = "A runs\n10 0 A enters p 0\n20 0 A execs sh\n40 0 A leaves p 0\n";
    assert_eq!(stretches(&format!("{exec}{rest}")), [(p, 50, Some(60))]);
}
