//! Sources of records: the kernel, a session file, or a generator. All records enter the pipeline here.

use crate::live::main_loop::Unprobed;
use capture::interpose::Doorbell;
use capture::probe::{LibcProbes, NewMapping, ProbeFunction, Since};
use engine::event::{
    AwaitedFact, FunctionId, KernelLocks, LossCounts, MappingFact, Note, Overhead, PendingOperation,
    Requests, SampleCounts,
};
use probe_abi::ContextPlace;
use std::path::PathBuf;
use std::time::Duration;

/// A source of kernel records.
pub trait EventSource: Send {
    /// Number of rings; [`EventSource::drain`] names them `0..rings()`.
    fn rings(&self) -> usize;

    /// Whether the recorded processes run on this machine now, so that names can be found for their addresses.
    fn is_live(&self) -> bool {
        false
    }

    /// The process that longpole started, and the program that this process will run, if known.
    fn launched(&self) -> Option<(u32, PathBuf)> {
        None
    }

    /// The number of each CPU's first record, if known.
    fn first_number(&self) -> Option<u32> {
        None
    }

    /// For each CPU that lost records: ring, CPU, and number of records that the CPU tried to write. Called after the
    /// last [`EventSource::drain`].
    fn written(&mut self) -> Vec<(usize, u16, u64)> {
        Vec::new()
    }

    /// Receives the number of bytes of records that the caller of [`EventSource::drain`] holds until their place in
    /// time is certain. If there are many, new records should stay in their rings where possible.
    fn set_merge_backlog(&mut self, _bytes: u64) {}

    /// Passes on the records in the rings, ring by ring, as many as the source allows in one turn. Never waits.
    fn drain(&mut self, sink: &mut dyn FnMut(usize, &[u8])) -> Drained;

    /// The recorded processes, if it is to be read for which traces their threads work.
    fn publishing(&self) -> Option<Vec<u32>> {
        None
    }

    /// Sets where processes publish the contexts of their threads; `None`: nowhere. `false`: not possible now.
    fn tell_contexts(&mut self, _places: &[(u32, Option<ContextPlace>)]) -> bool {
        true
    }

    /// Notes since the last call, of what the source did or noticed.
    fn take_notes(&mut self) -> Vec<Note>;

    /// Counts of records that were lost before they reached [`EventSource::drain`], since the start.
    fn loss(&mut self) -> LossCounts;

    /// The cost of recording so far, if known.
    fn overhead(&mut self) -> Option<Overhead> {
        None
    }

    /// Functions that got probes in some process since the last call, and functions that were refused.
    fn take_probed(&mut self) -> Probed;

    /// Attaches more probes, if the source can. Called once, at the start.
    fn attacher(&mut self) -> Option<Box<dyn Attach>> {
        None
    }

    /// To be called when a command at the gate is released: its cost of recording counts from then on. Called once, at
    /// the start.
    fn meter(&mut self) -> Option<Box<dyn Fn() + Send>> {
        None
    }

    /// Files that processes have mapped to execute since the last call.
    fn take_loaded(&mut self) -> Vec<NewMapping> {
        Vec::new()
    }

    /// Ends recording, and returns when. Earlier records can still be drained.
    fn end(&mut self) -> u64;

    /// The doorbell that is signalled when a ring should be emptied before the pause is over, if there is one. Called
    /// once, at the start.
    fn bell(&mut self) -> Option<Doorbell> {
        None
    }

    /// The longest pause between two turns; after a longer one, rings may be full.
    fn longest_pause(&self) -> Duration {
        Duration::from_millis(50)
    }

    /// Operations that threads had begun and not finished at the end, as far as the source knows.
    fn take_pending(&mut self) -> Vec<PendingOperation> {
        Vec::new()
    }

    /// How long threads waited for locks of the kernel, once the source has ended; `None`: not known.
    fn take_kernel_locks(&mut self) -> Option<KernelLocks> {
        None
    }

    /// Requests over sockets so far; `None`: they are not counted.
    fn requests(&mut self) -> Option<Requests> {
        None
    }

    /// Requests over sockets, once the source has ended; `None`: they were not counted.
    fn take_requests(&mut self) -> Option<Requests> {
        None
    }

    /// Files and other ends of sockets for which threads have slept so far.
    fn awaited(&mut self) -> Vec<AwaitedFact> {
        Vec::new()
    }

    /// Mappings of sampled processes that are new since the last call.
    fn take_mappings(&mut self) -> Vec<MappingFact> {
        Vec::new()
    }

    /// Counts of samples so far, by result; `None`: nothing is sampled.
    fn samples(&mut self) -> Option<SampleCounts> {
        None
    }

    /// Detaches, then waits at most this long for stacks that are still being unwound.
    fn stop(self: Box<Self>, patience: Duration) -> Late;
}

/// Facts that became known after the end of recording.
#[derive(Clone, Debug, Default)]
pub struct Late {
    /// Stacks that earlier samples name.
    pub notes: Vec<Note>,
    /// Mappings of processes.
    pub mappings: Vec<MappingFact>,
    /// Counts of all samples, by result; `None`: nothing was sampled.
    pub samples: Option<SampleCounts>,
}

/// Functions that were to get probes, by outcome. A function may be there once for each process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// Functions that have probes.
    pub on: Vec<u32>,
    /// Functions that the kernel would not probe.
    pub refused: Vec<u32>,
    /// Processes whose C library has probes.
    pub libc: Vec<u32>,
}

/// The result of one turn of [`EventSource::drain`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Records passed on.
    pub records: usize,
    /// All records up to this time were passed on: the clock was read, then the rings were emptied. `None`: they were not
    /// emptied.
    pub complete_to_ns: Option<u64>,
    /// The rings have more already: call again without a pause.
    pub more: bool,
    /// No more records will ever come.
    pub ended: bool,
}

/// Attaches and removes probes while another thread empties the rings. The notes about it come from the source
/// (`EventSource::take_notes`).
pub trait Attach: Send {
    /// The clock of records: `CLOCK_MONOTONIC` nanoseconds for the kernel.
    fn now_ns(&self) -> u64;

    /// Attaches function probes to a process that is new or runs a new program, and notes that its calls were missing
    /// until now. `Err`: why the probes could not be attached.
    fn add_process(&mut self, pid: u32, since: Since, functions: &[ProbeFunction]) -> Result<(), Unprobed>;

    /// Attaches further function probes to a process. `wanted`: a user wants them from now on; otherwise the functions'
    /// calls count as missing until now. `Err`: why the probes could not be attached.
    fn add_functions(
        &mut self,
        pid: u32,
        since: Since,
        wanted: bool,
        functions: &[ProbeFunction],
    ) -> Result<(), Unprobed>;

    /// Removes the probes of functions until they are wanted again. `Err`: why that failed.
    fn rest_functions(&mut self, functions: &[FunctionId]) -> Result<(), Unprobed>;

    /// Attaches the missing probes to the C library of a recorded process, and notes from when on its operations are
    /// missing. `executed`: set if the process runs another program than before; whether its leading thread executed
    /// it. `Err`: why the probes could not be attached.
    fn add_libc(
        &mut self,
        probes: &LibcProbes,
        since_ns: u64,
        executed: Option<bool>,
    ) -> Result<(), Unprobed>;
}
