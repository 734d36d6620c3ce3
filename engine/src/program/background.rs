//! Threads for which no other thread waits: pollers, timers, a virtual machine's housekeeping, sleeping pools, and processes
//! that start ranks of MPI.
//!
//! The end of a process's first thread (`main` returns), or a call of `exit`, ends all other threads wherever they are. Such
//! a thread repeats its work until then, as often as the length of the run allows.

use super::{Background, ObjectId, Operation, Program, Thread, ThreadId};
use crate::time::Ticks;
use rustc_hash::{FxHashMap, FxHashSet};

/// Threads that ended only with the window, or that computed without sleeping, are background threads only if they
/// compute at most this fraction (one part in `BESIDE`) of what the others compute.
const BESIDE: u64 = 10;

/// Longest time that the kernel takes to end a thread. A thread that runs longer was woken for work.
const MOST_AFTER_THE_END: Ticks = Ticks::from_ns(5_000_000);

/// A thread that wakes others at least this often is assumed to do so all the time, unless one part in `AT_THE_END` of
/// its sleep follows its last wake-up.
const OFTEN: usize = 8;
const AT_THE_END: u64 = 4;

/// Facts about a thread's life, in addition to its operations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifetime {
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// Whether the thread died in the window.
    pub(super) died: bool,
    /// Its last wait was for the end of another thread.
    pub(super) joined_last: bool,
    /// Its process only starts ranks of MPI and passes on what they need to find each other.
    pub(super) launches: bool,
}

/// Finds the threads that no thread waits for. `lives` has an entry for each thread of the program, in order.
pub(super) fn find(program: &mut Program, lives: &[Lifetime]) {
    let operations = || program.threads.iter().flat_map(|thread| &thread.operations);
    let joined: FxHashSet<ThreadId> = operations()
        .filter_map(|operation| match operation {
            Operation::Join(other) => Some(*other),
            _ => None,
        })
        .collect();
    let mut processes: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    for (place, life) in lives.iter().enumerate() {
        processes.entry(life.pid).or_default().push(place);
    }
    let mut processes: Vec<(u32, Vec<usize>)> = processes.into_iter().collect();
    processes.sort_unstable();
    let threads = program.threads.as_slice();
    let idle = Idle::of(program);
    let (mut ended, mut working, mut asleep) = (Vec::new(), Vec::new(), Vec::new());
    for (pid, places) in &processes {
        let Some(&main) = places.iter().find(|&&place| lives[place].tid == *pid) else { continue };
        let others = places.iter().copied().filter(|place| !joined.contains(&ThreadId(*place as u32)));
        if lives[main].died {
            let found = ended_at_exit(threads, lives, main, others);
            let (sleepers, workers) =
                found.into_iter().partition(|(place, ..)| idle.is_all_that(&threads[*place]));
            ended.extend::<Vec<_>>(sleepers);
            working.extend::<Vec<_>>(workers);
        } else {
            let idle = others.filter(|&place| !lives[place].died && idle.is_all_that(&threads[place]));
            asleep.extend(idle.map(|place| (place, threads[place].operations.len(), None)));
        }
    }
    // Threads that do much of all computing are part of the program's work, unless they slept longer than they
    // computed.
    asleep.extend(working);
    let mut found = beside(threads, asleep, BESIDE);
    found.extend(ended);
    let launching = launching(threads, lives);
    found.retain(|(place, ..)| !launching.contains(place));
    found.extend(launching.iter().map(|place| (*place, threads[*place].operations.len(), None)));
    let found = beside(threads, found, 1);
    let background: FxHashSet<usize> = found.iter().map(|(place, ..)| *place).collect();
    launching.iter().for_each(|place| serve_at_once(&mut program.threads[*place].operations));
    let threads = program.threads.as_slice();
    // Threads that ended with the window are taken to end with the thread that computes most.
    let rest = (0..threads.len()).filter(|place| !background.contains(place));
    let most = rest.max_by_key(|&place| (computes(&threads[place].operations), std::cmp::Reverse(place)));
    for (place, kept, ends_with) in found {
        let Some(ends_with) = ends_with.filter(|end| !background.contains(end)).or(most) else { return };
        let thread = &mut program.threads[place];
        let repeats_from = repeats_from(&thread.operations[..kept]) as u32;
        let ends_with = ThreadId(ends_with as u32);
        thread.background = Some(Background { ends_with, repeats_from, repeats_until: kept as u32 });
    }
}

/// The threads that start ranks of MPI, unless they compute more than one part in [`BESIDE`] of what the others compute: then
/// starting ranks is not all that they do.
fn launching(threads: &[Thread], lives: &[Lifetime]) -> Vec<usize> {
    let places = || threads.iter().zip(lives).enumerate();
    let sum = |launches: bool| {
        let computed = places().filter(|(_, (_, life))| life.launches == launches);
        computed.map(|(_, (thread, _))| computes(&thread.operations)).fold(0, u64::saturating_add)
    };
    if sum(true).saturating_mul(BESIDE) > sum(false) {
        return Vec::new();
    }
    places().filter(|(_, (_, life))| life.launches).map(|(place, _)| place).collect()
}

