//! Options of a capture.

use crate::probe::breakpoints::LibcProbes;
use engine::event::SamplingFact;
use std::path::PathBuf;
use std::sync::Arc;
use symbols::binary::Binary;

/// Most functions with numbers: each number has counters of 32 bytes in the kernel.
pub const MOST_NUMBERS: u32 = 1 << 20;
/// Least number of functions with counters.
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
    /// This many processes, the last of `pids`, may go without function probes if they cannot be probed. If another one
    /// cannot be probed, there is no capture.
    pub optional_pids: usize,
    /// Record child processes, too, from their first instant.
    pub children: bool,
    /// The processes run already, so events are recorded first, and measurements for them are made later.
    pub running: bool,
    /// Functions to probe in the processes.
    pub functions: Vec<ProbeFunction>,
    /// How many functions may get numbers in all, later ones included: it sizes the table of
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
    /// Calls per second above which a function loses its probes; 0 = never.
    pub max_rate_hz: u64,
    /// What recording may cost, in millionths of the processes' own CPU time: function probes are removed to
    /// stay within it. `None`: no limit.
    pub budget_ppm: Option<u32>,
    /// How stacks are sampled; `None`: not at all.
    pub sampling: Option<SamplingFact>,
    /// The sampling rate is only an upper limit: as many samples are taken as a share of the budget allows. Otherwise a user
    /// has asked for the rate, and it is kept as long as the budget allows.
    pub fitting_samples: bool,
    /// Record calls only down to this depth of probed functions, at most [`probe_abi::MAX_OPEN_FRAMES`]; 0 = all.
    pub max_depth: u32,
}

/// When a process was examined to choose its functions, and since when its calls are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Since {
    /// Calls are missing from then on (`CLOCK_MONOTONIC` nanoseconds).
    pub missing_ns: u64,
    /// When it was examined: a program that it has started later is another one.
    pub looked_ns: u64,
}

/// The places of one function's probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeFunction {
    /// The number in the records.
    pub id: u32,
    /// The process it is in, or `None` for all of [`CaptureOptions::pids`].
    pub pid: Option<u32>,
    /// The file in which it was found.
    pub binary: Arc<Binary>,
    /// Offset in the file of its first instruction.
    pub entry_offset: u64,
    /// Offsets in the file of each `ret` and each jump out of the function; empty if its exits are not probed.
    pub exit_offsets: Vec<u64>,
    /// The kernel must single-step the function's first instruction, so a hit costs more.
    pub entry_stepped: bool,
    /// The same for each of its exits.
    pub exits_stepped: bool,
}

impl ProbeFunction {
    /// Instructions that get a breakpoint.
    pub(crate) fn points(&self) -> usize {
        1 + self.exit_offsets.len()
    }
}
