//! Timelines drawn as text. A script has one event a line: time, CPU, thread, what it does. The drawing has one
//! character for each 10 ns: `=` running, `-` runnable, `_` blocked, `?` unknown, a space where the thread does
//! not live; below it the waits, the stack over time, and every count that is not 0.

use super::{External, State, StepKind, Thread, Timeline, WaitReason, Wake, build};
use crate::event::{GapReason, Note, NoteKind, Recording, ThreadFact, ThreadState, WindowEnd};
use probe_abi::{
    Context, Exec, Exit, Fork, FunctionEnter, FunctionExit, FutexEnter, FutexExit, Header, Kind, Record,
    Rename, Switch, SwitchFlags, Waking, WakingFlags,
};
use std::fmt::Write;

const PID: u32 = 7;
const UNIT_NS: u64 = 10;

/// A script as a recording. Lines: `10 0 A <deed>`, and facts before them: `A runs|sleeps|unlisted [cpu NS NS]`,
/// `gap FROM UNTIL [CPU]`, `off FUNCTION TIME`, `end TIME`.
fn recording(script: &str) -> Recording {
    let mut recording = Recording::default();
    let mut end = WindowEnd { end_ns: 100, ..WindowEnd::default() };
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["end", time] => end.end_ns = number(time),
            ["gap", from, until, ref cpu @ ..] => recording.notes.push(Note {
                time_ns: number(from),
                kind: NoteKind::Gap {
                    pid: 0,
                    cpu: cpu.first().map(|cpu| number(cpu) as u16),
                    until_ns: number(until),
                    lost: 1,
                    reason: GapReason::RingFull,
                },
            }),
            ["off", function, time] => recording.notes.push(Note {
                time_ns: number(time),
                kind: NoteKind::ProbesOff { functions: vec![function_id(function)], rates: vec![1] },
            }),
            [thread, state @ ("runs" | "sleeps"), ref cpu_time @ ..] => {
                let state = if state == "runs" { ThreadState::Running } else { ThreadState::Sleeping };
                let fact = |cpu: Option<&&str>, seen_ns| ThreadFact {
                    tid: tid(thread),
                    pid: PID,
                    comm: thread.to_owned(),
                    state,
                    seen_ns,
                    cpu_time_ns: cpu.map(|cpu| number(cpu)),
                    ..ThreadFact::default()
                };
                recording.facts.threads.push(fact(cpu_time.first(), 1));
                if cpu_time.len() > 1 {
                    end.threads.push(fact(cpu_time.get(1), 100));
                }
            }
            [time, cpu, thread, ref deed @ ..] => {
                recording.events.push(record(number(time), number(cpu) as u16, thread, deed));
            }
            _ => panic!("line {line:?}"),
        }
    }
    recording.facts.end = Some(end);
    recording
}

