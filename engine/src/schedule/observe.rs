//! Runs a program with an observer, which receives in order of time what each thread does and which operation it
//! reaches.

use super::outcome::cpu_accounting::{CpuAccounting, SimulatedState};
use super::run::{RunOutcome, Setup, on_machine};
use super::source::{Operations, Whole};
use crate::program::{Operation, Program};
use std::cell::RefCell;

/// Receives the events of a run. Times are ticks and never decrease; `now` gives the time of the events after it.
pub(crate) trait Observer {
    /// The time of the following events.
    fn now(&mut self, time: u64);

    /// The thread does this from now on.
    fn does(&mut self, thread: u32, doing: SimulatedState);

    /// The thread has finished the preceding operation and reaches the one with this number; `None`: the thread ends.
    /// Called again each time the thread retries.
    fn comes_to(&mut self, thread: u32, number: u32, operation: Option<Operation>);
}

/// Operations of a program; reports when a thread reaches each.
struct Observed<'a, O, B> {
    source: O,
    observer: &'a RefCell<B>,
}

impl<O: Operations, B: Observer> Operations for Observed<'_, O, B> {
    fn at(&mut self, thread: u32, number: u32) -> Option<Operation> {
        let operation = self.source.at(thread, number);
        self.observer.borrow_mut().comes_to(thread, number, operation);
        operation
    }

    fn is_created(&self, thread: u32) -> bool {
        self.source.is_created(thread)
    }

    fn now(&mut self, time: u64) {
        self.observer.borrow_mut().now(time);
    }
}

/// Runs the program like `run`, with an observer. The program has been checked.
pub(crate) fn run_observed<B: Observer>(program: &Program, setup: &Setup, observer: B) -> (RunOutcome, B) {
    let observer = RefCell::new(observer);
    let source = Observed { source: Whole::of(program), observer: &observer };
    let mut accounting = CpuAccounting::new(program.threads.len(), program.objects.len(), None);
    accounting.tell(Box::new(|thread, now, doing| {
        let mut observer = observer.borrow_mut();
        observer.now(now);
        observer.does(thread, doing);
    }));
    let outcome = on_machine(program, source, setup, accounting);
    (outcome, observer.into_inner())
}
