//! C11 threads: the same operations as pthread's, under other names and with other results.

use crate::export::{export, operation};
use crate::operations::condition::taken_again;
use crate::operations::mutex::{acquisition, kind};
use crate::operations::once::run_once;
use crate::operations::thread::created;
use crate::real::Real;
use crate::records::ring;
use probe_abi::SyncOperation;

const ENOMEM: i32 = 12;
const EBUSY: i32 = 16;
const EINVAL: i32 = 22;
const ETIMEDOUT: i32 = 110;

/// The pthread error that corresponds to a C11 result. glibc and musl have the same numbers.
fn outcome(result: i32) -> i32 {
    match result {
        0 => 0,
        1 => EBUSY,
        3 => ENOMEM,
        4 => ETIMEDOUT,
        _ => EINVAL,
    }
}

fn kind_of(mutex: usize, result: i32) -> u16 {
    if result == 0 { kind(mutex) } else { 0 }
}

operation! {
    mutex_init = 2 (mutex, how), Real::new(c"mtx_init"), ["mtx_init"],
    MutexInit, mutex, 0, result => outcome(result), kind_of(mutex, result)
}
acquisition!(mutex_lock = 1(mutex), c"mtx_lock", ["mtx_lock"], MutexLock, outcome);
acquisition!(mutex_trylock = 1(mutex), c"mtx_trylock", ["mtx_trylock"], MutexTryLock, outcome);
acquisition!(mutex_timedlock = 2(mutex, time), c"mtx_timedlock", ["mtx_timedlock"], MutexTimedLock, outcome);
operation! {
    mutex_unlock = 1 (mutex), Real::new(c"mtx_unlock"), ["mtx_unlock"],
    MutexUnlock, mutex, 0, result => outcome(result), 0
}
operation! {
    /// The function returns nothing, so the content of the result's register does not matter.
    mutex_destroy = 1 (mutex), Real::new(c"mtx_destroy"), ["mtx_destroy"],
    MutexDestroy, mutex, 0, result => { let _ = result; 0 }, 0
}
operation! {
    condition_init = 1 (condition), Real::new(c"cnd_init"), ["cnd_init"],
    ConditionInit, condition, 0, result => outcome(result), 0
}
operation! {
    /// The function returns nothing, so the content of the result's register does not matter.
    condition_destroy = 1 (condition), Real::new(c"cnd_destroy"), ["cnd_destroy"],
    ConditionDestroy, condition, 0, result => { let _ = result; 0 }, 0
}
operation! {
    condition_wait = 2 (condition, mutex), Real::new(c"cnd_wait"), ["cnd_wait"],
    ConditionWait, condition, mutex, result => outcome(result), taken_again(mutex)
}
operation! {
    condition_timedwait = 3 (condition, mutex, time), Real::new(c"cnd_timedwait"), ["cnd_timedwait"],
    ConditionTimedWait, condition, mutex, result => outcome(result), taken_again(mutex)
}
operation! {
    condition_signal = 1 (condition), Real::new(c"cnd_signal"), ["cnd_signal"],
    ConditionSignal, condition, 0, result => outcome(result), 0
}
operation! {
    condition_broadcast = 1 (condition), Real::new(c"cnd_broadcast"), ["cnd_broadcast"],
    ConditionBroadcast, condition, 0, result => outcome(result), 0
}
operation! {
    thread_join = 2 (thread, value), Real::new(c"thrd_join"), ["thrd_join"],
    ThreadJoin, thread, 0, result => outcome(result), 0
}
operation! {
    thread_detach = 1 (thread), Real::new(c"thrd_detach"), ["thrd_detach"],
    ThreadDetach, thread, 0, result => outcome(result), 0
}

static CREATE: Real = Real::new(c"thrd_create");
static EXIT: Real = Real::new(c"thrd_exit");
static ONCE: Real = Real::new(c"call_once");

extern "C" fn create(thread: usize, start: usize, argument: usize, caller: usize) -> i32 {
    created(thread, caller, || CREATE.call([thread, start, argument]), outcome)
}

extern "C" fn exit(value: usize, caller: usize) -> ! {
    // SAFETY: libc's thrd_exit has this type.
    let real: extern "C" fn(usize) -> ! = unsafe { core::mem::transmute(EXIT.get()) };
    ring::end_before(ring::begin(SyncOperation::ThreadExit, 0, 0, caller));
    real(value)
}

extern "C" fn once(flag: usize, routine: usize, caller: usize) {
    run_once(flag, routine, caller, |flag, routine| {
        // The function returns nothing, so the content of the result's register does not matter.
        ONCE.call([flag, routine]);
        0
    });
}

export!(3, create, ["thrd_create"]);
export!(1, exit, ["thrd_exit"]);
export!(2, once, ["call_once"]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_c11_functions_become_error_numbers() {
        assert_eq!([0, 1, 2, 3, 4].map(outcome), [0, EBUSY, EINVAL, ENOMEM, ETIMEDOUT]);
    }
}
