//! Where records come from: the kernel, a session file, or a generator. All of them enter the pipeline here.

use super::message::Unprobed;
use capture::interpose::Doorbell;
use capture::probe::{LibcProbes, NewMapping, ProbeFunction, Since};
use engine::event::{
    FunctionId, KernelLocks, LossCounts, MappingFact, Note, Overhead, PendingOperation, Requests,
    SampleCounts,
};
use std::path::PathBuf;
use std::time::Duration;

/// A source of kernel records.
pub trait EventSource: Send {
    /// Number of rings; [`EventSource::drain`] names them `0..rings()`.
    fn rings(&self) -> usize;

    /// Whether the processes in the records live on this machine now: they can be asked what lies at their addresses.
    fn is_live(&self) -> bool {
        false
    }

    /// The process that longpole has started, and the program that it will run, if that is known.
    fn launched(&self) -> Option<(u32, PathBuf)> {
        None
    }

    /// The number that every CPU's records start with, if that is known.
    fn first_number(&self) -> Option<u32> {
        None
    }

    /// Of CPUs that lost records: ring, CPU and how many records it has tried to write. Asked for after the last
    /// [`EventSource::drain`].
    fn written(&mut self) -> Vec<(usize, u16, u64)> {
        Vec::new()
    }

    /// The caller of [`EventSource::drain`] holds this many bytes of records that wait for their place in
    /// time: new records should wait in their rings where possible.
    fn set_merge_backlog(&mut self, _bytes: u64) {}

    /// Passes on records that are there, ring by ring, at most as many as the source thinks right for one
    /// turn. Never waits.
    fn drain(&mut self, sink: &mut dyn FnMut(usize, &[u8])) -> Drained;

    /// What the source did or noticed since the last call.
    fn take_notes(&mut self) -> Vec<Note>;

    /// What got lost before it reached [`EventSource::drain`], since the start.
    fn loss(&mut self) -> LossCounts;

    /// What all this cost so far, if that is known.
    fn overhead(&mut self) -> Option<Overhead> {
        None
    }

    /// The source's clock (`CLOCK_MONOTONIC` nanoseconds for the kernel).
    fn now_ns(&self) -> u64;

    /// Functions that got probes in some process since the last call, and those that were to and did not.
    fn take_probed(&mut self) -> Probed;

    /// What puts more probes on, if that can be done. Asked for once, at the start.
    fn attacher(&mut self) -> Option<Box<dyn Attach>> {
        None
    }

    /// The object to inform when a command that was held until now runs: from then on the cost of recording
    /// it is counted. Asked for once, at the start.
    fn meter(&mut self) -> Option<Box<dyn Fn() + Send>> {
        None
    }

    /// Files that its processes have mapped to execute since the last call.
    fn take_loaded(&mut self) -> Vec<NewMapping> {
        Vec::new()
    }

    /// Records nothing more, and says from when on. What was recorded before can still be drained.
    fn end(&mut self) -> u64;

    /// What rings when one of its rings should be emptied before that pause is over, if something does. Asked for once, at
    /// the start.
    fn bell(&mut self) -> Option<Doorbell> {
        None
    }

    /// The longest pause between two turns after which its rings may be full.
    fn longest_pause(&self) -> Duration {
        Duration::from_millis(50)
    }

    /// What threads were in the middle of at the end, as far as the source knows.
    fn take_pending(&mut self) -> Vec<PendingOperation> {
        Vec::new()
    }

    /// How long threads waited for locks of the kernel, once the source has ended; `None`: not known.
    fn take_kernel_locks(&mut self) -> Option<KernelLocks> {
        None
    }

    /// Requests over sockets, once the source has ended; `None`: they were not counted.
    fn take_requests(&mut self) -> Option<Requests> {
        None
    }

    /// Where sampled processes have code, if it is new since the last call.
    fn take_mappings(&mut self) -> Vec<MappingFact> {
        Vec::new()
    }

    /// What became of samples so far, if there are any.
    fn samples(&mut self) -> Option<SampleCounts> {
        None
    }

    /// Detaches, and then waits so long at most for what is still being found out.
    fn stop(self: Box<Self>, patience: Duration) -> Late;
}

/// What was found out when nothing was recorded any more.
#[derive(Clone, Debug, Default)]
pub struct Late {
    /// Stacks that samples have named before.
    pub notes: Vec<Note>,
    /// Where processes had code.
    pub mappings: Vec<MappingFact>,
    /// What became of all samples, if there are any.
    pub samples: Option<SampleCounts>,
}

/// What became of functions that were to get probes. The same function may come up once for every process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// Have probes.
    pub on: Vec<u32>,
    /// The kernel would not probe them.
    pub refused: Vec<u32>,
    /// Processes whose C library has probes.
    pub libc: Vec<u32>,
}

/// What one turn of [`EventSource::drain`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Records passed on.
    pub records: usize,
    /// Everything up to this time has been passed on: the clock was read, then the rings were emptied.
    /// `None`: they were not.
    pub complete_to_ns: Option<u64>,
    /// There is more already: call again without a pause.
    pub more: bool,
    /// Nothing more will ever come.
    pub ended: bool,
}

/// Attaches and removes probes while another thread empties the rings. What it does is among the notes of the
/// source that it comes from.
pub trait Attach: Send {
    /// The source's clock, as [`super::EventSource::now_ns`].
    fn now_ns(&self) -> u64;

    /// Puts function probes into a process that came up, or runs a new program, and notes that its
    /// calls are missing until now. `Err`: why not.
    fn add_process(&mut self, pid: u32, since: Since, functions: &[ProbeFunction]) -> Result<(), Unprobed>;

    /// Puts function probes into a process, in addition to those that it has. `wanted`: a user wants them
    /// from now on; otherwise their calls have been missing. `Err`: why not.
    fn add_functions(
        &mut self,
        pid: u32,
        since: Since,
        wanted: bool,
        functions: &[ProbeFunction],
    ) -> Result<(), Unprobed>;

    /// Removes the probes from functions until they are wanted again. `Err`: why not.
    fn rest_functions(&mut self, functions: &[FunctionId]) -> Result<(), Unprobed>;

    /// Puts probes on the C library of a process that is recorded, as far as they are not there already, and notes since
    /// when its operations were missing. `executed`: it runs another program than before, and whether its leading thread
    /// has started it. `Err`: why not.
    fn add_libc(
        &mut self,
        probes: &LibcProbes,
        since_ns: u64,
        executed: Option<bool>,
    ) -> Result<(), Unprobed>;
}
