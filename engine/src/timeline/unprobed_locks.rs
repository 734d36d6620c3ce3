//! Finds synchronization operations that are missing from some time on because their probes were removed. A thread that
//! held a lock at that time may have released it at any later time.

use super::model::{StepKind, Timeline};
use crate::event::{GapReason, Note, NoteKind, OperationsTried};
use crate::finding::Finding;
use probe_abi::SyncFamily;
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of such times that are used for one process, since each concerns all of its threads. A process has
/// one for each family and each program that it runs.
const MOST_OF_A_PROCESS: usize = 256;

/// Times from which on operations of a process are missing, the next one last.
#[derive(Clone, Debug, Default)]
pub(super) struct UnprobedLocks {
    coming: Vec<(u64, u32, SyncFamily)>,
    /// For each process: the latest of these times so far.
    since: BTreeMap<u32, u64>,
    /// For each process: families whose operations are missing until the process runs another program.
    missing: BTreeMap<u32, BTreeSet<SyncFamily>>,
    /// Number of [`StepKind::Hole`] so far.
    holes: u32,
}

impl UnprobedLocks {
    /// Collects these times from the notes.
    pub(super) fn new(notes: &[Note]) -> UnprobedLocks {
        let mut of_process: BTreeMap<u32, usize> = BTreeMap::new();
        let mut is_one_of_few = |pid| {
            let count = of_process.entry(pid).or_insert(0);
            *count += 1;
            *count <= MOST_OF_A_PROCESS
        };
        let mut coming: Vec<(u64, u32, SyncFamily)> =
            off(notes).filter(|&(_, pid, _)| is_one_of_few(pid)).collect();
        coming.sort_unstable_by_key(|&instant| std::cmp::Reverse(instant));
        UnprobedLocks { coming, ..UnprobedLocks::default() }
    }

    /// The next instant up to `time_ns` from which on operations of a process are missing.
    pub(super) fn next(&mut self, time_ns: u64) -> Option<(u64, u32)> {
        let (from_ns, pid, family) = self.coming.pop_if(|&mut (from_ns, ..)| from_ns <= time_ns)?;
        self.since.insert(pid, from_ns);
        self.missing.entry(pid).or_default().insert(family);
        Some((from_ns, pid))
    }

    /// The step from which on a thread is not known to hold any lock.
    pub(super) fn hole(&mut self) -> StepKind {
        let number = self.holes;
        self.holes = number.saturating_add(1);
        StepKind::Hole(number)
    }

    /// A process runs another program: operations of that program are recorded.
    pub(super) fn exec(&mut self, pid: u32) {
        self.missing.remove(&pid);
    }

    /// Whether the counterpart of an operation that began at `began_ns` may be missing.
    ///
    /// So it is if the operation began before some family lost its probes, or while probes of its own family were removed one
    /// by one.
    pub(super) fn is_cut(&self, pid: u32, family: SyncFamily, began_ns: u64) -> bool {
        self.since.get(&pid).is_some_and(|&since_ns| began_ns <= since_ns)
            || self.missing.get(&pid).is_some_and(|missing| missing.contains(&family))
    }
}

/// Instants, processes and families of missing operations.
fn off(notes: &[Note]) -> impl Iterator<Item = (u64, u32, SyncFamily)> {
    notes.iter().filter_map(|note| match note.kind {
        NoteKind::Gap { pid, reason: GapReason::OperationsOff { family, .. }, .. } => {
            Some((note.time_ns, pid, SyncFamily::from_number(family)?))
        }
        _ => None,
    })
}

/// Processes and families whose operations are missing from some instant on; ascending.
pub(super) fn families_removed(notes: &[Note]) -> Vec<(u32, SyncFamily)> {
    let mut families_removed: Vec<(u32, SyncFamily)> =
        off(notes).map(|(_, pid, family)| (pid, family)).collect();
    families_removed.sort_unstable();
    families_removed.dedup();
    families_removed
}

/// One finding for each family that lost its probes, and one for each family that never had any.
pub(super) fn findings(timeline: &Timeline, notes: &[Note]) -> impl Iterator<Item = Finding> {
    let mut lost: BTreeMap<SyncFamily, (u64, usize)> = BTreeMap::new();
    let mut never: BTreeMap<SyncFamily, (OperationsTried, usize)> = BTreeMap::new();
    for note in notes {
        let NoteKind::Gap { reason: GapReason::OperationsOff { family, tried }, .. } = note.kind else {
            continue;
        };
        let Some(family) = SyncFamily::from_number(family) else { continue };
        if let Some(tried) = tried {
            // If there are several processes, the numbers of the most expensive one are used.
            let (dearest, processes) = never.entry(family).or_insert((tried, 0));
            if tried.cost_ppm > dearest.cost_ppm {
                *dearest = tried;
            }
            *processes += 1;
        } else {
            let (first, processes) = lost.entry(family).or_insert((note.time_ns, 0));
            *first = note.time_ns.min(*first);
            *processes += 1;
        }
    }
    let start_ns = timeline.start.0;
    let lost = lost.into_iter().map(move |(family, (first_ns, processes))| Finding::OperationsOff {
        family: family.name().to_owned(),
        processes,
        after_ns: Some(first_ns.saturating_sub(start_ns)),
        tried: None,
    });
    let never = never.into_iter().map(|(family, (tried, processes))| Finding::OperationsOff {
        family: family.name().to_owned(),
        processes,
        after_ns: None,
        tried: Some(tried),
    });
    lost.chain(never)
}
