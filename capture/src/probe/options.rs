//! What to capture.

use super::libc_files::LibcProbes;
use engine::event::SamplingFact;
use std::path::PathBuf;
use std::sync::Arc;
use symbols::binary::Binary;

/// Most functions with numbers: each has counters of 32 bytes that the kernel keeps.
pub const MOST_NUMBERS: u32 = 1 << 20;
/// Counters that are there by default.
const USUAL_NUMBERS: u32 = 1 << 16;

/// Function numbers are below this if at most `most_functions` are wanted. C libraries' counters come after
/// them.
pub fn number_limit(most_functions: u32) -> u32 {
    most_functions.clamp(USUAL_NUMBERS, MOST_NUMBERS)
}

/// What to capture.
#[derive(Clone, Debug, Default)]
pub struct CaptureOptions {
    /// Processes (tgid) to record, all threads of each.
    pub pids: Vec<u32>,
    /// The last ones, this many, go without function probes if they cannot be probed; without the others
    /// there is no capture.
    pub optional_pids: usize,
    /// Record processes that they make, from their first instant.
    pub children: bool,
    /// They run already, and every moment counts: events come first, what is measured for them later.
    pub running: bool,
    /// Functions to probe in those processes.
    pub functions: Vec<ProbeFunction>,
    /// How many functions may get numbers in all, those that come later among them: it sizes the table of
    /// counters. At most [`MOST_NUMBERS`]; there are always some ten thousand.
    pub most_functions: u32,
    /// C libraries to probe in them.
    pub libc: Vec<LibcProbes>,
    /// Probe functions at all.
    pub uprobes: bool,
    /// The program that knows the hidden subcommand for holding links of probes; `None`: longpole itself.
    pub link_program: Option<PathBuf>,
    /// Bytes of each CPU's ring; rounded up to a power of two, and fewer if all together would be more than 2 GiB.
    pub ring_bytes: usize,
    /// Calls per second above which a function loses its probes; 0 = never.
    pub max_rate_hz: u64,
    /// What recording may cost, in millionths of the processes' own CPU time: function probes are removed to
    /// keep to it. `None`: no limit.
    pub budget_ppm: Option<u32>,
    /// How stacks are sampled; `None`: not at all.
    pub sampling: Option<SamplingFact>,
    /// Its rate is the highest: as many samples are taken as a share of the budget pays for. Otherwise it was asked for, and
    /// is kept as long as the budget allows.
    pub fitting_samples: bool,
    /// Record calls only down to this depth of probed functions, at most [`probe_abi::MAX_OPEN_FRAMES`]; 0 = all.
    pub max_depth: u32,
}

/// When a process was looked at to choose its functions, and since when it lacks them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Since {
    /// Calls are missing from then on (`CLOCK_MONOTONIC` nanoseconds).
    pub missing_ns: u64,
    /// When it was looked at: what it has begun to run after that is another program.
    pub looked_ns: u64,
}

/// Where one function's probes go.
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
    /// Offsets in the file of each `ret` and each jump out of it; empty if its exits are not probed.
    pub exit_offsets: Vec<u64>,
    /// The kernel has to step over its first instruction: a hit costs more.
    pub entry_stepped: bool,
    /// The same for every one of its exits.
    pub exits_stepped: bool,
}

impl ProbeFunction {
    /// Instructions that get a breakpoint.
    pub(crate) fn points(&self) -> usize {
        1 + self.exit_offsets.len()
    }
}
