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
/// Acquires a read-write lock for reading.
pub mod read {
    use crate::real::Real;
    use crate::records::{burst, ring};

    pub static REAL: Real = Real::new(c"pthread_rwlock_rdlock");

    pub extern "C" fn wrapped(lock: usize, caller: usize) -> i32 {
        if ring::is_paused() {
            return REAL.call([lock]);
        }
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
/// Releases a read-write lock, for reading or writing. The program may free the lock as soon as libc's function
/// returns, so the lock is not read after that.
pub mod unlock {
    use crate::real::Real;
    use crate::records::{burst, ring};

    pub static REAL: Real = Real::new(c"pthread_rwlock_unlock");

    pub extern "C" fn wrapped(lock: usize, caller: usize) -> i32 {
        if ring::is_paused() || burst::gives_read(lock, caller) {
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

/// Returns the result of an attempt to acquire the lock for writing. Counts a success as one writer.
fn written(lock: usize, result: i32) -> i32 {
    if result == 0 {
        crate::records::burst::is_written(lock);
    }
    result
}

// Positions in the beginning of glibc's `pthread_rwlock_t` on 64 bits (sysdeps/nptl/bits/struct_rwlock.h): readers,
// writers, two words to wait at, two unused ones, the writer, and whether processes share the lock. The layout cannot
// change, because compilers put static initializers into programs. Before glibc 2.25 the second word counts readers, so
// these versions have no bursts.
const READERS: usize = 0;
const WRITERS: usize = 4;
const SHARED: usize = 28;
/// A bit of the first word: a writer has the lock, or waits until the readers have released it
/// (nptl/pthread_rwlock_common.c).
const WRITE_LOCKED: u32 = 2;

/// Whether a writer may have the lock or wait for it, or another process may use the lock. True if the layout is not
/// known.
#[inline(always)]
pub fn may_have_writer(lock: usize) -> bool {
    // SAFETY: the caller has passed a lock to libc, which reads and writes the same words in the same way.
    let word = |at: usize| unsafe { AtomicU32::from_ptr((lock + at) as *mut u32) }.load(Ordering::Relaxed);
    !process::is_glibc() || word(READERS) & WRITE_LOCKED != 0 || word(WRITERS) != 0 || word(SHARED) != 0
}
