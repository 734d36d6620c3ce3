//! Takes the probes off functions that are called too often.
//!
//! The programs themselves stop recording a function in the very window in which its calls pass the limit, and note
//! when. Some ten milliseconds later this thread sees the note and takes the probes away, so that the function runs
//! at its own speed again.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use aya::Ebpf;
use aya_log::EbpfLogger;
use engine::event::{Note, NoteKind};
use probe_abi::{FunctionCounters, RATE_WINDOW_SHIFT};

use super::{functions::Functions, load::Shared};

/// How often the counters are looked at. A very hot function passes the limit early in the programs' window of 134 ms;
/// with this and the time of a new link it is free again within 200 ms.
const TICK: Duration = Duration::from_millis(20);

/// What the capture and its governor both work on.
pub(crate) struct Probes {
    pub(crate) ebpf: Ebpf,
    pub(crate) functions: Functions,
    pub(crate) notes: Vec<Note>,
    pub(crate) logger: Option<EbpfLogger<&'static dyn log::Log>>,
}

/// [`Probes`] between two threads.
pub(crate) struct Common {
    probes: Mutex<Probes>,
    pub(crate) shared: Arc<Shared>,
}

impl Common {
    pub(crate) fn new(probes: Probes, shared: Arc<Shared>) -> Common {
        Common { probes: Mutex::new(probes), shared }
    }

    /// `None` while the other thread is at work: replacing links takes some hundred milliseconds, in which whoever
    /// empties the rings must not wait.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Probes>> {
        match self.probes.try_lock() {
            Ok(probes) => Some(probes),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A panic elsewhere does not keep the probes from being taken off.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Probes> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs until `stop` is closed.
pub(crate) fn run(common: &Common, stop: &Receiver<()>) {
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(TICK) {
        tick(common);
    }
}

fn tick(common: &Common) {
    let mut probes = common.lock();
    let Probes { ebpf, functions, notes, logger } = &mut *probes;
    if let Some(logger) = logger {
        logger.flush();
    }
    let gone = |pid: u32| !common.shared.is_tracked(pid);
    if functions.processes().any(gone) {
        functions.remove_processes(&gone);
    }
    let mut hot = BTreeMap::new();
    for number in functions.probed() {
        if let Some(counters) = common.shared.function(number)
            && counters.cut_ns != 0
        {
            hot.insert(number, counters);
        }
    }
    if hot.is_empty() {
        return;
    }
    if let Err(error) = functions.shed(ebpf, &|number| hot.contains_key(&number)) {
        log::warn!("functions called too often keep their probes: {error}");
    }
    for (number, counters) in hot {
        notes.push(Note {
            time_ns: counters.cut_ns,
            kind: NoteKind::ProbesOff { functions: vec![number], rates: vec![rate_when_cut(&counters)] },
        });
    }
}

/// Calls per second in the window in which the limit was passed, up to then. At least the limit, since the window had
/// not ended.
fn rate_when_cut(counters: &FunctionCounters) -> u64 {
    let start_ns = counters.window << RATE_WINDOW_SHIFT;
    let elapsed_ns = counters.cut_ns.saturating_sub(start_ns).max(1);
    let rate = u128::from(counters.window_calls) * 1_000_000_000 / u128::from(elapsed_ns);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_window_up_to_the_cut() {
        let window = 1u64 << RATE_WINDOW_SHIFT;
        let counters =
            FunctionCounters { calls: 9, window: 3, window_calls: 500, cut_ns: 3 * window + 5_000_000 };
        assert_eq!(rate_when_cut(&counters), 100_000);
        let at_once = FunctionCounters { cut_ns: 3 * window, ..counters };
        assert_eq!(rate_when_cut(&at_once), 500_000_000_000);
    }
}