/// Takes out what a launcher waits for from outside after it has created the last process. It waits for its ranks, and then
/// serves them: such a wait of recorded length would let the ranks wait until the recorded end.
fn serve_at_once(operations: &mut [Operation]) {
    let created = operations.iter().rposition(|operation| matches!(operation, Operation::Create(_)));
    for operation in operations.iter_mut().skip(created.map_or(0, |last| last + 1)) {
        if let Operation::Io(_, length) | Operation::Sleep(length) | Operation::SleepNext(length) = operation
        {
            *length = Ticks(0);
        }
    }
}

/// A thread that may be background: its index, the number of operations before the repeated ones, and the index of the
/// thread whose end ends it, if recorded.
type Candidate = (usize, usize, Option<usize>);

/// Removes the candidates that compute most, until the remaining ones compute at most one part in `parts` of what the
/// other threads compute.
fn beside(threads: &[Thread], mut candidates: Vec<Candidate>, parts: u64) -> Vec<Candidate> {
    // Work before a thread's last wake-up may be work that another thread waited for.
    let own = |place: usize| computes(after_the_last(&threads[place].operations));
    candidates.sort_by_key(|(place, ..)| (own(*place), *place));
    let all = threads.iter().map(|thread| computes(&thread.operations)).fold(0, u64::saturating_add);
    let mut sum = candidates.iter().map(|(place, ..)| own(*place)).fold(0, u64::saturating_add);
    while sum.saturating_mul(parts) > all.saturating_sub(sum) {
        let Some((place, ..)) = candidates.pop() else { break };
        sum = sum.saturating_sub(own(place));
    }
    candidates
}

/// The operations that follow the last one that may wake another thread.
fn after_the_last(operations: &[Operation]) -> &[Operation] {
    let last = operations.iter().rposition(lets_go).map_or(0, |last| last + 1);
    operations.get(last..).unwrap_or_default()
}

/// Threads ended by the end of their process, which is the end of the thread that called `exit`.
///
/// The thread that called `exit` is the first thread, or the one that ended the first thread (in Go, the thread that
/// happens to run `main`).
fn ended_at_exit(
    threads: &[Thread],
    lives: &[Lifetime],
    main: usize,
    others: impl Iterator<Item = usize>,
) -> Vec<Candidate> {
    let others: Vec<usize> = others.collect();
    // A thread that `main` has just joined has woken `main`, too, but did not call `exit`.
    let woke_main = |place: &usize| *place != main && ended_by(&threads[main], &threads[*place]).is_some();
    let ended_main = |place: &usize| !lives[main].joined_last && woke_main(place);
    let exits = others.iter().copied().find(ended_main).unwrap_or(main);
    let mut found = Vec::new();
    for place in others.into_iter().filter(|&place| place != exits && lives[place].died) {
        if let Some(kept) = ended_by(&threads[place], &threads[exits]) {
            found.push((place, kept, Some(exits)));
        }
    }
    found
}

/// The number of the thread's own operations, if the end of `other` ended it.
///
/// That is so if `other` ended the thread's last wait, if the thread did no work for other threads after that wait
/// began, and if it ended directly after the wait.
fn ended_by(thread: &Thread, other: &Thread) -> Option<usize> {
    let own = thread.operations.iter().rposition(|operation| !leaves(operation))?;
    let after = thread.operations.get(own..).unwrap_or_default();
    if computes(after) > MOST_AFTER_THE_END.0 {
        return None;
    }
    let Some(Operation::Await(edge)) = thread.operations.get(own) else { return None };
    let last = other.operations.iter().rev();
    let mut last =
        last.take_while(|operation| leaves(operation) || matches!(operation, Operation::Release(_)));
    last.any(|operation| *operation == Operation::Release(*edge)).then_some(own)
}

/// Operations of a thread that is being ended: leaving its functions, and releasing locks.
fn leaves(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Exec(_)
            | Operation::ExecIn(..)
            | Operation::Return
            | Operation::Unlock(_)
            | Operation::ReadWriteUnlock(_)
            | Operation::SpinUnlock(_)
            | Operation::Freed(..)
    )
}

/// The device that stands for waiting for work.
struct Idle(Option<ObjectId>);

impl Idle {
    fn of(program: &Program) -> Idle {
        let place = program.meanings().position(|meaning| meaning == super::ObjectMeaning::Idle);
        Idle(place.map(|place| ObjectId(place as u32)))
    }

