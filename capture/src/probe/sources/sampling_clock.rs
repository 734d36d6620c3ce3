//! Sampling: the clocks of all CPUs, and facts about the processes' code for the kernel programs.

use aya::{
    Ebpf,
    maps::{Array, HashMap, MapData, ProgramArray},
    programs::{
        BtfTracePoint, PerfEvent,
        perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent},
    },
};
use engine::event::{CallGraph, SamplingFact};
use probe_abi::{COPY_PIECES, SampledCode, Sampling, Settings};
use std::collections::BTreeMap;
use std::thread::JoinHandle;
use zerocopy::transmute;

use super::clocks::{self, now_ns};
use super::coverage::Coverage;
use super::cpu_rings;
use crate::boot_cache;
use crate::probe::error::{ProbeError, no_map};
use crate::probe::kernel::{KernelLayout, Link, Shared, close_together, load_together, program};
use crate::probe::options::CaptureOptions;
use crate::probe::overhead::adaptive_sampling::AdaptiveSampling;

/// Sleeps and wake-ups of a thread are sampled at most once in this many periods of the clock: there may be
/// many more threads than CPUs, and the same few places come again and again.
const EVENTS_APART: u32 = 4;

/// The kernel program that runs at a tick.
pub(crate) const TICK: &str = "sample_tick";

/// The programs that take stacks at sleeps and wake-ups, and the maps by which the scheduler's programs call them.
pub(crate) const AT_EVENTS: [(&str, &str); 2] =
    [("sample_block", "BLOCK_SAMPLER"), ("sample_wake", "WAKE_SAMPLER")];

/// Bytes of each of `rings` rings. With 1,500 stacks of 16 KiB a second (at ticks, and at sleeps and wake-ups of many
/// threads), a CPU writes 1.2 MB in the longest pause between two turns. If there are many CPUs, not all of them
/// do. `at_hand`: how much of a wanted total is available.
pub(crate) fn ring_bytes(call_graph: CallGraph, rings: usize, at_hand: impl Fn(usize) -> usize) -> usize {
    match call_graph {
        CallGraph::Fp => cpu_rings::share(rings, at_hand(32 << 20), 64 << 10..=1 << 20),
        CallGraph::Auto | CallGraph::Dwarf => {
            cpu_rings::share(rings, at_hand(128 << 20), 256 << 10..=4 << 20)
        }
    }
}

/// Sets what the programs do at a sample.
pub(crate) fn settings(settings: &mut Settings, sampling: Option<SamplingFact>) {
    let Some(SamplingFact { rate_hz, call_graph }) = sampling else { return };
    let sampling = match call_graph {
        CallGraph::Auto => Sampling::Chosen,
        CallGraph::Fp => Sampling::FramePointers,
        CallGraph::Dwarf => Sampling::Copies,
    };
    settings.sampling = sampling as u32;
    settings.sample_period_ns = (1_000_000_000 / rate_hz.max(1)).saturating_mul(EVENTS_APART);
    settings.copy_pieces = COPY_PIECES as u32;
}

/// Returns the clock, if wanted; the cost of a tick to its thread, in nanoseconds; and the choice of its rate.
pub(crate) fn start(
    ebpf: &mut Ebpf,
    shared: &Shared,
    options: &CaptureOptions,
) -> Result<(Option<Clock>, u64, AdaptiveSampling), ProbeError> {
    let asked = AdaptiveSampling::asked(options.budget_ppm);
    let Some(SamplingFact { rate_hz, .. }) = options.sampling else { return Ok((None, 0, asked)) };
    let mut clock = Clock::new(rate_hz);
    let [tick_ns] = boot_cache::measured("tick", || clock.tick_ns(ebpf).map(|ns| [ns])).unwrap_or([0]);
    log::debug!("a tick costs {tick_ns} ns");
    let adaptive = match options.fitting_samples {
        true => AdaptiveSampling::fitting(options.budget_ppm, rate_hz, tick_ns),
        false => asked,
    };
    clock.slow(ebpf, adaptive.level())?;
    let online = aya::util::online_cpus()
        .map_err(|(path, error)| ProbeError::from_cause(format_args!("cannot read {path}"), &error))?;
    clock.follow(ebpf, shared, &online)?;
    Ok((Some(clock), tick_ns, adaptive))
}

