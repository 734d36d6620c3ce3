//! Timelines drawn as text.
//!
//! A script has one event a line: time, CPU, thread and event. The drawing has one character for each 10 ns: `=` running, `-`
//! runnable, `_` blocked, `?` unknown, a space outside of the thread's life. Below it are the waits, the stack over time, and
//! every count that is not 0.

mod bursts;
mod excerpt;
mod functions;
mod gaps;
mod lifecycle;
mod samples;
mod sched;
mod stretches;
mod waits;

use super::{External, State, StepKind, Thread, Timeline, WaitReason, Wake, build};
use crate::event::{FUTEX_CALL, GapReason, Note, NoteKind, Recording, ThreadFact, ThreadState, WindowEnd};
use probe_abi::{
    Call, Cause, Context, Exec, Exit, Fork, FunctionEnter, FunctionExit, Header, Kind, Ran, Record, Rename,
    Switch, SwitchFlags, Waking, WakingFlags,
};
use std::fmt::Write;

const PID: u32 = 7;
const UNIT_NS: u64 = 10;

/// A script as a recording.
///
/// Lines are events (`10 0 A <event>`) and, before them, facts: `A runs|sleeps|unlisted [cpu NS NS]`, `gap FROM UNTIL [CPU]`,
/// `off|on|new FUNCTION TIME` (`new`: in this process from then on), `end TIME`.
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
            [what @ ("on" | "new"), function, time] => recording.notes.push(Note {
                time_ns: number(time),
                kind: NoteKind::ProbesOn {
                    functions: vec![function_id(function)],
                    pid: (what == "new").then_some(PID),
                },
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
            [time, cpu, thread, ref event @ ..] => {
                recording.events.push(record(number(time), number(cpu) as u16, thread, event));
            }
            _ => panic!("line {line:?}"),
        }
    }
    recording.facts.end = Some(end);
    recording
}

fn record(time_ns: u64, cpu: u16, who: &str, event: &[&str]) -> Record {
    let at = header(time_ns, cpu, who);
    let (current, pid) = (at.tid, at.pid);
    let header = |kind: Kind| Header { kind: kind as u8, ..at };
    let futex = |word: &str| Call { number: FUTEX_CALL, argument1: 128, argument0: number(word) };
    let switch = |next, prev_state, flags, sp| switch_in(at, next, prev_state, flags, sp, Call::NONE);
    let cause = if who.ends_with("/timer") { Cause::Timer } else { Cause::None };
    let waking_in = |wakee: &str, wakee_state, flags, wakee_call| {
        let tracked = if pid == PID { WakingFlags::WAKER_TRACKED } else { 0 };
        Record::Waking(Waking {
            header: header(Kind::Waking),
            wakee_tid: tid(wakee),
            wakee_pid: PID,
            flags: flags | tracked,
            wakee_state,
            waker_call: Call::NONE.number,
            cause: cause as u32,
            wakee_call,
        })
    };
    let waking = |wakee, wakee_state, flags| waking_in(wakee, wakee_state, flags, Call::NONE);
    match *event {
        ["ran", ran_ns] => Record::Ran(Ran { header: header(Kind::Ran), ran_ns: number(ran_ns) }),
        ["to", next] => switch(next, 0, 0, 0),
        ["sleeps"] => switch("idle", 1, 0, 0),
        ["sleeps", "on", word] => switch_in(at, "idle", 1, 0, 0, futex(word)),
        ["sleeps", "to", next] => switch(next, 1, 0, 0),
        ["sleeps", "at", sp] => switch("idle", 1, 0, number(sp)),
        ["preempted", "to", next] => switch(next, 1, SwitchFlags::PREEMPTED, 0),
        ["dies"] => switch("idle", 0x80, 0, 0),
        ["wakes", wakee] => waking(wakee, 1, 0),
        ["wakes", wakee, "on", word] => waking_in(wakee, 1, 0, futex(word)),
        ["signals", wakee, "on", word] => waking_in(wakee, 1, WakingFlags::SIGNAL, futex(word)),
        ["pokes", wakee] => waking(wakee, 0, 0),
        ["begins", wakee] => waking(wakee, 0, WakingFlags::NEW),
        // `other` is in a process that is not recorded.
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
        ["execs", comm, ref as_before @ ..] => Record::Exec(Exec {
            header: header(Kind::Exec),
            old_tid: as_before.first().map_or(current, |before| tid(before)),
            first_page: 0,
            comm: crate::synth::comm(comm),
        }),
        ["exits"] => Record::Exit(Exit { header: header(Kind::Exit), last_of_process: 0, placement: 0 }),
        ["named", comm] => Record::Rename(Rename {
            header: header(Kind::Rename),
            renamed_tid: current,
            renamed_pid: pid,
            comm: crate::synth::comm(comm),
        }),
        ["enters", function, sp] => Record::FunctionEnter(FunctionEnter {
            header: header(Kind::FunctionEnter),
            function: function_id(function),
            silent: 0,
            stack_pointer: number(sp),
        }),
        ["leaves", function, sp] => Record::FunctionExit(FunctionExit {
            header: header(Kind::FunctionExit),
            function: function_id(function),
            silent: 0,
            stack_pointer: number(sp),
        }),
        _ => panic!("event {event:?}"),
    }
}

/// The header of a record, without the record's kind.
fn header(time_ns: u64, cpu: u16, who: &str) -> Header {
    let (current, context) = match who.split_once('/') {
        Some((current, "irq" | "timer")) => (current, Context::HardIrq),
        Some((current, "soft")) => (current, Context::SoftIrq),
        Some((current, _)) => (current, Context::Unknown),
        None => (who, Context::Task),
    };
    let (tid, pid) = match current {
        "idle" => (0, 0),
        "other" => (900, 90),
        thread => (tid(thread), PID),
    };
    Header { time_ns, sequence: 0, cpu, kind: 0, context: context as u8, tid, pid }
}

fn switch_in(
    at: Header,
    next: &str,
    prev_state: u32,
    flags: u32,
    prev_user_sp: u64,
    prev_call: Call,
) -> Record {
    let (next_tid, next_pid) = if next == "idle" { (0, 0) } else { (tid(next), PID) };
    let prev = if at.pid == PID { SwitchFlags::PREV_TRACKED } else { 0 };
    let next = if next_pid == PID { SwitchFlags::NEXT_TRACKED } else { 0 };
    let header = Header { kind: Kind::Switch as u8, ..at };
    let flags = flags | prev | next;
    Record::Switch(Switch { header, next_tid, next_pid, prev_state, flags, prev_user_sp, prev_call })
}

fn number(word: &str) -> u64 {
    word.parse().expect("a number")
}

/// `A` is thread 1, `B` thread 2.
fn tid(thread: &str) -> u32 {
    u32::from(thread.as_bytes()[0] - b'A') + 1
}

/// `a` is function 1, `b` function 2.
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
        ("truncated", c.truncated_waits),
        ("contradictions", c.contradictions),
        ("inferred", c.inferred),
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
            Wake::External(External::Timer) if wait.timed_out() => "timed out".to_owned(),
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

/// Formats ` 10:f 20:fg` if f is open from 10 on, and g on top of it from 20 on.
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
            StepKind::Wake(_)
            | StepKind::Create(_)
            | StepKind::Join(_)
            | StepKind::Operated(_)
            | StepKind::Hole(_) => {}
        }
        let next = thread.steps.get(number as usize + 1);
        show(step.time.0, &stack, next.is_none_or(|next| next.time != step.time));
    }
    text
}

/// Compares the drawing of the script's timeline with `drawing`.
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
