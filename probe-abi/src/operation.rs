//! Records of synchronization operations of the target's C library: one record for each finished call.

use crate::Header;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A thread has finished one synchronization operation.
///
/// Two kinds of writers exist, and each call has only one of them. In launched programs, the library that longpole
/// loads before libc (`probe-preload`) writes the record. In attached programs, probes on libc's functions do. In the
/// library's records, the header's `cpu` is [`Header::NO_CPU`], and its `sequence` is the number in the thread's ring.
/// In a probe's record both fields have the same meaning as in every other record. The context is always `Task`.
///
/// An operation that does not return (`pthread_exit`) is recorded when it begins, and `began_ns` is then the header's
/// time. An operation that was cancelled or left by `longjmp` is never recorded.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Operation {
    /// `tid` and `pid` are the caller's; `time_ns` is the time at which the call returned. A thread holds a lock from
    /// some instant within `began_ns..=time_ns` of the acquisition to some instant within the same range of the
    /// release.
    pub header: Header,
    /// Time at which the call began (`CLOCK_MONOTONIC` nanoseconds).
    pub began_ns: u64,
    /// Address of the object in the caller's memory. For create, join and detach it is the `pthread_t`; for exit it is
    /// 0.
    pub object: u64,
    /// For waits for a condition: the address of the mutex, which is released during the wait. For the init of a
    /// barrier or semaphore: the count. For all other operations: 0.
    pub second: u64,
    /// Return address of the call: the instruction after it.
    pub caller: u64,
    /// A [`SyncOperation`] as a number.
    pub operation: u16,
    /// [`OperationFlags`] bits.
    pub flags: u16,
    /// The result of the call: 0 or an error number, as pthread functions return it. For functions that return −1
    /// (semaphores) it is `errno`. For C11 functions it is the pthread error that corresponds to their result. For a
    /// barrier wait it is −1 in the serial thread.
    pub outcome: i32,
}

/// Bits of [`Operation::flags`]. The bits about the object are set only if the writer knows the C library's layout.
pub struct OperationFlags;
impl OperationFlags {
    /// Another thread had the object when the call began, so the caller had to wait or to give up.
    pub const CONTENDED: u16 = 1;
    /// The mutex is recursive.
    pub const RECURSIVE: u16 = 2;
    /// The mutex checks for errors.
    pub const ERROR_CHECK: u16 = 4;
    /// The mutex is adaptive: a thread spins for a while before it sleeps.
    pub const ADAPTIVE: u16 = 8;
    /// The mutex is robust.
    pub const ROBUST: u16 = 16;
    /// The mutex has priority inheritance.
    pub const INHERIT: u16 = 32;
    /// The mutex has a priority ceiling.
    pub const PROTECT: u16 = 64;
    /// The object may be shared between processes.
    pub const SHARED: u16 = 128;
    /// The bits above from `RECURSIVE` to `SHARED` are known. Without this bit, all of them are 0.
    pub const KIND_KNOWN: u16 = 256;
    /// In `once`: this call ran the initialization.
    pub const RAN: u16 = 512;
    /// In a [`crate::Burst`]: the object is a read-write lock that was taken for reading, not a mutex.
    pub const READS: u16 = 1024;
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $number:literal $text:literal,)*) => {
        /// The kind of operation. C11's `mtx_*`, `cnd_*`, `thrd_*` and `call_once` count as the pthread operations of
        /// the same effect. The numbers are part of the record's format.
        #[repr(u16)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum SyncOperation {
            $($(#[$doc])* $name = $number,)*
        }

        impl SyncOperation {
            /// Every operation, ordered by its number.
            pub const ALL: &'static [SyncOperation] = &[$(SyncOperation::$name,)*];

            /// The operation with this number, or `None` for a number that this version does not know.
            pub const fn from_number(number: u16) -> Option<SyncOperation> {
                match number {
                    $($number => Some(SyncOperation::$name),)*
                    _ => None,
                }
            }

            /// The operation's name in texts, for example `mutex lock`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(SyncOperation::$name => $text,)*
                }
            }
        }
    };
}

