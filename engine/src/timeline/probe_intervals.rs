//! Finds which functions had probes at which times, according to the notes.
//!
//! Records of a function are valid only while all of its probes are attached. A call that began earlier or ended later
//! is known only from samples.
//!
//! - When a function loses its probes, its open calls are closed on every thread. Later records, from probes that are
//!   still being removed, are ignored.
//! - Probes come one by one. Records of a function in a process count from when all of its probes were attached. An
//!   exit without an entry proves that the function was open from the start only if its probes were there from the
//!   start.

use super::thread::stack::StepLog;
use super::thread::thread_tracker::{RunState, ThreadTracker};
use crate::event::{Facts, FunctionId, GapReason, Note, NoteKind};
use crate::time::Timestamp;
use probe_abi::Record;
use rustc_hash::{FxHashMap, FxHashSet};

/// Comparisons of threads with functions that lose probes, in all. Beyond it, all functions count as without probes: less is
/// known than was recorded, never more. Tests have a lower limit.
const MOST_LOOKS: u64 = if cfg!(test) { 1_000_000 } else { 500_000_000 };

/// The state at the current time.
#[derive(Clone, Debug, Default)]
pub(super) struct ProbeIntervals {
    /// Changes of probes that are yet to come, the next one last.
    coming: Vec<Change>,
    off: FxHashSet<FunctionId>,
    /// Time at which a function got its probes back, if it had lost them.
    since: FxHashMap<FunctionId, u64>,
    /// For each process and function: stretches in which probes were still being attached. Records in these stretches
    /// are not valid; earlier ones are from the program that the process ran before.
    added: FxHashMap<(u32, FunctionId), Vec<(u64, u64)>>,
    /// For each process: stretches in which probes of all of its functions were still being attached.
    late: FxHashMap<u32, Vec<(u64, u64)>>,
    /// Functions with probes at entries only; samples show how long they run.
    entry_only: FxHashSet<FunctionId>,
    looks: u64,
    given_up: bool,
}

#[derive(Clone, Debug)]
struct Change {
    time_ns: u64,
    on: bool,
    functions: Vec<FunctionId>,
}

impl ProbeIntervals {
    pub(super) fn new(facts: &Facts, notes: &[Note]) -> ProbeIntervals {
        let mut probe_intervals = ProbeIntervals::default();
        let mut beside: FxHashSet<(u32, u64)> = FxHashSet::default();
        let missing: FxHashMap<(u32, u64), u64> = notes
            .iter()
            .filter_map(|note| match note.kind {
                NoteKind::Gap { pid, until_ns, reason: GapReason::ProbesNotYetAttached, .. } => {
                    Some(((pid, until_ns), note.time_ns))
                }
                _ => None,
            })
            .collect();
        for note in notes {
            let (on, functions) = match &note.kind {
                NoteKind::ProbesOff { functions, .. } => (false, functions),
                NoteKind::ProbesOn { functions, pid } => {
                    if let Some(pid) = *pid {
                        beside.insert((pid, note.time_ns));
                        let from = missing.get(&(pid, note.time_ns)).copied().unwrap_or(0);
                        for function in functions {
                            let added = probe_intervals.added.entry((pid, *function)).or_default();
                            added.push((from, note.time_ns));
                        }
                    }
                    (true, functions)
                }
                NoteKind::Gap { .. }
                | NoteKind::Stack { .. }
                | NoteKind::Changed { .. }
                | NoteKind::InKernel { .. }
                | NoteKind::EndedUnprobed { .. } => continue,
            };
            probe_intervals.coming.push(Change { time_ns: note.time_ns, on, functions: functions.clone() });
        }
        for note in notes {
            // A gap with the same end as a `ProbesOn` note is about that note's functions only.
            if let NoteKind::Gap { pid, until_ns, reason: GapReason::ProbesNotYetAttached, .. } = note.kind
                && !beside.contains(&(pid, until_ns))
            {
                probe_intervals.late.entry(pid).or_default().push((note.time_ns, until_ns));
            }
        }
        probe_intervals.coming.sort_by_key(|change| change.time_ns);
        probe_intervals.coming.reverse();
        if facts.sampling.is_some() {
            let only = facts.functions.iter().filter(|function| !function.exits_probed);
            probe_intervals.entry_only = only.map(|function| function.id).collect();
        }
        // The facts already contain changes before the window's start.
        while let Some(change) = probe_intervals.next(facts.start_ns) {
            probe_intervals.apply(&change);
        }
        probe_intervals
    }

