//! The CPUs on which a recorded thread computed. The program itself does not depend on them: they only serve to show a path
//! by CPU (1994, near-critical paths, section VI: "from a processor perspective").

use crate::time::Ticks;

/// A change of a thread's CPU: the thread computes on this CPU from here until its next move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Index of an operation that computes.
    pub operation: u32,
    /// Length of the operation that is over at the move.
    pub after: Ticks,
    /// The CPU; `None` if it was not recorded.
    pub cpu: Option<u16>,
}

/// Collects a thread's moves while its operations are written.
#[derive(Debug, Default)]
pub(in crate::program) struct Moves {
    /// The current CPU; `None` before the first move.
    now: Option<Option<u16>>,
    /// Moves in the operation that is being collected: nanoseconds of it before the move, and the CPU.
    pending: Vec<(u64, Option<u16>)>,
    moves: Vec<Move>,
}

impl Moves {
    /// The thread runs on this CPU from here on; `after_ns` of the coming operation are over.
    pub(in crate::program) fn runs(&mut self, cpu: Option<u16>, after_ns: u64) {
        if self.now == Some(cpu) {
            return;
        }
        self.now = Some(cpu);
        // Nothing was computed on the CPU before, so that move is dropped.
        self.pending.pop_if(|(at, _)| *at == after_ns);
        self.pending.push((after_ns, cpu));
    }

    /// The collected computing was written as the operation with this index.
    pub(in crate::program) fn written(&mut self, operation: usize) {
        let Ok(operation) = u32::try_from(operation) else { return };
        for (after_ns, cpu) in self.pending.drain(..) {
            if self.moves.last().is_none_or(|last| last.cpu != cpu) {
                self.moves.push(Move { operation, after: Ticks::from_ns(after_ns), cpu });
            }
        }
    }

    pub(in crate::program) fn take(&mut self) -> Vec<Move> {
        std::mem::take(&mut self.moves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_s_move_is_noted_where_it_computes_next() {
        let mut moves = Moves::default();
        moves.runs(Some(1), 0);
        moves.runs(Some(1), 10);
        moves.written(3);
        moves.runs(Some(1), 0);
        moves.runs(Some(2), 5);
        moves.runs(None, 5);
        moves.runs(Some(1), 9);
        moves.written(5);
        // The thread goes to another CPU and back without computing.
        moves.runs(Some(0), 0);
        moves.runs(Some(1), 0);
        moves.written(6);
        let moved = |operation, after, cpu| Move { operation, after: Ticks::from_ns(after), cpu };
        assert_eq!(moves.take(), [moved(3, 0, Some(1)), moved(5, 5, None), moved(5, 9, Some(1))]);
    }
}
