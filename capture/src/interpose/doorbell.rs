//! The doorbell in the shared memory: it wakes the ring reader before its next regular turn.
//!
//! The target may misuse it. If it rings without need, the ring reader wakes for nothing, as often as the waiting
//! side allows. If it clears the bell or waits for it itself, the rings are emptied at their regular times, as if
//! there were no bell.

use probe_abi::interpose::SharedWord;
use rustix::thread::futex;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Bytes that are mapped: the header of the shared memory.
const BYTES: usize = 4096;

/// The doorbell: the first page of the shared memory, in a mapping of its own so that it can outlive other mappings. A
/// target signals it when a ring fills up.
#[derive(Debug)]
pub struct Doorbell {
    page: NonNull<AtomicU64>,
}

// SAFETY: the mapping belongs to no thread, and all access is atomic.
unsafe impl Send for Doorbell {}
// SAFETY: as for `Send`: the mapping belongs to no thread, and all access is atomic.
unsafe impl Sync for Doorbell {}

impl Doorbell {
    /// Maps the first page of the file, which must be sealed against shrinking.
    pub(super) fn of(file: BorrowedFd<'_>) -> io::Result<Doorbell> {
        // SAFETY: a new mapping at an address of the kernel's choice, of a descriptor that is open.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let page = NonNull::new(page.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Doorbell { page })
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: inside the page.
        let word = unsafe { self.page.add(SharedWord::BELL) }.cast::<AtomicU32>();
        // SAFETY: aligned, and mapped as long as `self`; none of our code accesses it in another width.
        unsafe { word.as_ref() }
    }

    /// Signals the doorbell: wakes the waiting thread, or the next one to wait.
    pub fn ring(&self) {
        self.word().store(1, Ordering::Release);
        // A wake-up can only fail for an address that is not mapped.
        let _ = futex::wake(self.word(), futex::Flags::empty(), 1);
    }

    /// Acknowledges a ring. To be called before the rings are emptied, so that a later ring is not lost.
    pub fn silence(&self) {
        self.word().swap(0, Ordering::AcqRel);
    }

    /// Waits until the doorbell is signalled or was signalled since [`Doorbell::silence`], but at most `at_most`. May
    /// return early without reason.
    pub fn wait(&self, at_most: Duration) {
        let Ok(limit) = futex::Timespec::try_from(at_most) else { return };
        // The result is ignored: after a ring, a timeout or a signal the caller checks the rings in any case.
        let _ = futex::wait(self.word(), futex::Flags::empty(), 0, Some(&limit));
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `of`, which nothing refers to any more.
        unsafe { libc::munmap(self.page.as_ptr().cast(), BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::shared::Shared;
    use super::*;
    use probe_abi::interpose::SharedLayout;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(60);

    fn bell() -> (Shared, Doorbell) {
        let shared = Shared::new(SharedLayout::new(4, 1024).expect("layout")).expect("memory");
        let bell = shared.bell().expect("a bell");
        (shared, bell)
    }

    #[test]
    fn a_doorbell_that_has_rung_ends_waits_until_it_is_silenced() {
        let (_shared, bell) = bell();
        let began = Instant::now();
        bell.ring();
        bell.wait(LONG);
        bell.wait(LONG);
        // Any other value than 0 counts as rung.
        bell.word().store(u32::MAX, Ordering::Release);
        bell.wait(LONG);
        assert!(began.elapsed() < LONG);
        bell.silence();
        let began = Instant::now();
        bell.wait(Duration::from_millis(20));
        assert!(began.elapsed() >= Duration::from_millis(20));
    }

    /// The doorbell is signalled through another mapping of the same memory, as a target does.
    #[test]
    fn ringing_the_doorbell_wakes_a_waiting_thread() {
        let (shared, bell) = bell();
        let other = shared.bell().expect("mapped again");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let began = Instant::now();
                bell.wait(LONG);
                began.elapsed()
            });
            std::thread::sleep(Duration::from_millis(20));
            other.ring();
            assert!(waits.join().expect("it ends") < LONG);
        });
    }

    #[test]
    fn the_doorbell_works_after_the_shared_memory_is_dropped() {
        let (shared, bell) = bell();
        drop(shared);
        bell.ring();
        bell.wait(LONG);
    }
}
