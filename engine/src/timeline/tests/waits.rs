//! Waits: which waking ends a sleep, and which thread is its cause.

use super::{build, check, draw, recording};
use crate::event::ThreadState;

#[test]
fn a_wait_ends_with_the_thread_that_woke_it_and_then_the_thread_queues() {
    check(
        "A sleeps
         B runs
         40 1 B wakes A
         60 0 idle to A
         80 1 B sleeps",
        "
        A ____--====
          waits: kernel, by B at 40, cut
        B ========__
          waits: kernel, CutAtEnd
        truncated 2",
    );
}

#[test]
fn the_first_wake_up_of_a_sleep_counts_and_later_ones_are_spurious() {
    check(
        "A runs
         B runs
         C runs
         20 0 A sleeps
         30 1 B wakes A
         40 2 C wakes A
         50 0 idle to A
         60 2 C pokes A",
        "
        A ==_--=====
          waits: kernel, by B at 30
        B ==========
        C ==========
        spurious 2",
    );
}

#[test]
fn an_interrupted_thread_wakes_nobody() {
    check(
        "A runs
         B runs
         20 0 A sleeps
         50 1 B/irq wakes A
         60 0 idle to A
         70 0 A sleeps
         80 1 B/soft wakes A
         90 0 idle to A",
        "
        A ==___-=_-=
          waits: kernel, HardIrq
          waits: kernel, SoftIrq
        B ==========",
    );
}

#[test]
fn wake_ups_of_unknown_context_make_no_edge() {
    check(
        "A runs
         B runs
         20 0 A sleeps
         40 1 B/what wakes A
         50 0 idle to A
         60 0 A sleeps
         70 1 other wakes A
         80 0 idle to A",
        "
        A ==__-=_-==
          waits: kernel, UnknownContext
          waits: kernel, Task
        B ==========",
    );
}

#[test]
fn a_wake_up_may_be_recorded_before_the_switch_to_sleep() {
    check(
        "A runs
         B runs
         30 1 B wakes A on 64
         31 0 A sleeps on 64
         50 0 idle to A",
        "
        A ====-=====
          waits: futex 64, by B at 30
        B ==========",
    );
}

#[test]
fn an_early_wake_up_gives_way_to_the_one_that_ended_the_sleep() {
    check(
        "A runs
         B runs
         20 1 B wakes A
         40 0 A sleeps
         60 1 B wakes A
         80 0 idle to A",
        "
        A ====__--==
          waits: kernel, by B at 60
        B ==========
        spurious 1",
    );
}

#[test]
fn a_wake_up_in_a_futex_call_before_the_sleep_is_a_wait_of_no_length() {
    check(
        "A runs
         B runs
         30 1 B wakes A on 64
         60 0 A sleeps
         80 1 B wakes A",
        "
        A ======__--
          waits: futex 64, by B at 30
          waits: kernel, by B at 80
        B ==========",
    );
}

#[test]
fn a_wake_up_in_a_futex_call_while_pre_empted_is_a_wait_of_no_length() {
    // The second waking finds the thread awake and ends nothing.
    check(
        "A runs
         B runs
         C runs
         30 0 A preempted to C
         40 1 B wakes A on 64
         50 1 B wakes A
         60 0 C preempted to A
         70 0 A enters f 900
         80 0 A sleeps",
        "
        A ===---==__
          waits: futex 64, by B at 40
          waits: kernel, CutAtEnd
          stack: 70:f
        B ==========
        C ---===----
        spurious 1
        truncated 1",
    );
}

#[test]
fn a_wake_up_while_pre_empted_outside_of_a_futex_call_is_no_wait() {
    check(
        "A runs
         B runs
         C runs
         30 0 A preempted to C
         40 1 B wakes A
         60 0 C preempted to A
         80 0 A enters f 900",
        "
        A ===---====
          stack: 80:f
        B ==========
        C ---===----
        spurious 1",
    );
}

#[test]
fn a_futex_call_that_its_timer_ends_has_timed_out() {
    check(
        "A runs
         20 0 A sleeps on 64
         60 0 idle/timer wakes A on 64
         70 0 idle to A",
        "
        A ==____-===
          waits: futex 64, timed out",
    );
}

#[test]
fn a_wait_without_a_wake_up_is_unmatched() {
    check(
        "A runs
         20 0 A sleeps
         60 0 idle to A",
        "
        A ==____====
          waits: kernel, NotSeen
        unmatched 1",
    );
}

#[test]
fn a_futex_call_that_a_timer_s_signal_ends_did_not_time_out() {
    check(
        "A runs
         20 0 A sleeps on 64
         60 0 idle/timer signals A on 64
         70 0 idle to A",
        "
        A ==____-===
          waits: futex 64, Signal",
    );
}

/// After ^C, the last wait must not count as ended: "waiting for signal" would be 89 % of the time.
#[test]
fn a_wait_in_which_a_signal_ends_the_thread_has_no_end() {
    let script = |after: &str| {
        format!(
            "A runs
             20 0 A sleeps on 64
             60 0 idle/timer signals A on 64
             70 0 idle to A{after}
             80 0 A exits
             80 0 A dies"
        )
    };
    let drawing =
        |wait: &str, stack: &str| format!("\n        A ==____-=\n          waits: futex 64, {wait}{stack}");
    check(&script(""), &drawing("CutAtEnd", ""));
    // In this case the thread reacts to the signal.
    let acts = "\n             70 0 A enters f 900";
    check(&script(acts), &drawing("Signal", "\n          stack: 70:f"));
}

#[test]
fn a_wake_up_before_a_later_sleep_is_a_wait_of_no_length_where_it_happened() {
    // B wakes A before A's first sleep, so A does not sleep; A's later sleep ends with B's second waking.
    let script = "A runs
         B runs
         20 1 B wakes A on 64
         40 0 A sleeps on 64
         60 1 B wakes A on 64
         80 0 idle to A";
    check(
        script,
        "
        A ====__--==
          waits: futex 64, by B at 20
          waits: futex 64, by B at 60
        B ==========",
    );
    let timeline = build(&recording(script));
    let starts: Vec<u64> = timeline.threads[0].intervals.iter().map(|interval| interval.start.0).collect();
    assert_eq!(starts, [0, 20, 20, 40, 60, 80]);
}

#[test]
fn each_wake_up_of_a_thread_that_is_about_to_sleep_is_a_wait() {
    check(
        "A runs
         B runs
         10 0 A enters f 900
         20 1 B wakes A on 64
         50 1 B wakes A on 72
         80 0 A enters g 800",
        "
        A ==========
          waits: futex 64, by B at 20
          waits: futex 72, by B at 50
          stack: 10:f 80:fg
        B ==========",
    );
}

#[test]
fn a_wake_up_long_before_a_sleep_that_goes_on_did_not_end_it() {
    let script = "A runs 0 40
         B runs
         20 1 B wakes A on 64
         40 0 A sleeps on 72";
    let mut recording = recording(script);
    recording.facts.end.as_mut().expect("an end").threads[0].state = ThreadState::Sleeping;
    assert_eq!(
        draw(&build(&recording)),
        "A ====______
  waits: futex 64, by B at 20
  waits: futex 72, CutAtEnd
B ==========
truncated 1
"
    );
}
