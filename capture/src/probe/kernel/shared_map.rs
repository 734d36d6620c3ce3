//! Map memory that the kernel programs and this process share: arrays of 64-bit words.

use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd},
    ptr::NonNull,
    sync::atomic::AtomicU64,
};

use aya::{Ebpf, maps::Map};

use crate::probe::error::{ProbeError, no_map};
use crate::probe::overhead::preload_cost::SharedPreloadCost;

/// All memory shared with the kernel programs, and some counters shared between threads.
pub(crate) struct Shared {
    /// One bit for each process id: whether the process is recorded.
    pub(crate) tracked: SharedWords,
    /// [`CpuCounters`] per CPU.
    pub(crate) cpus: SharedWords,
    pub(crate) cpu_count: usize,
    /// [`FunctionCounters`] per function number.
    pub(crate) functions: SharedWords,
    /// Valid generation per link slot.
    pub(crate) generations: SharedWords,
    /// [`LibcSite`] per function of a C library.
    pub(crate) libc_sites: SharedWords,
    /// Time spent on making samples of stacks so far, nanoseconds.
    pub(crate) unwinding_ns: AtomicU64,
    /// Ticks that did not come because recorded threads had only just come to a CPU.
    pub(crate) ticks_missed: AtomicU64,
    /// Number of operations that the library in the target has handled so far, and their cost.
    pub(crate) operations: SharedPreloadCost,
}

/// An array map whose values consist of 64-bit words, mapped into this process.
pub(crate) struct SharedWords {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the mapping belongs to no thread, and all access is atomic.
unsafe impl Send for SharedWords {}
// SAFETY: the mapping belongs to no thread, and all access is atomic.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Maps the first `words` words of an array map that was made with `BPF_F_MMAPABLE`.
    pub(crate) fn map(map: BorrowedFd<'_>, words: usize) -> io::Result<SharedWords> {
        let bytes = words.checked_mul(size_of::<u64>()).filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: a new mapping at an address of the kernel's choice, of a descriptor that is open.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(SharedWords { start, words })
    }

    /// Maps the first `words` words of the array with this name.
    pub(crate) fn of(ebpf: &Ebpf, name: &str, words: usize) -> Result<SharedWords, ProbeError> {
        let Some(Map::Array(data)) = ebpf.map(name) else { return Err(no_map(name)) };
        SharedWords::map(data.fd().as_fd(), words)
            .map_err(|error| ProbeError::from_cause(format_args!("cannot map {name}"), &error))
    }

    /// The word at this index.
    pub(crate) fn word(&self, index: usize) -> Option<&AtomicU64> {
        if index >= self.words {
            return None;
        }
        // SAFETY: inside the mapping.
        let word = unsafe { self.start.add(index) };
        // SAFETY: the mapping is page-aligned and lives as long as `self`. The kernel programs write its words with
        // single 64-bit stores.
        Some(unsafe { word.as_ref() })
    }

    /// Value number `index` of `N` words each.
    pub(crate) fn value<const N: usize>(&self, index: usize) -> Option<[u64; N]> {
        let first = index.checked_mul(N)?;
        let mut value = [0; N];
        for (offset, slot) in value.iter_mut().enumerate() {
            *slot = self.word(first.checked_add(offset)?)?.load(std::sync::atomic::Ordering::Relaxed);
        }
        Some(value)
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, which nothing refers to any more. It can only fail for an address that
        // was never mapped.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.words * size_of::<u64>()) };
    }
}
