//! Loads the maps of the kernel programs, and then the programs, into the kernel. Nothing is attached yet.

use std::sync::{Arc, atomic::AtomicU64};

use aya::{
    Ebpf, EbpfLoader,
    maps::{MapData, RingBuf},
};
use aya_log::EbpfLogger;
use engine::event::SamplingFact;
use probe_abi::{
    CpuCounters, FunctionCounters, LibcSite, MAX_GROUPS, MAX_LIBC_SITES, MAX_OPEN_FRAMES, MAX_RINGS,
    PID_LIMIT, RATE_WINDOW_SHIFT,
};
use zerocopy::IntoBytes as _;

use super::overhead::preload_cost::SharedPreloadCost;
use crate::probe::breakpoints::{lock_probes, single_links};
use crate::probe::error::ProbeError;
use crate::probe::kernel::{KernelLayout, Shared, SharedWords, load_together, object, panicked};
use crate::probe::sources::{Placing, cpu_rings, sampling_clock};

/// Options that must be known before loading.
pub(crate) struct LoadOptions {
    pub(crate) children: bool,
    /// Whether each request of a TCP connection is recorded at both ends.
    pub(crate) exchanges: bool,
    /// Whether contexts of threads are looked at.
    pub(crate) thread_contexts: bool,
    /// Bytes of each ring, see [`cpu_rings::bytes`].
    pub(crate) ring_bytes: usize,
    /// Calls per second above which the kernel programs cut a function off; 0 = never.
    pub(crate) max_rate_hz: u64,
    /// Depth of calls in a thread below which no further calls are recorded; 0 = no limit.
    pub(crate) max_depth: u32,
    /// Number of functions that have counters; function numbers are below it.
    pub(crate) functions: u32,
    /// How stacks are sampled; `None`: stacks are not sampled.
    pub(crate) sampling: Option<SamplingFact>,
}

/// The loaded maps and programs, and the memory shared with them.
pub(crate) struct Loaded {
    pub(crate) ebpf: Ebpf,
    pub(crate) placings: Vec<Placing>,
    pub(crate) rings: Vec<RingBuf<MapData>>,
    /// Empty if nothing is sampled.
    pub(crate) sample_rings: Vec<RingBuf<MapData>>,
    pub(crate) shared: Arc<Shared>,
    /// Number of the first counters that belong to C libraries.
    pub(crate) first_libc_counters: u32,
    /// Reader of the function probes' warnings, if functions may get probes. Each flush passes them to the `log` crate.
    pub(crate) logger: Option<EbpfLogger<&'static dyn log::Log>>,
}

