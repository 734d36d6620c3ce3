//! Facts about the innermost place of a stack, in addition to its address.

use engine::event::{Access, NoteKind};
use probe_abi::{SampleFlags, SampleReason};

/// A mark in words that are no frames: no address has the highest bit, and none of user space the bit below.
const NOT_A_FRAME: u64 = 1 << 63;
/// Bits of an address of user space.
const ADDRESS: u64 = (1 << 48) - 1;
const IN_KERNEL: u64 = NOT_A_FRAME | 1 << 62;

/// The last instruction's effect or place, where that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leaf {
    /// Nothing more is known.
    #[default]
    Code,
    /// The last instruction changed or read the word at this address, which several threads may use.
    Changed(u64, Access),
    /// The thread computed in the kernel, in this system call; `None`: in a page fault or an interrupt.
    InKernel(Option<u32>),
}

impl Leaf {
    /// The leaf of a sample taken in the kernel at a tick; `None` for all other samples. `call`: as
    /// [`probe_abi::RawCopy::call`].
    pub fn of_kernel(reason: u8, flags: u8, call: u16) -> Option<Leaf> {
        let in_kernel = reason == SampleReason::Tick as u8 && flags & SampleFlags::IN_KERNEL != 0;
        in_kernel.then_some(Leaf::InKernel(u32::from(call).checked_sub(1)))
    }

    /// The word that follows the frames in a stack's key.
    pub fn key(self) -> Option<u64> {
        match self {
            Leaf::Code => None,
            Leaf::Changed(address, access) => Some(address & ADDRESS | (access as u64) << 48 | NOT_A_FRAME),
            Leaf::InKernel(call) => Some(call.map_or(u64::from(u32::MAX), u64::from) | IN_KERNEL),
        }
    }

    /// A note about the stack with this number; `None`: there is nothing to note.
    pub fn note(self, stack: u32, pid: u32) -> Option<NoteKind> {
        match self {
            Leaf::Code => None,
            Leaf::Changed(address, access) => Some(NoteKind::Changed { stack, pid, address, access }),
            Leaf::InKernel(call) => Some(NoteKind::InKernel { stack, call }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_in_the_kernel_is_that_of_a_tick_with_its_system_call() {
        let tick = SampleReason::Tick as u8;
        let in_kernel = SampleFlags::IN_KERNEL;
        assert_eq!(Leaf::of_kernel(tick, in_kernel, 12), Some(Leaf::InKernel(Some(11))));
        assert_eq!(Leaf::of_kernel(tick, in_kernel, 0), Some(Leaf::InKernel(None)));
        assert_eq!(Leaf::of_kernel(tick, 0, 0), None);
        assert_eq!(Leaf::of_kernel(SampleReason::Block as u8, in_kernel, 0), None);
    }

    #[test]
    fn different_leaves_have_different_keys() {
        let leaves = [
            Leaf::Code,
            Leaf::Changed(0, Access::Atomic),
            Leaf::Changed(0x40, Access::Atomic),
            Leaf::Changed(0x40, Access::Read),
            Leaf::Changed(0x40, Access::Write),
            Leaf::InKernel(None),
            Leaf::InKernel(Some(0)),
            Leaf::InKernel(Some(0x40)),
        ];
        for (index, leaf) in leaves.iter().enumerate() {
            assert!(leaves[..index].iter().all(|other| other.key() != leaf.key()), "{leaf:?}");
        }
    }
}
