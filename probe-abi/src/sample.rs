//! Samples of threads' stacks: in the form that the kernel programs write, and in the form that all other code reads.

use crate::Header;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A thread's user stack at an instant. The collector makes a sample of each `RawStack` or `RawCopy` from the kernel
/// programs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Sample {
    /// `tid` and `pid` are the thread's. `sequence` is the sample's number on its CPU, which numbers samples separately
    /// from its other records.
    pub header: Header,
    /// Number of the stack; 0: the stack is not known. The note with the stack (`NoteKind::Stack`) precedes the first
    /// sample that refers to it.
    pub stack: u32,
    /// A [`SampleReason`] as a byte.
    pub reason: u8,
    /// [`SampleFlags`] bits.
    pub flags: u8,
    /// Always 0.
    pub reserved: u16,
}

/// Why a stack was taken.
#[repr(u8)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleReason {
    /// The CPU's clock ticked while the thread ran. The number of these samples shows where CPU time is spent.
    #[default]
    Tick = 0,
    /// The thread goes to sleep. The record of its switch follows and has the same time.
    Block = 1,
    /// The thread wakes another one. The record of the wake-up follows and has the same time.
    Wake = 2,
}

impl SampleReason {
    /// The reason with this byte, or `None` for a byte that this version does not know.
    pub const fn from_byte(byte: u8) -> Option<SampleReason> {
        match byte {
            0 => Some(SampleReason::Tick),
            1 => Some(SampleReason::Block),
            2 => Some(SampleReason::Wake),
            _ => None,
        }
    }
}

/// Bits of [`Sample::flags`].
pub struct SampleFlags;
impl SampleFlags {
    /// The stack has more callers beyond its last frame: it was too deep, or too few bytes were copied.
    pub const TRUNCATED: u8 = 1;
    /// The thread was in the kernel (a system call, a fault). The stack is the thread's stack in user space.
    pub const IN_KERNEL: u8 = 2;
}

/// How the kernel programs take stacks.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// Nothing is sampled.
    #[default]
    Off = 0,
    /// The kernel follows frame pointers.
    FramePointers = 1,
    /// The programs copy bytes of the stack.
    Copies = 2,
    /// In code that keeps frame pointers according to [`SampledCode`], the kernel follows frame pointers. In other code
    /// the programs copy bytes.
    Chosen = 3,
}

/// Kind byte of a [`RawStack`]. The kernel programs send such records to the collector, and no session file contains
/// them.
pub const RAW_STACK_KIND: u8 = 128;
/// Kind byte of a [`RawCopy`]. The kernel programs send such records to the collector, and no session file contains
/// them.
pub const RAW_COPY_KIND: u8 = 129;

/// Largest number of frames that a kernel with the default limit (`kernel.perf_event_max_stack`) follows.
pub const RAW_FRAMES: usize = 127;

/// A stack found by frame pointers.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RawStack {
    /// `sequence` is the sample's number on its CPU.
    pub header: Header,
    /// A [`SampleReason`] as a byte.
    pub reason: u8,
    /// [`SampleFlags`] bits.
    pub flags: u8,
    /// Number of valid frames.
    pub count: u16,
    /// 1 if the last frame is one of [`SampledCode::roots`], otherwise 0.
    pub at_root: u16,
    /// Number of the thread's system call plus 1, as in [`RawCopy::call`].
    pub call: u16,
    /// The two words at the stack pointer; 0 if not known. If a function has not set its frame pointer yet, frame
    /// pointers skip its caller, and one of these words is the return address to that caller.
    pub top: [u64; 2],
    /// The code around the thread's last instruction.
    pub last: LastInstruction,
    /// The frames, innermost first.
    pub frames: [u64; RAW_FRAMES],
}

/// Number of bytes of code before a place: one more than the longest instruction has (Intel SDM, volume 2, section
/// 2.3.11).
pub const CODE_BYTES: usize = 16;
/// Number of bytes of code after a place. This is about ten instructions, which may store a value that was loaded
/// before.
pub const NEXT_CODE_BYTES: usize = 48;

/// The code around the place where a thread was, and the thread's registers. Together they show what the last
/// instruction changed: a slow instruction is the one before the place of an interrupt. Valid only for ticks in user
/// space.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct LastInstruction {
    /// The code before the place; zeros if the code cannot be read.
    pub code: [u8; CODE_BYTES],
    /// The code from the place on; zeros if the code cannot be read.
    pub next_code: [u8; NEXT_CODE_BYTES],
    /// The thread's general registers, in the order of [`REGISTERS`].
    pub registers: [u64; REGISTERS.len()],
}

/// DWARF numbers (System V ABI for AMD64, figure 3.36) of the registers at the beginning of the kernel's `pt_regs`, in
/// the order of `pt_regs`.
pub const REGISTERS: [u8; 15] = [15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5];

/// Size of the pieces in which the programs copy a stack, in bytes. No piece crosses the border between two pages.
pub const COPY_PIECE: usize = 1024;
/// Largest number of pieces that are copied of one stack.
pub const COPY_PIECES: usize = 16;

/// A copied stack.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RawCopy {
    /// `sequence` is the sample's number on its CPU.
    pub header: Header,
    /// A [`SampleReason`] as a byte.
    pub reason: u8,
    /// [`SampleFlags`] bits.
    pub flags: u8,
    /// For a tick in the kernel: the number of the thread's system call plus 1. 0 if the thread is in no system call,
    /// as in a page fault or an interrupt.
    pub call: u16,
    /// Number of valid bytes.
    pub count: u32,
    /// The thread's instruction pointer in user space.
    pub instruction_pointer: u64,
    /// The thread's stack pointer.
    pub stack_pointer: u64,
    /// The thread's frame pointer register, which may contain any value.
    pub frame_pointer: u64,
    /// Address of the first byte of `bytes`: the stack pointer, or an address a little below it.
    pub from: u64,
    /// The code around the thread's last instruction.
    pub last: LastInstruction,
    /// Bytes of the stack from `from` on, towards the callers.
    pub bytes: [u8; COPY_PIECE * COPY_PIECES],
}

/// Largest number of ranges of code in [`SampledCode::keeping`].
pub const MAX_KEEPING: usize = 8;
/// Largest number of addresses in [`SampledCode::roots`].
pub const MAX_ROOTS: usize = 8;

/// Facts about the code of a process. User space learns them from the first stacks.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SampledCode {
    /// Ranges of code that keeps frame pointers: first address and length in bytes. A length of 0: no range.
    pub keeping: [[u64; 2]; MAX_KEEPING],
    /// Return addresses into the outermost functions that keep frame pointers, whose own callers are always the same.
    /// 0: none.
    pub roots: [u64; MAX_ROOTS],
    /// Number of pieces of a stack that were enough so far. 0: not known, so the programs copy as many as possible.
    pub copy_pieces: u32,
    /// Always 0.
    pub reserved: u32,
}

const _: () = assert!(size_of::<Sample>() == 32);
const _: () = assert!(size_of::<RawStack>() == 1248);
const _: () = assert!(size_of::<RawCopy>() == 248 + COPY_PIECE * COPY_PIECES);
const _: () = assert!(size_of::<SampledCode>() == 200);
