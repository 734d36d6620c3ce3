//! Recognizes runs that end by their own clock: a thread sleeps for the length of the run, then stops the others. (This
//! method is longpole's own.)
//!
//! Such a run always takes the same time, and does more work if something gets faster. So the sleep is removed: the
//! prediction is the time for the same work.

use super::{Operation, Program};
use crate::finding::Finding;
use crate::time::Ticks;
use crate::timeline::{self, State};
use std::ops::Range;

/// Least share of the run for which the thread must sleep, and least share of that time for which a worker must run or
/// be runnable.
const MOST: f64 = 0.5;
/// The workers must end within this fraction (one part in `SOON`) of the sleep after the sleep's end.
const SOON: u64 = 20;
/// Shortest sleep that may be a chosen length of a run.
const SHORTEST_NS: u64 = 100_000_000;

/// Removes the sleep from the program of such a run. `lived`: the timeline's threads, in the order of the program.
pub(super) fn take_out(program: &mut Program, lived: &[&timeline::Thread]) {
    let begun = lived.iter().map(|thread| thread.start.0).min().unwrap_or(0);
    let ended = lived.iter().map(|thread| thread.end.0).max().unwrap_or(0);
    let found = lived.iter().enumerate().find_map(|(place, thread)| {
        let slept = Slept::of(thread)?;
        let is_long =
            slept.sum_ns >= SHORTEST_NS && slept.sum_ns as f64 >= MOST * ended.saturating_sub(begun) as f64;
        (is_long && slept.ends_the_run(place, lived, ended)).then_some((place, slept.sum_ns))
    });
    let Some((place, slept_ns)) = found else { return };
    let Some(thread) = program.threads.get_mut(place).filter(|thread| thread.background.is_none()) else {
        return;
    };
    let Some(operations) = from_first_to_last_sleep(&thread.operations) else { return };
    let operations = &mut thread.operations[operations];
    // A thread that gives work to others between its sleeps sets their pace, so its sleeps stay.
    if !operations.iter().all(is_own) {
        return;
    }
    operations.iter_mut().filter_map(slept).for_each(|length| *length = Ticks(0));
    program.findings.push(Finding::OwnClock { thread: thread.name.clone(), slept_ns });
}

/// First begin, last end and total length of a thread's sleeps until chosen times.
struct Slept {
    from: u64,
    until: u64,
    sum_ns: u64,
}

impl Slept {
    fn of(thread: &timeline::Thread) -> Option<Slept> {
        let mut slept: Option<Slept> = None;
        for (from, until, state) in thread.spans() {
            let State::Blocked(wait) = state else { continue };
            if !thread.waits.get(wait as usize).is_some_and(timeline::Wait::is_for_time) {
                continue;
            }
            let slept = slept.get_or_insert(Slept { from: from.0, until: until.0, sum_ns: 0 });
            slept.until = until.0;
            slept.sum_ns = slept.sum_ns.saturating_add(until.0.saturating_sub(from.0));
        }
        slept
    }

    /// Whether all threads that computed during the sleeps, and the run itself, end when the sleeps end.
    fn ends_the_run(&self, sleeper: usize, lived: &[&timeline::Thread], ended: u64) -> bool {
        let length = self.until.saturating_sub(self.from);
        let soon = self.until.saturating_add(length / SOON);
        let workers = lived.iter().enumerate().filter(|(place, thread)| {
            *place != sleeper && self.computing(thread) as f64 >= MOST * length as f64
        });
        let ends_by_it =
            |thread: &timeline::Thread| thread.died && (self.until..=soon).contains(&thread.end.0);
        let mut workers = workers.map(|(_, thread)| *thread).peekable();
        ended <= soon && workers.peek().is_some() && workers.all(ends_by_it)
    }

