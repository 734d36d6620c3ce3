//! Threads that may no longer read the clock or call the kernel: strict seccomp leaves four system calls
//! and takes the time stamp counter away, `PR_SET_TSC` takes only the counter. Both are noticed in advance
//! (`seccomp.rs`). From then on such a thread's operations are counted, and nothing else is done for
//! them.
//!
//! A silent thread has an epoch that no process has, so that its operations take the slow path and other
//! threads do not pay for a check. The address of its control block is kept, for counting.

use crate::process;
use crate::records::ring;
use crate::records::word::count;
use crate::tls::{Tls, tls};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence};
use probe_abi::interpose::{RingWord, SharedWord};

/// The epoch of a silent thread.
const SILENT: u64 = u64::MAX;

/// Whether a thread of this process has lost the clock. Threads that it starts have lost it, too, but which thread
/// started a thread is not known.
static CLOCK_LOST: AtomicBool = AtomicBool::new(false);

/// Whether this thread is silent.
pub fn is_silent(tls: &Tls) -> bool {
    tls.epoch.get() == SILENT
}

/// Whether a thread that has no ring yet must not record anything from its first operation on.
pub fn is_born_silent(tls: &Tls) -> bool {
    CLOCK_LOST.load(Ordering::Relaxed) && tls.control.get() == 0
}

/// Notes that this process has lost the clock. After a fork the child goes on as one of the threads: any may have lost it.
pub fn clock_is_lost() {
    CLOCK_LOST.store(true, Ordering::Relaxed);
}

/// To be called when this thread is about to lose the clock or system calls: records that, while it may, and makes
/// the thread silent. `false`: it was silent before.
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
    // A signal handler that comes in between counts its operations wherever the control block is known.
    tls.epoch.set(SILENT);
    compiler_fence(Ordering::SeqCst);
    tls.ring.set(tls.control.get());
    compiler_fence(Ordering::SeqCst);
    tls.control.set(0);
}

/// Ends the silence: the thread did not lose its rights after all, or has them again.
pub fn end() {
    let tls = tls();
    if !is_silent(tls) {
        return;
    }
    let control = tls.ring.get();
    let ring = process::shared().and_then(|shared| shared.ring_of(control));
    let Some(ring) = ring else {
        // The thread has had no ring: it searches for one, in its present process.
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
    // SAFETY: a control block of the mapping, which is never removed; the index is one of `RingWord`.
    let word = unsafe { (control as *const AtomicU64).add(RingWord::FORBIDDEN) };
    // SAFETY: aligned, as the mapping is.
    count(unsafe { &*word });
}

/// The same for a thread that has never had a ring.
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
