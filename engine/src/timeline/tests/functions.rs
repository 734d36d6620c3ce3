//! Functions on the stack: entries, exits, frames that end without one, probes taken off.

use super::{check, function_id, recording, stack_over_time};
use crate::timeline::{build, shed};

/// The stack over time of a thread that runs all the time, and nothing to complain about.
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
fn frames_below_an_entry_or_exit_are_gone() {
    // f calls g calls h, which throws; f catches and calls k; later everything is left by longjmp.
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
fn the_same_stack_pointer_is_a_tail_call() {
    check_stack(
        "10 0 A enters f 900
         20 0 A enters g 800
         30 0 A enters h 800
         40 0 A leaves h 800",
        "10:f 20:fg 30:fh 40:f",
    );
}

#[test]
fn functions_open_at_the_start_lie_at_the_bottom() {
    check_stack(
        "20 0 A enters f 700
         40 0 A leaves f 700
         60 0 A leaves g 800
         80 0 A leaves h 900",
        "0:hg 20:hgf 40:hg 60:h 80:.",
    );
}

#[test]
fn an_exit_below_something_seen_before_proves_nothing() {
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
fn the_user_stack_pointer_of_a_sleeper_ends_frames() {
    check(
        "A runs
         10 0 A enters f 900
         20 0 A enters g 800
         40 0 A sleeps at 850",
        "
        A ====______
          waits: kernel, CutAtEnd
          stack: 10:f 20:fg 40:f
        censored 1",
    );
}

#[test]
fn another_stack_ends_no_frames() {
    // A signal handler on a stack of its own, then a coroutine that is left half done.
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

#[test]
fn a_function_without_probes_stays_until_the_stack_pointer_ends_it() {
    let script = "
        A runs
        off f 30
        10 0 A enters f 900
        40 0 A enters g 800
        50 0 A leaves g 800
        70 0 A enters g 900";
    check(
        script,
        "
        A ==========
          stack: 10:f 40:fg 50:f 70:g",
    );
    assert_eq!(build(&recording(script)).folded, [function_id("f")]);
}

#[test]
fn time_of_a_call_whose_probes_were_taken_off_while_open_is_said_to_be_in_doubt() {
    // A's call of f may have ended at any time after 30, and A waits for a CPU in between; B's calls ended before.
    let script = "
        A runs
        B runs
        C runs
        off f 30
        5 1 B enters f 900
        10 0 A enters g 950
        10 0 A enters f 900
        15 1 B leaves f 900
        20 0 A enters f 800
        40 0 A preempted to C
        50 0 C preempted to A
        60 0 A enters h 700
        90 0 A leaves g 950";
    let timeline = build(&recording(script));
    let said: Vec<&str> = timeline
        .findings
        .iter()
        .filter(|finding| finding.kind == "open_at_probes_off")
        .map(|finding| finding.text.as_str())
        .collect();
    // 30 to 40 and 50 to 90, once for both calls; the attribution itself stays.
    let wanted = "function #6 was open when its probes were taken off: up to 0.000 ms counted for it may belong to \
                  its callers";
    assert_eq!(said, [wanted]);
    assert_eq!(shed::in_doubt(&timeline, &recording(script)), [(function_id("f"), 50)]);
    assert_eq!(stack_over_time(&timeline.threads[0]), " 10:gf 20:gff 60:gffh 90:.");
}

#[test]
fn a_call_that_was_over_soon_after_its_probes_were_taken_off_is_not_worth_a_word() {
    let script = "
        A runs
        off f 30
        10 0 A enters g 950
        10 0 A enters f 900
        31 0 A leaves g 950";
    let doubt = |script: &str| shed::in_doubt(&build(&recording(script)), &recording(script));
    // 1 of 100 ns, then 2.
    assert_eq!(doubt(script), []);
    assert_eq!(doubt(&script.replace("31", "32")), [(function_id("f"), 2)]);
}
