//! How a program is executed and recorded.

/// The machine on which a program is executed, and how it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Processors, 1 to 64.
    pub cpus: u16,
    /// Time after which a thread makes room for others.
    pub slice_ns: u64,
    /// Time from a wake-up, or from a pre-emption, until the thread can run.
    pub latency_ns: u64,
    /// Rings; CPU modulo rings says which.
    pub rings: usize,
    /// First number of every CPU's sequence.
    pub first_sequence: u32,
    /// Clock at the start.
    pub start_ns: u64,
    /// Process, and id of the first thread.
    pub pid: u32,
    /// Where the randomness starts that decides about noise, exits and stack pointers.
    pub seed: u64,
    /// Wake-ups of threads that do not sleep, and swapped neighbours in the rings.
    pub noise: bool,
    /// With `noise`: wake-ups of threads that were woken or pre-empted before and have not run since.
    pub second_wakings: bool,
    /// The kernel does not record calls below the first open frame of the same function.
    pub fold_recursion: bool,
    /// Synchronization operations are recorded, as by the interposed library; each takes 64 ns of CPU time,
    /// which is work of the thread where it did not have to wait and woke no thread.
    pub operations: bool,
    /// With `operations`: a semaphore that is taken right before a mutex is locked is made of a condition variable under
    /// that mutex, as programs make queues.
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
