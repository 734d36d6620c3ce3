//! The names of libc's synchronization functions, and how each function uses its arguments and result.

use probe_abi::SyncOperation::{self, *};
use probe_abi::{LibcFunction, ObjectFrom, OutcomeFrom, SecondFrom};

/// A synchronization function of libc that is known by name.
#[derive(Debug, PartialEq, Eq)]
pub struct Known {
    /// The function's name, without leading underscores.
    pub name: &'static str,
    /// The operation that the function does.
    pub operation: SyncOperation,
    object: ObjectFrom,
    second: SecondFrom,
    outcome: OutcomeFrom,
}

impl Known {
    /// How the function uses its arguments and its result, encoded as in a probe's cookie.
    pub fn function(&self) -> LibcFunction {
        LibcFunction {
            operation: self.operation as u8,
            object: self.object,
            second: self.second,
            outcome: self.outcome,
            looks_at_mutex: matches!(self.operation, MutexInit | MutexLock | MutexTryLock | MutexTimedLock),
        }
    }

    /// Decides which of two functions with the same address counts; `None` if that is unknown. glibc has the same code
    /// for initialising and unlocking a spin lock. An initialisation is then recorded as an unlock of a lock that is
    /// free, which does no harm.
    pub fn or(&'static self, other: &'static Known) -> Option<&'static Known> {
        match (self.operation, other.operation) {
            // musl has the same code for a C11 function and for its older counterpart. The code returns the older
            // function's result.
            (a, b) if a == b && self.outcome == OutcomeFrom::C11 => Some(other),
            (a, b) if a == b => Some(self),
            (SpinInit, SpinUnlock) => Some(other),
            (SpinUnlock, SpinInit) => Some(self),
            _ => None,
        }
    }
}

/// The function with that name. Leading underscores are ignored.
pub fn known(name: &[u8]) -> Option<&'static Known> {
    let name = std::str::from_utf8(name).ok()?.trim_start_matches('_');
    KNOWN.iter().find(|known| known.name == name)
}

const fn new(
    name: &'static str,
    operation: SyncOperation,
    object: ObjectFrom,
    second: SecondFrom,
    outcome: OutcomeFrom,
) -> Known {
    Known { name, operation, object, second, outcome }
}

/// A function with one object as its argument that returns the error code.
const fn plain(name: &'static str, operation: SyncOperation) -> Known {
    new(name, operation, ObjectFrom::Argument, SecondFrom::Nothing, OutcomeFrom::Error)
}

/// A function that waits for a condition variable.
const fn wait(name: &'static str, operation: SyncOperation) -> Known {
    new(name, operation, ObjectFrom::Argument, SecondFrom::Mutex, OutcomeFrom::Error)
}

/// A function that returns −1 after an error and sets `errno`.
const fn errno(name: &'static str, operation: SyncOperation) -> Known {
    new(name, operation, ObjectFrom::Argument, SecondFrom::Nothing, OutcomeFrom::Errno)
}

/// A C11 function that returns a `thrd_*` constant.
const fn c11(name: &'static str, operation: SyncOperation) -> Known {
    new(name, operation, ObjectFrom::Argument, SecondFrom::Nothing, OutcomeFrom::C11)
}

/// A function that returns nothing.
const fn void(name: &'static str, operation: SyncOperation) -> Known {
    new(name, operation, ObjectFrom::Argument, SecondFrom::Nothing, OutcomeFrom::Nothing)
}

