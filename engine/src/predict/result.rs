//! The result of a prediction: plain numbers with units.

use super::model::Assumptions;
use crate::cpus::Cpus;
use crate::finding::{Finding, Trust};
use crate::json::{name_only, number, numbers};
use serde::Serialize;

/// A program's predicted runs on several CPU counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// One result for each CPU count asked for, in the order asked.
    pub results: Vec<CpuPrediction>,
    /// Its parameters; those of the first recording, if there are several.
    pub assumptions: Option<Assumptions>,
    /// The CPU count beyond which more CPUs do not help, if that exists.
    pub saturation: Option<Saturation>,
    /// CPU counts at which the function with the largest share of the critical path changes, ascending.
    pub crossovers: Vec<Crossover>,
    /// Number of threads of the program.
    pub threads: usize,
    /// The most threads that compute at once for any length of time, on unlimited CPUs.
    pub most_computing: usize,
    /// CPUs of the machine that was recorded, if known.
    pub recorded_cpus: Option<u32>,
    /// How far the results can be trusted, given the recording.
    pub trust: Trust,
    /// Findings about the program and its runs.
    pub findings: Vec<Finding>,
    /// Number of recordings that the prediction combines.
    pub recordings: usize,
}

/// The prediction for one CPU count. The ends of the band are from other runs; all other fields are from the run
/// without random choices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuPrediction {
    /// The CPU count.
    pub cpus: Cpus,
    /// Predicted time from start to end, or to a deadlock, ns.
    #[serde(serialize_with = "number")]
    pub time_ns: f64,
    /// The shortest of all runs, ns, other costs of waiting included ([`super::Timing::may_be_ns`]).
    #[serde(serialize_with = "number")]
    pub low_ns: f64,
    /// The longest of all runs, ns, other costs of waiting included.
    #[serde(serialize_with = "number")]
    pub high_ns: f64,
    /// Whether the program may take even longer than `high_ns`: threads that spin may take the CPUs of those for which they
    /// wait.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_open: bool,
    /// Predicted time on one CPU ÷ `time_ns`; 0 if the run does not come to its end.
    #[serde(serialize_with = "number")]
    pub speedup: f64,
    /// `speedup` ÷ CPUs; on unlimited ones ÷ the most threads that compute at once.
    #[serde(serialize_with = "number")]
    pub efficiency: f64,
    /// Whether all threads came to their end, except background threads.
    pub complete: bool,
    /// Whether the control group's quota kept threads from their CPUs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub throttled: bool,
    /// The function with the largest share of the critical path, and that share of the time.
    #[serde(serialize_with = "name_only", skip_serializing_if = "Option::is_none")]
    pub leader: Option<(String, f64)>,
    /// Time that threads computed, summed, ns.
    #[serde(serialize_with = "number")]
    pub busy_ns: f64,
    /// Time that threads kept CPUs busy waiting for spin locks, summed, ns.
    #[serde(serialize_with = "number")]
    pub spinning_ns: f64,
    /// Time that threads waited for a CPU, summed, ns.
    #[serde(serialize_with = "number")]
    pub ready_ns: f64,
    /// Time that threads waited without wanting a CPU, summed, ns.
    #[serde(serialize_with = "number")]
    pub blocked_ns: f64,
    /// Time by the number of CPUs in use, ns.
    #[serde(serialize_with = "numbers")]
    pub busy_cpus_ns: Vec<f64>,
    /// Number of times that a CPU switched to another thread.
    pub switches: u64,
    /// Number of times that a thread lost its CPU to another one.
    pub preemptions: u64,
    /// Number of times that a thread continued on another CPU.
    pub migrations: u64,
    /// Locks that were waited for or held for at least a hundredth of the time, most held first.
    pub locks: Vec<LockLoad>,
    /// Devices that were waited for, busiest first.
    pub devices: Vec<DeviceLoad>,
    /// Each thread's time by state, in order of the threads.
    pub threads: Vec<ThreadLoad>,
}

impl CpuPrediction {
    /// The share of the CPUs' time in which threads compute; of unlimited CPUs, as many as threads ever compute at once.
    pub fn used(&self) -> f64 {
        let cpus = self.speedup / self.efficiency;
        if cpus > 0.0 && self.time_ns > 0.0 { self.busy_ns / self.time_ns / cpus } else { 0.0 }
    }
}

/// The CPU count beyond which more CPUs do not help.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Saturation {
    /// The smallest CPU count asked for whose time is within 5 % of that on unlimited CPUs; unlimited if there is none.
    pub cpus: Cpus,
    /// Speed-up on unlimited CPUs.
    #[serde(serialize_with = "number")]
    pub most_speedup: f64,
}

/// A change of the leading function from one CPU count to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Crossover {
    /// The first CPU count, in the order asked, with the new leading function.
    pub cpus: Cpus,
    /// The function that leads from here on.
    pub function: String,
    /// The function that led before.
    pub over: String,
}

/// A lock during a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LockLoad {
    /// Unique name.
    pub lock: String,
    /// Share of the predicted time during which at least one thread held the lock.
    pub held_share: f64,
    /// Number of times that threads took the lock.
    pub taken: u64,
    /// Number of times that a thread waited for the lock without a CPU.
    pub waits: u64,
    /// Time for which threads waited for the lock without a CPU, summed, ns.
    #[serde(serialize_with = "number")]
    pub blocked_ns: f64,
    /// Time for which threads busy-waited for the lock, summed, ns.
    #[serde(serialize_with = "number")]
    pub spun_ns: f64,
}

/// A device during a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceLoad {
    /// Unique name.
    pub device: String,
    /// Number of waits that the device serves at once; `None` for any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<u32>,
    /// Share of the time, over all of the device's servers, in which they served; `None` if the number of servers is
    /// not limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<f64>,
    /// Number of waits.
    pub waits: u64,
    /// Time for which threads waited for the device, summed, ns.
    #[serde(serialize_with = "number")]
    pub blocked_ns: f64,
}

/// A thread during a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadLoad {
    /// Unique name.
    pub thread: String,
    /// Time computing, ns.
    #[serde(serialize_with = "number")]
    pub busy_ns: f64,
    /// Time keeping a CPU busy for spin locks, ns.
    #[serde(serialize_with = "number")]
    pub spinning_ns: f64,
    /// Time waiting for a CPU, ns.
    #[serde(serialize_with = "number")]
    pub ready_ns: f64,
    /// Time waiting without wanting a CPU, ns.
    #[serde(serialize_with = "number")]
    pub blocked_ns: f64,
}
