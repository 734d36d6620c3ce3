//! A run with an observer that receives everything in order of time: what each thread does, and which
//! operation it reaches.

use super::cpu_accounting::{CpuAccounting, Doing};
use super::run::{Outcome, Setup, on_machine};
use super::source::{Operations, Whole};
use crate::program::{Operation, Program};
use std::cell::RefCell;

/// Receives the events of a run. Times are ticks and never decrease; what is reported after a time happens at
/// it.
pub(crate) trait Observer {
    /// It is so late.
    fn now(&mut self, time: u64);

    /// The thread does this from now on.
    fn does(&mut self, thread: u32, doing: Doing);

    /// The thread reaches its operation with this number, and has finished the one before. `None`: it is
    /// over. Reported again each time that the thread tries again.
    fn comes_to(&mut self, thread: u32, number: u32, operation: Option<Operation>);
}

/// Operations of a program, reporting when a thread reaches them.
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

/// The same run as without observer. The program has been checked.
pub(crate) fn run_observed<B: Observer>(program: &Program, setup: &Setup, observer: B) -> (Outcome, B) {
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
