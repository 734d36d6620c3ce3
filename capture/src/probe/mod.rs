//! Live capture: the only user of aya, and the user side of the kernel programs in `probe-ebpf`.
//!
//! Read in this order: `btf` and `layout` look up the kernel's structs; `object`, `load` and `loading` bring
//! the programs in. `attach` puts them on tracepoints, `function_probes` on functions, `lock_probes` on C
//! libraries' functions. The latter two work in small steps (`batched_attach`) so that the program does not
//! stall; a process of its own holds their links (`link_keeper`, `link_process`). `attacher` uses them while a capture runs. `filter` says which processes count, `coverage` on which
//! CPUs the sampling clock ticks.
//!
//! `overhead` measures what recording costs and keeps it to the budget. `cpu_rings` makes the rings,
//! `cpu_ring_reader` drains them, `counters` knows what was lost, `kernel_locks` how long threads waited for the kernel's own locks, `requests` what was asked over sockets. `programs` and `stale_probes` drop what was chosen
//! of a program that has ended; `mappings` notices libraries that are loaded later; `trial` counts calls of functions
//! that may be worth probes.
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
