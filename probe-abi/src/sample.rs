//! What threads were doing at an instant: stacks, as the kernel programs take them and as everybody else reads them.

use crate::Header;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A thread's user stack at an instant. The kernel programs write [`RawSample`]s; the collector makes these of them.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Sample {
    /// `tid`/`pid` are the thread. `sequence` numbers the samples of a CPU, apart from its other records.
    pub header: Header,
    /// Number of the stack (`NoteKind::Stack`), which is told before the first sample that uses it; 0: it is not known.
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
    /// The CPU's clock ticked while the thread ran: how many there are says where time goes.
    #[default]
    Tick = 0,
    /// The thread goes to sleep. Its switch has the same time and comes next.
    Block = 1,
    /// The thread wakes another. The waking has the same time and comes next.
    Wake = 2,
}

impl SampleReason {
    /// The reason of a byte, or `None` for one that this version does not know.
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
    /// The stack goes on above its last frame: it was too deep, or its bytes did not reach so far.
    pub const TRUNCATED: u8 = 1;
    /// The thread was in the kernel (a system call, a fault): its stack is that of its way in.
    pub const IN_KERNEL: u8 = 2;
}

const _: () = assert!(size_of::<Sample>() == 32);