/// Starts taking stacks at sleeps and wake-ups, too; until then only scheduler events record these.
pub(crate) fn start_at_events(ebpf: &mut Ebpf, kernel: &KernelLayout) -> Result<(), ProbeError> {
    load_together(ebpf, kernel, &AT_EVENTS.map(|(name, _)| name))?;
    for (name, place) in AT_EVENTS {
        let program: &mut BtfTracePoint = program(ebpf, name)?;
        let program = program
            .fd()
            .map_err(failed)?
            .try_clone()
            .map_err(|error| ProbeError::from_cause(format_args!("program {name}"), &error))?;
        let map = ebpf.map_mut(place).ok_or_else(|| no_map(place))?;
        ProgramArray::try_from(map)
            .and_then(|mut map| map.set(0, &program, 0))
            .map_err(|error| ProbeError::from_cause(format_args!("map {place}"), &error))?;
    }
    Ok(())
}

/// The clocks of all CPUs. They stop when this is dropped.
pub(crate) struct Clock {
    /// The rate that was asked for.
    rate_hz: u32,
    /// Shift for skipped ticks: one tick of 2^`skip_shift` comes.
    skip_shift: u32,
    links: BTreeMap<u32, Link>,
    coverage: Coverage,
}

impl Clock {
    /// A stopped clock. Its program, [`TICK`], must have been loaded.
    pub(crate) fn new(rate_hz: u32) -> Clock {
        Clock { rate_hz, skip_shift: 0, links: BTreeMap::new(), coverage: Coverage::default() }
    }

    /// The cost of a tick to the interrupted thread, nanoseconds, without taking a stack; `None` if it could not be
    /// measured. On a virtual machine it may be ten times as much as on a real one. Nothing is recorded during the
    /// measurement.
    pub(crate) fn tick_ns(&self, ebpf: &mut Ebpf) -> Option<u64> {
        const PERIOD_NS: u64 = 200_000;
        let own = PerfEventScope::CallingProcess { cpu: None };
        let link = tick(ebpf, own, SamplePolicy::Period(PERIOD_NS)).ok()?;
        let median = clocks::interruption_ns(PERIOD_NS);
        // Closing waits for all CPUs; this thread need not.
        drop(close_together(vec![link]));
        median
    }

    /// Stops the clocks; returns the threads that do it, which wait for all CPUs.
    pub(crate) fn stop(&mut self) -> Vec<JoinHandle<()>> {
        close_together(std::mem::take(&mut self.links).into_values().collect())
    }

    /// Lets only one tick of 2^`skip_shift` come from now on.
    pub(crate) fn slow(&mut self, ebpf: &mut Ebpf, skip_shift: u32) -> Result<(), ProbeError> {
        // All clocks are stopped before they start again, so that no tick comes twice. Closing waits for all CPUs.
        for closing in self.stop() {
            // A panic in the thread would have been reported.
            let _ = closing.join();
        }
        set_skip_shift(ebpf, OF_TICKS, skip_shift)?;
        self.skip_shift = skip_shift;
        self.tick_on(ebpf, &self.coverage.ticking())
    }

