//! Facts about a program's locks, independent of the number of CPUs.

use super::LockRow;
use crate::program::{FunctionRef, LockSide, ObjectId, Operation, Program};
use crate::time::Ticks;
use rustc_hash::FxHashMap;

/// A row for each object that is taken as a lock, with the object, in order of the objects. Counts and times are as recorded
/// ([`Program::locks`]); a hand-written program has no recorded times.
pub(super) fn rows(program: &Program) -> Vec<(ObjectId, LockRow)> {
    let mut counts: FxHashMap<ObjectId, Counts> = FxHashMap::default();
    for thread in &program.threads {
        let mut stack: Vec<FunctionRef> = Vec::new();
        for operation in &thread.operations {
            match *operation {
                Operation::Call(function) => stack.push(function),
                Operation::Return => {
                    stack.pop();
                }
                Operation::Held(object, waited) => {
                    let counts = counts.entry(object).or_default();
                    counts.taken(stack.last().copied());
                    counts.recorded = true;
                    counts.contended += u64::from(waited > Ticks(0));
                    counts.waited = counts.waited.saturating_add(waited.0);
                }
                Operation::Freed(object, held) => {
                    let counts = counts.entry(object).or_default();
                    counts.held = counts.held.saturating_add(held.0);
                }
                Operation::Lock(object)
                | Operation::ReadLock(object)
                | Operation::WriteLock(object)
                | Operation::SpinLock(object) => {
                    counts.entry(object).or_default().taken(stack.last().copied());
                }
                _ => {}
            }
        }
    }
    for fact in &program.locks {
        // Recorded numbers replace counted ones, which depend on the translation for the simulation.
        let counts = counts.entry(fact.object).or_default();
        counts.taken = fact.acquisitions;
        counts.recorded = true;
        counts.contended = fact.contended;
        counts.waited = fact.waited.0;
        counts.held = fact.held.0;
        counts.reading = (fact.reading != LockSide::default()).then_some(fact.reading);
    }
    let mut rows: Vec<_> = counts
        .into_iter()
        .filter(|(_, counts)| counts.taken > 0)
        .map(|(object, counts)| (object, counts.row(program, object)))
        .collect();
    rows.sort_by_key(|(object, _)| *object);
    rows
}

#[derive(Default)]
struct Counts {
    taken: u64,
    recorded: bool,
    contended: u64,
    waited: u64,
    held: u64,
    holders: FxHashMap<FunctionRef, u64>,
    reading: Option<LockSide>,
}

impl Counts {
    fn taken(&mut self, by: Option<FunctionRef>) {
        self.taken += 1;
        if let Some(by) = by {
            *self.holders.entry(by).or_insert(0) += 1;
        }
    }

    fn row(self, program: &Program, object: ObjectId) -> LockRow {
        let ns = |ticks: u64| Ticks(ticks).as_ns_f64();
        let name = |function: FunctionRef| program.functions.get(function.0 as usize).map(|f| &f.name);
        // Among equals by name, so that the answer does not depend on numbers.
        let holder = self
            .holders
            .iter()
            .max_by_key(|(function, count)| (**count, std::cmp::Reverse(name(**function))));
        LockRow {
            lock: program.objects.get(object.0 as usize).cloned().unwrap_or_default(),
            acquisitions: self.taken,
            contended: self.recorded.then_some(self.contended),
            wait_ns: self.recorded.then_some(ns(self.waited)),
            hold_ns: self.recorded.then_some(ns(self.held)),
            holder: holder.and_then(|(function, _)| name(*function).cloned()),
            reading: self.reading,
        }
    }
}
