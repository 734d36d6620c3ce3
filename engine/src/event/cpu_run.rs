//! Runs of the recorded command on other numbers of CPUs, recorded in addition: what its work costs there.

use crate::json::is_zero;
use serde::{Deserialize, Serialize};

/// A run of the recorded command on some CPUs. Samples of it were taken, but no lock operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuRun {
    /// How many CPUs it could use.
    pub cpus: u32,
    /// Its number among the runs on this many CPUs, from 0 on: runs with the same number were made one after the other.
    #[serde(skip_serializing_if = "is_zero_number")]
    pub round: u32,
    /// From its start to its end, nanoseconds.
    pub time_ns: u64,
    /// CPU time of all its threads, nanoseconds.
    pub cpu_ns: u64,
    /// Time that other programs, or a hypervisor, had its CPUs meanwhile, nanoseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub others_ns: u64,
    /// Samples of running threads, in the functions below and elsewhere.
    #[serde(skip_serializing_if = "is_zero")]
    pub samples: u64,
    /// Functions that computed most, standard ones counted for their callers, the most samples first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionSamples>,
}

/// A function and how often samples found it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FunctionSamples {
    /// Its name.
    pub name: String,
    /// Samples in it.
    pub samples: u64,
}

fn is_zero_number(number: &u32) -> bool {
    *number == 0
}