fn record(time_ns: u64, cpu: u16, who: &str, deed: &[&str]) -> Record {
    let (current, context) = match who.split_once('/') {
        Some((current, "irq")) => (current, Context::HardIrq),
        Some((current, "soft")) => (current, Context::SoftIrq),
        Some((current, _)) => (current, Context::Unknown),
        None => (who, Context::Task),
    };
    let (current, pid) = match current {
        "idle" => (0, 0),
        "other" => (900, 90),
        thread => (tid(thread), PID),
    };
    let header = |kind: Kind| Header {
        time_ns,
        sequence: 0,
        cpu,
        kind: kind as u8,
        context: context as u8,
        tid: current,
        pid,
    };
    let switch = |next: &str, prev_state, flags, prev_user_sp| {
        let (next_tid, next_pid) = if next == "idle" { (0, 0) } else { (tid(next), PID) };
        let prev = if pid == PID { SwitchFlags::PREV_TRACKED } else { 0 };
        let next = if next_pid == PID { SwitchFlags::NEXT_TRACKED } else { 0 };
        let flags = flags | prev | next;
        Record::Switch(Switch {
            header: header(Kind::Switch),
            next_tid,
            next_pid,
            prev_state,
            flags,
            prev_user_sp,
        })
    };
    let waking = |wakee: &str, wakee_state, flags| {
        let tracked = if pid == PID { WakingFlags::WAKER_TRACKED } else { 0 };
        Record::Waking(Waking {
            header: header(Kind::Waking),
            wakee_tid: tid(wakee),
            wakee_pid: PID,
            flags: flags | tracked,
            wakee_state,
        })
    };
    match *deed {
        ["to", next] => switch(next, 0, 0, 0),
        ["sleeps"] => switch("idle", 1, 0, 0),
        ["sleeps", "to", next] => switch(next, 1, 0, 0),
        ["sleeps", "at", sp] => switch("idle", 1, 0, number(sp)),
        ["preempted", "to", next] => switch(next, 1, SwitchFlags::PREEMPTED, 0),
        ["dies"] => switch("idle", 0x80, 0, 0),
        ["wakes", wakee] => waking(wakee, 1, 0),
        ["pokes", wakee] => waking(wakee, 0, 0),
        ["begins", wakee] => waking(wakee, 0, WakingFlags::NEW),
        // The process that `other` is in, which is not recorded.
        ["forks", "other"] => Record::Fork(Fork {
            header: header(Kind::Fork),
            child_tid: 900,
            child_pid: 90,
            child_start_ns: time_ns,
            comm: crate::synth::comm("other"),
        }),
        ["forks", child] => Record::Fork(Fork {
            header: header(Kind::Fork),
            child_tid: tid(child),
            child_pid: PID,
            child_start_ns: time_ns,
            comm: crate::synth::comm(child),
        }),
        ["execs", comm] => Record::Exec(Exec {
            header: header(Kind::Exec),
            old_tid: current,
            reserved: 0,
            comm: crate::synth::comm(comm),
        }),
        ["exits"] => Record::Exit(Exit { header: header(Kind::Exit), last_of_process: 0, reserved: 0 }),
        ["named", comm] => Record::Rename(Rename {
            header: header(Kind::Rename),
            renamed_tid: current,
            renamed_pid: pid,
            comm: crate::synth::comm(comm),
        }),
        ["futex", word] => Record::FutexEnter(FutexEnter {
            header: header(Kind::FutexEnter),
            word: number(word),
            word2: 0,
            operation: 128,
            value: 0,
        }),
        ["returns", result] => Record::FutexExit(FutexExit {
            header: header(Kind::FutexExit),
            result: result.parse().expect("a result"),
        }),
        ["enters", function, sp] => Record::FunctionEnter(FunctionEnter {
            header: header(Kind::FunctionEnter),
            function: function_id(function),
            reserved: 0,
            stack_pointer: number(sp),
        }),
        ["leaves", function, sp] => Record::FunctionExit(FunctionExit {
            header: header(Kind::FunctionExit),
            function: function_id(function),
            reserved: 0,
            stack_pointer: number(sp),
        }),
        _ => panic!("deed {deed:?}"),
    }
}

fn number(word: &str) -> u64 {
    word.parse().expect("a number")
}

/// `A` is thread 1, `B` thread 2.
fn tid(thread: &str) -> u32 {
    u32::from(thread.as_bytes()[0] - b'A') + 1
}

/// `f` is function 6, as in the alphabet.
fn function_id(function: &str) -> u32 {
    u32::from(function.as_bytes()[0] - b'a') + 1
}

fn draw(timeline: &Timeline) -> String {
    let mut text = String::new();
    for thread in &timeline.threads {
        draw_thread(&mut text, timeline, thread);
    }
    let c = &timeline.counts;
    let counts = [
        ("unmatched", c.unmatched),
        ("spurious", c.spurious),
        ("censored", c.censored),
        ("contradictions", c.contradictions),
        ("stray", c.stray_exits),
        ("late", c.late),
    ];
    for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        writeln!(text, "{name} {count}").expect("a String");
    }
    text
}

fn draw_thread(text: &mut String, timeline: &Timeline, thread: &Thread) {
    let name = char::from(b'A' + (thread.tid - 1) as u8);
    let mut line = String::new();
    for at in (0..timeline.end.0).step_by(UNIT_NS as usize) {
        let here = thread.spans().find(|(start, end, _)| (start.0..end.0).contains(&at));
        line.push(match here.map(|(_, _, state)| state) {
            Some(State::Running { .. }) => '=',
            Some(State::Runnable) => '-',
            Some(State::Blocked(_)) => '_',
            Some(State::Unknown(_)) => '?',
            None => ' ',
        });
    }
    writeln!(text, "{name} {}", line.trim_end()).expect("a String");
    for wait in &thread.waits {
        let reason = match wait.reason {
            WaitReason::Futex(futex) => format!("futex {}", futex.word),
            WaitReason::Kernel { .. } => "kernel".to_owned(),
        };
        let wake = match wait.wake {
            Wake::By(wakeup) => {
                let wakeup = &timeline.wakeups[wakeup as usize];
                let waker = &timeline.threads[wakeup.waker as usize];
                format!("by {} at {}", char::from(b'A' + (waker.tid - 1) as u8), wakeup.time.0)
            }
            Wake::External(External::HardIrq) if wait.timed_out() => "timed out".to_owned(),
            Wake::External(external) => format!("{external:?}"),
            other => format!("{other:?}"),
        };
        writeln!(text, "  waits: {reason}, {wake}{}", if wait.cut_at_start { ", cut" } else { "" })
            .expect("a String");
    }
    let stack = stack_over_time(thread);
    if !stack.is_empty() {
        writeln!(text, "  stack:{stack}").expect("a String");
    }
}

