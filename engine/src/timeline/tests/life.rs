//! Birth, death, exec and names of threads.

use super::{check, draw, recording};
use crate::timeline::build;
use probe_abi::Record;

#[test]
fn threads_are_born_and_die() {
    check(
        "A runs
         20 0 A forks B
         20 0 A begins B
         40 1 idle to B
         60 1 B exits
         60 1 B wakes A
         70 1 B dies
         80 0 A forks B
         80 0 A begins B
         90 1 idle to B",
        "
        A ==========
        B   --===
        B         -=
        spurious 1",
    );
}

/// It was taken for a thread that ran to the end of the window: what it did was told of no more.
#[test]
fn a_forked_process_that_is_not_recorded_is_no_thread() {
    check(
        "A runs
         20 0 A forks other
         40 0 A sleeps
         60 1 other wakes A
         70 1 other to A",
        "
        A ====__-===
          waits: kernel, Task
        ",
    );
}

#[test]
fn a_thread_listed_after_it_was_born_is_one_thread() {
    check(
        "A runs
         B runs
         0 0 A forks B
         0 0 A begins B
         40 1 idle to B",
        "
        A ==========
        B ----======",
    );
}

#[test]
fn an_exit_without_its_last_switch_ends_with_the_last_event() {
    check(
        "A runs
         B runs
         30 0 A exits
         60 0 B sleeps",
        "
        A ===
        B ??????____
          waits: kernel, CutAtEnd
        censored 1
        contradictions 1",
    );
}

#[test]
fn exec_ends_the_other_threads_and_all_frames() {
    check(
        "A runs
         B sleeps
         10 0 A enters f 900
         40 0 A execs new
         60 0 A enters g 500
         80 0 A leaves h 700",
        "
        A ==========
          stack: 10:f 40:. 40:h 60:hg 80:.
        B ____
          waits: kernel, CutByUnknown, cut
        censored 1",
    );
}

#[test]
fn a_thread_nobody_listed_is_unknown_until_it_shows() {
    check(
        "30 0 A sleeps
         50 1 B wakes A",
        "
        A ???__-----
          waits: kernel, by B at 50
        B ?????=====",
    );
}

#[test]
fn a_thread_gone_before_proc_was_read_is_as_good_as_listed() {
    // /proc is read at 55, when B has gone.
    let mut recording = recording(
        "A runs
         30 0 B preempted to A
         40 0 A preempted to B
         50 0 B exits
         50 0 B dies",
    );
    recording.facts.threads[0].seen_ns = 55;
    assert_eq!(draw(&build(&recording)), "A ---=------\nB ===-=\n");
}

#[test]
fn names_follow_renames_and_lose_control_characters() {
    let mut recording = recording("A runs\n 30 0 A named new");
    if let Some(Record::Rename(rename)) = recording.events.first_mut() {
        rename.comm[1] = 0x1b;
    }
    assert_eq!(build(&recording).threads[0].comm, "n?w");
}