/// Loads the maps. The programs are loaded later, with `Loaded::programs` or as they are attached.
pub(crate) fn load(kernel: &KernelLayout, options: &LoadOptions) -> Result<Loaded, ProbeError> {
    let object = object()?;
    let mut settings = kernel.settings;

    let cpu_count = aya::util::nr_cpus()
        .map_err(|(path, error)| ProbeError::from_cause(format_args!("cannot read {path}"), &error))?
        .get();
    let rings = (cpu_count as usize).clamp(1, MAX_RINGS);
    let ring_bytes = cpu_rings::bytes(rings, options.ring_bytes);
    let first_libc_counters = options.functions.max(1);
    let functions = first_libc_counters.saturating_add(lock_probes::COUNTERS as u32);
    settings.own_pid = std::process::id();
    settings.children = u32::from(options.children);
    settings.exchanges = u32::from(options.exchanges);
    settings.thread_contexts = u32::from(options.thread_contexts);
    settings.rings = rings as u32;
    settings.ring_wake_bytes = (ring_bytes / 4) as u32;
    settings.calls_per_window = calls_per_window(options.max_rate_hz);
    settings.first_libc_counters = first_libc_counters;
    settings.max_depth = options.max_depth.min(MAX_OPEN_FRAMES as u32);

    sampling_clock::settings(&mut settings, options.sampling);

    let mut loader = EbpfLoader::new();
    loader.override_global("SETTINGS", settings.as_bytes(), true);
    loader.map_max_entries("CPUS", cpu_count);
    loader.map_max_entries("FUNCTIONS", functions);
    for name in [cpu_rings::RECORDS, cpu_rings::SAMPLES] {
        loader.map_max_entries(name, rings as u32);
    }
    if !options.thread_contexts {
        loader.map_max_entries("SEEN", 1);
    }
    if options.functions == 0 {
        // No function ever gets a probe, so no thread has an open call. These two maps would take megabytes.
        for name in ["THREADS", "OPERATIONS"] {
            loader.map_max_entries(name, 1);
        }
    }
    let changed = single_links::are_needed().then(|| {
        log::debug!("each breakpoint gets a link of its own: this kernel is older than 6.10");
        single_links::with_single_programs(object)
    });
    let mut ebpf = loader
        .load(changed.as_deref().unwrap_or(object))
        .map_err(|error| ProbeError::from_cause("cannot load the kernel programs", &error))?;
    let logger = (options.functions > 0).then(|| EbpfLogger::init(&mut ebpf)).and_then(|logger| {
        logger.inspect_err(|error| log::debug!("the kernel programs' warnings cannot be read: {error}")).ok()
    });
    let shared = Shared {
        tracked: SharedWords::of(&ebpf, "TRACKED", PID_LIMIT as usize / 64)?,
        cpus: SharedWords::of(&ebpf, "CPUS", cpu_count as usize * size_of::<CpuCounters>() / 8)?,
        cpu_count: cpu_count as usize,
        functions: SharedWords::of(
            &ebpf,
            "FUNCTIONS",
            functions as usize * size_of::<FunctionCounters>() / 8,
        )?,
        generations: SharedWords::of(&ebpf, "GENERATIONS", MAX_GROUPS)?,
        libc_sites: SharedWords::of(&ebpf, "LIBC_SITES", MAX_LIBC_SITES * size_of::<LibcSite>() / 8)?,
        unwinding_ns: AtomicU64::new(0),
        ticks_missed: AtomicU64::new(0),
        operations: SharedPreloadCost::default(),
    };
    let mut placings = Vec::new();
    let mut make = |array, bytes| {
        let (made, placing) = cpu_rings::make(&ebpf, array, rings, bytes)?;
        placings.push(placing);
        Ok(made)
    };
    let sample_rings = match options.sampling {
        Some(sampling) => make(
            cpu_rings::SAMPLES,
            sampling_clock::ring_bytes(sampling.call_graph, rings, cpu_rings::at_hand),
        )?,
        None => Vec::new(),
    };
    let rings = make(cpu_rings::RECORDS, ring_bytes)?;
    Ok(Loaded { ebpf, placings, rings, sample_rings, shared: Arc::new(shared), first_libc_counters, logger })
}

impl Loaded {
    /// Loads programs, and at the same time puts the rings into their arrays.
    pub(crate) fn programs(&mut self, kernel: &KernelLayout, names: &[&str]) -> Result<(), ProbeError> {
        let placings = std::mem::take(&mut self.placings);
        std::thread::scope(|scope| {
            let placed: Vec<_> =
                placings.into_iter().map(|placing| scope.spawn(move || placing.put())).collect();
            load_together(&mut self.ebpf, kernel, names)?;
            placed.into_iter().try_for_each(|placed| placed.join().unwrap_or_else(|_| Err(panicked())))
        })
    }
}

/// Calls in a rate window at `hz` calls per second; at least one, unless there is no limit.
fn calls_per_window(hz: u64) -> u32 {
    if hz == 0 {
        return 0;
    }
    let calls = u128::from(hz) * (1u128 << RATE_WINDOW_SHIFT) / 1_000_000_000;
    u32::try_from(calls.max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limit_becomes_calls_per_window() {
        assert_eq!(calls_per_window(0), 0);
        assert_eq!(calls_per_window(1), 1);
        assert_eq!(calls_per_window(10_000), 1342);
        assert_eq!(calls_per_window(u64::MAX), u32::MAX);
    }
}