static KNOWN: [Known; 69] = [
    plain("pthread_mutex_init", MutexInit),
    plain("pthread_mutex_destroy", MutexDestroy),
    plain("pthread_mutex_lock", MutexLock),
    plain("pthread_mutex_trylock", MutexTryLock),
    plain("pthread_mutex_timedlock", MutexTimedLock),
    plain("pthread_mutex_clocklock", MutexTimedLock),
    plain("pthread_mutex_unlock", MutexUnlock),
    plain("pthread_mutex_consistent", MutexConsistent),
    plain("pthread_mutex_consistent_np", MutexConsistent),
    plain("pthread_cond_init", ConditionInit),
    plain("pthread_cond_destroy", ConditionDestroy),
    wait("pthread_cond_wait", ConditionWait),
    wait("pthread_cond_timedwait", ConditionTimedWait),
    wait("pthread_cond_clockwait", ConditionTimedWait),
    plain("pthread_cond_signal", ConditionSignal),
    plain("pthread_cond_broadcast", ConditionBroadcast),
    plain("pthread_rwlock_init", RwLockInit),
    plain("pthread_rwlock_destroy", RwLockDestroy),
    plain("pthread_rwlock_rdlock", RwLockRead),
    plain("pthread_rwlock_tryrdlock", RwLockTryRead),
    plain("pthread_rwlock_timedrdlock", RwLockTimedRead),
    plain("pthread_rwlock_clockrdlock", RwLockTimedRead),
    plain("pthread_rwlock_wrlock", RwLockWrite),
    plain("pthread_rwlock_trywrlock", RwLockTryWrite),
    plain("pthread_rwlock_timedwrlock", RwLockTimedWrite),
    plain("pthread_rwlock_clockwrlock", RwLockTimedWrite),
    plain("pthread_rwlock_unlock", RwLockUnlock),
    new("pthread_barrier_init", BarrierInit, ObjectFrom::Argument, SecondFrom::Count2, OutcomeFrom::Error),
    plain("pthread_barrier_destroy", BarrierDestroy),
    plain("pthread_barrier_wait", BarrierWait),
    plain("pthread_spin_init", SpinInit),
    plain("pthread_spin_destroy", SpinDestroy),
    plain("pthread_spin_lock", SpinLock),
    plain("pthread_spin_trylock", SpinTryLock),
    plain("pthread_spin_unlock", SpinUnlock),
    new("sem_init", SemaphoreInit, ObjectFrom::Argument, SecondFrom::Count2, OutcomeFrom::Errno),
    errno("sem_destroy", SemaphoreDestroy),
    new("sem_open", SemaphoreOpen, ObjectFrom::Result, SecondFrom::Count3, OutcomeFrom::Pointer),
    errno("sem_close", SemaphoreClose),
    errno("sem_wait", SemaphoreWait),
    errno("sem_trywait", SemaphoreTryWait),
    errno("sem_timedwait", SemaphoreTimedWait),
    errno("sem_clockwait", SemaphoreTimedWait),
    errno("sem_post", SemaphorePost),
    plain("pthread_once", Once),
    new("pthread_create", ThreadCreate, ObjectFrom::Created, SecondFrom::Nothing, OutcomeFrom::Error),
    plain("pthread_join", ThreadJoin),
    plain("pthread_timedjoin_np", ThreadJoin),
    plain("pthread_clockjoin_np", ThreadJoin),
    plain("pthread_tryjoin_np", ThreadTryJoin),
    plain("pthread_detach", ThreadDetach),
    new("pthread_exit", ThreadExit, ObjectFrom::Nothing, SecondFrom::Nothing, OutcomeFrom::Nothing),
    c11("mtx_init", MutexInit),
    c11("mtx_lock", MutexLock),
    c11("mtx_trylock", MutexTryLock),
    c11("mtx_timedlock", MutexTimedLock),
    c11("mtx_unlock", MutexUnlock),
    void("mtx_destroy", MutexDestroy),
    c11("cnd_init", ConditionInit),
    void("cnd_destroy", ConditionDestroy),
    new("cnd_wait", ConditionWait, ObjectFrom::Argument, SecondFrom::Mutex, OutcomeFrom::C11),
    new("cnd_timedwait", ConditionTimedWait, ObjectFrom::Argument, SecondFrom::Mutex, OutcomeFrom::C11),
    c11("cnd_signal", ConditionSignal),
    c11("cnd_broadcast", ConditionBroadcast),
    new("thrd_create", ThreadCreate, ObjectFrom::Created, SecondFrom::Nothing, OutcomeFrom::C11),
    c11("thrd_join", ThreadJoin),
    c11("thrd_detach", ThreadDetach),
    new("thrd_exit", ThreadExit, ObjectFrom::Nothing, SecondFrom::Nothing, OutcomeFrom::Nothing),
    void("call_once", Once),
];
