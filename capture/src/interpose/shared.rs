//! The memory that is shared with the target, in the layout of [`probe_abi::interpose`].
//!
//! The target may write anything into it, at any time, and is not trusted: each value is checked where it is used. The
//! target cannot make the memory smaller: the file is sealed, so that no access by longpole can fail.

use super::doorbell::Doorbell;
use crate::target::launching::limits::descriptors_of_commands;
use probe_abi::interpose::{RECORD_WORDS, SHARED_MAGIC, SHARED_VERSION, SharedLayout, SharedWord};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, memfd_create};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Lowest descriptor that longpole uses in the command: programs use lower ones, and close them when they tidy up.
const HIGH_DESCRIPTOR: RawFd = 700;

/// Name of the shared memory in the mappings of processes that use it.
pub(super) const MEMORY_NAME: &str = "longpole";

/// Shared memory that longpole itself made, mapped.
#[derive(Debug)]
pub(super) struct Shared {
    start: NonNull<AtomicU64>,
    layout: SharedLayout,
    /// Number of words in the layout, stored because each access needs it.
    words: usize,
    file: File,
}

// SAFETY: the mapping belongs to no thread, and all access is atomic.
unsafe impl Send for Shared {}

impl Shared {
    /// Makes the memory, with all rings free. Physical memory is used only where something is written.
    pub fn new(layout: SharedLayout) -> io::Result<Shared> {
        let file = memory_file()?;
        let bytes = layout.words() * 8;
        make_room(&file, bytes as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let file = high(file);
        let start = map(&file, bytes)?;
        let shared = Shared { start, layout, words: layout.words(), file };
        for (word, value) in [
            (SharedWord::VERSION, SHARED_VERSION),
            (SharedWord::RINGS, layout.rings as u64),
            (SharedWord::RING_RECORDS, layout.ring_records as u64),
            (SharedWord::CLOCK, u64::from(clock_is_free())),
            (SharedWord::MAGIC, SHARED_MAGIC),
        ] {
            shared.word(word).store(value, Ordering::Release);
        }
        Ok(shared)
    }

    /// The layout of the memory.
    pub fn layout(&self) -> SharedLayout {
        self.layout
    }

    /// A word; indices come from the layout.
    pub fn word(&self, index: usize) -> &AtomicU64 {
        let index = index.min(self.words - 1);
        // SAFETY: inside the mapping.
        let word = unsafe { self.start.add(index) };
        // SAFETY: the mapping is page-aligned and lives as long as `self`; its file cannot shrink, and all
        // writers write words.
        unsafe { word.as_ref() }
    }

    /// The words of a record; `first` comes from the layout.
    pub fn record(&self, first: usize) -> &[AtomicU64; RECORD_WORDS] {
        let first = first.min(self.words - RECORD_WORDS);
        // SAFETY: inside the mapping, with all of the record.
        let record = unsafe { self.start.add(first).cast::<[AtomicU64; RECORD_WORDS]>() };
        // SAFETY: as for a word; an array of words is aligned as they are.
        unsafe { record.as_ref() }
    }

    /// Returns the memory of `words` words from `first` on, in units of pages, to the system; after that they read as
    /// 0. `false`: the system refused.
    pub fn give_back(&self, first: usize, words: usize) -> bool {
        let [at, bytes] = [first, words].map(|words| words.saturating_mul(8) as u64);
        fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, bytes).is_ok()
    }

    /// The doorbell, which is in the header of the memory.
    pub fn bell(&self) -> io::Result<Doorbell> {
        Doorbell::of(self.file.as_fd())
    }

    /// The same memory in a second mapping, like that of a target.
    #[cfg(test)]
    pub fn again(&self) -> io::Result<Shared> {
        let file = self.file.try_clone()?;
        Ok(Shared { start: map(&file, self.words * 8)?, layout: self.layout, words: self.words, file })
    }

    /// Bytes of physical memory in use.
    #[cfg(test)]
    pub fn resident_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.blocks() * 512)
    }

    /// The descriptor that the command inherits.
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// The variable by which the library in the command finds the memory. `pid` is the command's process.
    pub fn variable(&self, pid: u32) -> io::Result<String> {
        let (metadata, own) = (self.file.metadata()?, std::process::id());
        let (file, filters) = (self.descriptor(), filters_of("self").unwrap_or(0));
        Ok(format!("{file}:{}:{}:{pid}:{own}:{filters}", metadata.dev(), metadata.ino()))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, which nothing refers to any more. It can only fail for an address that was
        // never mapped.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.words * 8) };
    }
}

/// Number of seccomp filters of a process; `pid` is its number in text, or `self`.
pub(super) fn filters_of(pid: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let number = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"))?;
    number.trim().parse().ok()
}

/// Whether reading the clock needs no system call: with these clock sources the vDSO does it.
fn clock_is_free() -> bool {
    const FREE: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    source.is_ok_and(|source| FREE.contains(&source.trim()))
}

fn map(file: &File, bytes: usize) -> io::Result<NonNull<AtomicU64>> {
    // SAFETY: a new mapping at an address of the kernel's choice, of a descriptor that is open.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

fn memory_file() -> io::Result<File> {
    Ok(memfd_create(MEMORY_NAME, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?.into())
}

/// Gives the file its length. The limit on file sizes applies to this file, too, and exceeding it sends a signal that
/// ends the process. So the limit is checked first, and raised for this call as far as that is allowed.
fn make_room(file: &File, bytes: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::Fsize);
    if limit.current.is_none_or(|current| current >= bytes) {
        return file.set_len(bytes);
    }
    if limit.maximum.is_some_and(|maximum| maximum < bytes) {
        return Err(Errno::FBIG.into());
    }
    setrlimit(Resource::Fsize, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    let made = file.set_len(bytes);
    setrlimit(Resource::Fsize, limit)?;
    made
}

/// Moves the file to a descriptor that programs rarely use, if the limit of descriptors allows it.
fn high(file: File) -> File {
    // A command that closes all descriptors up to its limit would close this one, too.
    let most =
        descriptors_of_commands().map_or(RawFd::MAX, |most| RawFd::try_from(most).unwrap_or(RawFd::MAX));
    let from = HIGH_DESCRIPTOR.min(most / 2);
    fcntl_dupfd_cloexec(&file, from).map_or(file, File::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shared_memory_cannot_be_resized_and_its_variable_names_it() {
        let layout = SharedLayout::new(4, 1024).expect("layout");
        let shared = Shared::new(layout).expect("shared memory");
        assert!(shared.file.set_len(4096).is_err());
        assert_eq!(shared.file.metadata().expect("metadata").len(), layout.words() as u64 * 8);
        assert_eq!(shared.word(SharedWord::RINGS).load(Ordering::Relaxed), 4);
        let numbers = shared.variable(7).expect("text");
        assert!(
            numbers.starts_with(&format!("{}:", shared.descriptor()))
                && numbers.contains(":7:")
                && numbers.split(':').count() == 6
        );
        // An index beyond the end means the last word; nothing after it is touched.
        shared.word(layout.words() - 1).store(7, Ordering::Relaxed);
        assert_eq!(shared.word(usize::MAX).load(Ordering::Relaxed), 7);
        let last = shared.record(usize::MAX).last().map(|word| word.load(Ordering::Relaxed));
        assert_eq!(last, Some(7));
    }
}
