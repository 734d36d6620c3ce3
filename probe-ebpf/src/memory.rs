//! Words in map values that other CPUs, or the user side, read and write, too. `core::sync::atomic` has no
//! read-modify-write operations on this target, but the instructions exist.

use core::intrinsics::{AtomicOrdering, atomic_and, atomic_or, atomic_xadd};

/// The 64-bit word `offset` bytes into a map value.
#[inline(always)]
pub fn word<T>(value: *mut T, offset: usize) -> *mut u64 {
    value.cast::<u8>().wrapping_add(offset).cast()
}

/// Reads a word.
///
/// # Safety
///
/// `from` points to 8 aligned bytes of a map value.
#[inline(always)]
pub unsafe fn load(from: *const u64) -> u64 {
    // SAFETY: as the caller promises. Volatile: others write the word.
    unsafe { core::ptr::read_volatile(from) }
}

/// Writes a word.
///
/// # Safety
///
/// As [`load`].
#[inline(always)]
pub unsafe fn store(to: *mut u64, value: u64) {
    // SAFETY: as the caller promises. Volatile: others read the word.
    unsafe { core::ptr::write_volatile(to, value) };
}

/// Adds to a word and returns the value before.
///
/// # Safety
///
/// As [`load`].
#[inline(always)]
pub unsafe fn add(to: *mut u64, value: u64) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::SeqCst }>(to, value) }
}

/// Sets bits of a word.
///
/// # Safety
///
/// As [`load`].
#[inline(always)]
pub unsafe fn set_bits(to: *mut u64, bits: u64) {
    // SAFETY: as the caller promises.
    unsafe { atomic_or::<u64, u64, { AtomicOrdering::SeqCst }>(to, bits) };
}

/// Keeps only the bits of a word that are also in `bits`.
///
/// # Safety
///
/// As [`load`].
#[inline(always)]
pub unsafe fn keep_bits(to: *mut u64, bits: u64) {
    // SAFETY: as the caller promises.
    unsafe { atomic_and::<u64, u64, { AtomicOrdering::SeqCst }>(to, bits) };
}
