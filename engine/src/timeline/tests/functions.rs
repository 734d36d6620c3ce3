//! Functions on the stack: entries, exits, frames that end without one, removed probes.

use super::{check, function_id, recording, stack_over_time};
use crate::timeline::build;

/// Checks the stack over time of a thread that runs all the time; nothing may be counted as wrong.
#[track_caller]
fn check_stack(events: &str, stack: &str) {
    check(&format!("A runs\n{events}"), &format!("A ==========\n  stack: {stack}"));
}

#[test]
fn stacks_follow_entries_and_exits() {
    check_stack(
        "10 0 A enters f 900
         20 0 A enters g 800
         30 0 A leaves g 800
         40 0 A leaves f 900",
        "10:f 20:fg 30:f 40:.",
    );
}

#[test]
fn an_entry_or_exit_further_up_the_stack_closes_the_frames_below_it() {
    // f calls g, which calls h; h throws, f catches and calls k. Later a longjmp leaves all of them.
    check_stack(
        "10 0 A enters f 900
         20 0 A enters g 800
         30 0 A enters h 700
         40 0 A enters k 850
         60 0 A leaves f 900",
        "10:f 20:fg 30:fgh 40:fk 60:.",
    );
}

#[test]
fn an_entry_at_the_same_stack_pointer_is_a_tail_call() {
    check_stack(
        "10 0 A enters f 900
         20 0 A enters g 800
         30 0 A enters h 800
         40 0 A leaves h 800",
        "10:f 20:fg 30:fh 40:f",
    );
}

#[test]
fn functions_open_at_the_start_lie_at_the_bottom_of_the_stack() {
    check_stack(
        "20 0 A enters f 700
         40 0 A leaves f 700
         60 0 A leaves g 800
         80 0 A leaves h 900",
        "0:hg 20:hgf 40:hg 60:h 80:.",
    );
}

#[test]
fn an_exit_below_frames_seen_before_is_a_stray_exit() {
    check(
        "A runs
         20 0 A enters f 900
         40 0 A leaves f 900
         60 0 A leaves g 800",
        "
        A ==========
          stack: 20:f 40:.
        stray 1",
    );
}

#[test]
fn the_user_stack_pointer_of_a_sleeper_closes_frames() {
    check(
        "A runs
         10 0 A enters f 900
         20 0 A enters g 800
         40 0 A sleeps at 850",
        "
        A ====______
          waits: kernel, CutAtEnd
          stack: 10:f 20:fg 40:f
        truncated 1",
    );
}

#[test]
fn an_entry_on_another_stack_closes_no_frames() {
    // A signal handler runs on its own stack, then a coroutine runs and is left before its end.
    check_stack(
        "10 0 A enters f 100000000
         20 0 A enters s 900000000
         30 0 A leaves s 900000000
         40 0 A enters g 99000000
         50 0 A enters c 500000000
         60 0 A leaves g 99000000
         70 0 A enters d 499000000
         80 0 A leaves d 499000000
         90 0 A leaves f 100000000",
        "10:f 20:fs 30:f 40:fg 50:fgc 60:f 70:fcd 80:fc 90:.",
    );
}

/// Functions with 60, 30 and 10 % must not show total times of 99.5 % because they lost their probes while they were
/// open.
#[test]
fn a_function_that_loses_its_probes_while_it_is_open_is_closed() {
    let script = "
        A runs
        B runs
        off f 30
        10 0 A enters g 950
        10 0 A enters f 900
        12 1 B enters f 900
        15 1 B leaves f 900
        40 0 A enters f 900
        50 0 A leaves f 900
        60 0 A enters h 700
        70 0 A leaves h 700
        90 0 A leaves g 950";
    let timeline = build(&recording(script));
    assert_eq!(stack_over_time(&timeline.threads[0]), " 10:gf 30:g 60:gh 70:g 90:.");
    assert_eq!(timeline.probes_removed, [function_id("f")]);
    assert_eq!((timeline.findings.len(), timeline.counts.stray_exits), (0, 0), "{:?}", timeline.findings);
}

#[test]
fn callees_of_a_function_that_loses_its_probes_are_closed_without_stray_exits() {
    check(
        "A runs
         off f 30
         10 0 A enters f 900
         20 0 A enters g 800
         40 0 A enters h 700
         50 0 A leaves h 700
         60 0 A leaves g 800
         80 0 A enters g 800
         90 0 A leaves g 800",
        "
        A ==========
          stack: 10:f 20:fg 30:. 40:h 50:. 80:g 90:.",
    );
}

#[test]
fn a_function_whose_probes_come_back_counts_from_then_on() {
    check(
        "A runs
         off f 20
         on f 50
         25 0 A enters f 900
         60 0 A leaves f 900
         70 0 A enters f 900
         80 0 A leaves f 900",
        "
        A ==========
          stack: 70:f 80:.",
    );
}

/// Probes are attached one by one: the probe at the entry may come before those at the exits.
#[test]
fn a_function_s_calls_while_its_probes_are_attached_do_not_count() {
    check(
        "A runs
         new f 50
         20 0 A enters f 900
         40 0 A enters g 800
         45 0 A leaves g 800
         60 0 A leaves f 900
         70 0 A enters f 900
         80 0 A leaves f 900",
        "
        A ==========
          stack: 40:g 45:. 70:f 80:.",
    );
}

#[test]
fn a_window_begun_after_probes_came_and_went_knows_that_they_did() {
    let script = "
        A runs
        off f 20
        on f 30
        10 0 A enters f 900
        40 0 A enters f 880
        70 0 A leaves f 880";
    let mut recording = recording(script);
    recording.facts = crate::timeline::facts_at(&recording, 50);
    recording.events.retain(|event| event.header().time_ns >= 50);
    assert_eq!(stack_over_time(&build(&recording).threads[0]), " 50:f 70:.");
}

/// With very many threads and notes, a hostile recording must not keep a reader busy.
#[test]
fn stacks_are_empty_with_too_many_probe_changes_for_too_many_threads() {
    let mut script = String::from("50 0 T0 enters g 900\n60 0 T0 leaves g 900\n");
    (0..2_000).for_each(|thread| script.push_str(&format!("T{thread} runs\n")));
    (0..600).for_each(|at| script.push_str(&format!("off f {}\n", at % 40)));
    let timeline = build(&recording(&script));
    let last = timeline.threads.last().expect("threads");
    assert_eq!(stack_over_time(last), "");
}
