//! Additional runs of the recorded command on other numbers of CPUs. They show what its work costs there.

use crate::json::is_zero;
use serde::{Deserialize, Serialize};

/// A run of the recorded command on a number of CPUs, recorded with samples but without lock operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuRun {
    /// Number of CPUs that the run could use.
    pub cpus: u32,
    /// Index among the runs on this number of CPUs, from 0. Runs with the same index were made one after the other.
    #[serde(skip_serializing_if = "is_zero_number")]
    pub round: u32,
    /// Time from the run's start to its end, nanoseconds.
    pub time_ns: u64,
    /// CPU time of all threads of the run, nanoseconds.
    pub cpu_ns: u64,
    /// Time for which other programs or a hypervisor used the run's CPUs, nanoseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub others_ns: u64,
    /// Samples of running threads, in all functions.
    #[serde(skip_serializing_if = "is_zero")]
    pub samples: u64,
    /// Functions with the most samples, in descending order. Standard functions count for their callers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionSamples>,
}

/// Samples of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FunctionSamples {
    /// Its name.
    pub name: String,
    /// Number of samples in the function.
    pub samples: u64,
}

fn is_zero_number(number: &u32) -> bool {
    *number == 0
}
