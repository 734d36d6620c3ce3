//! Waits for locks whose operations were not recorded. They are replayed as they were, so that nothing that is taken away shows
//! what such a lock costs.

use super::Kind;
use crate::finding::Finding;
use crate::program::{FUTEX, Program, Recorded};
use probe_abi::SyncFamily;

/// At least this many threads wait for it on average.
const LEAST: f64 = 0.1;
/// With so large a share of the CPUs busy nothing but these limits.
const BUSY: f64 = 0.9;

/// What was not recorded.
#[derive(Clone, Debug)]
pub(super) struct UnrecordedLocks {
    word: String,
    waiting: f64,
}

impl UnrecordedLocks {
    /// The futex word that is waited for longest, if mutexes had no probes for some of the time.
    pub(super) fn of(program: &Program, recorded: &Recorded) -> Option<UnrecordedLocks> {
        let is_off = |finding: &Finding| matches!(finding, Finding::OperationsOff { family, .. } if family == SyncFamily::Mutex.name());
        if !program.findings.iter().any(is_off) {
            return None;
        }
        let wall_ns = program.overhead.map(|cost| cost.wall_ns).filter(|wall_ns| *wall_ns > 0)?;
        // One whose uses were put back is simulated.
        let words =
            recorded.objects.iter().filter(|object| object.kind == FUTEX && object.put_back.is_none());
        let word = words.max_by_key(|object| object.wait_ns)?;
        let waiting = word.wait_ns as f64 / wall_ns as f64;
        (waiting >= LEAST).then(|| UnrecordedLocks { word: word.name.clone(), waiting })
    }

    /// What is reported instead of a limit that the simulation finds where waits are replayed; `busy` is the
    /// share of the CPUs that are busy.
    pub(super) fn instead_of(&self, kind: &Kind, busy: f64) -> Option<Kind> {
        let is_doubtful = matches!(kind, Kind::HandOver { .. } | Kind::Cpus { .. } | Kind::Work { .. });
        (is_doubtful && busy < BUSY)
            .then(|| Kind::LocksNotRecorded { word: self.word.clone(), waiting: self.waiting })
    }
}
