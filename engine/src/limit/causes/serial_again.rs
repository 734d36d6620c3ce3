//! One thread computes alone again and again, while others wait for what it makes: fork and join with a serial part in
//! between, or a batch that is read before all compute it. (This method is longpole's own.)

use super::stretch::Again;
use crate::cpus::Cpus;
use crate::experiment::Edit;
use crate::limit::search::Search;
use crate::limit::threads::holders::{self, Sums};
use crate::limit::watched_run::WatchedRun;
use crate::program::{FunctionRef, Operation};

/// The thread's stretches are at least this share of the run.
const MUCH: f64 = 0.1;
/// All other threads together compute at least this part of the stretches' time: otherwise the program has in effect one thread.
const MEANWHILE: f64 = 0.5;
/// The thread wakes others at least this often for each stretch.
const WAKES: f64 = 0.5;

impl Search {
    /// The least time, nanoseconds, if what the thread computes alone overlaps with the others' work.
    pub(in crate::limit) fn without_serial_again(&self, run: &WatchedRun) -> Option<(Edit, f64)> {
        if self.hidden || run.cpus == Cpus::ONE || run.turns.is_some() {
            return None;
        }
        let again = run.again.as_ref().filter(|again| run.share(again.length) >= MUCH)?;
        let others = |thread: &usize| *thread != again.thread;
        let busy = run.base.threads.iter().enumerate().filter(|(thread, _)| others(thread));
        let busy = busy.fold(0u64, |sum, (_, used)| sum.saturating_add(used.busy));
        let wakes =
            self.program().threads.get(again.thread)?.operations.iter().filter(|op| wakes(op)).count();
        if (busy as f64) < MEANWHILE * again.length as f64 || (wakes as f64) < WAKES * again.times as f64 {
            return None;
        }
        let alone = self.computed_alone(again)?;
        let mut meanwhile = Sums::default();
        for thread in (0..self.program().threads.len()).filter(others) {
            holders::of_thread(self.program(), self.owners(), thread, None, &mut meanwhile);
        }
        // A thread that goes on alone with what the others do has more of it to do than they.
        if meanwhile.sorted().first().is_some_and(|(function, _)| *function == alone) {
            return None;
        }
        let among = run.cpus.or(usize::MAX) as f64;
        let gone = run.share(again.length) * (1.0 - 1.0 / among);
        let least = (1.0 - gone).max(run.busy() / among);
        let edit = Edit::Overlap { thread: again.thread, times: again.times, function: alone };
        Some((edit, run.time_ns() * least))
    }

    /// The function that the thread computes most in its longest stretches.
    fn computed_alone(&self, again: &Again) -> Option<FunctionRef> {
        let mut sums = Sums::default();
        for (before, length) in &again.longest {
            let range = Some((*before, before.saturating_add(*length)));
            holders::of_thread(self.program(), self.owners(), again.thread, range, &mut sums);
        }
        sums.sorted().first().map(|(function, _)| *function)
    }
}

/// Whether other threads may go on after the operation.
fn wakes(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Release(_)
            | Operation::CondSignal(_)
            | Operation::CondBroadcast(_)
            | Operation::SemPost(_)
            | Operation::Signal(_)
            | Operation::Barrier(..)
            | Operation::Create(_)
    )
}
