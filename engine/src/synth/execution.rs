//! Parameters of executing and recording a program.

/// The machine that executes a generated program, and how the execution is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Processors, 1 to 64.
    pub cpus: u16,
    /// Time after which a running thread makes room for other threads.
    pub slice_ns: u64,
    /// Time from a wake-up, or from a pre-emption, until the thread can run.
    pub latency_ns: u64,
    /// Number of rings; a CPU writes into the one of its number modulo this.
    pub rings: usize,
    /// First number of every CPU's sequence.
    pub first_sequence: u32,
    /// Clock at the start.
    pub start_ns: u64,
    /// Id of the process, and of its first thread.
    pub pid: u32,
    /// Seed of the random choices of noise, exits and stack pointers.
    pub seed: u64,
    /// Whether there are wake-ups of threads that do not sleep, and swapped neighbours in the rings.
    pub noise: bool,
    /// With `noise`: whether there are also wake-ups of threads that were woken or pre-empted and have not run since.
    pub second_wakings: bool,
    /// Whether the kernel omits calls below the first open frame of the same function.
    pub fold_recursion: bool,
    /// Whether synchronization operations are recorded, as by the interposed library. Each takes 64 ns of CPU time, which
    /// counts as the thread's work if it neither waited nor woke a thread.
    pub operations: bool,
    /// With `operations`: whether a semaphore taken right before a mutex is built from a condition variable under that
    /// mutex, as in programs' queues.
    pub hand_made: bool,
}

impl Default for Execution {
    fn default() -> Execution {
        Execution {
            cpus: 2,
            slice_ns: 3_000_000,
            latency_ns: 1_000,
            rings: 2,
            first_sequence: 0,
            start_ns: 1_000_000_000,
            pid: 1000,
            seed: 0,
            noise: false,
            second_wakings: false,
            fold_recursion: false,
            operations: false,
            hand_made: false,
        }
    }
}