    /// Cuts stretches without probes at execs: before its exec, a process ran a program whose functions had probes.
    pub(super) fn begin_at_execs(&mut self, events: &[Record]) {
        if self.late.is_empty() && self.added.is_empty() {
            return;
        }
        let mut execs: FxHashMap<u32, Vec<u64>> = FxHashMap::default();
        for event in events {
            if let Record::Exec(exec) = event {
                execs.entry(exec.header.pid).or_default().push(exec.header.time_ns);
            }
        }
        let begin = |pid: u32, stretches: &mut Vec<(u64, u64)>| {
            for (from, until) in stretches {
                let earlier = execs.get(&pid).into_iter().flatten().filter(|exec| *exec <= until);
                *from = earlier.copied().max().map_or(*from, |exec| exec.max(*from));
            }
        };
        for (pid, stretches) in &mut self.late {
            begin(*pid, stretches);
        }
        for ((pid, _), stretches) in &mut self.added {
            begin(*pid, stretches);
        }
    }

    fn next(&mut self, time_ns: u64) -> Option<Change> {
        self.coming.pop_if(|change| change.time_ns <= time_ns)
    }

    fn apply(&mut self, change: &Change) {
        for function in &change.functions {
            if !change.on {
                self.off.insert(*function);
            } else if self.off.remove(function) {
                self.since.insert(*function, change.time_ns);
            }
        }
    }

    /// Applies all changes of probes up to `time_ns`; closes open calls of functions that lose theirs.
    pub(super) fn advance(&mut self, time_ns: u64, threads: &mut [ThreadTracker]) {
        while let Some(change) = self.next(time_ns) {
            self.apply(&change);
            if change.on || self.given_up {
                continue;
            }
            self.looks = self.looks.saturating_add(threads.len() as u64);
            self.given_up = self.looks > MOST_LOOKS;
            let all = self.given_up;
            let functions: FxHashSet<FunctionId> = change.functions.into_iter().collect();
            let gone = |function: FunctionId| all || functions.contains(&function);
            for thread in threads.iter_mut().filter(|thread| thread.state != RunState::Dead) {
                let mut log = StepLog { time: Timestamp(change.time_ns), steps: &mut thread.out.steps };
                thread.stacks.close(&gone, &mut log);
                thread.stretches.forget(&gone);
            }
        }
    }

    /// Whether a function's record in a process is valid at this time.
    pub(super) fn holds(&self, pid: u32, function: FunctionId, time_ns: u64) -> bool {
        !self.given_up
            && !self.off.contains(&function)
            && self
                .added
                .get(&(pid, function))
                .is_none_or(|added| !added.iter().any(|(from, until)| (*from..*until).contains(&time_ns)))
            && self
                .late
                .get(&pid)
                .is_none_or(|late| !late.iter().any(|(from, until)| (*from..*until).contains(&time_ns)))
    }

    /// Whether the function has had its probes in this process since `since_ns`.
    pub(super) fn has_held_since(&self, pid: u32, function: FunctionId, since_ns: u64) -> bool {
        self.since.get(&function).is_none_or(|since| *since <= since_ns)
            && self
                .added
                .get(&(pid, function))
                .is_none_or(|added| added.iter().all(|(_, until)| *until <= since_ns))
            && self.late.get(&pid).is_none_or(|late| late.iter().all(|(_, until)| *until <= since_ns))
    }

    /// Whether only entries of the function are recorded, while samples show its time.
    pub(super) fn is_entry_only(&self, function: FunctionId) -> bool {
        self.entry_only.contains(&function)
    }
}
