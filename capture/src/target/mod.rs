//! The program under study, as /proc and exec show it: its identity, the states of its threads and its
//! files ([`attach_facts`], [`Process`], [`mapped`]), and starting a program held at a gate until it is watched
//! ([`Launch`]).

mod account;
mod at_start;
mod awaited_thread;
mod busy;
mod c_libraries;
mod cgroup;
mod clock;
mod command;
mod cpu_quota;
mod cpus;
mod error;
mod facts;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod gate;
pub mod idle_wake;
mod invoked_path;
mod launch;
pub mod limits;
pub mod line_transfer;
mod linked_libraries;
pub(crate) mod listening;
mod maps;
pub mod memory;
mod moved_text;
mod named;
mod namespace;
mod other_programs;
mod proc_dir;
mod proc_text;
mod process;
pub mod signals;
mod time_slice;
mod usage;

pub use busy::BusyTimes;
pub use c_libraries::{
    CLibrary, CLibraryKind, c_libraries_to_come, c_library_kind, is_c_library, mapped_c_libraries,
};
pub use clock::{kernel_tick_ns, monotonic_ns};
pub use command::{binary_of, resolve};
pub use cpu_quota::cpu_quota;
pub use cpus::{CpuList, on};
pub use error::TargetError;
pub use facts::{attach_facts, facts_of, threads_at_end, threads_of};
pub use launch::{ChildStream, GatedChild, Launch, LaunchError, LaunchOptions};
pub use linked_libraries::linked_libraries;
pub use maps::{Code, MappedRange, Module, code, mapped};
pub use named::named;
pub use other_programs::CpuTimes;
pub use process::{Process, descendants, without_deleted};
pub use time_slice::take_short_turns;
pub use usage::children_cpu_time;
