//! `pthread_cond_*`. On x86-64, glibc has two versions of each older function. Programs from before 2003 pass a
//! `pthread_cond_t` of another layout, so their calls must reach the old version. Other architectures have one version;
//! the look-up finds it if no version has the requested name.

use crate::export::operation;
use crate::real::{Real, find_each};

/// Looks up the functions that every C library has.
pub fn find() {
    find_each!(init::REAL, destroy::REAL, wait::REAL, timedwait::REAL, signal::REAL, broadcast::REAL);
}

/// Notes that a thread that returns from a wait holds the mutex again. Returns 0 as flags.
pub fn taken_again(mutex: usize) -> u16 {
    crate::records::burst::is_again_mine(mutex);
    0
}

/// Exports `pthread_cond_NAME`. On x86-64 both versions are exported, each under its own label; on other machines only
/// the single version.
macro_rules! condition {
    (
        $module:ident, $before:ident = $count:tt $arguments:tt, $name:literal, $version:tt, $version_before:tt,
        $only:tt, $operation:ident, $condition:ident, $second:expr, $flags:expr
    ) => {
        #[cfg(target_arch = "x86_64")]
        operation! {
            $module = $count $arguments, Real::of_version($name, c"GLIBC_2.3.2"), $version,
            $operation, $condition, $second, result => result, $flags
        }
        #[cfg(target_arch = "x86_64")]
        operation! {
            $before = $count $arguments, Real::of_version($name, c"GLIBC_2.2.5"), $version_before,
            $operation, $condition, $second, result => result, $flags
        }
        #[cfg(not(target_arch = "x86_64"))]
        operation! {
            $module = $count $arguments, Real::new($name), $only,
            $operation, $condition, $second, result => result, $flags
        }
    };
}

condition! {
    init, init_before = 2 (condition, attributes), c"pthread_cond_init",
    ["longpole_cond_init" as "pthread_cond_init@@GLIBC_2.3.2"], ["longpole_cond_init_before" as "pthread_cond_init@GLIBC_2.2.5"],
    ["pthread_cond_init"], ConditionInit, condition, 0, 0
}
condition! {
    destroy, destroy_before = 1 (condition), c"pthread_cond_destroy",
    ["longpole_cond_destroy" as "pthread_cond_destroy@@GLIBC_2.3.2"], ["longpole_cond_destroy_before" as "pthread_cond_destroy@GLIBC_2.2.5"],
    ["pthread_cond_destroy"], ConditionDestroy, condition, 0, 0
}
condition! {
    wait, wait_before = 2 (condition, mutex), c"pthread_cond_wait",
    ["longpole_cond_wait" as "pthread_cond_wait@@GLIBC_2.3.2"], ["longpole_cond_wait_before" as "pthread_cond_wait@GLIBC_2.2.5"],
    ["pthread_cond_wait"], ConditionWait, condition, mutex, taken_again(mutex)
}
condition! {
    timedwait, timedwait_before = 3 (condition, mutex, time), c"pthread_cond_timedwait",
    ["longpole_cond_timedwait" as "pthread_cond_timedwait@@GLIBC_2.3.2"], ["longpole_cond_timedwait_before" as "pthread_cond_timedwait@GLIBC_2.2.5"],
    ["pthread_cond_timedwait"], ConditionTimedWait, condition, mutex, taken_again(mutex)
}
condition! {
    signal, signal_before = 1 (condition), c"pthread_cond_signal",
    ["longpole_cond_signal" as "pthread_cond_signal@@GLIBC_2.3.2"], ["longpole_cond_signal_before" as "pthread_cond_signal@GLIBC_2.2.5"],
    ["pthread_cond_signal"], ConditionSignal, condition, 0, 0
}
condition! {
    broadcast, broadcast_before = 1 (condition), c"pthread_cond_broadcast",
    ["longpole_cond_broadcast" as "pthread_cond_broadcast@@GLIBC_2.3.2"], ["longpole_cond_broadcast_before" as "pthread_cond_broadcast@GLIBC_2.2.5"],
    ["pthread_cond_broadcast"], ConditionBroadcast, condition, 0, 0
}
operation! {
    clockwait = 4 (condition, mutex, clock, time), Real::new(c"pthread_cond_clockwait"), ["pthread_cond_clockwait"],
    ConditionTimedWait, condition, mutex, result => result, taken_again(mutex)
}
