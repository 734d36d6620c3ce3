//! The only interface between longpole's kernel programs and its user space.
//!
//! Every record is a small `#[repr(C)]` struct of fixed size that starts with a [`Header`]. The kernel programs write
//! records into ring buffers, the session file stores them encoded without loss, and the engine reads them as
//! [`Record`]. This crate allocates no memory, and decoding never panics, whatever the bytes are.
//!
//! Units and clocks: every `*_ns` is in nanoseconds of `CLOCK_MONOTONIC` (`bpf_ktime_get_ns`). Every `tid` and `pid` is
//! the number in the host's first PID namespace. `pid` is the number that the kernel calls tgid.

#![no_std]
#![forbid(unsafe_code)]

mod awaited;
mod burst;
mod call;
mod contention;
mod control;
mod descriptor;
mod function;
mod header;
pub mod interpose;
mod libc_probe;
mod lifecycle;
mod operation;
mod record;
mod request;
mod sample;
mod sched;
mod stamp;
mod thread_context;

pub use awaited::{Awaited, FOLDER_BYTES, MAX_AWAITED, NAME_BYTES};
pub use burst::{Burst, MOST_APART_NS, MOST_HELD_NS, MOST_SPAN_NS};
pub use call::{Call, FUTEX_CALL, FUTEX_WAITV_CALL, FUTEX_WAKE_CALL, YIELD_CALL, futex_operation};
pub use contention::{
    ContentionCounts, ContentionFlags, ContentionKey, MAX_CONTENTION_KEYS, OPEN_CONTENTIONS, OpenContention,
};
pub use control::{
    CROWDED_CALLS, CROWDED_SHIFT, Cookie, CpuCounters, FunctionCounters, MAX_GROUPS, MAX_OPEN_FRAMES,
    MAX_RINGS, PID_LIMIT, RATE_WINDOW_SHIFT, Settings,
};
pub use descriptor::Descriptor;
pub use function::{FunctionEnter, FunctionExit, NO_FRAME, SILENT_AT_ONCE};
pub use header::{Context, Header, Kind};
pub use libc_probe::{
    LibcCookie, LibcFunction, LibcProcess, LibcSite, MAX_LIBC_SITES, MAX_OPEN_OPERATIONS, MAX_OWN_RANGES,
    MutexLayout, ObjectFrom, OpenOperation, OpenOperations, OutcomeFrom, Part, SecondFrom,
};
pub use lifecycle::{Exec, Exit, Fork, Rename};
pub use operation::{Operation, OperationFlags, SyncFamily, SyncOperation};
pub use record::{DecodeError, Record};
pub use request::{
    Answer, Exchange, MAX_LISTENING, MAX_REQUEST_KEYS, OPEN_SOCKETS, OpenSocket, REQUEST_BUCKETS,
    RequestCounts, RequestKey, bucket_begins_ns, request_bucket,
};
pub use sample::{
    CODE_BYTES, COPY_PIECE, COPY_PIECES, LastInstruction, MAX_KEEPING, MAX_ROOTS, NEXT_CODE_BYTES,
    RAW_COPY_KIND, RAW_FRAMES, RAW_STACK_KIND, REGISTERS, RawCopy, RawStack, Sample, SampleFlags,
    SampleReason, SampledCode, Sampling,
};
pub use sched::{Cause, Ran, Switch, SwitchFlags, Waking, WakingFlags};
pub use stamp::{ABI_STAMP, ABI_STAMP_SECTION};
pub use thread_context::{ContextPlace, MAX_CONTEXT_PLACES, SEEN_CONTEXTS, SeenContext, ThreadContext};

/// Version of the records, increased whenever their bytes change meaning. Every session file contains it.
pub const ABI_VERSION: u32 = 2;
