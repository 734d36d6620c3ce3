//! Samples of threads: stacks, as the kernel programs take them and as longpole's other code reads them.

use crate::Header;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A thread's user stack at an instant. The collector makes it of a `RawStack` or `RawCopy` from the kernel programs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Sample {
    /// `tid` and `pid` are the thread's. `sequence` numbers the samples of a CPU, apart from its other records.
    pub header: Header,
    /// Number of the stack, whose note (`NoteKind::Stack`) precedes the first sample that refers to it; 0: the stack is
    /// not known.
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
    /// The CPU's clock ticked while the thread ran. The number of these samples shows where time goes.
    #[default]
    Tick = 0,
    /// The thread goes to sleep. Its switch has the same time and follows.
    Block = 1,
    /// The thread wakes another. The waking has the same time and follows.
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
    /// The stack continues above its last frame: either it was too deep, or too few bytes were copied.
    pub const TRUNCATED: u8 = 1;
    /// The thread was in the kernel (a system call, a fault): the stack is that in user space.
    pub const IN_KERNEL: u8 = 2;
}

/// How the kernel programs take stacks.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// Nothing is sampled.
    #[default]
    Off = 0,
    /// Frame pointers are followed.
    FramePointers = 1,
    /// Stack bytes are copied.
    Copies = 2,
    /// Frame pointers are followed in code that keeps them according to [`SampledCode`]; otherwise bytes are copied.
    Chosen = 3,
}

/// Kind byte of a [`RawStack`]. Such records only go from the kernel programs to the collector.
pub const RAW_STACK_KIND: u8 = 128;
/// Kind byte of a [`RawCopy`], which leaves the kernel programs like a raw sample.
pub const RAW_COPY_KIND: u8 = 129;

/// Largest number of frames that a kernel with its default limit (`kernel.perf_event_max_stack`) follows.
pub const RAW_FRAMES: usize = 127;

/// A stack found by frame pointers.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RawStack {
    /// `sequence` numbers the CPU's samples.
    pub header: Header,
    /// A [`SampleReason`] as a byte.
    pub reason: u8,
    /// [`SampleFlags`] bits.
    pub flags: u8,
    /// Number of valid frames.
    pub count: u16,
    /// 1 if the last frame is one of [`SampledCode::roots`], else 0.
    pub at_root: u16,
    /// The same as [`RawCopy::call`].
    pub call: u16,
    /// The words at the stack pointer. In a function that has not set its frame pointer yet, one of them leads to its caller,
    /// which frame pointers skip. 0: not known.
    pub top: [u64; 2],
    /// The thread's last instruction.
    pub last: LastInstruction,
    /// The frames, innermost first.
    pub frames: [u64; RAW_FRAMES],
}

/// Number of bytes of code: the longest instruction (Intel SDM, volume 2, section 2.3.11), and one more.
pub const CODE_BYTES: usize = 16;
/// Bytes of code after a place: some ten instructions, which may store what was loaded before.
pub const NEXT_CODE_BYTES: usize = 48;

/// The code around the place where a thread was, and its registers. Together they show what its last instruction
/// changed: the slow instruction is the one before an interrupt. Valid for ticks in user space only.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct LastInstruction {
    /// The code up to the place; zeros if it cannot be read.
    pub code: [u8; CODE_BYTES],
    /// The code from the place on; zeros if it cannot be read.
    pub next_code: [u8; NEXT_CODE_BYTES],
    /// The thread's general registers, in the order of [`REGISTERS`].
    pub registers: [u64; REGISTERS.len()],
}

/// DWARF's numbers (System V ABI for AMD64, figure 3.36) of the registers with which the kernel's `pt_regs` begins, in
/// the order of `pt_regs`.
pub const REGISTERS: [u8; 15] = [15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5];

/// Size of the pieces in which stack bytes are copied, bytes; no piece lies on two pages.
pub const COPY_PIECE: usize = 1024;
/// Largest number of pieces copied of a stack.
pub const COPY_PIECES: usize = 16;

/// A copied stack.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RawCopy {
    /// `sequence` numbers the CPU's samples.
    pub header: Header,
    /// A [`SampleReason`] as a byte.
    pub reason: u8,
    /// [`SampleFlags`] bits.
    pub flags: u8,
    /// At a tick in the kernel, the number of the thread's system call plus 1; 0: none, as at a page fault or an interrupt.
    pub call: u16,
    /// Number of valid bytes.
    pub count: u32,
    /// The thread's instruction pointer in user space.
    pub instruction_pointer: u64,
    /// Its stack pointer.
    pub stack_pointer: u64,
    /// Its frame pointer register, which may hold anything.
    pub frame_pointer: u64,
    /// Address of the first byte: the stack pointer, or a little below it.
    pub from: u64,
    /// The thread's last instruction.
    pub last: LastInstruction,
    /// Bytes of the stack from `from` on, towards the callers.
    pub bytes: [u8; COPY_PIECE * COPY_PIECES],
}

/// Largest number of ranges of code in [`SampledCode::keeping`].
pub const MAX_KEEPING: usize = 8;
/// Largest number of addresses in [`SampledCode::roots`].
pub const MAX_ROOTS: usize = 8;

/// Facts about the code of a process, which the user side learns from the first stacks.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SampledCode {
    /// First address and length of code that keeps frame pointers; a length of 0: none.
    pub keeping: [[u64; 2]; MAX_KEEPING],
    /// Return addresses of the outermost functions that keep frame pointers: the frames above are always the same. 0: none.
    pub roots: [u64; MAX_ROOTS],
    /// Pieces of a stack that were enough so far; 0: unknown, so as many as possible are copied.
    pub copy_pieces: u32,
    /// Always 0.
    pub reserved: u32,
}

const _: () = assert!(size_of::<Sample>() == 32);
const _: () = assert!(size_of::<RawStack>() == 1248);
const _: () = assert!(size_of::<RawCopy>() == 248 + COPY_PIECE * COPY_PIECES);
const _: () = assert!(size_of::<SampledCode>() == 200);
