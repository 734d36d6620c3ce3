//! What a recording tells about the machine that it was made on: what a simulation of other machines starts from.

use crate::event::{CpuRun, IdleWake, LineTransfer};
use serde::{Deserialize, Serialize};

/// Facts about the recorded machine. What the recording does not show is `None` or missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineFacts {
    /// Median time from a thread's waking to its first instruction, where its CPU had nothing else to do, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_latency_ns: Option<u64>,
    /// Of a hundred such times ten are longer than the first of these and one is longer than the second, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_wakes_ns: Option<[u64; 2]>,
    /// Of a thousand wake-ups of threads whose last CPU ran another thread of the program while one that the program had
    /// just left was idle: how many got an idle CPU at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_found: Option<u16>,
    /// What waking a thread on an idle CPU takes, as measured on the machine during the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_wake: Option<IdleWake>,
    /// What an atomic change of a cache line takes, as measured on the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_transfer: Option<LineTransfer>,
    /// The time between two ticks of the kernel's clock, ns: slices end at ticks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick_ns: Option<u64>,
    /// The same where an idle CPU asks the others for waiting threads by chance only, and looks again at the next tick.
    /// `None`: it takes a waiting thread at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_tick_ns: Option<u64>,
    /// What taking one thread off a CPU and putting another on it costs beyond what is in the threads' own compute
    /// times, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch_cost_ns: Option<u64>,
    /// Median time that a thread had a CPU before it had to give it to another thread that wanted it, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<u64>,
    /// CPUs that the threads were allowed to use, all together: fewer than the machine's under `taskset` or in a container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_allowed: Option<u32>,
    /// Hundredths of a CPU that the program might use at most: a container's limit (`cpu.max`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<u32>,
    /// CPUs that the threads ran on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_used: Option<u32>,
    /// Cache lines that threads changed together, in the order of [`super::Recorded::lines`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineFact>,
    /// Devices that threads waited for, by the name of their object, in order of the names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceFact>,
    /// Runs of the command on other numbers of CPUs, or on as many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_runs: Vec<CpuRun>,
}

/// How often samples found threads at a cache line that several of them use and change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LineFact {
    /// Those threads.
    pub threads: Vec<LineThread>,
    /// Samples of all threads of the program, wherever they were.
    pub samples: u64,
}

/// A thread that uses a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LineThread {
    /// Its place in the program.
    pub thread: u32,
    /// Samples of it that were at the line.
    pub at_line: u64,
    /// All samples of it.
    pub samples: u64,
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceFact {
    /// Name of its object in the program.
    pub name: String,
    /// The most threads that waited for it at once.
    pub most_at_once: u32,
}
