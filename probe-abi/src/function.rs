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
    /// Number of hits of the thread's function probes that left no record, since the thread's last record. Such hits
    /// were folded, cut off, or beyond the depth limit.
    pub silent: u32,
    /// Stack pointer at the first instruction, which on x86-64 is the address of the return address. [`NO_FRAME`] for a
    /// pair of places.
    pub stack_pointer: u64,
}

/// A probed function ends: it is about to execute a `ret`, or a jump out of the function.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct FunctionExit {
    /// `tid` and `pid` are the caller's.
    pub header: Header,
    /// Number of the function in the session's function table.
    pub function: u32,
    /// The same number as [`FunctionEnter::silent`].
    pub silent: u32,
    /// Stack pointer at that instruction, which on x86-64 equals the one of the matching entry. [`NO_FRAME`] for a pair
    /// of places.
    pub stack_pointer: u64,
}

/// After this number of hits without a record, an extra record reports them: an entry of a cut-off function that only
/// contains the number.
pub const SILENT_AT_ONCE: u32 = 16;

/// The stack pointer in records of a pair of places. Such a pair is no function: a stretch of the thread begins at one
/// place and ends at the other, whatever frames are open.
pub const NO_FRAME: u64 = 0;

const _: () = assert!(size_of::<FunctionEnter>() == 40);
const _: () = assert!(size_of::<FunctionExit>() == 40);
