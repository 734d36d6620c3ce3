//! Facts about a binary's functions: names, places, exits, source lines. Every binary is untrusted input: nothing here panics
//! on it, sizes are bounded, and names are safe to print.
//!
//! [`functions_of`] reads the symbol table. [`choose`] picks functions to probe, with the file offsets of entries and exits.
//! [`locate`] finds what lies at an address; its answers can be serialized, because a sandboxed child gives them. [`sandbox`]
//! is that child, a process without rights. [`symbolize`] adds names to a finished recording.

// These macros panic when nobody reads the output any more.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod answer;
mod atomic_access;
pub mod binary;
mod body;
mod build_id;
mod catch_panic;
mod choose;
mod code;
mod debug_file;
mod debug_link;
mod debug_paths;
mod dwarf;
mod elf_file;
mod error;
mod exits;
mod file_key;
mod files;
mod functions;
mod go_table;
mod imports;
mod landing_pads;
mod libc_answer;
mod libc_functions;
mod libc_names;
mod locate;
mod located;
mod locator;
mod lock_regions;
mod mapped_binary;
mod members;
mod memory_access;
mod mini_debug;
mod missing;
mod moves_code;
mod name;
mod name_match;
mod origin;
mod outline;
mod own_files;
mod packed;
mod parser;
mod path_bytes;
mod probeable;
mod protecting_calls;
mod skip_reason;

mod libc_exit_points;
mod named_functions;
mod proven;
mod rust_v0;
pub mod sandbox;
mod sections;
mod serve;
mod service;
mod split;
mod string_table;
mod symbol_table;
pub mod symbolize;
mod unknown_exits;
mod unwind;
mod unwind_rows;
mod unwind_rules;
mod variables;
mod wait_loops;
mod wait_places;
mod wait_values;

pub use answer::{Frame, Location, Place, Reason, SymbolHit};
pub use atomic_access::changed_atomically;
pub use build_id::{BuildId, NotABuildId};
pub use choose::{Choice, ChosenFunction, Selection, choose};
pub use debug_paths::HostFiles;
pub use elf_file::{ElfFile, Section, Segment, open_plain};
pub use error::{FailureKind, SymbolError};
pub use exits::{Analysis, Exits, analyse};
pub use file_key::FileKey;
pub use files::{Candidate, Fetch, FileRequest, Files, NoFiles};
pub use functions::{
    Binding, Function, FunctionKind, ModuleFunctions, SymbolSource, functions_of, functions_with, unnamed,
};
pub use libc_functions::{CodePlace, ErrnoPlace, LibcCall, LibcFunctions, libc_functions};
pub use locate::{locate, locate_functions};
pub use located::Located;
pub use locator::Locator;
pub use lock_regions::{LockCall, LockRegions, lock_regions};
pub use mapped_binary::{CallPlace, MappedBinary, call_place};
pub use memory_access::{MemoryAccess, last_access};
pub use moves_code::MovesCode;
pub use name::{
    MAX_NAME_BYTES, MAX_RAW_BYTES, demangled, is_unsafe, safe, safe_bytes, safe_path, safe_within,
};
pub use name_match::{NameMatch, listed, match_name};
pub use named_functions::Unclear;
pub use outline::Outline;
pub use parser::{Parser, Parsers};
pub use serve::serve;
pub use service::Summary;
pub use skip_reason::SkipReason;
pub use unknown_exits::UnknownExits;
pub use unwind::{LandingPads, UnwindFacts, UnwindTables};
pub use unwind_rows::{FrameAt, RowsTold, Rule, Saved, UnwindRows};
pub use variables::Variables;
pub use wait_loops::{Callee, WaitLoop, wait_loops};

pub use engine::glob::matches as glob_matches;
