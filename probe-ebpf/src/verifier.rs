//! Values that the kernel's verifier need not follow, and loops of which it checks only one turn.
//!
//! The verifier checks all following code of a program once for every set of values that it can distinguish. Flags that
//! a few branches have set, or the turn at which a loop of 128 turns ended, multiply that: attaching then takes most of
//! its time there.

use core::{ffi::c_void, ptr};

use aya_ebpf::helpers::generated::bpf_loop;

/// The value, made unknown to the verifier. `time_ns` is a time, which is unknown to it, too, and before
/// the year 2262, so its highest bit is never set.
#[inline(always)]
pub fn forget(value: u64, time_ns: u64) -> u64 {
    value ^ ((time_ns as i64) >> 63) as u64
}

/// Results of a turn of [`times`].
pub const GO_ON: i64 = 0;
pub const STOP: i64 = 1;

/// Calls `turn` with the numbers from 0 up to `count`, until `turn` returns [`STOP`]. The verifier checks one turn,
/// with any number, instead of every turn.
#[inline(always)]
pub fn times<T>(count: u32, turn: unsafe extern "C" fn(u32, *mut c_void) -> i64, of: &mut T) {
    // SAFETY: the kernel calls `turn` with this argument before the helper returns.
    unsafe { bpf_loop(count, turn as *mut c_void, ptr::from_mut(of).cast(), 0) };
}
