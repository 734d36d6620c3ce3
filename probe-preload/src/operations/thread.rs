//! `pthread_create`, `pthread_join`, `pthread_detach` and `pthread_exit`.

use crate::export::{export, operation};
use crate::real::{Real, find_each};
use crate::records::ring;
use probe_abi::SyncOperation;

/// Looks up the functions that every C library has.
pub fn find() {
    find_each!(CREATE, join::REAL, detach::REAL, EXIT);
}

operation! {
    join = 2 (thread, value), Real::new(c"pthread_join"), ["pthread_join"],
    ThreadJoin, thread, 0, result => result, 0
}
operation! {
    timedjoin = 3 (thread, value, time), Real::new(c"pthread_timedjoin_np"), ["pthread_timedjoin_np"],
    ThreadJoin, thread, 0, result => result, 0
}
operation! {
    clockjoin = 4 (thread, value, clock, time), Real::new(c"pthread_clockjoin_np"), ["pthread_clockjoin_np"],
    ThreadJoin, thread, 0, result => result, 0
}
operation! {
    tryjoin = 2 (thread, value), Real::new(c"pthread_tryjoin_np"), ["pthread_tryjoin_np"],
    ThreadTryJoin, thread, 0, result => result, 0
}
operation! {
    detach = 1 (thread), Real::new(c"pthread_detach"), ["pthread_detach"],
    ThreadDetach, thread, 0, result => result, 0
}

static CREATE: Real = Real::new(c"pthread_create");
static EXIT: Real = Real::new(c"pthread_exit");

extern "C" fn create(thread: usize, attributes: usize, start: usize, argument: usize, caller: usize) -> i32 {
    created(thread, caller, || CREATE.call([thread, attributes, start, argument]), |result| result)
}

/// Creates a thread. Records the `pthread_t` that libc writes to `thread`.
#[inline(always)]
pub fn created(
    thread: usize,
    caller: usize,
    real: impl FnOnce() -> i32,
    outcome: impl FnOnce(i32) -> i32,
) -> i32 {
    let mut begun = ring::begin(SyncOperation::ThreadCreate, 0, 0, caller);
    let result = real();
    if begun.is_recorded() {
        if result == 0 {
            // SAFETY: libc has just written to this address, for the same caller.
            begun.object_is(unsafe { (thread as *const usize).read_unaligned() });
        }
        ring::end(begun, outcome(result), 0);
    }
    result
}

extern "C" fn exit(value: usize, caller: usize) -> ! {
    // SAFETY: libc's pthread_exit has this type.
    let real: extern "C" fn(usize) -> ! = unsafe { core::mem::transmute(EXIT.get()) };
    ring::end_before(ring::begin(SyncOperation::ThreadExit, 0, 0, caller));
    real(value)
}

export!(4, create, ["pthread_create"]);
export!(1, exit, ["pthread_exit"]);
