//! Which programs that were not recorded used CPUs meanwhile.

use serde::{Deserialize, Serialize};

/// What other programs used of the machine's CPUs while one was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherPrograms {
    /// For how long that was measured, nanoseconds.
    pub measured_ns: u64,
    /// Those that used most, the largest first. Longpole itself is not among them.
    pub programs: Vec<OtherProgram>,
}

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherProgram {
    /// Short name of its processes.
    pub name: String,
    /// How many processes there are of this name.
    pub processes: u32,
    /// CPU time of all of them, nanoseconds (the kernel counts it in ticks of 10 ms).
    pub cpu_ns: u64,
}
