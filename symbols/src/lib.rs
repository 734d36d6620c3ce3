//! Facts about a binary's functions: names, places, exits, source lines. Every binary is untrusted input. So no
//! function panics because of a binary, all sizes are bounded, and names are safe to print.
//!
//! [`functions_of`] reads the symbol table. [`choose`] picks functions to probe, with the file offsets of their entries
//! and exits. [`locate`] finds which function and line is at an address; its answers can be serialized, because a
//! sandboxed child process sends them. [`sandbox`] confines that child, a process without rights. [`symbolize`] adds
//! names to a finished recording.
//!
//! A complete program that prints where functions begin (from `examples/functions.rs`):
//!
//! ```no_run
//! let module = symbols::functions_of("/bin/ls".as_ref())?;
//! for function in module.functions().iter().take(3) {
//!     let places = [symbols::Place::Address(function.address)];
//!     let line = symbols::locate(&module, &places)[0].line();
//!     println!("{} {}", module.name(function), line.unwrap_or_default());
//! }
//! # Ok::<(), symbols::SymbolError>(())
//! ```

// These macros panic when nobody reads the output any more.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod answer;
mod catch_panic;
mod choice;
mod code;
mod elf;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod libc;
mod names;
mod places;
mod process;
pub mod sandbox;
pub mod symbolize;

pub use crate::libc::{CodePlace, ErrnoPlace, LibcCall, LibcFunctions, libc_functions};
pub use answer::{Frame, Location, Place, Reason, SymbolHit};
pub use choice::{
    Choice, ChosenFunction, MissingPair, MovesCode, NoUsdtPair, PairPlaces, Selection, SkipReason, Unclear,
    UsdtPair, choose,
};
pub use code::{
    Analysis, Callee, Exits, FrameAt, LandingPads, LockCall, LockRegions, MemoryAccess, RowsTold, Rule,
    Saved, UnknownExits, UnwindFacts, UnwindRows, UnwindTables, WaitLoop, analyse, changed_atomically,
    last_access, lock_regions, wait_loops,
};
pub use elf::binary;
pub use elf::{
    Binding, BuildId, Candidate, ElfFile, Fetch, FileKey, FileRequest, Files, Function, FunctionKind,
    HostFiles, ModuleFunctions, NotABuildId, Outline, Section, Segment, SymbolSource, TlsSlot, TlsVariable,
    UsdtProbe, functions_of, functions_with, open_plain, unnamed, usdt_probes,
};
pub use error::{FailureKind, SymbolError};
pub use names::{
    MAX_NAME_BYTES, MAX_RAW_BYTES, NameMatch, demangled, is_unsafe, listed, match_name, safe, safe_bytes,
    safe_path, safe_within,
};
pub use places::{GoRuntime, GoroutineMembers, Located, Locator, Variables, locate, locate_functions};
pub use process::{CallPlace, MappedBinary, Parser, Parsers, SymbolSummary, call_place, serve};

pub use engine::glob::matches as glob_matches;
