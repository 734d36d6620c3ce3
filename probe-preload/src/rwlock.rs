//! `pthread_rwlock_*`

use crate::export::operation;
use crate::real::{Real, find_each};

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
operation! {
    read = 1 (lock), Real::new(c"pthread_rwlock_rdlock"), ["pthread_rwlock_rdlock", "__pthread_rwlock_rdlock"],
    RwLockRead, lock, 0, result => result, 0
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
    RwLockWrite, lock, 0, result => result, 0
}
operation! {
    try_write = 1 (lock), Real::new(c"pthread_rwlock_trywrlock"),
    ["pthread_rwlock_trywrlock", "__pthread_rwlock_trywrlock"],
    RwLockTryWrite, lock, 0, result => result, 0
}
operation! {
    timed_write = 2 (lock, time), Real::new(c"pthread_rwlock_timedwrlock"), ["pthread_rwlock_timedwrlock"],
    RwLockTimedWrite, lock, 0, result => result, 0
}
operation! {
    clock_write = 3 (lock, clock, time), Real::new(c"pthread_rwlock_clockwrlock"), ["pthread_rwlock_clockwrlock"],
    RwLockTimedWrite, lock, 0, result => result, 0
}
operation! {
    unlock = 1 (lock), Real::new(c"pthread_rwlock_unlock"), ["pthread_rwlock_unlock", "__pthread_rwlock_unlock"],
    RwLockUnlock, lock, 0, result => result, 0
}
