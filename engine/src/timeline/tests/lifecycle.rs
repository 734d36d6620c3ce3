//! Birth, death, exec and names of threads.

use super::{check, draw, recording};
use crate::timeline::build;
use probe_abi::Record;

#[test]
fn a_thread_lives_from_its_fork_to_its_death() {
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

/// The wait at longpole's own gate must not be a wait of the program.
#[test]
fn a_launched_command_begins_when_longpole_lets_it_go_on() {
    let mut recording = recording(
        "A sleeps
         20 0 other wakes A
         30 0 other to A
         60 0 A sleeps
         80 0 other wakes A
         90 0 other to A",
    );
    let waits = |recording| build(&recording).threads.iter().map(|thread| thread.waits.len()).sum::<usize>();
    assert_eq!(waits(recording.clone()), 2, "attached, it slept before");
    recording.facts.launched = Some(super::PID);
    let timeline = build(&recording);
    let drawn = draw(&timeline);
    assert_eq!(drawn.lines().next(), Some("A   -===__-="), "{drawn}");
    assert_eq!(waits(recording), 1);
    assert_eq!(timeline.began().0, 30);
}

/// The process must not become a thread that runs to the end of the window and whose later events are ignored.
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
fn a_thread_that_exits_without_its_last_switch_ends_with_its_last_event() {
    check(
        "A runs
         B runs
         30 0 A exits
         60 0 B sleeps",
        "
        A ===
        B ??????____
          waits: kernel, CutAtEnd
        truncated 1
        contradictions 1",
    );
}

#[test]
fn an_exec_ends_the_other_threads_and_closes_all_frames() {
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
        truncated 1",
    );
}

/// The caller may be pre-empted between the exchange of ids and the exec record. It must not become one more thread. G leads
/// process 7.
#[test]
fn a_thread_that_calls_exec_gets_the_leader_s_number_before_its_record() {
    check(
        "B runs
         G sleeps
         10 0 B wakes G
         10 0 B sleeps to G
         20 0 G exits
         20 0 G wakes B
         20 0 G dies
         30 0 idle to B
         50 0 G preempted to idle
         60 0 idle to G
         70 0 G execs new B
         90 0 G sleeps",
        "
        G =_-==-===_
          waits: kernel, by G at 20
          waits: kernel, CutAtEnd
        G _=
          waits: kernel, by G at 10, cut
        truncated 2",
    );
}

/// The leader's last switch has the id that the caller had. It may come before the first record of the caller under its new
/// id, after that, or after the exec.
#[test]
fn a_leader_s_last_switch_may_have_the_number_of_the_thread_that_calls_exec() {
    let script = |before: &str, between: &str, after: &str| {
        format!(
            "B runs
             G sleeps
             10 1 B wakes G
             10 1 B sleeps
             10 0 idle to G
             20 0 G exits
             20 0 G wakes B
             30 1 idle to B
             {before}
             50 1 G named new
             {between}
             60 1 G execs new B
             {after}
             90 1 G sleeps"
        )
    };
    let dies = |at: u64| format!("{at} 0 B dies");
    let drawing = |leader: &str| {
        format!(
            "
        G =_-======_
          waits: kernel, by G at 20
          waits: kernel, CutAtEnd
        G {leader}
          waits: kernel, by G at 10, cut
        truncated 2"
        )
    };
    check(&script(&dies(40), "", ""), &drawing("_==="));
    check(&script("", &dies(55), ""), &drawing("_====="));
    // The leader's last switch comes after the exec had ended the leader: the time in between is not recorded.
    check(&script("", "", &dies(70)), &drawing("_="));
    // The leader is pre-empted once more before its end: that must not make a thread that is born after the exec.
    let preempted = "70 0 B preempted to idle\n75 0 idle to B";
    check(&script("", "", &format!("{preempted}\n{}", dies(80))), &drawing("_="));
    // The leader's id is then free, and belongs to the next thread that gets it.
    let reborn = "82 1 G forks B\n82 1 G begins B\n85 0 idle to B";
    let born = "        B          =\n";
    let drawing = drawing("_=").replace("        truncated", &format!("{born}        truncated"));
    check(&script("", "", &format!("{preempted}\n{}\n{reborn}", dies(80))), &drawing);
}

#[test]
fn a_thread_that_was_not_listed_is_unknown_until_its_first_event() {
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
fn a_thread_that_ended_before_proc_was_read_is_known_from_the_start() {
    // /proc is read at 55, after B has ended.
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
fn a_thread_s_name_follows_a_rename_without_control_characters() {
    let mut recording = recording("A runs\n 30 0 A named new");
    if let Some(Record::Rename(rename)) = recording.events.first_mut() {
        rename.comm[1] = 0x1b;
    }
    assert_eq!(build(&recording).threads[0].comm, "n?w");
}
