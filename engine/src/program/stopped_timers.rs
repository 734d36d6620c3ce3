//! Threads that only follow a periodic timer until another thread stops them: a runtime's ticker, a sampler, a heartbeat.
//! (This method is longpole's own.)
//!
//! Such a thread looks after each period whether to end, so the thread that stops it waits for its end for up to a period. Its
//! periods would last as long as in the recording, however fast the others are, and would seem to be the limit. So they are
//! taken out.

use super::{Operation, Program};
use crate::time::Ticks;
use crate::timeline::{self, State, Timeline, Wake};

/// Least number of periods.
const PERIODS: usize = 10;
/// Nine of ten periods differ from the middle one by at most this factor.
const ALIKE: f64 = 1.5;
/// Least share of the thread's life for which it sleeps.
const ASLEEP: f64 = 0.8;
/// A thread that wakes another one after more than one in this number of its sleeps does so to let it work. Its computing is at
/// most one in this number of all computing.
const SELDOM: u64 = 10;

/// Removes the sleeps of such threads. `lived`: the timeline's threads, in the order of the program.
pub(super) fn take_out(program: &mut Program, timeline: &Timeline, lived: &[&timeline::Thread]) {
    let computed = |operation: &Operation| match operation {
        Operation::Exec(length) | Operation::ExecIn(_, length) => length.0,
        _ => 0,
    };
    let sum = |operations: &[Operation]| operations.iter().map(computed).fold(0, u64::saturating_add);
    let all = program.threads.iter().map(|thread| sum(&thread.operations)).fold(0, u64::saturating_add);
    for (thread, recorded) in program.threads.iter_mut().zip(lived) {
        let is_beside = sum(&thread.operations).saturating_mul(SELDOM) <= all;
        if thread.background.is_none()
            && is_beside
            && let Some(period) = period(&thread.operations, recorded)
            && is_stopped(timeline, recorded, period)
        {
            thread.operations.iter_mut().filter_map(slept).for_each(|length| *length = Ticks(0));
        }
    }
}

/// The timer's period, if the thread follows one and does hardly anything else.
fn period(operations: &[Operation], recorded: &timeline::Thread) -> Option<Ticks> {
    use Operation::{Call, Exec, ExecIn, Release, Return, Sleep, SleepNext};
    let is_own = |operation: &Operation| {
        matches!(operation, Exec(_) | ExecIn(..) | Call(_) | Return | Release(_) | Sleep(_) | SleepNext(_))
    };
    let wakes = operations.iter().filter(|operation| matches!(operation, Release(_))).count() as u64;
    let mut sleeps: Vec<u64> = operations
        .iter()
        .filter_map(|operation| match operation {
            Sleep(length) | SleepNext(length) => Some(length.0),
            _ => None,
        })
        .collect();
    // The wake-up at its end is none for work.
    let is_seldom = wakes.saturating_sub(1).saturating_mul(SELDOM) <= sleeps.len() as u64;
    if sleeps.len() < PERIODS || !is_seldom || !operations.iter().all(is_own) {
        return None;
    }
    sleeps.sort_unstable();
    let middle = sleeps[sleeps.len() / 2] as f64;
    let alike = sleeps.iter().map(|length| *length as f64);
    let alike = alike.filter(|length| *length <= ALIKE * middle && middle <= ALIKE * length).count();
    let asleep = Ticks(sleeps.iter().fold(0u64, |sum, length| sum.saturating_add(*length))).as_ns_f64();
    let life = recorded.end.0.saturating_sub(recorded.start.0) as f64;
    (alike * 10 >= sleeps.len() * 9 && asleep >= ASLEEP * life).then_some(Ticks(middle as u64))
}

