//! Further outputs and inputs of a running capture: mappings, samples, and facts for the programs.

use super::capture::Capture;
use super::overhead::preload_cost::PreloadCost;
use crate::probe::sources::{NewMapping, context_places, now_ns, sampling_clock, this_thread_ns};
use probe_abi::{ContextPlace, SampledCode};
use std::sync::atomic::Ordering;

impl Capture {
    /// Files that recorded processes have mapped to execute since the last call.
    pub fn take_loaded(&mut self) -> Vec<NewMapping> {
        let Some(mappings) = &mut self.mappings else { return Vec::new() };
        if let Some(online) = self.common.take_online() {
            mappings.keep_up(&online, now_ns());
        }
        let shared = &self.common.shared;
        mappings.take(&|pid| shared.is_tracked(pid))
    }

    /// Whether [`Capture::take_loaded`] can return anything.
    pub fn tells_of_mappings(&self) -> bool {
        self.mappings.is_some()
    }

    /// Sets the cost of the library in the target. The overhead budget counts it, though it cannot reduce it.
    pub fn see_operations(&self, seen: &PreloadCost) {
        self.common.shared.operations.store(seen);
    }

    /// Number of rings with samples: [`Capture::drain_samples`] numbers them from 0.
    pub fn sample_ring_count(&self) -> usize {
        self.sample_rings.count()
    }

    /// Passes samples to `sink`, as the programs wrote them ([`probe_abi::RawStack`], [`probe_abi::RawCopy`]), until
    /// `enough` is true. Returns whether the rings were emptied. Never waits.
    pub fn drain_samples(
        &mut self,
        sink: &mut dyn FnMut(usize, &[u8]),
        enough: &mut dyn FnMut() -> bool,
    ) -> bool {
        let before_ns = this_thread_ns();
        let emptied = self.sample_rings.drain_until(sink, enough);
        let took_ns = this_thread_ns().saturating_sub(before_ns);
        self.common.shared.unwinding_ns.fetch_add(took_ns, Ordering::Relaxed);
        emptied
    }

    /// Gives the programs facts about processes' code; `None`: removes them. `false`: not possible now, to be tried again.
    pub fn tell_code(&self, codes: &[(u32, Option<SampledCode>)]) -> bool {
        let Some(mut probes) = self.common.try_lock() else { return false };
        for (pid, code) in codes {
            sampling_clock::tell_code(&mut probes.ebpf, *pid, code.as_ref());
        }
        true
    }

    /// Tells the programs where processes publish the contexts of their threads; `None`: nowhere. `false`: not possible now, to be
    /// tried again.
    pub fn tell_contexts(&self, places: &[(u32, Option<ContextPlace>)]) -> bool {
        let Some(mut probes) = self.common.try_lock() else { return false };
        for (pid, place) in places {
            context_places::tell(&mut probes.ebpf, *pid, *place);
        }
        true
    }

    /// Tells the programs where the program publishes contexts that a process at the gate will execute.
    pub fn expect_contexts(&self, pid: u32, place: ContextPlace) {
        context_places::tell(&mut self.common.lock().ebpf, pid, Some(place));
    }

    /// Ticks without a stack: skipped to stay within the budget, or missing because the clock did not tick on that CPU
    /// yet.
    pub fn samples_left_out(&self) -> u64 {
        let shared = &self.common.shared;
        shared.cpu_totals().ticks_left_out.saturating_add(shared.ticks_missed.load(Ordering::Relaxed))
    }

    /// Samples that did not fit into their rings.
    pub fn samples_lost(&self) -> u64 {
        self.common.shared.cpu_totals().samples_lost
    }
}
