//! `pthread_spin_*`

use crate::export::operation;
use crate::real::{Real, find_each};

/// Looks up the functions that every C library has.
pub fn find() {
    find_each!(init::REAL, destroy::REAL, lock::REAL, trylock::REAL, unlock::REAL);
}

operation! {
    init = 2 (lock, shared), Real::new(c"pthread_spin_init"), ["pthread_spin_init"],
    SpinInit, lock, 0, result => result, 0
}
operation! {
    destroy = 1 (lock), Real::new(c"pthread_spin_destroy"), ["pthread_spin_destroy"],
    SpinDestroy, lock, 0, result => result, 0
}
operation! {
    lock = 1 (lock), Real::new(c"pthread_spin_lock"), ["pthread_spin_lock"],
    SpinLock, lock, 0, result => result, 0
}
operation! {
    trylock = 1 (lock), Real::new(c"pthread_spin_trylock"), ["pthread_spin_trylock"],
    SpinTryLock, lock, 0, result => result, 0
}
operation! {
    unlock = 1 (lock), Real::new(c"pthread_spin_unlock"), ["pthread_spin_unlock"],
    SpinUnlock, lock, 0, result => result, 0
}
