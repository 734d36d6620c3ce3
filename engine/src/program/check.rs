//! Checks conditions that every program must meet before it is scheduled, whether it was read from a file or built in
//! memory.

use super::{ObjectId, Operation, Program, ProgramError, Thread};
use crate::time::Ticks;

/// Largest number of operations in a program: the schedule numbers its points with 32 bits.
const MOST_OPERATIONS: usize = 1 << 31;

const DEFECT: &str = "this is a bug in longpole or in the tool that made the program: please report it";

impl Program {
    /// Whether all numbers refer to something, calls and returns match, and the lengths add up to at most
    /// [`Ticks::MAX_TOTAL`].
    ///
    /// # Errors
    /// The first violation, with thread and operation.
    pub fn check(&self) -> Result<(), ProgramError> {
        let operations: usize = self.threads.iter().map(|thread| thread.operations.len()).sum();
        if operations > MOST_OPERATIONS || self.threads.len() > MOST_OPERATIONS {
            return Err(ProgramError::new(
                format!("the program has {operations} operations, more than {MOST_OPERATIONS}"),
                "record a shorter window",
            ));
        }
        let edges = self.edges.len().max(operations);
        // All sleeps until a fixed time end by that time, so only the latest such time counts.
        let mut total = self.latest();
        for (number, thread) in (0..).zip(&self.threads) {
            self.check_thread(thread, edges, &mut total)?;
            self.check_background(number, thread)?;
        }
        let unknown = |lock: &&ObjectId| lock.0 as usize >= self.objects.len();
        if let Some(lock) = self.writers_first.iter().find(unknown) {
            return Err(ProgramError::new(format!("{lock:?} refers to nothing"), DEFECT));
        }
        if !self.samples.fit(self) {
            return Err(ProgramError::new("a sample refers to nothing", DEFECT));
        }
        Ok(())
    }

    /// Whether the operation's numbers refer to something; edges are numbered below `edges`.
    pub(crate) fn knows(&self, operation: &Operation, edges: usize) -> bool {
        match *operation {
            Operation::Exec(_)
            | Operation::Return
            | Operation::Sleep(_)
            | Operation::SleepUntil(_)
            | Operation::SleepNext(_) => true,
            Operation::ExecIn(function, _) | Operation::Call(function) => {
                (function.0 as usize) < self.functions.len()
            }
            Operation::Create(other) | Operation::Join(other) => (other.0 as usize) < self.threads.len(),
            Operation::Release(edge) | Operation::Await(edge) => (edge.0 as usize) < edges,
            Operation::CondWait(condition, mutex) => (condition.0.max(mutex.0) as usize) < self.objects.len(),
            Operation::Signal(object)
            | Operation::Wait(object)
            | Operation::Lock(object)
            | Operation::Unlock(object)
            | Operation::ReadLock(object)
            | Operation::WriteLock(object)
            | Operation::ReadWriteUnlock(object)
            | Operation::SpinLock(object)
            | Operation::SpinUnlock(object)
            | Operation::Barrier(object, _)
            | Operation::CondSignal(object)
            | Operation::CondBroadcast(object)
            | Operation::SemInit(object, _)
            | Operation::SemWait(object)
            | Operation::SemPost(object)
            | Operation::Once(object, _)
            | Operation::Held(object, _)
            | Operation::Freed(object, _)
            | Operation::Io(object, _) => (object.0 as usize) < self.objects.len(),
        }
    }

    /// The latest time until which a thread sleeps.
    fn latest(&self) -> u64 {
        let operations = self.threads.iter().flat_map(|thread| &thread.operations);
        let times = operations.filter_map(|operation| match operation {
            Operation::SleepUntil(end) => Some(end.0),
            _ => None,
        });
        times.max().unwrap_or(0)
    }

    /// A background thread must end with a thread that is none, and repeat only operations that affect no other thread and
    /// take time.
    fn check_background(&self, number: u32, thread: &Thread) -> Result<(), ProgramError> {
        let Some(background) = thread.background else { return Ok(()) };
        let wrong = |problem: &str| {
            let hint = "\"background\" is the name of a thread that is not in the background, and the numbers of the \
                        first of the operations that are done again and of the one after them: only exec, call, ret, io \
                        and sleep, with a sleep among them";
            Err(ProgramError::new(format!("{} {problem}", super::quoted(&thread.name)), hint))
        };
        match self.threads.get(background.ends_with.0 as usize) {
            Some(other) if other.background.is_none() && background.ends_with.0 != number => {}
            _ => return wrong("ends with a thread that is in the background itself"),
        }
        let range = background.repeats_from as usize..background.repeats_until as usize;
        let Some(again) = thread.operations.get(range) else {
            return wrong("goes on from an operation that it does not have");
        };
        let mut depth = 0_i64;
        for operation in again {
            depth += match operation {
                Operation::Call(_) => 1,
                Operation::Return => -1,
                _ => 0,
            };
            if depth < 0 || !super::background::concerns_nobody(operation) {
                return wrong("does again what concerns others");
            }
        }
        if depth != 0 || !(again.is_empty() || again.iter().any(super::background::sleeps)) {
            return wrong("never sleeps in what it does again");
        }
        Ok(())
    }

    fn check_thread(&self, thread: &Thread, edges: usize, total: &mut u64) -> Result<(), ProgramError> {
        let mut depth: usize = 0;
        for (index, operation) in thread.operations.iter().enumerate() {
            let known = self.knows(operation, edges);
            if !known {
                return Err(ProgramError::new(format!("{operation:?} refers to nothing"), DEFECT)
                    .at(&thread.name, index));
            }
            match operation {
                Operation::Call(_) => depth += 1,
                Operation::Return => {
                    depth = depth.checked_sub(1).ok_or_else(|| unbalanced_return(&thread.name, index))?;
                }
                _ => {}
            }
            let length = match operation {
                Operation::SleepUntil(_) => Some(Ticks(0)),
                operation => operation.length(),
            };
            if let Some(length) = length {
                *total = total
                    .checked_add(length.0)
                    .filter(|sum| *sum <= Ticks::MAX_TOTAL)
                    .ok_or_else(|| too_long(&thread.name, index))?;
            }
        }
        Ok(())
    }
}

impl Operation {
    /// The length that the operation itself has, if any.
    pub fn length(&self) -> Option<Ticks> {
        match *self {
            Operation::Exec(length)
            | Operation::ExecIn(_, length)
            | Operation::Once(_, length)
            | Operation::Io(_, length)
            | Operation::Sleep(length)
            | Operation::SleepNext(length) => Some(length),
            _ => None,
        }
    }
}

pub(super) fn unbalanced_return(thread: &str, operation: usize) -> ProgramError {
    ProgramError::new(
        "\"ret\" without a \"call\" before it",
        "every \"ret\" leaves the function that the last open \"call\" of the same thread entered: remove it, or add the \"call\"",
    )
    .at(thread, operation)
}

pub(super) fn too_long(thread: &str, operation: usize) -> ProgramError {
    ProgramError::new(
        format!(
            "the lengths up to here add up to more than {} ns (106 days)",
            Ticks::MAX_TOTAL / Ticks::PER_NS
        ),
        "lengths are in nanoseconds: check the unit",
    )
    .at(thread, operation)
}
