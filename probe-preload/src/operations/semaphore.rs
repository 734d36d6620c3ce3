//! `sem_*`: these functions return −1 after an error and set `errno`.

use crate::export::{export, operation};
use crate::real::{Real, errno, find_each};
use crate::records::ring;
use core::ffi::c_char;
use probe_abi::SyncOperation;

/// Looks up the functions that every C library has.
pub fn find() {
    find_each!(
        init::REAL,
        destroy::REAL,
        OPEN,
        close::REAL,
        wait::REAL,
        trywait::REAL,
        timedwait::REAL,
        post::REAL
    );
}

fn outcome(result: i32) -> i32 {
    if result == -1 { errno() } else { result }
}

operation! {
    init = 3 (semaphore, shared, value), Real::new(c"sem_init"), ["sem_init"],
    SemaphoreInit, semaphore, value as u32, result => outcome(result), 0
}
operation! {
    destroy = 1 (semaphore), Real::new(c"sem_destroy"), ["sem_destroy"],
    SemaphoreDestroy, semaphore, 0, result => outcome(result), 0
}
operation! {
    close = 1 (semaphore), Real::new(c"sem_close"), ["sem_close"],
    SemaphoreClose, semaphore, 0, result => outcome(result), 0
}
operation! {
    wait = 1 (semaphore), Real::new(c"sem_wait"), ["sem_wait"],
    SemaphoreWait, semaphore, 0, result => outcome(result), 0
}
operation! {
    trywait = 1 (semaphore), Real::new(c"sem_trywait"), ["sem_trywait"],
    SemaphoreTryWait, semaphore, 0, result => outcome(result), 0
}
operation! {
    timedwait = 2 (semaphore, time), Real::new(c"sem_timedwait"), ["sem_timedwait"],
    SemaphoreTimedWait, semaphore, 0, result => outcome(result), 0
}
operation! {
    clockwait = 3 (semaphore, clock, time), Real::new(c"sem_clockwait"), ["sem_clockwait"],
    SemaphoreTimedWait, semaphore, 0, result => outcome(result), 0
}
operation! {
    post = 1 (semaphore), Real::new(c"sem_post"), ["sem_post"],
    SemaphorePost, semaphore, 0, result => outcome(result), 0
}

static OPEN: Real = Real::new(c"sem_open");

/// `sem_open` has two more arguments if it may create a semaphore. This function always passes four registers on, which
/// does no harm if the last two contain no arguments.
extern "C" fn open(name: usize, how: usize, mode: usize, value: usize, caller: usize) -> usize {
    type SemOpen = unsafe extern "C" fn(*const c_char, i32, ...) -> usize;
    // SAFETY: libc's sem_open has this type; all its arguments are at most as large as a register.
    let real: SemOpen = unsafe { core::mem::transmute(OPEN.get()) };
    let mut begun = ring::begin(SyncOperation::SemaphoreOpen, 0, value as u32 as u64, caller);
    // SAFETY: the arguments are the caller's own.
    let semaphore = unsafe { real(name as *const c_char, how as i32, mode as u32, value as u32) };
    if begun.is_recorded() {
        begun.object_is(semaphore);
        ring::end(begun, if semaphore == 0 { errno() } else { 0 }, 0);
    }
    semaphore
}

export!(4, open, ["sem_open"]);
