//! `pthread_rwlock_*`

use crate::export::operation;
use crate::process;
use crate::real::{Real, find_each};
use core::sync::atomic::{AtomicU32, Ordering};

/// Looks up the functions that every C library has.
pub fn find() {
    find_each!(
        init::REAL,
        destroy::REAL,
        read::REAL,
        try_read::REAL,
        timed_read::REAL,
        write::REAL,
        try_write::REAL,
        timed_write::REAL,
        unlock::REAL
    );
}

operation! {
    init = 2 (lock, attributes), Real::new(c"pthread_rwlock_init"), ["pthread_rwlock_init", "__pthread_rwlock_init"],
    RwLockInit, lock, 0, result => result, 0
}
operation! {
    destroy = 1 (lock), Real::new(c"pthread_rwlock_destroy"), ["pthread_rwlock_destroy", "__pthread_rwlock_destroy"],
    RwLockDestroy, lock, 0, result => result, 0
}
/// Takes it for reading.
pub mod read {
    use crate::real::Real;
    use crate::{burst, ring};

    pub static REAL: Real = Real::new(c"pthread_rwlock_rdlock");

    pub extern "C" fn wrapped(lock: usize, caller: usize) -> i32 {
        if burst::takes_read(lock, caller) {
            return 0;
        }
        let begun = ring::begin(probe_abi::SyncOperation::RwLockRead, lock, 0, caller);
        let result = REAL.call([lock]);
        if begun.is_recorded() {
            ring::end(begun, result, 0);
        }
        result
    }

    crate::export::export!(1, wrapped, ["pthread_rwlock_rdlock", "__pthread_rwlock_rdlock"]);
}
operation! {
    try_read = 1 (lock), Real::new(c"pthread_rwlock_tryrdlock"),
    ["pthread_rwlock_tryrdlock", "__pthread_rwlock_tryrdlock"],
    RwLockTryRead, lock, 0, result => result, 0
}
operation! {
    timed_read = 2 (lock, time), Real::new(c"pthread_rwlock_timedrdlock"), ["pthread_rwlock_timedrdlock"],
    RwLockTimedRead, lock, 0, result => result, 0
}
operation! {
    clock_read = 3 (lock, clock, time), Real::new(c"pthread_rwlock_clockrdlock"), ["pthread_rwlock_clockrdlock"],
    RwLockTimedRead, lock, 0, result => result, 0
}
operation! {
    write = 1 (lock), Real::new(c"pthread_rwlock_wrlock"), ["pthread_rwlock_wrlock", "__pthread_rwlock_wrlock"],
    RwLockWrite, lock, 0, result => written(lock, result), 0
}
operation! {
    try_write = 1 (lock), Real::new(c"pthread_rwlock_trywrlock"),
    ["pthread_rwlock_trywrlock", "__pthread_rwlock_trywrlock"],
    RwLockTryWrite, lock, 0, result => written(lock, result), 0
}
operation! {
    timed_write = 2 (lock, time), Real::new(c"pthread_rwlock_timedwrlock"), ["pthread_rwlock_timedwrlock"],
    RwLockTimedWrite, lock, 0, result => written(lock, result), 0
}
operation! {
    clock_write = 3 (lock, clock, time), Real::new(c"pthread_rwlock_clockwrlock"), ["pthread_rwlock_clockwrlock"],
    RwLockTimedWrite, lock, 0, result => written(lock, result), 0
}
/// Gives it back, whichever way it was taken. It may be gone when this comes back: it is not looked at.
pub mod unlock {
    use crate::real::Real;
    use crate::{burst, ring};

    pub static REAL: Real = Real::new(c"pthread_rwlock_unlock");

    pub extern "C" fn wrapped(lock: usize, caller: usize) -> i32 {
        if burst::gives_read(lock, caller) {
            return REAL.call([lock]);
        }
        let begun = ring::begin(probe_abi::SyncOperation::RwLockUnlock, lock, 0, caller);
        let result = REAL.call([lock]);
        if begun.is_recorded() {
            ring::end(begun, result, 0);
        }
        result
    }

    crate::export::export!(1, wrapped, ["pthread_rwlock_unlock", "__pthread_rwlock_unlock"]);
}

/// What came of an attempt to take it for writing, noted if that is whose it is.
fn written(lock: usize, result: i32) -> i32 {
    if result == 0 {
        crate::burst::is_written(lock);
    }
    result
}

// The beginning of glibc's `pthread_rwlock_t` on 64 bits (sysdeps/nptl/bits/struct_rwlock.h): readers, writers, two words to
// wait at, two that are not used, the writer, whether processes share it. Static initializers are compiled into programs, so
// that it cannot change; before glibc 2.25 the second word counts readers, so that nothing is folded.
const READERS: usize = 0;
const WRITERS: usize = 4;
const SHARED: usize = 28;
/// Of the first word: a writer has it, or waits for the readers to go (nptl/pthread_rwlock_common.c).
const WRITE_LOCKED: u32 = 2;

/// Whether a writer may have the lock or wait for it, or another process may, as far as the C library's layout is known.
#[inline(always)]
pub fn may_have_writer(lock: usize) -> bool {
    // SAFETY: the caller has passed a lock to libc, which reads and writes the same words in the same way.
    let word = |at: usize| unsafe { AtomicU32::from_ptr((lock + at) as *mut u32) }.load(Ordering::Relaxed);
    !process::is_glibc() || word(READERS) & WRITE_LOCKED != 0 || word(WRITERS) != 0 || word(SHARED) != 0
}