    /// Whether the thread only sleeps and polls: no thread waits for its last work, and it slept longer than it computed.
    fn is_all_that(&self, thread: &Thread) -> bool {
        let asleep = |operation: &Operation| match operation {
            Operation::Sleep(length) | Operation::SleepNext(length) => length.0,
            Operation::Io(object, length) if self.0 == Some(*object) => length.0,
            _ => 0,
        };
        let sum = |operations: &[Operation]| operations.iter().map(asleep).fold(0, u64::saturating_add);
        let (tail, all) = (sum(after_the_last(&thread.operations)), sum(&thread.operations));
        let wakes = thread.operations.iter().filter(|operation| lets_go(operation)).count();
        // The recording's end cuts off the next wake-up of a thread that wakes others all the time.
        let goes_on = wakes >= OFTEN && tail.saturating_mul(AT_THE_END) < all;
        tail > 0 && !goes_on && all > computes(&thread.operations)
    }
}

/// Sum of the computing in these operations, ticks.
fn computes(operations: &[Operation]) -> u64 {
    let lengths = operations.iter().filter_map(|operation| match operation {
        Operation::Exec(length) | Operation::ExecIn(_, length) => Some(length.0),
        _ => None,
    });
    lengths.fold(0, u64::saturating_add)
}

/// Whether the operation may wake another thread, other than by releasing a lock.
pub(super) fn lets_go(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Release(_)
            | Operation::Create(_)
            | Operation::Signal(_)
            | Operation::SemPost(_)
            | Operation::CondSignal(_)
            | Operation::CondBroadcast(_)
            | Operation::Barrier(..)
            | Operation::Once(..)
    )
}

/// Whether the operation waits for a length of time.
pub(super) fn sleeps(operation: &Operation) -> bool {
    match operation {
        Operation::Sleep(length) | Operation::SleepNext(length) => length.0 > 0,
        _ => false,
    }
}

/// Whether the operation neither waits for another thread nor wakes one.
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

