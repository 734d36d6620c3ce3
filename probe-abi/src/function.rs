//! Entries and exits of probed functions of the target.

use crate::Header;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A probed function starts.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct FunctionEnter {
    /// `tid` and `pid` are the caller's.
    pub header: Header,
    /// Number of the function in the session's function table.
    pub function: u32,
    /// Number of hits of the thread's function probes, since its last record, that left no record: folded, cut or
    /// beyond the depth limit.
    pub silent: u32,
    /// Stack pointer at the first instruction: on x86-64 the address of the return address. Or [`NO_FRAME`].
    pub stack_pointer: u64,
}

/// A probed function ends: a `ret` or a jump out of it is about to execute.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct FunctionExit {
    /// `tid` and `pid` are the caller's.
    pub header: Header,
    /// Number of the function in the session's function table.
    pub function: u32,
    /// The same number as [`FunctionEnter::silent`].
    pub silent: u32,
    /// Stack pointer at that instruction: on x86-64 equal to the one of the matching entry. Or [`NO_FRAME`].
    pub stack_pointer: u64,
}

/// This number of hits without a record is reported by a record of its own: an entry of a cut function that only
/// contains the number.
pub const SILENT_AT_ONCE: u32 = 16;

/// Stands in place of the stack pointer if a pair of places has the probes, not a function: a stretch of the thread begins
/// at the one and ends at the other, whatever frames are open.
pub const NO_FRAME: u64 = 0;

const _: () = assert!(size_of::<FunctionEnter>() == 40);
const _: () = assert!(size_of::<FunctionExit>() == 40);
