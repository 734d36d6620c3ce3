//! Tests with threads that sleep with or without a lock, each on a CPU of its own, as the kernel shows them.

use super::{HOT, Run, empty};
use crate::cpus::Cpus;
use crate::predict::{Model, Timing};
use crate::program::{Operation, Program};
use crate::timeline::model::{State, Wait, Wake};
use crate::timeline::put_back::put_back;
use crate::timeline::thread::wait::External;
use crate::timeline::thread::wait_reason::WaitReason;
use probe_abi::{Call, Descriptor, SampleReason};

/// Nanoseconds of a piece of computing under the lock, of one sleep, and between two sections.
pub(super) const PIECE: u64 = 15_000;
const ASLEEP: u64 = 60_000;
const APART: u64 = 30_000;
/// Nanoseconds from a wake-up until the thread runs.
pub(super) const LATE: u64 = 5_000;
pub(super) const ENDS: u64 = 200_000_000;

/// Threads that sleep twice while they hold the lock, or once before they take it.
fn run(with_lock: bool) -> Run {
    let mut run = Run { timeline: empty(HOT, ENDS), acquisitions: 0, held_ns: 0, ran_ns: 0 };
    let mut comes = [1_000, 8_000, 15_000, 22_000];
    for thread in 0..comes.len() {
        run.state(thread, 10, State::Running { cpu: Some(thread as u16) });
    }
    let (mut free_at, mut last) = (0, 0);
    loop {
        let (thread, mut now) = comes.iter().copied().enumerate().min_by_key(|(_, at)| *at).expect("threads");
        if now.max(free_at) + 2_000_000 > ENDS {
            return run;
        }
        if now < free_at {
            run.waits(thread, now);
            run.wakes(last, thread, free_at);
            now = free_at + LATE;
            run.state(thread, now, State::Running { cpu: Some(thread as u16) });
        }
        let got = now;
        for sleeps in [with_lock, with_lock, false] {
            now = runs(&mut run, thread, now, PIECE, 0);
            if sleeps {
                now = asleep(&mut run, thread, now);
            }
        }
        (free_at, last) = (now, thread);
        (run.held_ns, run.acquisitions) = (run.held_ns + (now - got), run.acquisitions + 1);
        now = runs(&mut run, thread, now, APART, 1);
        comes[thread] = if with_lock { now } else { asleep(&mut run, thread, now) + 1 };
    }
}

/// Lets the thread run with this stack, which samples may find; returns the end.
pub(super) fn runs(run: &mut Run, thread: usize, from: u64, length: u64, stack: u32) -> u64 {
    let tick = from.next_multiple_of(97_331);
    if tick < from + length {
        run.sample(thread, tick, stack, SampleReason::Tick);
    }
    run.ran_ns += length;
    from + length
}

/// The thread sleeps until a device is ready; returns when it runs again.
pub(super) fn asleep(run: &mut Run, thread: usize, now: u64) -> u64 {
    let number = u32::try_from(run.thread(thread).waits.len()).expect("few");
    let call = Call { number: 74, ..Call::NONE };
    run.thread(thread).waits.push(Wait {
        reason: WaitReason::Kernel { task_state: 2, call, descriptor: Descriptor::File },
        wake: Wake::External(External::Block),
        cut_at_start: false,
        moved_to: None,
        from_now: false,
    });
    run.state(thread, now, State::Blocked(number));
    run.state(thread, now + ASLEEP, State::Runnable);
    run.state(thread, now + ASLEEP + LATE, State::Running { cpu: Some(thread as u16) });
    now + ASLEEP + LATE
}

pub(super) fn time_ns(program: &Program) -> f64 {
    let timing = Timing::new(program, &Model::default()).expect("a program");
    timing.run(Cpus::Infinite, 0).length.as_ns_f64()
}

/// Number of the program's sleeps with the lock held, and number of all its sleeps.
fn with_lock(program: &Program) -> (usize, usize) {
    let (mut with, mut all) = (0, 0);
    for thread in &program.threads {
        let mut held = false;
        for operation in &thread.operations {
            match operation {
                Operation::Lock(_) => held = true,
                Operation::Unlock(_) => held = false,
                Operation::Io(..) => (with, all) = (with + usize::from(held), all + 1),
                _ => {}
            }
        }
    }
    (with, all)
}

/// A log is synced under its lock. Without this rule the device would seem to be the limit, and the lock would seem to
/// be held only during computing.
#[test]
fn a_section_that_is_put_back_spans_its_thread_s_sleep_while_others_wait() {
    let mut run = run(true);
    put_back(&mut run.timeline);
    let [fact] = run.timeline.put_back[..] else { panic!("one lock: {:?}", run.timeline.put_back) };
    assert!(fact.seen * 100 >= run.acquisitions * 95, "{fact:?} of {}", run.acquisitions);
    let program = crate::translation::from_timeline(&run.timeline);
    let (with, all) = with_lock(&program);
    assert!(all > 500 && with * 100 >= all * 98, "{with} of {all}: {:?}", program.findings);
    let time = time_ns(&program);
    assert!((time / ENDS as f64 - 1.0).abs() < 0.1, "{time} of {ENDS}");
}

#[test]
fn no_section_that_is_put_back_spans_a_sleep_without_the_lock() {
    let mut run = run(false);
    put_back(&mut run.timeline);
    assert_eq!(run.timeline.put_back.len(), 1);
    let (with, all) = with_lock(&crate::translation::from_timeline(&run.timeline));
    assert!(with == 0 && all > 500, "{with} of {all}");
}
