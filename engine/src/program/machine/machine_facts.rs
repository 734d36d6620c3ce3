//! What a recording shows of its machine: the basis for simulating other machines.

use crate::event::{CpuRun, IdleWake, LineTransfer};
use crate::json::is_zero;
use serde::{Deserialize, Serialize};

/// Facts about the recorded machine. Fields are `None` or empty if the recording does not show them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineFacts {
    /// Median time from waking a thread to its first instruction on an idle CPU, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_latency_ns: Option<u64>,
    /// The 90th and the 99th percentile of the times from a wake-up to the first instruction, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_wakes_ns: Option<[u64; 2]>,
    /// Per mille of wake-ups that got an idle CPU at once. Only wake-ups count at which the thread's last CPU ran another
    /// thread of the program, and a thread of the program had just left a CPU idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_found: Option<u16>,
    /// Time to wake a thread on an idle CPU, measured during the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_wake: Option<IdleWake>,
    /// Time for an atomic change of a cache line, measured on the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_transfer: Option<LineTransfer>,
    /// The time between two ticks of the kernel's clock, ns. Time slices end at ticks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick_ns: Option<u64>,
    /// `tick_ns`, if idle CPUs only sometimes ask other CPUs for waiting threads, and then again at the next tick. `None`:
    /// they take a waiting thread at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_tick_ns: Option<u64>,
    /// Cost of a switch between two threads on a CPU, in addition to what the threads' compute times contain, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch_cost_ns: Option<u64>,
    /// Median time for which a thread had a CPU before another waiting thread got it, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<u64>,
    /// CPUs that the threads could use, all together: fewer than the machine's under `taskset` or in a container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_allowed: Option<u32>,
    /// Hundredths of a CPU that the program could use at most: a container's limit (`cpu.max`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<u32>,
    /// Number of CPUs that the threads ran on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_used: Option<u32>,
    /// Cache lines that threads change together, in the order of [`crate::program::Recorded::lines`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineFact>,
    /// Samples of threads in functions of contended locks, as if these locks were one cache line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_work: Option<LineFact>,
    /// Devices that threads waited for, ordered by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceFact>,
    /// Number of hosts, if recordings of several hosts were joined; else 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub hosts: u64,
    /// Runs of the command on other numbers of CPUs, or on the same number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_runs: Vec<CpuRun>,
}

/// Samples of threads at a cache line, or at locks, that several threads use and change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LineFact {
    /// The threads that use the line.
    pub threads: Vec<LineThread>,
    /// Samples of all threads of the program, anywhere.
    pub samples: u64,
}

/// A thread that uses a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LineThread {
    /// Index of the thread in the program.
    pub thread: u32,
    /// Its samples at the line.
    pub at_line: u64,
    /// All samples of the thread.
    pub samples: u64,
}

/// A device that threads waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceFact {
    /// Name of the device's object in the program.
    pub name: String,
    /// Largest number of threads that waited for the device at one time.
    pub most_at_once: u32,
}
