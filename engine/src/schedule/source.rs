//! Where the operations of a program come from: all at once, or piece by piece for programs that need not fit into
//! memory.

use std::collections::VecDeque;

use crate::program::{Operation, Program, ThreadId};

/// The operations of a program's threads, asked for in order.
pub trait Operations {
    /// The thread's operation with this number, `None` after its last. Asked for with numbers that never fall, the same
    /// one any number of times.
    fn at(&mut self, thread: u32, number: u32) -> Option<Operation>;

    /// Whether another thread creates this one; otherwise it starts at 0.
    fn is_created(&self, thread: u32) -> bool;

    /// It is so late when operations are asked for next, ticks from the start.
    fn now(&mut self, _time: u64) {}
}

/// A program in memory.
#[derive(Clone, Debug)]
pub struct Whole<'a> {
    program: &'a Program,
    created: Vec<bool>,
}

impl<'a> Whole<'a> {
    /// Looks at all operations once. The program has been checked.
    pub(super) fn of(program: &'a Program) -> Whole<'a> {
        let mut created = vec![false; program.threads.len()];
        for operation in program.threads.iter().flat_map(|thread| &thread.operations) {
            if let Operation::Create(other) = operation
                && let Some(created) = created.get_mut(other.0 as usize)
            {
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

/// A program that comes piece by piece: holds one piece of each thread.
pub struct Pieces<F> {
    /// Returns the next piece of a thread; an empty one is its end.
    next: F,
    threads: Vec<Piece>,
}

#[derive(Debug, Default)]
struct Piece {
    /// Number of the first operation held.
    first: u32,
    held: VecDeque<Operation>,
    created: bool,
    ended: bool,
}

impl<F: FnMut(ThreadId, &mut Vec<Operation>)> Pieces<F> {
    /// `created` says for each thread whether another one creates it. `next` appends the next operations of a thread, as
    /// many as it likes; none at all is the thread's end.
    pub fn new(created: impl IntoIterator<Item = bool>, next: F) -> Pieces<F> {
        let piece = |created| Piece { created, ..Piece::default() };
        Pieces { next, threads: created.into_iter().map(piece).collect() }
    }

    /// The most operations held for any thread now.
    pub fn held(&self) -> usize {
        self.threads.iter().map(|piece| piece.held.len()).max().unwrap_or(0)
    }
}

impl<F: FnMut(ThreadId, &mut Vec<Operation>)> Operations for Pieces<F> {
    fn at(&mut self, thread: u32, number: u32) -> Option<Operation> {
        let piece = self.threads.get_mut(thread as usize)?;
        loop {
            let place = number.checked_sub(piece.first)? as usize;
            if let Some(operation) = piece.held.get(place) {
                return Some(*operation);
            }
            if piece.ended {
                return None;
            }
            piece.first = piece.first.saturating_add(piece.held.len() as u32);
            let mut more = Vec::from(std::mem::take(&mut piece.held));
            more.clear();
            (self.next)(ThreadId(thread), &mut more);
            piece.ended = more.is_empty();
            piece.held = more.into();
        }
    }

    fn is_created(&self, thread: u32) -> bool {
        self.threads.get(thread as usize).is_some_and(|piece| piece.created)
    }
}
