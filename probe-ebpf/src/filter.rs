//! Which processes are recorded: one bit per possible process id, so that asking costs one load at a known place
//! in every switch of the machine. The user side sets bits for the processes it was told to record; the programs
//! set them for child processes and clear them when a process is gone.

use aya_ebpf::{bindings::BPF_F_MMAPABLE, macros::map, maps::Array};
use probe_abi::PID_LIMIT;

use crate::{memory, settings::setting};

/// Bit `pid & 63` of word `pid >> 6`.
#[map]
static TRACKED: Array<u64> = Array::with_max_entries(PID_LIMIT / 64, BPF_F_MMAPABLE);

/// Whether a process is recorded.
#[inline(always)]
pub fn is_tracked(pid: u32) -> bool {
    let Some(word) = TRACKED.get_ptr(pid >> 6) else { return false };
    // SAFETY: a map value of 8 bytes.
    let word = unsafe { memory::load(word) };
    word >> (pid & 63) & 1 != 0
}

/// Records a process from now on, unless it is longpole's own.
#[inline(always)]
pub fn track(pid: u32) {
    if pid == setting!(own_pid) {
        return;
    }
    if let Some(word) = TRACKED.get_ptr_mut(pid >> 6) {
        // SAFETY: a map value of 8 bytes.
        unsafe { memory::set_bits(word, 1 << (pid & 63)) };
    }
}

/// Forgets a process whose id may be given to another one.
#[inline(always)]
pub fn untrack(pid: u32) {
    if let Some(word) = TRACKED.get_ptr_mut(pid >> 6) {
        // SAFETY: a map value of 8 bytes.
        unsafe { memory::keep_bits(word, !(1 << (pid & 63))) };
    }
}
