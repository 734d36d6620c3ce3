//! Live capture: the only user of aya, and the user side of the kernel programs in `probe-ebpf`.
//!
//! Read in this order: `btf` and `layout` look up the kernel's structs; `object`, `load` and `loading` bring the programs in;
//! `attach` puts them on tracepoints, `functions` on functions (`gently`, so that it is not felt), `operations` on C libraries'; `attacher` does so while
//! a capture runs; `filter` says which processes count; `calibrate` measures what a hit costs,
//! `coverage` says where the sampling clock ticks,
//! `ledger` keeps the books on all that recording costs (with `clocks`), `budget` decides and `governor` takes probes
//! off functions that are too hot or too dear; `cpu_rings` makes the rings, `ring` drains them; `programs` and `overtaken` drop what was chosen of a program that is no more; `mappings` notices libraries that
//! are loaded later; `trial` counts calls of functions that may be worth probes; `counters` knows what was lost;
//! [`Capture`] is all of it together, and `start` begins it.

mod attach;
mod attacher;
mod btf;
mod budget;
mod calibrate;
mod capture;
mod clocks;
mod counters;
mod coverage;
mod cpu_rings;
mod error;
mod filter;
mod function_links;
mod functions;
mod gently;
mod governor;
mod layout;
mod ledger;
mod libc_files;
mod libc_points;
mod load;
mod loading;
mod mappings;
mod object;
mod open_calls;
mod operations;
mod operations_inside;
mod options;
mod overtaken;
mod programs;
mod rights;
mod ring;
mod samples;
mod shared;
mod spent;
mod start;
mod tell;
mod thinning;
mod trial;

pub use attacher::Attacher;
pub use capture::{Capture, StopSummary};
pub use clocks::{count_this_thread, now_ns, this_thread_ns};
pub use counters::ProgramCost;
pub use cpu_rings::usual_bytes as usual_ring_bytes;
pub use error::{ProbeError, ProbeErrorKind};
pub use layout::check_kernel;
pub use libc_files::{LibcFile, LibcProbes};
pub use mappings::NewMapping;
pub use object::{check_programs, has_programs};
pub use operations_inside::OperationsInside;
pub use options::{CaptureOptions, MOST_NUMBERS, ProbeFunction, Since, number_limit};
pub use rights::check_capabilities;
pub use trial::{AT_ONCE, Calls, count_calls};