operations! {
    /// A call of `pthread_mutex_init`.
    MutexInit = 1 "mutex init",
    /// A call of `pthread_mutex_destroy`.
    MutexDestroy = 2 "mutex destroy",
    /// A call of `pthread_mutex_lock`.
    MutexLock = 3 "mutex lock",
    /// A call of `pthread_mutex_trylock`.
    MutexTryLock = 4 "mutex trylock",
    /// A call of `pthread_mutex_timedlock` or `pthread_mutex_clocklock`.
    MutexTimedLock = 5 "mutex timedlock",
    /// A call of `pthread_mutex_unlock`.
    MutexUnlock = 6 "mutex unlock",
    /// `pthread_mutex_consistent`: a robust mutex whose owner died is usable again.
    MutexConsistent = 7 "mutex consistent",

    /// A call of `pthread_cond_init`.
    ConditionInit = 16 "condition init",
    /// A call of `pthread_cond_destroy`.
    ConditionDestroy = 17 "condition destroy",
    /// `pthread_cond_wait`: releases the mutex at its beginning, and holds it again when it returns.
    ConditionWait = 18 "condition wait",
    /// A call of `pthread_cond_timedwait` or `pthread_cond_clockwait`.
    ConditionTimedWait = 19 "condition timedwait",
    /// A call of `pthread_cond_signal`.
    ConditionSignal = 20 "condition signal",
    /// A call of `pthread_cond_broadcast`.
    ConditionBroadcast = 21 "condition broadcast",

    /// A call of `pthread_rwlock_init`.
    RwLockInit = 32 "rwlock init",
    /// A call of `pthread_rwlock_destroy`.
    RwLockDestroy = 33 "rwlock destroy",
    /// A call of `pthread_rwlock_rdlock`.
    RwLockRead = 34 "rwlock rdlock",
    /// A call of `pthread_rwlock_tryrdlock`.
    RwLockTryRead = 35 "rwlock tryrdlock",
    /// A call of `pthread_rwlock_timedrdlock` or `pthread_rwlock_clockrdlock`.
    RwLockTimedRead = 36 "rwlock timedrdlock",
    /// A call of `pthread_rwlock_wrlock`.
    RwLockWrite = 37 "rwlock wrlock",
    /// A call of `pthread_rwlock_trywrlock`.
    RwLockTryWrite = 38 "rwlock trywrlock",
    /// A call of `pthread_rwlock_timedwrlock` or `pthread_rwlock_clockwrlock`.
    RwLockTimedWrite = 39 "rwlock timedwrlock",
    /// A call of `pthread_rwlock_unlock`.
    RwLockUnlock = 40 "rwlock unlock",

    /// A call of `pthread_barrier_init`.
    BarrierInit = 48 "barrier init",
    /// A call of `pthread_barrier_destroy`.
    BarrierDestroy = 49 "barrier destroy",
    /// A call of `pthread_barrier_wait`.
    BarrierWait = 50 "barrier wait",

    /// A call of `pthread_spin_init`.
    SpinInit = 56 "spin init",
    /// A call of `pthread_spin_destroy`.
    SpinDestroy = 57 "spin destroy",
    /// A call of `pthread_spin_lock`.
    SpinLock = 58 "spin lock",
    /// A call of `pthread_spin_trylock`.
    SpinTryLock = 59 "spin trylock",
    /// A call of `pthread_spin_unlock`.
    SpinUnlock = 60 "spin unlock",

    /// A call of `sem_init`.
    SemaphoreInit = 64 "semaphore init",
    /// A call of `sem_destroy`.
    SemaphoreDestroy = 65 "semaphore destroy",
    /// `sem_open`, whose `object` is its result. In one process, the same name gives the same object.
    SemaphoreOpen = 66 "semaphore open",
    /// A call of `sem_close`.
    SemaphoreClose = 67 "semaphore close",
    /// A call of `sem_wait`.
    SemaphoreWait = 68 "semaphore wait",
    /// A call of `sem_trywait`.
    SemaphoreTryWait = 69 "semaphore trywait",
    /// A call of `sem_timedwait` or `sem_clockwait`.
    SemaphoreTimedWait = 70 "semaphore timedwait",
    /// A call of `sem_post`.
    SemaphorePost = 71 "semaphore post",

    /// `pthread_once`. The operations of the initialization have records before this one.
    Once = 80 "once",

    /// `pthread_create`. The created thread is that of the only `Fork` that this thread caused during the call.
    ThreadCreate = 88 "thread create",
    /// `pthread_join`, or `_timedjoin_np` or `_clockjoin_np`, which have a time limit.
    ThreadJoin = 89 "thread join",
    /// A call of `pthread_tryjoin_np`.
    ThreadTryJoin = 90 "thread tryjoin",
    /// A call of `pthread_detach`.
    ThreadDetach = 91 "thread detach",
    /// `pthread_exit`, recorded when it begins. A thread that returns from its first function has no such operation.
    ThreadExit = 92 "thread exit",
    /// No function of libc: from here on, this thread is not recorded. A filter or setting of this thread or of another
    /// process forbids the system calls or the clock that recording needs. The locks that the thread holds are unknown
    /// from here on.
    ThreadSilent = 93 "thread silent",
}