    /// Time that a thread ran or was runnable during the sleeps, nanoseconds.
    fn computing(&self, thread: &timeline::Thread) -> u64 {
        let spans =
            thread.spans().filter(|(.., state)| matches!(state, State::Running { .. } | State::Runnable));
        let within = |(from, until): (u64, u64)| until.min(self.until).saturating_sub(from.max(self.from));
        spans.map(|(from, until, _)| within((from.0, until.0))).fold(0u64, u64::saturating_add)
    }
}

fn from_first_to_last_sleep(operations: &[Operation]) -> Option<Range<usize>> {
    let is_sleep = |operation: &Operation| {
        matches!(operation, Operation::Sleep(_) | Operation::SleepNext(_) | Operation::SleepUntil(_))
    };
    let first = operations.iter().position(is_sleep)?;
    Some(first..operations.iter().rposition(is_sleep)?.saturating_add(1))
}

fn slept(operation: &mut Operation) -> Option<&mut Ticks> {
    match operation {
        Operation::Sleep(length) | Operation::SleepNext(length) | Operation::SleepUntil(length) => {
            Some(length)
        }
        _ => None,
    }
}

/// Whether the operation involves no other thread.
fn is_own(operation: &Operation) -> bool {
    use Operation::{
        Call, Exec, ExecIn, Freed, Held, Io, Lock, Return, Sleep, SleepNext, SleepUntil, Unlock,
    };
    matches!(
        operation,
        Exec(_)
            | ExecIn(..)
            | Call(_)
            | Return
            | Io(..)
            | Sleep(_)
            | SleepNext(_)
            | SleepUntil(_)
            // Progress is often read and printed with a lock held.
            | Lock(_)
            | Unlock(_)
            | Held(..)
            | Freed(..)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::json;
    use crate::time::Timestamp;
    use crate::timeline::{External, Interval, Wait, WaitReason, Wake};
    use libc::SYS_nanosleep;
    use probe_abi::Call;

    const MS: u64 = 1_000_000;
    const PROGRAM: &str = r#"{"format":"longpole-program","version":1,"threads":[
        {"name":"main","ops":[["sleep",500000000],["exec","f",1]]},
        {"name":"w","ops":[["exec","f",505000000]]}]}"#;

    fn thread(states: &[(u64, State)], end: u64) -> timeline::Thread {
        let interval = |(start, state): &(u64, State)| Interval {
            start: Timestamp(start * MS),
            state: *state,
            first_step: 0,
        };
        let sleep = WaitReason::of(1, Call { number: SYS_nanosleep as u32, ..Call::NONE });
        let wait = Wait {
            reason: sleep,
            wake: Wake::External(External::Timer),
            cut_at_start: false,
            moved_to: None,
            from_now: false,
        };
        timeline::Thread {
            end: Timestamp(end * MS),
            died: true,
            intervals: states.iter().map(interval).collect(),
            waits: vec![wait],
            ..timeline::Thread::default()
        }
    }

    /// The program after its sleep was removed. The worker ends at `ends`, milliseconds.
    fn taken_out(ends: u64, program: &str) -> Program {
        let running = State::Running { cpu: Some(0) };
        let main = thread(&[(0, State::Blocked(0)), (500, running)], 506);
        let worker = thread(&[(0, running)], ends);
        let mut program = json::read(program).expect("a program");
        take_out(&mut program, &[&main, &worker]);
        program
    }

    #[test]
    fn a_sleep_that_ends_the_whole_program_is_removed() {
        let program = taken_out(505, PROGRAM);
        assert_eq!(program.threads[0].operations[0], Operation::Sleep(Ticks(0)));
        let expected = Finding::OwnClock { thread: "main".into(), slept_ns: 500 * MS };
        assert_eq!(program.findings, [expected]);
    }

    #[test]
    fn a_sleep_that_outlasts_the_work_or_starts_threads_stays() {
        let begins = PROGRAM.replace(r#"["exec","f",1]"#, r#"["create","w"],["sleep",1]"#);
        for (ends, program) in [(400, PROGRAM), (505, begins.as_str())] {
            assert!(taken_out(ends, program).findings.is_empty());
        }
    }
}
