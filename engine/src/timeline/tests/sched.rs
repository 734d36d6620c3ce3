//! Tests of which thread runs and which waits for a CPU, and of the counts where records contradict each other.

use super::{check, record, recording};
use crate::event::ThreadState;
use crate::finding::Finding;
use crate::timeline::build;

#[test]
fn a_pre_empted_thread_is_runnable_and_not_blocked() {
    check(
        "A runs
         B runs
         30 0 A preempted to B
         50 0 B preempted to A",
        "
        A ===--=====
        B ---==-----",
    );
}

#[test]
fn a_thread_s_first_event_tells_its_state_at_the_start() {
    check(
        "A sleeps
         B runs
         C runs
         D sleeps
         20 0 B to C
         50 0 C wakes A",
        "
        A _____-----
          waits: kernel, by C at 50, cut
        B ==--------
        C --========
        D __________
          waits: kernel, CutAtEnd, cut
        truncated 2",
    );
}

#[test]
fn a_thread_without_events_has_the_state_that_its_cpu_time_shows() {
    check(
        "A runs 0 99
         B runs 50 51
         C runs
         D sleeps 5 5",
        "
        A ==========
        B ----------
        C ??????????
        D __________
          waits: kernel, CutAtEnd, cut
        truncated 1",
    );
}

#[test]
fn a_state_of_proc_that_events_contradict_is_unknown() {
    check(
        "A sleeps
         B runs
         30 0 A sleeps
         50 1 B wakes A",
        "
        A ???__-----
          waits: kernel, by B at 50
        B ==========
        contradictions 1",
    );
}

#[test]
fn a_missing_switch_makes_a_thread_unknown_since_its_last_proof() {
    check(
        "A runs
         B runs
         20 0 A enters f 900
         50 0 B sleeps
         70 0 A sleeps",
        "
        A ==?????___
          waits: kernel, CutAtEnd
          stack: 20:f
        B ?????_____
          waits: kernel, CutAtEnd
        truncated 2
        contradictions 3",
    );
}

#[test]
fn a_missing_switch_to_a_pre_empted_thread_is_a_finding_with_its_time() {
    let script = "
        A runs
        20000 0 A preempted to idle
        5000000 0 A preempted to idle
        end 6000000";
    let timeline = build(&recording(script));
    let wanted = Finding::Contradiction {
        places: 1,
        unseen_switches: 0,
        unknown_ns: 4_980_000,
        recorded_ns: 6_000_000,
    };
    assert_eq!(timeline.findings, [wanted]);
}

#[test]
fn records_out_of_order_are_left_out_and_counted() {
    check(
        "A runs
         30 0 A sleeps
         20 0 A enters f 900",
        "
        A ===_______
          waits: kernel, CutAtEnd
        truncated 1
        late 1",
    );
}

#[test]
fn cpu_time_of_events_that_differs_from_that_of_proc_is_a_finding() {
    let second = 1_000_000_000u64;
    let mut recording = recording("A runs 0 0\n B runs 0 0");
    recording.events = vec![record(second / 2, 0, "A", &["sleeps"]), record(second, 1, "B", &["sleeps"])];
    let end = recording.facts.end.as_mut().expect("an end");
    end.end_ns = second;
    for (thread, cpu_time_ns) in end.threads.iter_mut().zip([second / 4, second]) {
        (thread.seen_ns, thread.cpu_time_ns, thread.state) =
            (second, Some(cpu_time_ns), ThreadState::Sleeping);
    }
    let findings = build(&recording).findings;
    let thread = "A/1".to_owned();
    let wanted = Finding::CpuTime { threads: 1, thread, events_ns: second / 2 - 1, proc_ns: second / 4 };
    assert_eq!(findings, [wanted]);
}

/// The kernel does not report every switch. The CPU time of a `Ran` record shows it later.
#[test]
fn an_unrecorded_switch_is_inferred_from_the_cpu_time() {
    // After a sleep and after a pre-emption.
    check(
        "A runs
         B runs
         10 0 A sleeps
         20 1 B wakes A
         60 0 A ran 30
         60 0 A to idle
         90 0 A ran 10
         90 0 A to idle",
        "
        A =_-===--=-
          waits: kernel, by B at 20
        B ==========
        inferred 2",
    );
}

/// Records of a thread on its CPU prove only that the thread was there at that time; its CPU time proves when it came.
#[test]
fn an_inferred_switch_comes_before_what_the_thread_did_after_it() {
    check(
        "A runs
         B runs
         10 0 A sleeps
         20 1 B wakes A
         50 0 A enters f 100
         70 0 A ran 40
         70 0 A to idle",
        "
        A =_-====---
          waits: kernel, by B at 20
          stack: 50:f
        B ==========
        inferred 1",
    );
    // The kernel's CPU time does not count interrupts, so records may prove an earlier arrival.
    check(
        "A runs
         B runs
         10 0 A sleeps
         20 1 B wakes A
         50 0 A enters f 100
         70 0 A ran 10
         70 0 A to idle",
        "
        A =_???==---
          waits: kernel, by B at 20
          stack: 50:f
        B ==========
        contradictions 1",
    );
    // The waker is not recorded either.
    check(
        "A runs
         10 0 A sleeps
         50 0 A enters f 100
         70 0 A ran 40
         70 0 A to idle",
        "
        A =??====---
          stack: 50:f
        contradictions 1
        inferred 1",
    );
}