/// ` 10:f 20:fg` for f from 10, g on top of it from 20.
fn stack_over_time(thread: &Thread) -> String {
    let mut text = String::new();
    let mut stack = String::new();
    let mut bases = thread.base_stacks.iter().peekable();
    let letter = |function: u32| char::from(b'a' + (function - 1) as u8);
    let mut shown = String::new();
    let mut show = |at: u64, stack: &str, last_at: bool| {
        if last_at && stack != shown {
            write!(text, " {at}:{}", if stack.is_empty() { "." } else { stack }).expect("a String");
            shown = stack.to_owned();
        }
    };
    for (number, step) in (0u32..).zip(&thread.steps) {
        while let Some(base) = bases.next_if(|base| base.first_step <= number) {
            stack.extend(base.functions.iter().rev().map(|function| letter(*function)));
            show(base.time.0, &stack, base.time != step.time);
        }
        match step.kind {
            StepKind::Enter(function) => stack.push(letter(function)),
            StepKind::Leave => assert!(stack.pop().is_some(), "{thread:#?}"),
            StepKind::Wake(_) | StepKind::Create(_) => {}
        }
        let next = thread.steps.get(number as usize + 1);
        show(step.time.0, &stack, next.is_none_or(|next| next.time != step.time));
    }
    text
}

/// The drawing of the script's timeline must be this one.
#[track_caller]
fn check(script: &str, drawing: &str) {
    let timeline = build(&recording(script));
    let trimmed = |text: &str| -> String {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let lines: Vec<&str> = lines.collect();
        let indent = lines.iter().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
        lines.iter().map(|line| format!("{}\n", line[indent..].trim_end())).collect()
    };
    let (got, wanted) = (trimmed(&draw(&timeline)), trimmed(drawing));
    assert!(got == wanted, "got\n{got}\nwanted\n{wanted}");
}

#[test]
fn a_thread_wakes_another() {
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
        censored 2",
    );
}

