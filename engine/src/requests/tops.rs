//! The innermost function with probes of each thread, over time.

use crate::event::FunctionId;
use crate::program::{FunctionRef, functions_used};
use crate::timeline::{StepKind, Thread, Timeline};
use rustc_hash::FxHashMap;

/// For each thread: the times at which its innermost function changes, ns, with the new function, ascending.
#[derive(Debug, Default)]
pub(super) struct Tops(Vec<Vec<(u64, Option<FunctionRef>)>>);

impl Tops {
    pub(super) fn of(timeline: &Timeline) -> Tops {
        let used = functions_used(timeline);
        let numbers: FxHashMap<FunctionId, FunctionRef> =
            used.into_iter().zip((0u32..).map(FunctionRef)).collect();
        Tops(timeline.threads.iter().map(|thread| of_thread(thread, &numbers)).collect())
    }

    /// Number of changes in all threads.
    pub(super) fn count(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// The last change before this time, and the function from then on; `(0, None)` without a change.
    pub(super) fn before(&self, thread: u32, time: u64) -> (u64, Option<FunctionRef>) {
        let changes = self.0.get(thread as usize).map_or(&[][..], Vec::as_slice);
        let next = changes.partition_point(|(from, _)| *from < time);
        next.checked_sub(1).and_then(|last| changes.get(last)).copied().unwrap_or((0, None))
    }
}

fn of_thread(
    thread: &Thread,
    numbers: &FxHashMap<FunctionId, FunctionRef>,
) -> Vec<(u64, Option<FunctionRef>)> {
    let mut changes: Vec<(u64, Option<FunctionRef>)> = Vec::new();
    let mut stack: Vec<FunctionId> = Vec::new();
    let mut bases = thread.base_stacks.iter().peekable();
    let mut set = |time: u64, stack: &[FunctionId]| {
        let top = stack.last().and_then(|function| numbers.get(function).copied());
        let time = changes.last().map_or(time, |(last, _)| time.max(*last));
        match changes.last_mut() {
            Some(last) if last.0 == time => last.1 = top,
            Some(last) if last.1 == top => {}
            _ => changes.push((time, top)),
        }
    };
    for (number, step) in (0u32..).zip(&thread.steps) {
        while let Some(base) = bases.next_if(|base| base.first_step <= number) {
            stack.clear();
            stack.extend(base.functions.iter().rev());
            set(base.time.0, &stack);
        }
        match step.kind {
            StepKind::Enter(function) => stack.push(function),
            StepKind::Leave => drop(stack.pop()),
            _ => continue,
        }
        set(step.time.0, &stack);
    }
    for base in bases {
        stack.clear();
        stack.extend(base.functions.iter().rev());
        set(base.time.0, &stack);
    }
    changes
}
