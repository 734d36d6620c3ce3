//! Threads that may touch neither the clock nor the kernel any more: strict seccomp leaves four system calls
//! and takes the time stamp counter away, `PR_SET_TSC` takes that alone. Both are noticed in advance
//! ([`crate::filter`]); from then on such a thread's operations are counted, and nothing else is done for
//! them.
//!
//! A silent thread has an epoch that no process has, so that every operation takes the slow path and no other
//! thread pays for the check. Its control block stays known, for the count.

use crate::process;
use crate::ring;
use crate::tls::{Tls, tls};
use crate::word::count;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence};
use probe_abi::interpose::{RingWord, SharedWord};

/// The epoch of a silent thread.
const SILENT: u64 = u64::MAX;

/// A thread of this process has lost the clock: threads that it starts have lost it, too, and the starter of
/// a thread is not known.
static CLOCK_LOST: AtomicBool = AtomicBool::new(false);

/// Whether this thread is silent.
pub fn is_silent(tls: &Tls) -> bool {
    tls.epoch.get() == SILENT
}

/// Whether a thread that has no ring yet has to be silent from its first operation on.
pub fn is_born_silent(tls: &Tls) -> bool {
    CLOCK_LOST.load(Ordering::Relaxed) && tls.control.get() == 0
}

/// Another process's thread goes on in a forked child: it does not matter which of its threads lost the clock.
pub fn clock_is_lost() {
    CLOCK_LOST.store(true, Ordering::Relaxed);
}

/// This thread is about to lose what recording takes: says so in the recording, as long as it may, and is silent from
/// here on. `false`: it was before.
pub fn begin() -> bool {
    let tls = tls();
    if is_silent(tls) {
        return false;
    }
    ring::says_silent();
    falls_silent(tls);
    true
}

/// As [`begin`], for a thread that has nothing to say.
pub fn falls_silent(tls: &Tls) {
    // A signal handler that comes in between counts where the control block is known.
    tls.epoch.set(SILENT);
    compiler_fence(Ordering::SeqCst);
    tls.ring.set(tls.control.get());
    compiler_fence(Ordering::SeqCst);
    tls.control.set(0);
}

/// It has not come to that, or it is over.
pub fn end() {
    let tls = tls();
    if !is_silent(tls) {
        return;
    }
    let control = tls.ring.get();
    let ring = process::shared().and_then(|shared| shared.ring_of(control));
    let Some(ring) = ring else {
        // It has had none: it looks for one, in the process that this is now.
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

/// One operation more that is not recorded.
pub fn count_one(tls: &Tls) {
    let control = match tls.control.get() {
        0 => tls.ring.get(),
        control => control,
    };
    if control == 0 {
        count_without_ring();
        return;
    }
    // SAFETY: a control block of the mapping, which is never taken away; the index is one of `RingWord`.
    let word = unsafe { (control as *const AtomicU64).add(RingWord::FORBIDDEN) };
    // SAFETY: aligned, as the mapping is.
    count(unsafe { &*word });
}

/// The same of a thread that has never had a ring.
pub fn count_without_ring() {
    if let Some(shared) = process::shared() {
        shared.word(SharedWord::FORBIDDEN).fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_silent_until_it_is_not() {
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
