//! Sampling: a clock on every CPU, and what the programs are told of the processes' code.

use aya::{
    Ebpf,
    maps::{HashMap, MapData},
    programs::{
        PerfEvent,
        perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent},
    },
};
use engine::event::{CallGraph, SamplingFact};
use probe_abi::{COPY_PIECES, SampledCode, Sampling, Settings};
use zerocopy::transmute;

use super::{
    attach::{Link, program},
    capture::Capture,
    error::ProbeError,
};

/// The rings, by name.
pub(crate) const RINGS: [&str; probe_abi::MAX_RINGS] =
    ["SAMPLES_0", "SAMPLES_1", "SAMPLES_2", "SAMPLES_3", "SAMPLES_4", "SAMPLES_5", "SAMPLES_6", "SAMPLES_7"];

/// Bytes of each ring: a CPU that takes a stack of 16 KiB 1,500 times a second (a tick, a sleep and a wake-up in each
/// period) writes 1.2 MB in the longest pause between two turns, and up to eight CPUs share a ring.
pub(crate) fn ring_bytes(call_graph: CallGraph) -> u32 {
    match call_graph {
        CallGraph::Fp => 1 << 20,
        CallGraph::Auto | CallGraph::Dwarf => 8 << 20,
    }
}

impl Capture {
    /// Number of rings with samples: [`Capture::drain_samples`] numbers them from 0.
    pub fn sample_ring_count(&self) -> usize {
        self.sample_rings.count()
    }

    /// Hands samples that are there to `sink`, as the programs wrote them ([`probe_abi::RawStack`],
    /// [`probe_abi::RawCopy`]), until `enough` says so; whether the rings were emptied. Never waits.
    pub fn drain_samples(
        &mut self,
        sink: &mut dyn FnMut(usize, &[u8]),
        enough: &mut dyn FnMut() -> bool,
    ) -> bool {
        self.sample_rings.drain_until(sink, enough)
    }

    /// Tells the programs what is known of the code of processes; `None`: nothing any more. `false`: not now.
    pub fn tell_code(&self, codes: &[(u32, Option<SampledCode>)]) -> bool {
        let Some(mut probes) = self.common.try_lock() else { return false };
        for (pid, code) in codes {
            tell_code(&mut probes.ebpf, *pid, code.as_ref());
        }
        true
    }

    /// Samples that did not fit into their rings.
    pub fn samples_lost(&self) -> u64 {
        self.common.shared.cpu_totals().samples_lost
    }
}

/// What the programs do at a sample.
pub(crate) fn settings(settings: &mut Settings, sampling: Option<SamplingFact>) {
    let Some(SamplingFact { rate_hz, call_graph }) = sampling else { return };
    let sampling = match call_graph {
        CallGraph::Auto => Sampling::Chosen,
        CallGraph::Fp => Sampling::FramePointers,
        CallGraph::Dwarf => Sampling::Copies,
    };
    settings.sampling = sampling as u32;
    settings.sample_period_ns = 1_000_000_000 / rate_hz.max(1);
    settings.copy_pieces = COPY_PIECES as u32;
}

/// Lets the clocks of all CPUs tick.
pub(crate) fn attach(ebpf: &mut Ebpf, rate_hz: u32) -> Result<Vec<Link>, ProbeError> {
    let failed = |error: aya::programs::ProgramError| ProbeError::from_cause("sampling", &error);
    let cpus = aya::util::online_cpus()
        .map_err(|(path, error)| ProbeError::from_cause(format_args!("cannot read {path}"), &error))?;
    let program: &mut PerfEvent = program(ebpf, "sample_tick")?;
    program.load().map_err(failed)?;
    let mut links: Vec<Link> = Vec::new();
    for cpu in cpus {
        let link = program
            .attach(
                // The one clock that every machine has: virtual ones have no counters of cycles.
                PerfEventConfig::Software(SoftwareEvent::CpuClock),
                PerfEventScope::AllProcessesOneCpu { cpu },
                SamplePolicy::Frequency(u64::from(rate_hz.max(1))),
                false,
            )
            .map_err(failed)?;
        links.push(Box::new(program.take_link(link).map_err(failed)?));
    }
    Ok(links)
}

/// Tells the programs what is known of the code of a process; `None`: nothing. If there is no room its stacks are copied.
fn tell_code(ebpf: &mut Ebpf, pid: u32, code: Option<&SampledCode>) {
    const WORDS: usize = size_of::<SampledCode>() / 8;
    let Some(map) = ebpf.map_mut("SAMPLED_CODE") else { return };
    let Ok(mut map) = HashMap::<&mut MapData, u32, [u64; WORDS]>::try_from(map) else { return };
    let told = match code {
        Some(code) => {
            let words: [u64; WORDS] = transmute!(*code);
            map.insert(&pid, &words, 0)
        }
        None => {
            // It may never have been told.
            let _ = map.remove(&pid);
            Ok(())
        }
    };
    if let Err(error) = told {
        log::debug!("stacks of process {pid} are copied: {error}");
    }
}
