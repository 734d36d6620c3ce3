//! The set of recorded processes: one bit per possible process id, so that a look-up costs one load at a known place in
//! every switch of the machine. The user side sets bits for the processes that it must record; the programs set them
//! for child processes and clear them when a process has ended.

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC},
    macros::map,
    maps::{Array, HashMap},
};
use probe_abi::PID_LIMIT;

use crate::{memory, settings::setting};

/// Bit `pid & 63` of word `pid >> 6`.
#[map]
static TRACKED: Array<u64> = Array::with_max_entries(PID_LIMIT / 64, BPF_F_MMAPABLE);

/// Times at which recorded children were born (`CLOCK_MONOTONIC` nanoseconds). A child's id may have been that of
/// another process a moment ago, recorded or not: the end of that process must not end the child's recording.
#[map]
static BORN: HashMap<u32, u64> = HashMap::with_max_entries(16_384, BPF_F_NO_PREALLOC);

/// Whether a process is recorded.
#[inline(always)]
pub fn is_tracked(pid: u32) -> bool {
    let Some(word) = TRACKED.get_ptr(pid >> 6) else { return false };
    // SAFETY: a map value of 8 bytes.
    let word = unsafe { memory::load(word) };
    word >> (pid & 63) & 1 != 0
}

/// Records a process from now on, unless the process is longpole itself.
#[inline(always)]
fn track(pid: u32) {
    if pid == setting!(own_pid) {
        return;
    }
    if let Some(word) = TRACKED.get_ptr_mut(pid >> 6) {
        // SAFETY: a map value of 8 bytes.
        unsafe { memory::set_bits(word, 1 << (pid & 63)) };
    }
}

/// Notes that a new process has this id from now on; `wanted`: it is to be recorded.
#[inline(always)]
pub fn born(pid: u32, start_ns: u64, wanted: bool) {
    if wanted {
        // Without room in the map, the child may be forgotten too early; that number at once has not occurred.
        let _ = BORN.insert(&pid, &start_ns, 0);
        track(pid);
    } else if is_tracked(pid) {
        let _ = BORN.remove(&pid);
        untrack(pid);
    }
}

/// Whether a process was born during the recording and has lived for less than `settled_ns`.
#[inline(always)]
pub fn is_young(pid: u32, time_ns: u64, settled_ns: u64) -> bool {
    // SAFETY: the value is read at once; if another CPU changes it during that, the result is either of the two values.
    unsafe { BORN.get(&pid) }.is_some_and(|&born_ns| time_ns.wrapping_sub(born_ns) < settled_ns)
}

/// Forgets a process that has ended, unless its id already belongs to a younger process.
#[inline(always)]
pub fn gone(pid: u32, start_ns: u64) {
    // SAFETY: the value is read at once; if another CPU changes it during that, the result is either of the two values.
    if let Some(&owner_ns) = unsafe { BORN.get(&pid) } {
        if owner_ns != start_ns {
            return;
        }
        let _ = BORN.remove(&pid);
    }
    untrack(pid);
}

/// Clears the bit of a process, since another process may get the same id.
#[inline(always)]
fn untrack(pid: u32) {
    if let Some(word) = TRACKED.get_ptr_mut(pid >> 6) {
        // SAFETY: a map value of 8 bytes.
        unsafe { memory::keep_bits(word, !(1 << (pid & 63))) };
    }
}
