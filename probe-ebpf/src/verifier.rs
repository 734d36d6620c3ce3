//! Values that the kernel's verifier need not follow.
//!
//! It checks the rest of a program once for every set of values that it can tell apart. Flags that a few branches have put
//! together, or the place where a loop of 128 turns was left, multiply that: attaching then takes most of its time there.

/// The value, made unknown to the verifier. `time_ns` is a time that it does not know either, and not after
/// the year 2262: its highest bit is never set.
#[inline(always)]
pub fn forget(value: u64, time_ns: u64) -> u64 {
    value ^ ((time_ns as i64) >> 63) as u64
}
