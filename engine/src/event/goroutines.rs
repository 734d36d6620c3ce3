//! What goroutines of Go programs did, by looks at Go's runtime in the program's memory.

use serde::{Deserialize, Serialize};

/// Looks at the goroutines of one process. All counts are sums over looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GoroutineFact {
    /// Host process id (tgid).
    pub pid: u32,
    /// Looks.
    pub looks: u64,
    /// Looks at which no goroutine ran or was runnable, apart from those of the runtime itself.
    pub idle: u64,
    /// Goroutines by the function that they were started with.
    pub starts: Vec<GoroutineStart>,
    /// What goroutines did.
    pub acts: Vec<GoroutineAct>,
}

/// Goroutines that were started with the same function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GoroutineStart {
    /// Address of the function's first instruction.
    pub start: u64,
    /// The most goroutines at one look.
    pub most: u64,
    /// Looks at which one of them ran, was runnable or was in a system call.
    pub busy: u64,
    /// Looks at which one of them existed.
    pub there: u64,
}

/// Goroutines with the same start that did the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GoroutineAct {
    /// Address of the first instruction of the function that they were started with.
    pub start: u64,
    /// Their state.
    pub state: GoroutineState,
    /// Waiting: what for, in the words of Go's runtime (`chan receive`); otherwise empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Waiting: addresses on the stack, the innermost first; the first ones lie in Go's runtime.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<u64>,
    /// Waiting for one channel: the number of values that it can hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// Goroutines.
    pub count: u64,
    /// Looks at which there was at least one.
    pub looks: u64,
}

/// The state of a goroutine (Go, `runtime/runtime2.go`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoroutineState {
    /// It has a thread of the runtime.
    Running,
    /// It can run, and has no thread.
    Runnable,
    /// It is in a system call.
    Call,
    /// It waits.
    #[default]
    Waiting,
}
