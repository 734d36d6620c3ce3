//! `pthread_mutex_*`

use crate::export::operation;
use crate::process;
use crate::real::{Real, find_each};
use crate::tls::tls;
use core::sync::atomic::{AtomicU32, Ordering};
use probe_abi::OperationFlags;

pub const EOWNERDEAD: i32 = 130;

/// Looks up the functions that every C library has.
pub fn find() {
    find_each!(
        init::REAL,
        destroy::REAL,
        lock::REAL,
        trylock::REAL,
        timedlock::REAL,
        unlock::REAL,
        consistent::REAL
    );
}

operation! {
    init = 2 (mutex, attributes), Real::new(c"pthread_mutex_init"), ["pthread_mutex_init", "__pthread_mutex_init"],
    MutexInit, mutex, 0, result => result, if result == 0 { kind(mutex) } else { 0 }
}
operation! {
    destroy = 1 (mutex), Real::new(c"pthread_mutex_destroy"), ["pthread_mutex_destroy", "__pthread_mutex_destroy"],
    MutexDestroy, mutex, 0, result => result, 0
}
/// Releases a mutex. The program may free the mutex as soon as libc's function returns, so the mutex is not read after
/// that.
pub mod unlock {
    use crate::real::Real;
    use crate::records::{burst, ring};

    pub static REAL: Real = Real::new(c"pthread_mutex_unlock");

    pub extern "C" fn wrapped(mutex: usize, caller: usize) -> i32 {
        if ring::passes(mutex) || burst::gives(mutex, caller) {
            return REAL.call([mutex]);
        }
        recorded(mutex, caller)
    }

    #[inline(never)]
    extern "C" fn recorded(mutex: usize, caller: usize) -> i32 {
        let begun = ring::begin(probe_abi::SyncOperation::MutexUnlock, mutex, 0, caller);
        let result = REAL.call([mutex]);
        if begun.is_recorded() {
            ring::end(begun, result, 0);
        }
        result
    }

    crate::export::export!(1, wrapped, ["pthread_mutex_unlock", "__pthread_mutex_unlock"]);
}
operation! {
    consistent = 1 (mutex), Real::new(c"pthread_mutex_consistent"),
    ["pthread_mutex_consistent", "pthread_mutex_consistent_np"],
    MutexConsistent, mutex, 0, result => result, 0
}

/// Defines an acquisition: like [`operation`], with a flag if another thread had the mutex. The acquisition may become
/// part of a burst, or may not be recorded on purpose.
macro_rules! acquisition {
    (
        $module:ident = $count:tt ($mutex:ident $(, $argument:ident)*), $real:literal, $names:tt, $operation:ident,
        $outcome:ident $(, $folded:path)?
    ) => {
        pub mod $module {
            pub static REAL: crate::real::Real = crate::real::Real::new($real);

            pub extern "C" fn wrapped($mutex: usize, $($argument: usize,)* caller: usize) -> i32 {
                if crate::records::ring::passes($mutex) {
                    return REAL.call([$mutex $(, $argument)*]);
                }
                $(
                    if $folded($mutex, caller) {
                        return 0;
                    }
                )?
                recorded($mutex, $($argument,)* caller)
            }

            // A separate function, so that a call that does not come here saves no registers.
            #[inline(never)]
            extern "C" fn recorded($mutex: usize, $($argument: usize,)* caller: usize) -> i32 {
                let begun = crate::records::ring::begin(probe_abi::SyncOperation::$operation, $mutex, 0, caller);
                let contended = if begun.is_recorded() { crate::operations::mutex::held_by_another($mutex) } else { 0 };
                let result = REAL.call([$mutex $(, $argument)*]);
                let outcome = super::$outcome(result);
                // Only a thread that holds the mutex knows that the mutex is still valid.
                let mine = matches!(outcome, 0 | crate::operations::mutex::EOWNERDEAD);
                if mine {
                    crate::records::burst::is_again_mine($mutex);
                }
                if begun.is_recorded() {
                    let kind = if mine { crate::operations::mutex::kind($mutex) } else { 0 };
                    crate::records::ring::end(begun, outcome, contended | kind);
                }
                result
            }

            crate::export::export!($count, wrapped, $names);
        }
    };
}

pub(crate) use acquisition;

/// The outcome of pthread functions, whose result is the error code itself.
fn as_it_is(result: i32) -> i32 {
    result
}

acquisition!(
    lock = 1(mutex),
    c"pthread_mutex_lock",
    ["pthread_mutex_lock", "__pthread_mutex_lock"],
    MutexLock,
    as_it_is,
    crate::records::burst::takes
);
acquisition!(
    trylock = 1(mutex),
    c"pthread_mutex_trylock",
    ["pthread_mutex_trylock", "__pthread_mutex_trylock"],
    MutexTryLock,
    as_it_is
);
acquisition!(
    timedlock = 2(mutex, time),
    c"pthread_mutex_timedlock",
    ["pthread_mutex_timedlock"],
    MutexTimedLock,
    as_it_is
);
acquisition!(
    clocklock = 3(mutex, clock, time),
    c"pthread_mutex_clocklock",
    ["pthread_mutex_clocklock"],
    MutexTimedLock,
    as_it_is
);

