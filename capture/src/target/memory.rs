//! Memory of this process.

/// Blocks of at least this size are mappings of their own, bytes.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 1 << 20;

/// From now on large blocks go back to the kernel when they are freed. By default glibc keeps blocks of up to 32 MiB once a block
/// of that size was freed, so each stage of an analysis would add its memory to that of the stage before. Other C libraries
/// return large blocks anyway.
pub fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number of the allocator. It does so in one thread at a time, and refuses only numbers that are too large.
    let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
}
