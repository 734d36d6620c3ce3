//! Atomic updates of shared memory. `core::sync::atomic` has none on this target, the instructions exist.

use core::intrinsics::{AtomicOrdering, atomic_and, atomic_or, atomic_xadd};

/// Adds and gives back the value before.
///
/// # Safety
///
/// `to` points to 8 aligned bytes of a map value.
#[inline(always)]
pub unsafe fn add(to: *mut u64, value: u64) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::SeqCst }>(to, value) }
}

/// Sets bits.
///
/// # Safety
///
/// As [`add`].
#[inline(always)]
pub unsafe fn set_bits(to: *mut u64, bits: u64) {
    // SAFETY: as the caller promises.
    unsafe { atomic_or::<u64, u64, { AtomicOrdering::SeqCst }>(to, bits) };
}

/// Keeps only the bits that are also in `bits`.
///
/// # Safety
///
/// As [`add`].
#[inline(always)]
pub unsafe fn keep_bits(to: *mut u64, bits: u64) {
    // SAFETY: as the caller promises.
    unsafe { atomic_and::<u64, u64, { AtomicOrdering::SeqCst }>(to, bits) };
}
