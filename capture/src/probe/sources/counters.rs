//! Counts of losses, read from the places where the kernel keeps them.

use std::{
    mem::offset_of,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd},
    sync::atomic::Ordering,
};

use aya::Ebpf;
use engine::event::LossCounts;
use probe_abi::{CpuCounters, FunctionCounters};

use crate::probe::kernel::Shared;

/// Counts of one kernel program's runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgramCost {
    /// Name of the program, which is the name of its tracepoint.
    pub name: String,
    /// Number of runs.
    pub runs: u64,
    /// Total time of the runs, nanoseconds.
    pub total_ns: u64,
    /// Runs that the kernel skipped because the program was already running on that CPU.
    pub missed: u64,
}

impl Shared {
    fn cpus(&self) -> impl Iterator<Item = (u16, CpuCounters)> {
        const WORDS: usize = size_of::<CpuCounters>() / 8;
        (0..=u16::MAX).take(self.cpu_count).filter_map(|cpu| {
            let words = self.cpus.value::<WORDS>(usize::from(cpu))?;
            Some((cpu, zerocopy::transmute!(words)))
        })
    }

    /// CPUs that lost records, and how many records each has tried to write.
    pub(crate) fn lossy_cpus(&self) -> impl Iterator<Item = (u16, u64)> {
        self.cpus().filter(|(_, one)| one.dropped > 0).map(|(cpu, one)| (cpu, one.sequence))
    }

    /// A count that grows whenever a recorded thread runs on this CPU, since switches to it there are recorded.
    pub(crate) fn seen_on(&self, cpu: u32) -> u64 {
        const WORDS: usize = size_of::<CpuCounters>() / 8;
        let counters: Option<CpuCounters> =
            self.cpus.value::<WORDS>(cpu as usize).map(|words| zerocopy::transmute!(words));
        counters.map_or(0, |one| one.sequence.wrapping_add(one.ticks))
    }

    /// Sum over all CPUs.
    pub(crate) fn cpu_totals(&self) -> CpuCounters {
        let mut total = CpuCounters::default();
        for (_, one) in self.cpus() {
            total.sequence = total.sequence.saturating_add(one.sequence);
            total.dropped = total.dropped.saturating_add(one.dropped);
            total.folded = total.folded.saturating_add(one.folded);
            total.cut = total.cut.saturating_add(one.cut);
            total.unfolded = total.unfolded.saturating_add(one.unfolded);
            total.unseen_switches = total.unseen_switches.saturating_add(one.unseen_switches);
            total.entries = total.entries.saturating_add(one.entries);
            total.libc_hits = total.libc_hits.saturating_add(one.libc_hits);
            total.libc_records = total.libc_records.saturating_add(one.libc_records);
            total.exits = total.exits.saturating_add(one.exits);
            total.samples = total.samples.saturating_add(one.samples);
            total.ticks_elsewhere = total.ticks_elsewhere.saturating_add(one.ticks_elsewhere);
            total.ticks = total.ticks.saturating_add(one.ticks);
            total.samples_ns = total.samples_ns.saturating_add(one.samples_ns);
            total.event_samples = total.event_samples.saturating_add(one.event_samples);
            total.event_samples_ns = total.event_samples_ns.saturating_add(one.event_samples_ns);
            total.ticks_left_out = total.ticks_left_out.saturating_add(one.ticks_left_out);
            total.samples_lost = total.samples_lost.saturating_add(one.samples_lost);
            total.stale = total.stale.saturating_add(one.stale);
            total.network_interrupts = total.network_interrupts.saturating_add(one.network_interrupts);
            total.possible_own_packets = total.possible_own_packets.saturating_add(one.possible_own_packets);
            total.own_packets = total.own_packets.saturating_add(one.own_packets);
        }
        total
    }

    /// The counters of a function; `None` for an unknown number.
    pub(crate) fn function(&self, number: u32) -> Option<FunctionCounters> {
        const WORDS: usize = size_of::<FunctionCounters>() / 8;
        let words = self.functions.value::<WORDS>(number as usize)?;
        Some(zerocopy::transmute!(words))
    }

    /// Lets a function that was cut for being called too often be recorded again.
    pub(crate) fn forgive(&self, number: u32) {
        const WORDS: usize = size_of::<FunctionCounters>() / 8;
        const CUT: usize = std::mem::offset_of!(FunctionCounters, cut_ns) / 8;
        let word = (number as usize).checked_mul(WORDS).and_then(|first| first.checked_add(CUT));
        if let Some(word) = word.and_then(|word| self.functions.word(word)) {
            word.store(0, Ordering::SeqCst);
        }
    }

    /// The losses that the kernel programs count; `late` and `undecodable` are found later.
    pub(crate) fn loss(&self, missed: u64) -> LossCounts {
        let total = self.cpu_totals();
        LossCounts {
            dropped: total.dropped,
            missed,
            unseen_switches: total.unseen_switches,
            recursion_folded: total.folded,
            ..LossCounts::default()
        }
    }
}

/// Costs of all loaded programs.
pub(crate) fn program_costs(ebpf: &Ebpf) -> Vec<ProgramCost> {
    let mut costs = Vec::new();
    for (name, program) in ebpf.programs() {
        // Programs that are not loaded have no descriptor.
        let Ok(descriptor) = program.fd() else { continue };
        let Some(info) = program_info(descriptor.as_fd()) else { continue };
        costs.push(ProgramCost {
            name: name.to_owned(),
            runs: info.run_count,
            total_ns: info.run_time_ns,
            missed: info.recursion_misses,
        });
    }
    costs
}

/// Number of runs that the kernel skipped, of programs for which `of` is true.
pub(crate) fn missed(ebpf: &Ebpf, of: fn(&ProgramCost) -> bool) -> u64 {
    let costs = program_costs(ebpf);
    costs.iter().filter(|program| of(program)).fold(0, |sum, program| sum.saturating_add(program.missed))
}

/// `struct bpf_prog_info` (include/uapi/linux/bpf.h) up to the last counter used; all 0 is a valid request.
#[repr(C)]
struct ProgramInfo {
    until_run_time: [u64; 24],
    run_time_ns: u64,
    run_count: u64,
    recursion_misses: u64,
}
const _: () = assert!(offset_of!(ProgramInfo, recursion_misses) == 208);

/// `union bpf_attr` for `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
struct InfoRequest {
    descriptor: u32,
    length: u32,
    info: u64,
}

fn program_info(program: BorrowedFd<'_>) -> Option<ProgramInfo> {
    const GET_INFO: libc::c_int = 15;
    let mut info = ProgramInfo { until_run_time: [0; 24], run_time_ns: 0, run_count: 0, recursion_misses: 0 };
    let request = InfoRequest {
        descriptor: u32::try_from(program.as_raw_fd()).ok()?,
        length: size_of::<ProgramInfo>() as u32,
        info: &raw mut info as u64,
    };
    // SAFETY: the kernel reads `request` and writes at most `length` bytes to `info`; both outlive the call.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, GET_INFO, &raw const request, size_of::<InfoRequest>()) };
    (result == 0).then_some(info)
}
