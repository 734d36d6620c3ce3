//! Lost records: what is unknown while they are missing, and what must not be concluded from them.

use super::{PID, build, check, recording};
use crate::event::{GapReason, Note, NoteKind, ThreadFact};
use crate::finding::Finding;
use crate::timeline::{State, Timeline};

#[test]
fn a_gap_makes_threads_unknown_whether_they_ran_or_slept() {
    check(
        "A runs
         B runs
         C sleeps
         D sleeps
         10 0 A enters f 900
         10 1 B enters f 900
         gap 30 50 0
         70 0 A sleeps
         70 1 B wakes C
         80 1 B sleeps",
        "
        A ===??==___
          waits: kernel, CutAtEnd
          stack: 10:f
        B ========__
          waits: kernel, CutAtEnd
          stack: 10:f
        C ___??__---
          waits: kernel, CutByUnknown, cut
          waits: kernel, by B at 70, cut
        D ___???????
          waits: kernel, CutByUnknown, cut
        truncated 5",
    );
}

#[test]
fn entries_lost_in_a_gap_do_not_make_functions_open_since_the_start() {
    check(
        "A runs
         gap 20 30
         40 0 A leaves f 900
         50 0 A enters g 800",
        "
        A ???=======
          stack: 50:g
        stray 1",
    );
}

/// A child that ends before its probes are attached must not count as a process without probes for the remaining
/// recording.
#[test]
fn a_process_that_got_no_probes_misses_no_calls_after_its_end() {
    let mut recording = recording(
        "A runs
         2000000 0 A exits
         2000000 0 A dies
         end 9000000",
    );
    let reason = GapReason::ProbesNotYetAttached;
    let kind = NoteKind::Gap { pid: PID, cpu: None, until_ns: u64::MAX, lost: 0, reason };
    recording.notes.push(Note { time_ns: 500_000, kind });
    let findings = build(&recording).findings;
    assert_eq!(findings, [Finding::ProbesLate { missing_ns: 1_500_000 }]);
}

/// If probes for locks are refused, threads that have slept since before the recording must not seem to wait for "mutex
/// consistent".
#[test]
fn a_gap_of_missing_operations_is_nothing_to_wait_for() {
    let mut recording = recording("A sleeps\nB runs\n50 0 B wakes A\nend 100");
    let reason = GapReason::OperationsOff { family: probe_abi::SyncFamily::Mutex as u8, tried: None };
    let kind = NoteKind::Gap { pid: PID, cpu: None, until_ns: u64::MAX, lost: 0, reason };
    recording.notes.push(Note { time_ns: 0, kind });
    let program = crate::translation::from_timeline(&build(&recording));
    let names: Vec<&str> = program.recorded.waits.iter().map(|wait| wait.name.as_str()).collect();
    assert_eq!(names, ["in the kernel"]);
}

/// Processes that never get function probes have another finding than those that get them late.
#[test]
fn processes_without_function_probes_are_one_finding_not_probed() {
    let mut recording = recording("a runs\nend 100");
    let unknown =
        |timeline: &Timeline| timeline.threads[0].time_in(|state| matches!(state, State::Unknown(_)));
    let unknown_before = unknown(&build(&recording));
    for (pid, time_ns) in [(7, 5), (8, 6), (7, 9)] {
        let kind =
            NoteKind::Gap { pid, cpu: None, until_ns: u64::MAX, lost: 0, reason: GapReason::NotProbed };
        recording.notes.push(Note { time_ns, kind });
    }
    // Process 8 got no probes at its start and has ended; two further processes have ended.
    let kind = NoteKind::EndedUnprobed { pids: vec![8, 9, 10], until_ns: 20 };
    recording.notes.push(Note { time_ns: 8, kind });
    let timeline = build(&recording);
    let is_gap = |finding: &&Finding| ["not_probed", "probes_late", "gap"].contains(&finding.kind());
    let said: Vec<&Finding> = timeline.findings.iter().filter(is_gap).collect();
    assert_eq!(said, [&Finding::NotProbed { processes: 4 }]);
    assert_eq!(unknown(&timeline), unknown_before, "only function calls are missing");
}

/// A wake-up by a packet that is not followed has no waker. A finding must tell that this may have happened.
#[test]
fn packets_that_were_not_followed_are_a_finding_and_no_lost_record() {
    let mut recording = recording("a runs\nend 100");
    for (time_ns, lost) in [(5, 3), (40, 4)] {
        let reason = GapReason::PacketsNotFollowed;
        let kind = NoteKind::Gap { pid: 0, cpu: None, until_ns: time_ns + 20, lost, reason };
        recording.notes.push(Note { time_ns, kind });
    }
    let timeline = build(&recording);
    assert_eq!(timeline.findings, [Finding::PacketsNotFollowed { wakings: 7 }]);
    assert_eq!(timeline.counts.lost, 0);
}

/// Comparing every gap with every thread would take days for a file of some megabytes.
#[test]
fn a_million_gaps_and_many_threads_end_soon() {
    let mut recording = recording("end 4000000000");
    recording.facts.threads =
        (1..=20_000).map(|tid| ThreadFact { tid, pid: PID, seen_ns: 1, ..ThreadFact::default() }).collect();
    let gap = |number: u64| {
        let time_ns = 10 + number * 4_000;
        let kind = NoteKind::Gap {
            pid: 0,
            cpu: Some(number as u16),
            until_ns: time_ns + 400,
            lost: 1,
            reason: GapReason::RingFull,
        };
        Note { time_ns, kind }
    };
    recording.notes = (0..1_000_000).map(gap).collect();
    let started = std::time::Instant::now();
    let timeline = build(&recording);
    // Without joining there would be 20 thousand million comparisons.
    assert!(started.elapsed() < std::time::Duration::from_secs(60), "{:?}", started.elapsed());
    let joined = timeline.findings.iter().find_map(|finding| match finding {
        Finding::Gap { joined, .. } => Some(*joined),
        _ => None,
    });
    assert!(joined.is_some_and(|joined| joined > 0), "{:?}", timeline.findings);
    let unknown = timeline.threads[0].time_in(|state| matches!(state, State::Unknown(_)));
    assert!(unknown.0 >= 400 * 1_000_000, "nothing that was lost is known: {unknown:?}");
}

/// Without joining, each record would be compared with all open gaps.
#[test]
fn very_many_gaps_at_once_are_joined_into_one() {
    let mut script = String::from("A runs\n10 0 A enters f 900\n");
    for cpu in 0..200 {
        script.push_str(&format!("gap 30 50 {}\n", 1 + cpu));
    }
    script.push_str("70 0 A sleeps");
    // If only a few of these gaps exist, none affects a thread on another CPU.
    check(
        &script,
        "
        A ===??==___
          waits: kernel, CutAtEnd
          stack: 10:f
        truncated 1",
    );
}
