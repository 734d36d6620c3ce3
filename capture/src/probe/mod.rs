//! Live capture: the only user of aya, and the user side of the kernel programs in `probe-ebpf`.
//!
//! Read in this order. In `kernel`, `btf` and `layout` look up the kernel's structs; `object` and `loading` load the
//! programs (`load` calls them), and `attach` attaches them to tracepoints. In `breakpoints`, `function_probes` attaches
//! them to functions, `lock_probes` to C libraries' functions. Both work in small steps (`batched_attach`) so that the
//! program does not stall; a separate process holds their links (`link_keeper`, `link_process`). `attacher` uses them while
//! a capture runs. `filter` keeps the set of recorded processes. In `sources`, `coverage` chooses the CPUs on which the
//! sampling clock ticks.
//!
//! `overhead` measures the cost of recording and keeps it within the budget. `cpu_rings` makes the rings, `cpu_ring_reader`
//! drains them. `counters` reads losses, `kernel_locks` waits for the kernel's own locks, `requests` requests over sockets.
//! `programs` and `stale_probes` drop probes of a program that has ended; `mappings` notices libraries that are loaded
//! later; `trial` counts calls of functions that may be worth probes.
//! [`Capture`] is all of it together, and `start` begins it.

mod breakpoints;
mod capture;
mod error;
mod kernel;
mod load;
mod options;
mod overhead;
mod rights;
mod sources;
mod start;
mod status;

pub use breakpoints::{AT_ONCE, Attacher, Calls, LibcFile, LibcProbes, count_calls, hold_links};
pub use capture::{Capture, StopSummary};
pub use error::{ProbeError, ProbeErrorKind};
pub use kernel::{check_kernel, check_programs, has_programs};
pub use options::{CaptureOptions, MOST_NUMBERS, ProbeFunction, Since, number_limit};
pub use overhead::preload_cost::PreloadCost;
pub use rights::check_capabilities;
pub use sources::{NewMapping, count_this_thread, now_ns, this_thread_ns, usual_ring_bytes};
