//! How stacks were sampled, and counts of the samples.

use serde::{Deserialize, Serialize};

/// Facts about how stacks were sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SamplingFact {
    /// Ticks per second of a CPU's clock; a tick stands for the time between two ticks.
    pub rate_hz: u32,
    /// How the frames of a sampled stack were found.
    pub call_graph: CallGraph,
}

/// How the frames of a stack are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallGraph {
    /// By frame pointers where the code keeps them, else by unwind tables.
    #[default]
    Auto,
    /// By frame pointers, read by the kernel program.
    Fp,
    /// By unwind tables, from registers and copied bytes of the stack.
    Dwarf,
}

/// Counts of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleCounts {
    /// Samples taken, without lost ones.
    pub taken: u64,
    /// Samples whose stack is cut off: too deep, or longer than the copied bytes.
    pub truncated: u64,
    /// Samples without any stack.
    pub without_stack: u64,
    /// Samples without a stack because the recording had no room for another different stack.
    pub no_room: u64,
    /// Samples without a stack because samples came faster than unwind tables were read.
    pub unread: u64,
    /// Samples missing in the recording because the ring was full.
    pub lost: u64,
    /// Clock ticks without a sample, to stay within the budget.
    pub left_out: u64,
}

impl SampleCounts {
    /// The counts of a part of the recording that has this share of its records.
    pub fn scaled(&self, share: f64) -> SampleCounts {
        let part = |count: u64| (count as f64 * share).round() as u64;
        SampleCounts {
            taken: part(self.taken),
            truncated: part(self.truncated),
            without_stack: part(self.without_stack),
            no_room: part(self.no_room),
            unread: part(self.unread),
            lost: part(self.lost),
            left_out: part(self.left_out),
        }
    }
}
