//! Programs that were not recorded but used CPUs during the recording.

use serde::{Deserialize, Serialize};

/// CPU time that other programs used on this machine during the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherPrograms {
    /// Length of the time in which other programs were measured, nanoseconds.
    pub measured_ns: u64,
    /// The programs that used most CPU time, the largest first. Longpole itself is not among them.
    pub programs: Vec<OtherProgram>,
    /// Processes that recorded ones started, and their descendants, under the name of those that used most CPU time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<Box<OtherProgram>>,
}

/// A program that was not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherProgram {
    /// Short name of the program's processes.
    pub name: String,
    /// How many processes of this name there are.
    pub processes: u32,
    /// CPU time of all processes of this name, nanoseconds (the kernel counts it in ticks of 10 ms).
    pub cpu_ns: u64,
}
