//! Threads that nobody waits for: pollers, timers, a virtual machine's housekeeping, pools asleep. The end of a process is the
//! end of its first thread (`main` returns, or somebody calls `exit`), which ends all others wherever they are; how often they
//! did what they do follows from how long that took.

use super::{Background, Operation, Program, Thread, ThreadId};
use crate::time::Ticks;
use rustc_hash::{FxHashMap, FxHashSet};

/// A thread of which only the window's end is known is in the background only if it slept so often.
const LEAST_SLEEPS: usize = 3;

/// The kernel takes no longer than this to take a thread apart: one that goes on for longer was woken for something.
const MOST_AFTER_THE_END: Ticks = Ticks::from_ns(5_000_000);

/// What is known of a thread beside its operations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// It ended in the window.
    pub(super) died: bool,
}

/// Finds the threads that nobody waits for. `lives` are those of the program's threads, in order.
pub(super) fn find(program: &mut Program, lives: &[Life]) {
    let operations = || program.threads.iter().flat_map(|thread| &thread.operations);
    let joined: FxHashSet<ThreadId> = operations()
        .filter_map(|operation| match operation {
            Operation::Join(other) => Some(*other),
            _ => None,
        })
        .collect();
    let mains: FxHashMap<u32, usize> = (0..)
        .zip(lives)
        .filter(|(_, life)| life.tid == life.pid)
        .map(|(place, life)| (life.pid, place))
        .collect();
    let sleepers = sleepers(program, lives);
    let mut found: Vec<(usize, Background)> = Vec::new();
    for (place, life) in lives.iter().enumerate() {
        let Some(main) = mains.get(&life.pid).copied().filter(|main| *main != place) else { continue };
        if joined.contains(&ThreadId(place as u32)) {
            continue;
        }
        let thread = &program.threads[place];
        let kept = match (lives[main].died, life.died) {
            // The first thread woke it to end it, the last that it did for anybody.
            (true, true) => match ended_by(thread, &program.threads[main]) {
                Some(kept) => kept,
                None => continue,
            },
            (false, false) if sleepers.contains(&place) => thread.operations.len(),
            _ => continue,
        };
        let repeats_from = repeats_from(&thread.operations[..kept]) as u32;
        let ends_with = ThreadId(main as u32);
        found.push((place, Background { ends_with, repeats_from, repeats_until: kept as u32 }));
    }
    // Threads that compute more than all that somebody waits for are the program.
    let background: FxHashSet<usize> = found.iter().map(|(place, _)| *place).collect();
    let (own, others) = computed(program, |place| background.contains(&place));
    if own > others {
        return;
    }
    for (place, background) in found {
        program.threads[place].background = Some(background);
    }
}

/// How many of the thread's operations are its own, if the end of `main` is what ended it: its last wait is ended by what
/// `main` does after its last computation for anybody else, and after it the kernel only takes it apart.
fn ended_by(thread: &Thread, main: &Thread) -> Option<usize> {
    let leaves = |operation: &Operation| {
        matches!(operation, Operation::Exec(_) | Operation::ExecIn(..) | Operation::Return)
    };
    let own = thread.operations.iter().rposition(|operation| !leaves(operation))?;
    let after = thread.operations[own..].iter().filter_map(Operation::length);
    if after.fold(0, |sum, length| length.0.saturating_add(sum)) > MOST_AFTER_THE_END.0 {
        return None;
    }
    let Operation::Await(edge) = thread.operations[own] else { return None };
    let last = main.operations.iter().rev();
    let mut last =
        last.take_while(|operation| leaves(operation) || matches!(operation, Operation::Release(_)));
    last.any(|operation| *operation == Operation::Release(edge)).then_some(own)
}

/// Threads that only sleep again and again, if they compute next to nothing beside the others: otherwise they are the program.
fn sleepers(program: &Program, lives: &[Life]) -> FxHashSet<usize> {
    const BESIDE: u64 = 10;
    let sleeps = |(place, thread): (usize, &Thread)| {
        let life = &lives[place];
        (!life.died && life.tid != life.pid && only_sleeps(thread)).then_some(place)
    };
    let sleepers: FxHashSet<usize> = program.threads.iter().enumerate().filter_map(sleeps).collect();
    let (own, others) = computed(program, |place| sleepers.contains(&place));
    if own.saturating_mul(BESIDE) > others { FxHashSet::default() } else { sleepers }
}

/// What these threads compute, and what the others do, ticks.
fn computed(program: &Program, of: impl Fn(usize) -> bool) -> (u64, u64) {
    let (mut own, mut others) = (0_u64, 0_u64);
    for (place, thread) in program.threads.iter().enumerate() {
        let lengths = thread.operations.iter().filter_map(|operation| match operation {
            Operation::Exec(length) | Operation::ExecIn(_, length) => Some(length.0),
            _ => None,
        });
        let sum = if of(place) { &mut own } else { &mut others };
        *sum = lengths.fold(*sum, u64::saturating_add);
    }
    (own, others)
}

/// Whether the thread concerns no other one and sleeps again and again.
fn only_sleeps(thread: &Thread) -> bool {
    let sleeps = thread.operations.iter().filter(|operation| sleeps(operation)).count();
    sleeps >= LEAST_SLEEPS && thread.operations.iter().all(concerns_nobody)
}

