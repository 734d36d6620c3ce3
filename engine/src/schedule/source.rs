//! The source of a program's operations.

use crate::program::{Operation, Program};

/// Gives the operations of a program's threads in order.
pub trait Operations {
    /// The thread's operation with this number, `None` after the last. For each thread numbers never decrease but may
    /// repeat.
    fn at(&mut self, thread: u32, number: u32) -> Option<Operation>;

    /// Whether another thread creates this one; otherwise it starts at time 0.
    fn is_created(&self, thread: u32) -> bool;

    /// Gives the time of the following calls of `at`, ticks from the start.
    fn now(&mut self, _time: u64) {}
}

/// A program in memory.
#[derive(Clone, Debug)]
pub struct Whole<'a> {
    program: &'a Program,
    created: Vec<bool>,
}

impl<'a> Whole<'a> {
    /// Notes which threads are created by other threads. The program has been checked.
    pub(super) fn of(program: &'a Program) -> Whole<'a> {
        let mut created = vec![false; program.threads.len()];
        for thread in program.created() {
            if let Some(created) = created.get_mut(thread.0 as usize) {
                *created = true;
            }
        }
        Whole { program, created }
    }
}

impl Operations for Whole<'_> {
    #[inline]
    fn at(&mut self, thread: u32, number: u32) -> Option<Operation> {
        self.program.threads[thread as usize].operations.get(number as usize).copied()
    }

    fn is_created(&self, thread: u32) -> bool {
        self.created[thread as usize]
    }
}
