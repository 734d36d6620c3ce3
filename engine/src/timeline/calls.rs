//! Entries and exits of functions, and of stretches between two places.

use super::builder::Builder;
use super::model::Hit;
use super::thread::stack::{ExitOutcome, StepLog};
use super::thread::thread_tracker::ThreadTracker;
use crate::event::HitCost;
use crate::time::Timestamp;
use probe_abi::{FunctionEnter, FunctionExit, Header, NO_FRAME, SILENT_AT_ONCE};

impl Builder {
    pub(super) fn enters(&mut self, enter: &FunctionEnter) {
        let FunctionEnter { header, function, silent, stack_pointer } = *enter;
        let cost = self.costs.entry(function).map(|cost| self.costs.with_silent(cost, function, silent));
        let holds = self.probe_intervals.holds(header.pid, function, header.time_ns);
        let entry_only = self.probe_intervals.is_entry_only(function);
        // This record only counts hits that wrote no record; the function was not entered.
        let is_count = silent >= SILENT_AT_ONCE;
        self.function(&header, cost, |thread, log| {
            match holds {
                _ if is_count => {}
                true if stack_pointer == NO_FRAME => thread.stretches.begin(function, header.time_ns),
                true if entry_only => thread.stacks.touch(function, stack_pointer, log),
                true => thread.stacks.enter(function, stack_pointer, log),
                false if stack_pointer == NO_FRAME => {}
                false => thread.stacks.passes(stack_pointer, true, log),
            }
            None
        });
    }

    pub(super) fn leaves(&mut self, exit: &FunctionExit) {
        let FunctionExit { header, function, silent, stack_pointer } = *exit;
        let cost = self.costs.exit(function).map(|cost| self.costs.with_silent(cost, function, silent));
        let holds = self.probe_intervals.holds(header.pid, function, header.time_ns);
        self.function(&header, cost, |thread, log| {
            if stack_pointer == NO_FRAME {
                thread.stretches.end(function, header.time_ns);
                return None;
            }
            if holds {
                return Some((function, thread.stacks.exit(stack_pointer, log)));
            }
            thread.stacks.passes(stack_pointer, false, log);
            None
        });
    }

    fn function(
        &mut self,
        header: &Header,
        cost: Option<HitCost>,
        apply: impl FnOnce(&mut ThreadTracker, &mut StepLog<'_>) -> Option<(u32, ExitOutcome)>,
    ) {
        let index = self.seen_running(header);
        self.settle_pending_wakeup(index);
        let Builder { threads, tally, probe_intervals, .. } = self;
        let Some(thread) = index.and_then(|index| threads.get_mut(index as usize)) else { return };
        if let Some(HitCost { before_ns, after_ns, .. }) = cost {
            thread.out.hits.push(Hit { time: Timestamp(header.time_ns), before_ns, after_ns });
        }
        let mut steps = std::mem::take(&mut thread.out.steps);
        let mut log = StepLog { time: Timestamp(header.time_ns), steps: &mut steps };
        match apply(thread, &mut log) {
            // The function's probes were attached after the base stack began, so its exit does not prove that it was
            // open since then.
            Some((function, ExitOutcome::OpenSinceStart))
                if thread.out.base_stacks.last().is_some_and(|base| {
                    !probe_intervals.has_held_since(header.pid, function, base.time.0)
                }) =>
            {
                steps.pop();
            }
            Some((function, ExitOutcome::OpenSinceStart)) if !thread.functions_lost => {
                if let Some(base) = thread.out.base_stacks.last_mut() {
                    base.functions.push(function);
                }
            }
            Some((_, ExitOutcome::OpenSinceStart)) => {
                steps.pop();
                tally.stray_exits += 1;
            }
            Some((_, ExitOutcome::Stray)) => tally.stray_exits += 1,
            Some((_, ExitOutcome::Matched | ExitOutcome::Closed)) | None => {}
        }
        thread.out.steps = steps;
    }
}