    /// Lets the clocks tick where recorded threads run, also on CPUs that have come online since, and nowhere
    /// else. Returns the number of ticks that were missing where recorded threads ran.
    pub(crate) fn follow(
        &mut self,
        ebpf: &mut Ebpf,
        shared: &Shared,
        online: &[u32],
    ) -> Result<u64, ProbeError> {
        let changes = self.coverage.look(now_ns(), online, &|cpu| shared.seen_on(cpu));
        let off: Vec<Link> = changes.off.iter().filter_map(|cpu| self.links.remove(cpu)).collect();
        if !off.is_empty() {
            log::debug!("no ticks any more on CPUs {:?}", changes.off);
            // No thread must wait until these clocks are stopped.
            drop(close_together(off));
        }
        if let Err(error) = self.tick_on(ebpf, &changes.on) {
            let without: Vec<u32> =
                changes.on.into_iter().filter(|cpu| !self.links.contains_key(cpu)).collect();
            self.coverage.not_ticking(&without);
            return Err(error);
        }
        Ok(u64::from(self.now_hz()).saturating_mul(changes.missed_ns) / 1_000_000_000)
    }

    fn now_hz(&self) -> u32 {
        self.rate_hz.checked_shr(self.skip_shift).unwrap_or(0).max(1)
    }

    fn tick_on(&mut self, ebpf: &mut Ebpf, cpus: &[u32]) -> Result<(), ProbeError> {
        let policy = SamplePolicy::Frequency(u64::from(self.now_hz()));
        for &cpu in cpus {
            let scope = PerfEventScope::AllProcessesOneCpu { cpu };
            match tick(ebpf, scope, policy) {
                Ok(link) => drop(self.links.insert(cpu, link)),
                // The CPU has just gone offline: the next check notices that.
                Err(error) if !is_online(cpu) => log::debug!("no ticks on CPU {cpu}: {}", error.message),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Indices in the programs' map of skip shifts.
const OF_TICKS: u32 = 0;
const OF_EVENTS: u32 = 1;

/// Makes samples at sleeps and wake-ups of a thread rarer by a factor of 2^`skip_shift` from now on.
pub(crate) fn space_events(ebpf: &mut Ebpf, skip_shift: u32) -> Result<(), ProbeError> {
    set_skip_shift(ebpf, OF_EVENTS, skip_shift)
}

fn set_skip_shift(ebpf: &mut Ebpf, of: u32, skip_shift: u32) -> Result<(), ProbeError> {
    let Some(map) = ebpf.map_mut("SAMPLE_SKIP_SHIFT") else { return Ok(()) };
    Array::<&mut MapData, u64>::try_from(map)
        .and_then(|mut map| map.set(of, &u64::from(skip_shift), 0))
        .map_err(|error| ProbeError::from_cause("sampling", &error))
}

fn is_online(cpu: u32) -> bool {
    aya::util::online_cpus().map_or(true, |online| online.contains(&cpu))
}

fn failed(error: aya::programs::ProgramError) -> ProbeError {
    ProbeError::from_cause("sampling", &error)
}

fn tick(ebpf: &mut Ebpf, scope: PerfEventScope, policy: SamplePolicy) -> Result<Link, ProbeError> {
    let program: &mut PerfEvent = program(ebpf, TICK)?;
    // The only clock that every machine has: virtual machines have no cycle counters.
    let config = PerfEventConfig::Software(SoftwareEvent::CpuClock);
    let link = program.attach(config, scope, policy, false).map_err(failed)?;
    Ok(Box::new(program.take_link(link).map_err(failed)?))
}

/// Gives the programs facts about the code of a process; `None`: removes them. If there is no room, its stacks are copied.
pub(crate) fn tell_code(ebpf: &mut Ebpf, pid: u32, code: Option<&SampledCode>) {
    const WORDS: usize = size_of::<SampledCode>() / 8;
    let Some(map) = ebpf.map_mut("SAMPLED_CODE") else { return };
    let Ok(mut map) = HashMap::<&mut MapData, u32, [u64; WORDS]>::try_from(map) else { return };
    let told = match code {
        Some(code) => {
            let words: [u64; WORDS] = transmute!(*code);
            map.insert(&pid, &words, 0)
        }
        None => {
            // The map may have no entry for the process.
            let _ = map.remove(&pid);
            Ok(())
        }
    };
    if let Err(error) = told {
        log::debug!("stacks of process {pid} are copied: {error}");
    }
}
