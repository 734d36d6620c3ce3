//! Data that the kernel programs deliver while a capture runs: rings, samples, counts and new mappings.

pub(crate) mod awaited;
pub(crate) mod clocks;
pub(crate) mod context_places;
pub(crate) mod counters;
mod coverage;
mod cpu_ring_reader;
pub(crate) mod cpu_rings;
pub(crate) mod kernel_locks;
mod mappings;
pub(crate) mod requests;
pub(crate) mod sampling_clock;

pub use clocks::{count_this_thread, now_ns, this_thread_ns};
pub use cpu_rings::usual_bytes as usual_ring_bytes;
pub use mappings::NewMapping;

pub(crate) use clocks::{CpuTime, OwnTime, waited_for_ns};
pub(crate) use cpu_ring_reader::{BATCH, Rings};
pub(crate) use cpu_rings::Placing;
pub(crate) use mappings::Mappings;
pub(crate) use requests::RequestCounter;
pub(crate) use sampling_clock::Clock;