/// Whether the operation waits for time to pass.
pub(super) fn sleeps(operation: &Operation) -> bool {
    match operation {
        Operation::Sleep(length) | Operation::SleepNext(length) => length.0 > 0,
        _ => false,
    }
}

/// Whether the operation neither waits for another thread nor lets one go on.
pub(super) fn concerns_nobody(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Exec(_)
            | Operation::ExecIn(..)
            | Operation::Call(_)
            | Operation::Return
            | Operation::Sleep(_)
            | Operation::SleepNext(_)
            | Operation::Io(..)
    )
}

/// From where on the operations can be done again: none of them concerns another thread, they leave the stack as they find it,
/// and they sleep. The number of operations if there are none.
fn repeats_from(operations: &[Operation]) -> usize {
    let free =
        operations.iter().rposition(|operation| !concerns_nobody(operation)).map_or(0, |last| last + 1);
    // Going back from the end: how much deeper the stack is at the end than here, and than anywhere in between.
    let (mut deeper, mut least, mut best) = (0_i64, 0_i64, operations.len());
    for place in (free..operations.len()).rev() {
        match operations[place] {
            Operation::Call(_) => deeper += 1,
            Operation::Return => deeper -= 1,
            _ => {}
        }
        least = least.max(deeper);
        if deeper == 0 && least <= 0 {
            best = place;
        }
    }
    if operations[best..].iter().any(sleeps) { best } else { operations.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{EdgeId, FunctionRef};

    fn thread(operations: &[Operation]) -> Thread {
        Thread { operations: operations.to_vec(), ..Thread::default() }
    }

    const EXEC: Operation = Operation::Exec(Ticks(5));
    const SLEEP: Operation = Operation::Sleep(Ticks(50));
    const CALL: Operation = Operation::Call(FunctionRef(0));
    const END: Operation = Operation::Release(EdgeId(0));
    const ENDED: Operation = Operation::Await(EdgeId(0));

    fn found(threads: &[&[Operation]], died: bool) -> Vec<Option<(u32, u32, u32)>> {
        let mut program =
            Program { threads: threads.iter().map(|list| thread(list)).collect(), ..Program::default() };
        let lives = (0..threads.len() as u32).map(|place| Life { pid: 7, tid: 7 + place, died });
        find(&mut program, &lives.collect::<Vec<_>>());
        let background = program.threads.iter().map(|thread| thread.background);
        background
            .map(|found| found.map(|found| (found.ends_with.0, found.repeats_from, found.repeats_until)))
            .collect()
    }

    #[test]
    fn a_timer_that_the_end_of_main_ends_repeats_its_ticks() {
        let timer = [EXEC, CALL, EXEC, SLEEP, EXEC, SLEEP, ENDED, EXEC];
        let busy = Operation::Exec(Ticks(150));
        assert_eq!(found(&[&[busy, END, EXEC], &timer], true), [None, Some((0, 2, 6))]);
        // It is the program.
        assert_eq!(found(&[&[EXEC, END, EXEC], &timer], true), [None, None]);
        // Somebody waits for it.
        assert_eq!(found(&[&[busy, Operation::Join(ThreadId(1)), END], &timer], true), [None, None]);
        // Another thread ended its last wait, or main went on after it.
        assert_eq!(found(&[&[busy], &timer, &[END]], true), [None, None, None]);
        assert_eq!(found(&[&[END, SLEEP, busy], &timer], true), [None, None]);
        // It never sleeps: it is cut off, and does nothing again.
        let worker = [EXEC, Operation::Signal(crate::program::ObjectId(0)), EXEC, ENDED];
        assert_eq!(found(&[&[busy, END], &worker], true), [None, Some((0, 3, 3))]);
    }

    #[test]
    fn what_only_sleeps_in_a_window_is_in_the_background_of_the_others() {
        let timer = [SLEEP, EXEC, SLEEP, EXEC, SLEEP, EXEC];
        let busy = [Operation::Exec(Ticks(150))];
        assert_eq!(found(&[&busy, &timer], false), [None, Some((0, 0, 6))]);
        assert_eq!(found(&[&busy, &timer[..4]], false), [None, None]);
        let waker = [SLEEP, EXEC, SLEEP, END, SLEEP, EXEC];
        assert_eq!(found(&[&busy, &waker], false), [None, None]);
        // Beside threads that hardly compute it is the program.
        assert_eq!(found(&[&[EXEC], &timer], false), [None, None]);
    }

    #[test]
    fn what_is_done_again_leaves_the_stack_as_it_is() {
        let back = Operation::Return;
        assert_eq!(repeats_from(&[CALL, SLEEP, back, CALL, SLEEP, back]), 0);
        assert_eq!(repeats_from(&[CALL, SLEEP, back, CALL, SLEEP]), 4);
        assert_eq!(repeats_from(&[CALL, CALL, SLEEP, back, SLEEP, back]), 0);
        assert_eq!(repeats_from(&[SLEEP, END, EXEC]), 3);
        assert_eq!(repeats_from(&[SLEEP, back]), 2);
    }
}
