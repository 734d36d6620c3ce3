//! A thread's own words. Rust's `thread_local!` allocates memory and has destructors, and `#[thread_local]` is not
//! stable. So assembly reserves these bytes in the static part of every thread's storage. All bytes are 0 in a new
//! thread. The program loads the library at its start and never later, so there is always room.

use core::arch::{asm, global_asm};
use core::cell::Cell;

/// The words of a thread. Signal handlers in the same thread use the same words.
#[repr(C)]
pub struct Tls {
    /// Address of the control block of the thread's ring; 0: the thread has no ring.
    pub control: Cell<usize>,
    /// Address of the thread's ring.
    pub ring: Cell<usize>,
    /// Epoch of the process when the thread got its ring: see [`crate::process`].
    pub epoch: Cell<u64>,
    /// The thread's ids: `pid << 32 | tid`.
    pub ids: Cell<u64>,
    /// The epoch in which the thread is just now looking for a ring; otherwise 0.
    pub claiming: Cell<u64>,
    /// Number of operations until the thread searches for a ring again.
    pub patience: Cell<u32>,
    /// Number of operations that the thread has begun. The number may overflow.
    pub operations: Cell<u32>,
    /// The routine of the `pthread_once` in progress.
    pub routine: Cell<usize>,
    /// 1 if libc has called that routine.
    pub ran: Cell<u64>,
}

/// Offset of `routine`, for the assembly in [`crate::operations::once`].
pub const ROUTINE: usize = core::mem::offset_of!(Tls, routine);
/// Offset of `ran`, for the assembly in [`crate::once`].
pub const RAN: usize = core::mem::offset_of!(Tls, ran);
const _: () = assert!(size_of::<Tls>() == 64);

global_asm!(
    ".pushsection .tbss.longpole,\"awT\",@nobits",
    ".p2align 6",
    ".hidden longpole_tls",
    ".globl longpole_tls",
    ".type longpole_tls,@object",
    "longpole_tls:",
    ".zero 64",
    ".size longpole_tls,64",
    ".popsection",
);

/// The words of this thread.
#[inline(always)]
pub fn tls() -> &'static Tls {
    let address: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: this reads the thread pointer and an offset that the loader has put into the GOT, and changes nothing.
    unsafe {
        asm!(
            "mov {0}, qword ptr fs:[0]",
            "add {0}, qword ptr [rip + longpole_tls@GOTTPOFF]",
            out(reg) address,
            options(pure, readonly, nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: this reads the thread pointer and an offset that the loader has put into the GOT, and changes nothing.
    unsafe {
        asm!(
            "mrs {0}, tpidr_el0",
            "adrp {1}, :gottprel:longpole_tls",
            "ldr {1}, [{1}, :gottprel_lo12:longpole_tls]",
            "add {0}, {0}, {1}",
            out(reg) address,
            out(reg) _,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    // SAFETY: these are 64 aligned bytes of this thread that were 0 at its start and that no other code uses. `Tls` has
    // no invalid bytes and is not `Sync`, and no code passes it to another thread.
    unsafe { &*(address as *const Tls) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_its_own_zeroed_thread_local_data() {
        let mine = tls();
        mine.patience.set(7);
        let (other, value) =
            std::thread::spawn(|| (core::ptr::from_ref(tls()) as usize, tls().patience.get()))
                .join()
                .expect("thread");
        assert_ne!(other, core::ptr::from_ref(mine) as usize);
        assert_eq!((value, tls().patience.get()), (0, 7));
        mine.patience.set(0);
    }
}