/// Index from which on the operations can be repeated: none concerns another thread, the stack is the same before and after,
/// and at least one sleeps. If there is no such index, the number of operations.
fn repeats_from(operations: &[Operation]) -> usize {
    let free =
        operations.iter().rposition(|operation| !concerns_nobody(operation)).map_or(0, |last| last + 1);
    // Walks back from the end: how much deeper the stack is at the end than here, and the largest such difference so far.
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
        let lives = (0..threads.len() as u32).map(|place| Lifetime {
            pid: 7,
            tid: 7 + place,
            died,
            joined_last: false,
            launches: false,
        });
        find(&mut program, &lives.collect::<Vec<_>>());
        let background = program.threads.iter().map(|thread| thread.background);
        background
            .map(|found| found.map(|found| (found.ends_with.0, found.repeats_from, found.repeats_until)))
            .collect()
    }

    #[test]
    fn a_timer_thread_that_the_end_of_main_ends_is_background() {
        let timer = [EXEC, CALL, EXEC, SLEEP, EXEC, SLEEP, ENDED, EXEC];
        let busy = Operation::Exec(Ticks(150));
        assert_eq!(found(&[&[busy, END, EXEC], &timer], true), [None, Some((0, 2, 6))]);
        // The timer computes too much: it is the program.
        assert_eq!(found(&[&[EXEC, END, EXEC], &timer], true), [None, None]);
        // Another thread waits for the timer.
        assert_eq!(found(&[&[busy, Operation::Join(ThreadId(1)), END], &timer], true), [None, None]);
        // Not background: another thread ended the thread's last wait, or `main` ran on after the thread's end.
        assert_eq!(found(&[&[busy], &timer, &[END]], true), [None, None, None]);
        assert_eq!(found(&[&[END, SLEEP, busy], &timer], true), [None, None]);
        // A thread that never sleeps is cut off and repeats nothing.
        let worker = [EXEC, Operation::Signal(ObjectId(0)), EXEC, ENDED];
        assert_eq!(found(&[&[busy, END], &worker], true), [None, Some((0, 3, 3))]);
    }

    #[test]
    fn a_thread_that_only_sleeps_in_a_window_is_background() {
        let timer = [SLEEP, EXEC, SLEEP, EXEC, SLEEP, EXEC];
        let busy = [Operation::Exec(Ticks(150))];
        assert_eq!(found(&[&busy, &timer], false), [None, Some((0, 0, 6))]);
        // One sleep is enough, and the first thread may be the background thread.
        assert_eq!(found(&[&busy, &timer[..2]], false), [None, Some((0, 0, 2))]);
        assert_eq!(found(&[&timer, &busy], false), [Some((1, 0, 6)), None]);
        // Another thread waits for the waker's wake-up, but not for its later operations.
        let waker = [SLEEP, EXEC, SLEEP, END, SLEEP, EXEC];
        assert_eq!(found(&[&busy, &waker], false), [None, Some((0, 4, 6))]);
        assert_eq!(found(&[&busy, &waker[..4]], false), [None, None]);
        // A worker that wakes others after each sleep, and sleeps again when the recording ends, is not background.
        let round = [SLEEP, EXEC, END];
        let worker: Vec<Operation> = round.iter().copied().cycle().take(3 * 9).chain([SLEEP]).collect();
        assert_eq!(found(&[&busy, &worker], false), [None, None]);
        // A thread that computes longer than it sleeps is not background.
        let worker = [SLEEP, Operation::Exec(Ticks(100))];
        assert_eq!(found(&[&[Operation::Exec(Ticks(1500))], &worker], false), [None, None]);
        // If the other threads hardly compute, the sleeping thread is the program's work.
        assert_eq!(found(&[&[EXEC], &timer], false), [None, None]);
    }

    /// `mpirun` passes messages on until the last rank has ended. Its poll was on the path: the limit was "at work and
    /// waiting for work in turns".
    #[test]
    fn processes_that_start_ranks_of_mpi_are_background() {
        let (create, joins) = (Operation::Create(ThreadId(1)), Operation::Await(EdgeId(0)));
        let launcher = [EXEC, create, SLEEP, EXEC, Operation::Release(EdgeId(1)), SLEEP, joins, EXEC];
        let rank = |computes: u64| [Operation::Exec(Ticks(computes)), END];
        let background = |computes: u64, launches: bool| {
            let threads = [&launcher[..], &rank(computes)].map(thread).to_vec();
            let mut program = Program { threads, ..Program::default() };
            let life = |pid: u32| Lifetime {
                pid,
                tid: pid,
                died: true,
                joined_last: false,
                launches: launches && pid == 7,
            };
            find(&mut program, &[life(7), life(8)]);
            let sleeps = program.threads[0].operations.iter().filter(|operation| sleeps(operation)).count();
            assert_eq!(sleeps, if program.threads[0].background.is_some() { 0 } else { 2 });
            program.threads[0].background.map(|found| found.ends_with)
        };
        assert_eq!(background(150, true), Some(ThreadId(1)));
        assert_eq!(background(150, false), None);
        assert_eq!(background(149, true), None, "it computes more than a tenth of what the rank computes");
    }

    #[test]
    fn the_thread_that_calls_exit_ends_the_others() {
        let busy = Operation::Exec(Ticks(150));
        let (other, others_end) = (Operation::Release(EdgeId(1)), Operation::Await(EdgeId(1)));
        let unlock = Operation::Unlock(ObjectId(0));
        // The first thread is asleep, as in Go; the timer releases its mutex as it is ended.
        let first = [EXEC, ENDED, EXEC];
        let timer = [SLEEP, EXEC, SLEEP, others_end, EXEC, unlock, EXEC];
        let exits = [busy, END, other, EXEC];
        assert_eq!(found(&[&first, &timer, &exits], true), [Some((2, 1, 1)), Some((2, 0, 3)), None]);
        // A thread that does much of all computing is the program; the timer is background all the same.
        let worker = [busy, ENDED];
        assert_eq!(found(&[&[busy, END, other], &timer, &worker], true), [None, Some((0, 0, 3)), None]);
    }

    /// `main` sleeps between messages and joins their receiver at the end. If the receiver seemed to have called
    /// `exit`, `main` would be a background thread, and the limit "the work itself, 0.0 CPUs are busy".
    #[test]
    fn a_thread_that_main_joins_at_its_end_has_not_ended_main() {
        let receiver = [Operation::Exec(Ticks(150)), END];
        let main = [EXEC, SLEEP, EXEC, SLEEP, ENDED, EXEC];
        let threads = [&main[..], &receiver].map(thread).to_vec();
        for (joined_last, background) in [(true, None), (false, Some(ThreadId(1)))] {
            let mut program = Program { threads: threads.clone(), ..Program::default() };
            let life = |tid| Lifetime {
                pid: 7,
                tid,
                died: true,
                joined_last: joined_last && tid == 7,
                launches: false,
            };
            find(&mut program, &[life(7), life(8)]);
            assert_eq!(program.threads[0].background.map(|found| found.ends_with), background);
        }
    }

    #[test]
    fn repeated_operations_leave_the_stack_as_it_was() {
        let back = Operation::Return;
        assert_eq!(repeats_from(&[CALL, SLEEP, back, CALL, SLEEP, back]), 0);
        assert_eq!(repeats_from(&[CALL, SLEEP, back, CALL, SLEEP]), 4);
        assert_eq!(repeats_from(&[CALL, CALL, SLEEP, back, SLEEP, back]), 0);
        assert_eq!(repeats_from(&[SLEEP, END, EXEC]), 3);
        assert_eq!(repeats_from(&[SLEEP, back]), 2);
    }
}
