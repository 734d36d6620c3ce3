//! Options of a capture.

use crate::probe::breakpoints::LibcProbes;
use engine::event::SamplingFact;
use std::path::PathBuf;
use std::sync::Arc;
use symbols::PairPlaces;
use symbols::binary::Binary;

/// Largest number of functions with numbers: each number has counters of 32 bytes in the kernel.
pub const MOST_NUMBERS: u32 = 1 << 20;
/// Least number of functions for which there are counters.
const USUAL_NUMBERS: u32 = 1 << 16;

/// The limit below which function numbers are if at most `most_functions` are wanted. The counters of C libraries come after
/// it.
pub fn number_limit(most_functions: u32) -> u32 {
    most_functions.clamp(USUAL_NUMBERS, MOST_NUMBERS)
}

/// Options of a capture.
#[derive(Clone, Debug, Default)]
pub struct CaptureOptions {
    /// Processes (tgid) to record, all threads of each.
    pub pids: Vec<u32>,
    /// The last of `pids`, this number of processes, may go without function probes if they cannot be probed. If
    /// another process cannot be probed, the capture fails.
    pub optional_pids: usize,
    /// Whether child processes are recorded, too, from their first instant.
    pub children: bool,
    /// Whether the processes run already: then events are recorded first, and measurements for them are made later.
    pub running: bool,
    /// Functions to probe in the processes.
    pub functions: Vec<ProbeFunction>,
    /// Largest number of functions that may get numbers, including later ones: it decides the size of the table of
    /// counters. At most [`MOST_NUMBERS`]; there are always some ten thousand.
    pub most_functions: u32,
    /// C libraries of the processes to probe.
    pub libc: Vec<LibcProbes>,
    /// Whether functions may be probed at all.
    pub uprobes: bool,
    /// The program that knows the hidden subcommand for holding links of probes; `None`: longpole itself.
    pub link_program: Option<PathBuf>,
    /// Bytes of each CPU's ring; rounded up to a power of two, and fewer if all together would be more than 2 GiB.
    pub ring_bytes: usize,
    /// Calls per second above which a function loses its probes; 0: never.
    pub max_rate_hz: u64,
    /// Limit of the cost of recording, in millionths of the processes' own CPU time: function probes are removed to
    /// stay within it. `None`: no limit.
    pub budget_ppm: Option<u32>,
    /// How stacks are sampled; `None`: stacks are not sampled.
    pub sampling: Option<SamplingFact>,
    /// The sampling rate is only an upper limit: as many samples are taken as a share of the budget allows. Otherwise a user
    /// has asked for the rate, and it is kept as long as the budget allows.
    pub fitting_samples: bool,
    /// Record calls only down to this depth of probed functions, at most [`probe_abi::MAX_OPEN_FRAMES`]; 0 = all.
    pub max_depth: u32,
    /// Whether requests over sockets are recorded all the time and, those of TCP, at both ends, whatever that costs.
    pub every_request: bool,
    /// Whether contexts of threads are looked at. [`super::Capture::tell_contexts`] says where each process has them.
    pub thread_contexts: bool,
}

/// When a process was examined in order to choose its functions, and since when its calls are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Since {
    /// Calls are missing from then on (`CLOCK_MONOTONIC` nanoseconds).
    pub missing_ns: u64,
    /// Time at which the process was examined, ns: a program that it started later is another one.
    pub looked_ns: u64,
}

/// One function, with the places of its probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeFunction {
    /// The number in the records.
    pub id: u32,
    /// The process that contains the function, or `None` for all of [`CaptureOptions::pids`].
    pub pid: Option<u32>,
    /// The file in which the function was found.
    pub binary: Arc<Binary>,
    /// Offset in the file of the function's first instruction.
    pub entry_offset: u64,
    /// Offsets in the file of each `ret` and each jump out of the function; empty if its exits are not probed.
    pub exit_offsets: Vec<u64>,
    /// The kernel must single-step the function's first instruction, so a hit costs more.
    pub entry_stepped: bool,
    /// Whether the kernel must single-step the instruction at each of the function's exits.
    pub exits_stepped: bool,
    /// Set if this is a pair of USDT probes and not a function.
    pub pair: Option<PairPlaces>,
}

impl ProbeFunction {
    /// Offsets of the instructions that get a breakpoint, each with whether it is an exit.
    pub(crate) fn places(&self) -> impl Iterator<Item = (u64, bool)> {
        let more = self.pair.iter().flat_map(|pair| &pair.more_entries);
        let entries = std::iter::once(&self.entry_offset).chain(more);
        let exits = self.exit_offsets.iter().map(|offset| (*offset, true));
        entries.map(|offset| (*offset, false)).chain(exits)
    }

    /// Number of instructions that get a breakpoint.
    pub(crate) fn points(&self) -> usize {
        self.places().count()
    }
}
