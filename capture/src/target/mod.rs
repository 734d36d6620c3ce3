//! The program under study, as /proc and exec show it. The module reads its identity, the states of its threads and its
//! files ([`attach_facts`], [`Process`], [`mapped`]). It also starts a program that is held at a gate until it is
//! recorded ([`Launch`]).

mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod launching;
pub mod machine;
mod memory;
pub(crate) mod processes;

pub use error::TargetError;
pub use launching::command::{binary_of, resolve};
pub use launching::launch::{ChildStream, GatedChild, Launch, LaunchError, LaunchOptions};
pub use launching::usage::children_cpu_time;
pub use machine::busy::BusyTimes;
pub use machine::clock::{kernel_tick_ns, monotonic_ns};
pub use machine::cpu_quota::cpu_quota;
pub use machine::cpus::{CpuList, on};
pub use machine::other_programs::CpuTimes;
pub use machine::time_slice::take_short_turns;
pub use memory::return_large_blocks;
pub use processes::c_libraries::{
    CLibrary, CLibraryKind, c_libraries_to_come, c_library_kind, is_c_library, mapped_c_libraries,
};
pub use processes::facts::{attach_facts, facts_of, threads_at_end, threads_of};
pub use processes::linked_libraries::linked_libraries;
pub use processes::maps::{Code, MappedRange, Module, code, mapped};
pub use processes::named::named;
pub use processes::process::{Process, descendants, without_deleted};
