//! Words of shared memory that are written only by one thread and its signal handlers.

use core::arch::asm;
use core::sync::atomic::AtomicU64;
#[cfg(not(target_arch = "x86_64"))]
use core::sync::atomic::Ordering;

/// Adds 1 to a word that only this thread writes, and returns the previous value. No signal handler can interrupt the
/// addition.
#[inline(always)]
pub fn add_one(word: &AtomicU64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut one = 1u64;
        // SAFETY: this is one instruction on an existing word. Without `lock` it is atomic for this CPU, which is
        // enough for a word of one thread.
        unsafe {
            asm!("xadd qword ptr [{0}], {1}", in(reg) word.as_ptr(), inout(reg) one, options(nostack));
        }
        one
    }
    #[cfg(not(target_arch = "x86_64"))]
    word.fetch_add(1, Ordering::Relaxed)
}

/// Like [`add_one`], but without the previous value. This takes a third of the time.
#[inline(always)]
pub fn count(word: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: this is one instruction on an existing word, see `add_one`.
    unsafe {
        asm!("inc qword ptr [{0}]", in(reg) word.as_ptr(), options(nostack));
    }
    #[cfg(not(target_arch = "x86_64"))]
    word.fetch_add(1, Ordering::Relaxed);
}

/// Prefetches the cache line of a word for writing.
#[inline(always)]
pub fn will_write(word: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: this is a hint about an existing word and changes nothing.
    unsafe {
        asm!("prefetchw byte ptr [{0}]", in(reg) word.as_ptr(), options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: this is a hint about an existing word and changes nothing.
    unsafe {
        asm!("prfm pstl1keep, [{0}]", in(reg) word.as_ptr(), options(nostack, preserves_flags, readonly));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering;

    #[test]
    fn words_of_the_shared_memory_are_counted_up_and_wrap() {
        let word = AtomicU64::new(u64::MAX - 1);
        assert_eq!(add_one(&word), u64::MAX - 1);
        count(&word);
        assert_eq!(word.load(Ordering::Relaxed), 0, "they go round");
        will_write(&word);
        assert_eq!(add_one(&word), 0);
    }
}