/// Whether the thread ended within a period since another one began to wait for that.
fn is_stopped(timeline: &Timeline, recorded: &timeline::Thread, period: Ticks) -> bool {
    let Some(number) = timeline.threads.iter().position(|thread| std::ptr::eq(thread, recorded)) else {
        return false;
    };
    let blocked = recorded.spans().filter(|(.., state)| matches!(state, State::Blocked(_)));
    let last = blocked.map(|(_, until, _)| until).max();
    let longest_ns = (ALIKE * period.as_ns_f64()) as u64;
    let is_of_end = |wakeup: u32| {
        let wakeup = timeline.wakeups.get(wakeup as usize);
        wakeup.is_some_and(|wakeup| wakeup.waker as usize == number && Some(wakeup.time) >= last)
    };
    let mut waits = timeline.threads.iter().flat_map(|thread| {
        thread.spans().filter_map(move |(from, until, state)| match state {
            State::Blocked(wait) => match thread.waits.get(wait as usize)?.wake {
                Wake::By(wakeup) if is_of_end(wakeup) => Some(until.0.saturating_sub(from.0)),
                _ => None,
            },
            _ => None,
        })
    });
    recorded.died && waits.next().is_some_and(|first| first.max(waits.max().unwrap_or(0)) <= longest_ns)
}

fn slept(operation: &mut Operation) -> Option<&mut Ticks> {
    match operation {
        Operation::Sleep(length) | Operation::SleepNext(length) => Some(length),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FutexFact;
    use crate::program::{EdgeId, Thread};
    use crate::time::Timestamp;
    use crate::timeline::{Interval, Wait, WaitReason, Wakeup};

    const PERIOD_NS: u64 = 10_000_000;
    const ROUNDS: u64 = 20;

    /// The sleep that is left of a ticker's in a run of 200 ms. Another thread waits for its end for `waited_ns`, and it wakes
    /// others `wakes` times.
    fn left(waited_ns: u64, wakes: u64) -> Ticks {
        let interval = |start, state| Interval { start: Timestamp(start), state, first_step: 0 };
        let (running, end) = (State::Running { cpu: Some(0) }, ROUNDS * PERIOD_NS);
        let wait = |wake| Wait {
            reason: WaitReason::Futex(FutexFact::default()),
            wake,
            cut_at_start: false,
            moved_to: None,
            from_now: false,
        };
        let main = timeline::Thread {
            tid: 1,
            end: Timestamp(end + 1_000),
            intervals: vec![
                interval(0, running),
                interval(end - waited_ns, State::Blocked(0)),
                interval(end, running),
            ],
            waits: vec![wait(Wake::By(0))],
            died: true,
            ..timeline::Thread::default()
        };
        let ticks = (0..ROUNDS).flat_map(|round| {
            let sleep = interval(round * PERIOD_NS, State::Blocked(round as u32));
            [sleep, interval((round + 1) * PERIOD_NS - 5_000, running)]
        });
        let ticker = timeline::Thread {
            tid: 2,
            end: Timestamp(end),
            intervals: ticks.collect(),
            waits: (0..ROUNDS).map(|_| wait(Wake::CutAtEnd)).collect(),
            died: true,
            ..timeline::Thread::default()
        };
        let wakeup = Wakeup { time: Timestamp(end - 1_000), waker: 1, wakee: 0, ended: Some(0) };
        let timeline = Timeline { threads: vec![main, ticker], wakeups: vec![wakeup], ..Timeline::default() };
        let rounds = (0..ROUNDS).flat_map(|round| {
            let sleeps = [Operation::SleepNext(Ticks::from_ns(PERIOD_NS)), Operation::Exec(Ticks(8))];
            sleeps.into_iter().chain((round < wakes).then_some(Operation::Release(EdgeId(round as u32))))
        });
        let thread = |operations| Thread { operations, ..Thread::default() };
        let mut program = Program {
            threads: vec![thread(vec![Operation::Exec(Ticks::from_ns(end))]), thread(rounds.collect())],
            ..Program::default()
        };
        let lived: Vec<_> = timeline.threads.iter().collect();
        take_out(&mut program, &timeline, &lived);
        let sleeps = program.threads[1].operations.iter_mut().filter_map(slept);
        sleeps.fold(Ticks(0), |sum, length| Ticks(sum.0 + length.0))
    }

    /// The ticker of GHC was "sleeping in itimer_thread_func: 99 % of the critical path".
    #[test]
    fn the_periods_of_a_ticker_that_is_stopped_at_the_end_are_no_part_of_the_run() {
        let all = Ticks::from_ns(ROUNDS * PERIOD_NS);
        assert_eq!(left(4_000_000, 0), Ticks(0));
        assert_eq!(left(4_000_000, 2), Ticks(0), "it seldom wakes another thread");
        assert_eq!(left(4_000_000, 9), all, "it lets others work");
        assert_eq!(left(190_000_000, 0), all, "the other one waits for what it does");
    }
}