#[test]
fn preempted_is_not_blocked_whatever_its_state_says() {
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
fn the_first_waking_of_a_sleep_counts() {
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
fn contexts_that_nobody_could_tell_make_no_edge() {
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
fn a_waking_may_overtake_the_switch() {
    check(
        "A runs
         B runs
         20 0 A futex 64
         30 1 B wakes A
         31 0 A sleeps
         50 0 idle to A
         50 0 A returns 0",
        "
        A ====-=====
          waits: futex 64, by B at 30
        B ==========",
    );
}

#[test]
fn a_waking_that_overtook_nothing_gives_way_to_the_real_one() {
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
fn woken_in_a_futex_call_before_sleeping_is_a_wait_of_no_length() {
    check(
        "A runs
         B runs
         20 0 A futex 64
         30 1 B wakes A
         40 0 A returns 0
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
fn woken_in_a_futex_call_while_pre_empted_is_a_wait_of_no_length() {
    // The second waking finds a thread that was woken already, and ends nothing.
    check(
        "A runs
         B runs
         C runs
         20 0 A futex 64
         30 0 A preempted to C
         40 1 B wakes A
         50 1 B wakes A
         60 0 C preempted to A
         70 0 A returns 0
         80 0 A sleeps",
        "
        A ===---==__
          waits: futex 64, by B at 40
          waits: kernel, CutAtEnd
        B ==========
        C ---===----
        spurious 1
        censored 1",
    );
}

#[test]
fn woken_while_pre_empted_outside_a_futex_call_is_no_wait() {
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
fn a_futex_call_that_times_out_sleeps() {
    check(
        "A runs
         20 0 A futex 64
         20 0 A sleeps
         60 0 idle/irq wakes A
         70 0 idle to A
         70 0 A returns -110",
        "
        A ==____-===
          waits: futex 64, timed out",
    );
}

#[test]
fn no_waking_seen_is_unmatched() {
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
fn the_first_event_tells_the_state_at_the_start() {
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
        censored 2",
    );
}

#[test]
fn without_any_event_cpu_time_decides() {
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
        censored 1",
    );
}

#[test]
fn proc_against_events_is_unknown() {
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
fn a_missing_switch_is_unknown_from_the_last_proof() {
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
        censored 2
        contradictions 3",
    );
}

#[test]
fn a_missing_switch_to_a_pre_empted_thread_is_said_with_its_time() {
    let script = "
        A runs
        20000 0 A preempted to idle
        5000000 0 A preempted to idle
        end 6000000";
    let timeline = build(&recording(script));
    let said: Vec<&str> = timeline.findings.iter().map(|finding| finding.text.as_str()).collect();
    let wanted = "in 1 place a thread was not where its events had left it, so that at least one is missing: \
                  4.980 ms of thread time is unknown";
    assert_eq!(said, [wanted]);
}

#[test]
fn a_gap_leaves_unknown_what_ran_there_and_what_slept() {
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
        censored 5",
    );
}

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
        ",
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
fn stacks_follow_entries_and_exits() {
    check(
        "A runs
         10 0 A enters f 900
         20 0 A enters g 800
         30 0 A leaves g 800
         40 0 A leaves f 900",
        "
        A ==========
          stack: 10:f 20:fg 30:f 40:.",
    );
}

#[test]
fn frames_below_an_entry_or_exit_are_gone() {
    // f calls g calls h, which throws; f catches and calls k; later everything is left by longjmp.
    check(
        "A runs
         10 0 A enters f 900
         20 0 A enters g 800
         30 0 A enters h 700
         40 0 A enters k 850
         60 0 A leaves f 900",
        "
        A ==========
          stack: 10:f 20:fg 30:fgh 40:fk 60:.",
    );
}

#[test]
fn the_same_stack_pointer_is_a_tail_call() {
    check(
        "A runs
         10 0 A enters f 900
         20 0 A enters g 800
         30 0 A enters h 800
         40 0 A leaves h 800",
        "
        A ==========
          stack: 10:f 20:fg 30:fh 40:f",
    );
}

#[test]
fn functions_open_at_the_start_lie_at_the_bottom() {
    check(
        "A runs
         20 0 A enters f 700
         40 0 A leaves f 700
         60 0 A leaves g 800
         80 0 A leaves h 900",
        "
        A ==========
          stack: 0:hg 20:hgf 40:hg 60:h 80:.",
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
    check(
        "A runs
         10 0 A enters f 100000000
         20 0 A enters s 900000000
         30 0 A leaves s 900000000
         40 0 A enters g 99000000
         50 0 A enters c 500000000
         60 0 A leaves g 99000000
         70 0 A enters d 499000000
         80 0 A leaves d 499000000
         90 0 A leaves f 100000000",
        "
        A ==========
          stack: 10:f 20:fs 30:f 40:fg 50:fgc 60:f 70:fcd 80:fc 90:.",
    );
}

#[test]
fn lost_entries_do_not_make_functions_open_since_the_start() {
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

#[test]
fn records_out_of_order_are_left_out_and_counted() {
    check(
        "A runs
         30 0 A sleeps
         20 0 A enters f 900",
        "
        A ===_______
          waits: kernel, CutAtEnd
        censored 1
        late 1",
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
    assert_eq!(super::shed::in_doubt(&timeline, &recording(script)), [(function_id("f"), 50)]);
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
    let doubt = |script: &str| super::shed::in_doubt(&build(&recording(script)), &recording(script));
    // 1 of 100 ns, then 2.
    assert_eq!(doubt(script), []);
    assert_eq!(doubt(&script.replace("31", "32")), [(function_id("f"), 2)]);
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
fn cpu_time_that_differs_from_proc_is_said() {
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
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].kind, "cpu_time");
    assert_eq!(
        findings[0].text,
        "CPU time from events and from /proc differ for 1 thread, most for A/1: 500.000 ms and 250.000 ms"
    );
}

#[test]
fn names_follow_renames_and_lose_control_characters() {
    let mut recording = recording("A runs\n 30 0 A named new");
    if let Some(Record::Rename(rename)) = recording.events.first_mut() {
        rename.comm[1] = 0x1b;
    }
    assert_eq!(build(&recording).threads[0].comm, "n?w");
}
