//! Live capture: the only user of aya, and the user side of the kernel programs in `probe-ebpf`.
//!
//! Read in this order: `btf` and `layout` look up the kernel's structs; `object`, `load` and `loading` load
//! the programs. `attach` attaches them to tracepoints, `function_probes` to functions, `lock_probes` to C libraries'
//! functions. The latter two work in small steps (`batched_attach`) so that the program does not stall; a separate process
//! holds their links (`link_keeper`, `link_process`). `attacher` uses them while a capture runs. `filter` keeps the set of
//! recorded processes, `coverage` chooses the CPUs on which the sampling clock ticks.
//!
//! `overhead` measures the cost of recording and keeps it within the budget. `cpu_rings` makes the rings, `cpu_ring_reader`
//! drains them. `counters` reads losses, `kernel_locks` waits for the kernel's own locks, `requests` requests over sockets.
//! `programs` and `stale_probes` drop probes of a program that has ended; `mappings` notices libraries that are loaded
//! later; `trial` counts calls of functions that may be worth probes.
//! [`Capture`] is all of it together, and `start` begins it.

mod attach;
mod attacher;
mod batched_attach;
mod btf;
mod capture;
mod clocks;
mod counters;
mod coverage;
mod cpu_ring_reader;
mod cpu_rings;
mod error;
mod filter;
mod function_groups;
mod function_links;
mod function_probes;
mod kernel_locks;
mod layout;
mod libc_files;
mod libc_points;
mod link_keeper;
mod link_process;
mod load;
mod loading;
mod lock_probes;
mod mappings;
mod object;
mod open_calls;
mod options;
mod overhead;
mod programs;
mod requests;
mod rights;
mod sampling_clock;
mod shared_map;
mod stale_probes;
mod start;
mod status;
mod trial;

pub use attacher::Attacher;
pub use capture::{Capture, StopSummary};
pub use clocks::{count_this_thread, now_ns, this_thread_ns};
pub use cpu_rings::usual_bytes as usual_ring_bytes;
pub use error::{ProbeError, ProbeErrorKind};
pub use layout::check_kernel;
pub use libc_files::{LibcFile, LibcProbes};
pub use link_process::hold_links;
pub use mappings::NewMapping;
pub use object::{check_programs, has_programs};
pub use options::{CaptureOptions, MOST_NUMBERS, ProbeFunction, Since, number_limit};
pub use overhead::preload_cost::PreloadCost;
pub use rights::check_capabilities;
pub use trial::{AT_ONCE, Calls, count_calls};