/// Groups of operations that make sense only together. All operations of a family are recorded, or none.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SyncFamily {
    /// Mutexes and condition variables. A wait for a condition releases a mutex and acquires it again.
    Mutex = 0,
    /// Read-write locks.
    RwLock = 1,
    /// Barriers.
    Barrier = 2,
    /// Spin locks.
    Spin = 3,
    /// Semaphores.
    Semaphore = 4,
    /// `pthread_once`.
    Once = 5,
    /// Create, join, detach and exit of threads.
    Thread = 6,
}

impl SyncFamily {
    /// Every family, ordered by its number.
    pub const ALL: [SyncFamily; 7] = [
        SyncFamily::Mutex,
        SyncFamily::RwLock,
        SyncFamily::Barrier,
        SyncFamily::Spin,
        SyncFamily::Semaphore,
        SyncFamily::Once,
        SyncFamily::Thread,
    ];

    /// The family with this number, or `None` for a number that this version does not know.
    pub fn from_number(number: u8) -> Option<SyncFamily> {
        SyncFamily::ALL.get(usize::from(number)).copied()
    }

    /// The name of the family's objects in texts, in the plural.
    pub const fn name(self) -> &'static str {
        match self {
            SyncFamily::Mutex => "mutexes and condition variables",
            SyncFamily::RwLock => "read-write locks",
            SyncFamily::Barrier => "barriers",
            SyncFamily::Spin => "spin locks",
            SyncFamily::Semaphore => "semaphores",
            SyncFamily::Once => "once controls",
            SyncFamily::Thread => "threads",
        }
    }
}

impl SyncOperation {
    /// The family to which the operation belongs.
    pub const fn family(self) -> SyncFamily {
        match self as u16 {
            0..32 => SyncFamily::Mutex,
            32..48 => SyncFamily::RwLock,
            48..56 => SyncFamily::Barrier,
            56..64 => SyncFamily::Spin,
            64..80 => SyncFamily::Semaphore,
            80..88 => SyncFamily::Once,
            _ => SyncFamily::Thread,
        }
    }
}

const _: () = assert!(size_of::<Operation>() == 64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_of_an_operation_fits_its_name() {
        let words = [
            (SyncFamily::Mutex, "mutex "),
            (SyncFamily::Mutex, "condition "),
            (SyncFamily::RwLock, "rwlock "),
            (SyncFamily::Barrier, "barrier "),
            (SyncFamily::Spin, "spin "),
            (SyncFamily::Semaphore, "semaphore "),
            (SyncFamily::Once, "once"),
            (SyncFamily::Thread, "thread "),
        ];
        for &operation in SyncOperation::ALL {
            let family = words.iter().find(|(_, word)| operation.name().starts_with(word)).map(|(f, _)| *f);
            assert_eq!(Some(operation.family()), family, "{}", operation.name());
        }
        for family in SyncFamily::ALL {
            assert_eq!(SyncFamily::from_number(family as u8), Some(family));
        }
        assert_eq!(SyncFamily::from_number(7), None);
    }

    #[test]
    fn operation_numbers_and_operations_match_both_ways() {
        for &operation in SyncOperation::ALL {
            assert_eq!(SyncOperation::from_number(operation as u16), Some(operation));
        }
        let known = (0..=u16::MAX).filter(|&number| SyncOperation::from_number(number).is_some()).count();
        assert_eq!(known, SyncOperation::ALL.len());
        assert!(SyncOperation::ALL.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