// Positions of words in the beginning of glibc's `pthread_mutex_t` on 64 bits (sysdeps/nptl/bits/struct_mutex.h): lock
// word, count, owner, users, kind. The layout cannot change, because compilers put static initializers into programs.
const LOCK: usize = 0;
const OWNER: usize = 8;
const KIND: usize = 16;

#[inline(always)]
fn word(mutex: usize, at: usize) -> u32 {
    // SAFETY: the caller has passed a mutex to libc, which reads and writes the same words in the same way.
    unsafe { AtomicU32::from_ptr((mutex + at) as *mut u32) }.load(Ordering::Relaxed)
}

/// Whether no other process can use the mutex. True only if the C library's layout is known.
#[inline(always)]
pub fn is_private(mutex: usize) -> bool {
    // The kind bits for robust mutexes, priority inheritance, priority protection and sharing among processes
    // (nptl/pthreadP.h).
    const SPECIAL: u32 = 16 | 32 | 64 | 128;
    process::is_glibc() && mutex != 0 && word(mutex, KIND) & SPECIAL == 0
}

/// Finds this thread's id without a system call, if the C library's layout is known. libc writes the owner's id into a
/// recursive mutex, and no other thread knows the mutex that this function uses.
pub fn thread_number() -> Option<u32> {
    if !process::is_glibc() {
        return None;
    }
    const RECURSIVE: u32 = 1;
    let words = [const { AtomicU32::new(0) }; 16];
    #[repr(align(16))]
    struct Mutex([AtomicU32; 16]);
    let mutex = Mutex(words);
    mutex.0[KIND / 4].store(RECURSIVE, Ordering::Relaxed);
    let address = core::ptr::from_ref(&mutex) as usize;
    if trylock::REAL.call([address]) != 0 {
        return None;
    }
    let owner = mutex.0[OWNER / 4].load(Ordering::Relaxed);
    unlock::REAL.call([address]);
    (owner != 0).then_some(owner)
}

/// [`OperationFlags::CONTENDED`] if another thread has the mutex; 0 also if the C library's layout is not known.
#[inline(always)]
pub fn held_by_another(mutex: usize) -> u16 {
    if !process::is_glibc() || mutex == 0 || word(mutex, LOCK) == 0 {
        return 0;
    }
    // The mutex is not held by another thread if this thread has it (a recursive mutex), or if its owner has died.
    let owner = word(mutex, OWNER);
    if owner == tls().ids.get() as u32 { 0 } else { OperationFlags::CONTENDED }
}

/// The lock word of a glibc mutex. 0: free; 1: taken; 2: taken, and threads may wait.
#[inline(always)]
pub fn lock_word(mutex: usize) -> u32 {
    word(mutex, LOCK)
}

/// The flags of a mutex for which trying and locking have the same effect while it is free, and which no thread can
/// hold twice. `None` for other kinds of mutexes.
#[inline(always)]
pub fn plain_kind(mutex: usize) -> Option<u16> {
    match word(mutex, KIND) & 0xff {
        0 => Some(OperationFlags::KIND_KNOWN),
        3 => Some(OperationFlags::KIND_KNOWN | OperationFlags::ADAPTIVE),
        _ => None,
    }
}

/// The mutex's kind as flags; 0 if the C library's layout is not known. The mutex must be valid.
#[inline(always)]
pub fn kind(mutex: usize) -> u16 {
    if !process::is_glibc() {
        return 0;
    }
    let kind = word(mutex, KIND);
    if kind & !0xff == 0 && kind & 0xff == 0 {
        return OperationFlags::KIND_KNOWN;
    }
    special(kind)
}

#[cold]
fn special(kind: u32) -> u16 {
    let mut flags = match kind & 3 {
        1 => OperationFlags::RECURSIVE,
        2 => OperationFlags::ERROR_CHECK,
        3 => OperationFlags::ADAPTIVE,
        _ => 0,
    };
    for (bit, flag) in [
        (16, OperationFlags::ROBUST),
        (32, OperationFlags::INHERIT),
        (64, OperationFlags::PROTECT),
        (128, OperationFlags::SHARED),
    ] {
        flags |= if kind & bit != 0 { flag } else { 0 };
    }
    flags | OperationFlags::KIND_KNOWN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_env = "gnu")]
    fn a_thread_s_number_is_known_without_a_system_call() {
        process::look_until_up();
        let numbers = || (thread_number(), Some(crate::system::tid()));
        let (known, asked) = numbers();
        assert_eq!(known, asked);
        let (known, asked) = std::thread::spawn(numbers).join().expect("thread");
        assert_eq!(known, asked);
    }

    #[test]
    fn flags_of_a_mutex_are_those_of_its_glibc_kind() {
        assert_eq!(special(1 | 256), OperationFlags::RECURSIVE | OperationFlags::KIND_KNOWN);
        let all = OperationFlags::ERROR_CHECK | OperationFlags::ROBUST | OperationFlags::INHERIT;
        assert_eq!(special(2 | 16 | 32), all | OperationFlags::KIND_KNOWN);
        assert_eq!(special(3 | 64 | 128) & OperationFlags::ADAPTIVE, OperationFlags::ADAPTIVE);
    }
}
