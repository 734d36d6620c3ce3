//! Calls that were open when their function's probes were taken off. Their end can only be seen from the stack
//! pointer of something further out, so a hot recursive function keeps its outermost call, and a call that ended
//! unseen keeps time of its callers: this says how much time that can be.

use super::model::{State, StepKind, Thread, Timeline};
use crate::event::{FunctionId, NoteKind, Recording};
use rustc_hash::FxHashMap;

/// Functions whose doubtful share is said, at most.
const MAX_NAMED: usize = 5;

/// Functions in doubt with more than 1 % of all compute, the most first, with the time in which they ran on some
/// thread after their probes were taken off, ns.
pub(super) fn in_doubt(timeline: &Timeline, recording: &Recording) -> Vec<(FunctionId, u64)> {
    let off = taken_off(recording);
    if off.is_empty() {
        return Vec::new();
    }
    let (mut doubtful, mut compute) = (FxHashMap::default(), 0u64);
    for thread in &timeline.threads {
        let ran = Ran::of(thread);
        compute = compute.saturating_add(ran.total);
        add(thread, &ran, &off, &mut doubtful);
    }
    let mut doubtful: Vec<(FunctionId, u64)> =
        doubtful.into_iter().filter(|&(_, ns)| u128::from(ns) * 100 > u128::from(compute)).collect();
    doubtful.sort_unstable_by_key(|&(function, ns)| (std::cmp::Reverse(ns), function));
    doubtful.truncate(MAX_NAMED);
    doubtful
}

/// When each function first lost its probes.
fn taken_off(recording: &Recording) -> FxHashMap<FunctionId, u64> {
    let mut off: FxHashMap<FunctionId, u64> = FxHashMap::default();
    for note in &recording.notes {
        if let NoteKind::ProbesOff { functions, .. } = &note.kind {
            for &function in functions {
                let first = off.entry(function).or_insert(note.time_ns);
                *first = note.time_ns.min(*first);
            }
        }
    }
    off
}

/// Adds the time that one thread ran with such a function open. Functions open at the bottom are left out: only
/// an exit that was seen can have told of them.
fn add(
    thread: &Thread,
    ran: &Ran,
    off: &FxHashMap<FunctionId, u64>,
    doubtful: &mut FxHashMap<FunctionId, u64>,
) {
    let mut bases = thread.base_stacks.iter().peekable();
    let mut stack: Vec<Option<FunctionId>> = Vec::new();
    // How often it is open, and since when.
    let mut open: FxHashMap<FunctionId, (u32, u64)> = FxHashMap::default();
    let mut ends = |function: FunctionId, since: u64, until: u64| {
        let since = off.get(&function).map_or(until, |&off| off.max(since));
        let ns = ran.until(until).saturating_sub(ran.until(since));
        if ns > 0 {
            let sum: &mut u64 = doubtful.entry(function).or_insert(0);
            *sum = sum.saturating_add(ns);
        }
    };
    for (number, step) in (0u32..).zip(&thread.steps) {
        while let Some(base) = bases.next_if(|base| base.first_step <= number) {
            stack.extend(base.functions.iter().map(|_| None));
        }
        match step.kind {
            StepKind::Enter(function) => {
                let shed = off.contains_key(&function).then_some(function);
                if let Some(function) = shed {
                    open.entry(function).or_insert((0, step.time.0)).0 += 1;
                }
                stack.push(shed);
            }
            StepKind::Leave => {
                let Some(Some(function)) = stack.pop() else { continue };
                let Some((count, since)) = open.get_mut(&function) else { continue };
                *count = count.saturating_sub(1);
                if *count == 0 {
                    let since = *since;
                    open.remove(&function);
                    ends(function, since, step.time.0);
                }
            }
            StepKind::Wake(_) | StepKind::Create(_) | StepKind::Operated(_) => {}
        }
    }
    for (function, (_, since)) in open {
        ends(function, since, thread.end.0);
    }
}

/// How long a thread had run at any instant.
struct Ran {
    /// Start and end of each running interval, and how long it had run before.
    spans: Vec<(u64, u64, u64)>,
    total: u64,
}

impl Ran {
    fn of(thread: &Thread) -> Ran {
        let (mut spans, mut total) = (Vec::new(), 0u64);
        for (start, end, state) in thread.spans() {
            if matches!(state, State::Running { .. }) {
                spans.push((start.0, end.0, total));
                total = total.saturating_add(end.0.saturating_sub(start.0));
            }
        }
        Ran { spans, total }
    }

    fn until(&self, time_ns: u64) -> u64 {
        let after = self.spans.partition_point(|&(start, _, _)| start < time_ns);
        let last = after.checked_sub(1).and_then(|last| self.spans.get(last));
        last.map_or(0, |&(start, end, before)| before.saturating_add(time_ns.min(end).saturating_sub(start)))
    }
}
