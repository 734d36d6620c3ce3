//! The bell in the shared memory: what wakes the thread that empties the rings before its time.
//!
//! The target may misuse it. If it rings without need, that thread wakes for nothing, as often as the waiting
//! side allows; if it takes the bell away or waits for it itself, its rings are emptied as late as if there
//! were no bell.

use probe_abi::interpose::SharedWord;
use rustix::thread::futex;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Bytes that are mapped: the header.
const BYTES: usize = 4096;

/// The first page of the shared memory, mapped separately: its owner depends on nothing else.
#[derive(Debug)]
pub struct Doorbell {
    page: NonNull<AtomicU64>,
}

// SAFETY: the mapping belongs to no thread, and all access is atomic.
unsafe impl Send for Doorbell {}
// SAFETY: likewise.
unsafe impl Sync for Doorbell {}

impl Doorbell {
    /// Of this file, which cannot become smaller than its first page.
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

    /// Wakes the waiting thread, or the next one to wait.
    pub fn ring(&self) {
        self.word().store(1, Ordering::Release);
        // It can only fail for an address that is not mapped.
        let _ = futex::wake(self.word(), futex::Flags::empty(), 1);
    }

    /// Acknowledges a ring: to be called before doing the work that was rung for.
    pub fn silence(&self) {
        self.word().swap(0, Ordering::AcqRel);
    }

    /// Waits until it rings, or has rung since [`Doorbell::silence`], and no longer than this; may come back early without that.
    pub fn wait(&self, at_most: Duration) {
        let Ok(limit) = futex::Timespec::try_from(at_most) else { return };
        // It has rung, the time is over, or a signal came: the caller looks in any case.
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
    fn what_has_rung_is_not_waited_for_and_is_heard_once() {
        let (_shared, bell) = bell();
        let began = Instant::now();
        bell.ring();
        bell.wait(LONG);
        bell.wait(LONG);
        // Any other number will do, too.
        bell.word().store(u32::MAX, Ordering::Release);
        bell.wait(LONG);
        assert!(began.elapsed() < LONG);
        bell.silence();
        let began = Instant::now();
        bell.wait(Duration::from_millis(20));
        assert!(began.elapsed() >= Duration::from_millis(20));
    }

    /// Through another mapping of the same memory, as a target has it.
    #[test]
    fn one_who_waits_is_woken() {
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
    fn it_outlives_the_rings() {
        let (shared, bell) = bell();
        drop(shared);
        bell.ring();
        bell.wait(LONG);
    }
}
