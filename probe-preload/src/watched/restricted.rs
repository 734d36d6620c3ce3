//! Threads that may no longer read the clock or call the kernel. Strict seccomp allows only four system calls and takes
//! the time stamp counter away; `PR_SET_TSC` takes only the counter away. The library notices both before they happen
//! (`seccomp.rs`). From then on it only counts the operations of such a thread.
//!
//! A silent thread has an epoch that no process has. So its operations take the slow path anyway, and other threads
//! need no additional check. The address of its control block stays, because the counter is there.

use crate::process;
use crate::records::ring;
use crate::records::word::count;
use crate::tls::{Tls, tls};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence};
use probe_abi::interpose::{RingWord, SharedWord};

/// The epoch of a silent thread.
const SILENT: u64 = u64::MAX;

/// Whether a thread of this process has lost the right to read the clock. Threads that it starts have lost the right,
/// too, but it is unknown which thread has started a thread.
static CLOCK_LOST: AtomicBool = AtomicBool::new(false);

/// Whether this thread is silent.
pub fn is_silent(tls: &Tls) -> bool {
    tls.epoch.get() == SILENT
}

/// Whether a thread that has no ring yet must not record even its first operation.
pub fn is_born_silent(tls: &Tls) -> bool {
    CLOCK_LOST.load(Ordering::Relaxed) && tls.control.get() == 0
}

/// Notes that this process has lost the right to read the clock. After a fork, the child continues as one of the
/// parent's threads, and any of them may have lost the right.
pub fn clock_is_lost() {
    CLOCK_LOST.store(true, Ordering::Relaxed);
}

/// Must be called when this thread is about to lose the clock or system calls. Writes a record of that while it is
/// still allowed, and makes the thread silent. `false`: the thread was silent before.
pub fn begin() -> bool {
    let tls = tls();
    if is_silent(tls) {
        return false;
    }
    ring::says_silent();
    falls_silent(tls);
    true
}

/// Like [`begin`], for a thread that has nothing to record.
pub fn falls_silent(tls: &Tls) {
    // In each step, a signal handler in between finds the address of the control block in one of the two fields.
    tls.epoch.set(SILENT);
    compiler_fence(Ordering::SeqCst);
    tls.ring.set(tls.control.get());
    compiler_fence(Ordering::SeqCst);
    tls.control.set(0);
}

/// Ends the silence, because the thread did not lose its rights or has them again.
pub fn end() {
    let tls = tls();
    if !is_silent(tls) {
        return;
    }
    let control = tls.ring.get();
    let ring = process::shared().and_then(|shared| shared.ring_of(control));
    let Some(ring) = ring else {
        // The thread had no ring. The thread will search for one in its present process.
        tls.ring.set(0);
        tls.epoch.set(0);
        return;
    };
    tls.control.set(control);
    compiler_fence(Ordering::SeqCst);
    tls.ring.set(ring);
    compiler_fence(Ordering::SeqCst);
    tls.epoch.set(process::epoch_of((tls.ids.get() >> 32) as u32));
}

/// Counts an operation that is not recorded.
pub fn count_one(tls: &Tls) {
    let control = match tls.control.get() {
        0 => tls.ring.get(),
        control => control,
    };
    if control == 0 {
        count_without_ring();
        return;
    }
    // SAFETY: the address is in a control block of the mapping, which is never unmapped. The index is one of
    // `RingWord`.
    let word = unsafe { (control as *const AtomicU64).add(RingWord::FORBIDDEN) };
    // SAFETY: aligned, as the mapping is.
    count(unsafe { &*word });
}

/// Counts an operation of a thread that has never had a ring.
pub fn count_without_ring() {
    if let Some(shared) = process::shared() {
        shared.word(SharedWord::FORBIDDEN).fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_silent_from_begin_to_end() {
        std::thread::spawn(|| {
            let own = tls();
            assert!(!is_silent(own) && !is_born_silent(own));
            assert!(begin());
            assert!(is_silent(own) && !begin());
            count_one(own);
            end();
            assert!(!is_silent(own));
            assert_eq!((own.control.get(), own.ring.get(), own.epoch.get()), (0, 0, 0));
        })
        .join()
        .expect("thread");
    }
}
