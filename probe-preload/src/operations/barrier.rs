//! `pthread_barrier_*`

use crate::export::operation;
use crate::real::{Real, find_each};

/// Looks up the functions that every C library has.
pub fn find() {
    find_each!(init::REAL, destroy::REAL, wait::REAL);
}

operation! {
    init = 3 (barrier, attributes, count), Real::new(c"pthread_barrier_init"), ["pthread_barrier_init"],
    BarrierInit, barrier, count as u32, result => result, 0
}
operation! {
    destroy = 1 (barrier), Real::new(c"pthread_barrier_destroy"), ["pthread_barrier_destroy"],
    BarrierDestroy, barrier, 0, result => result, 0
}
operation! {
    wait = 1 (barrier), Real::new(c"pthread_barrier_wait"), ["pthread_barrier_wait"],
    BarrierWait, barrier, 0, result => result, 0
}
