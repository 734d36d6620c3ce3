//! Takes the probes off functions that are called too often.
//!
//! The programs themselves stop recording a function in the very window in which its calls pass the limit, and note
//! when. Some ten milliseconds later this thread sees the note and takes the probes away, so that the function runs
//! at its own speed again.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use aya::Ebpf;
use aya_log::EbpfLogger;
use engine::event::{Note, NoteKind};

use super::{attach::Functions, load::Shared};

/// How often the counters are looked at: with the programs' own window (134 ms) at most, and a new link's time, a
/// hot function is free again within 200 ms.
const TICK: Duration = Duration::from_millis(40);

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

    /// A panic elsewhere does not keep the probes from being taken off.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Probes> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs until `stop` is closed.
pub(crate) fn run(common: &Common, limit_hz: u64, stop: &Receiver<()>) {
    let mut before = Rates::new();
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(TICK) {
        tick(common, limit_hz, &mut before);
    }
}

/// Calls of each function at the last tick.
struct Rates {
    calls: HashMap<u32, u64>,
    at: Instant,
}

impl Rates {
    fn new() -> Rates {
        Rates { calls: HashMap::new(), at: Instant::now() }
    }
}

fn tick(common: &Common, limit_hz: u64, before: &mut Rates) {
    let mut probes = common.lock();
    if let Some(logger) = &mut probes.logger {
        logger.flush();
    }
    let gone = |pid: u32| !common.shared.is_tracked(pid);
    if probes.functions.processes().any(gone) {
        probes.functions.remove_processes(&gone);
    }

    let now = Instant::now();
    let elapsed = now.duration_since(before.at).as_secs_f64().max(1e-3);
    let mut hot = HashMap::new();
    let mut calls = HashMap::new();
    for number in probes.functions.probed() {
        let Some(counters) = common.shared.function(number) else { continue };
        if counters.cut_ns != 0 {
            let new = counters.calls.saturating_sub(before.calls.get(&number).copied().unwrap_or(0));
            // A burst is shorter than a tick: it was above the limit all the same.
            let rate = ((new as f64 / elapsed) as u64).max(limit_hz);
            hot.insert(number, (counters.cut_ns, rate));
        } else {
            calls.insert(number, counters.calls);
        }
    }
    *before = Rates { calls, at: now };
    if hot.is_empty() {
        return;
    }
    let Probes { ebpf, functions, notes, .. } = &mut *probes;
    if let Err(error) = functions.shed(ebpf, &|number| hot.contains_key(&number)) {
        log::warn!("functions called too often keep their probes: {error}");
    }
    let mut hot: Vec<_> = hot.into_iter().collect();
    hot.sort_by_key(|(number, (cut_ns, _))| (*cut_ns, *number));
    for same in hot.chunk_by(|a, b| a.1.0 == b.1.0) {
        notes.push(Note {
            time_ns: same[0].1.0,
            kind: NoteKind::ProbesOff {
                functions: same.iter().map(|(number, _)| *number).collect(),
                rates: same.iter().map(|(_, (_, rate))| *rate).collect(),
            },
        });
    }
}
