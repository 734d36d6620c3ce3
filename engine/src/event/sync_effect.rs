//! The effect of each synchronization operation, in one table for all users.

use probe_abi::{SyncFamily, SyncOperation};
use std::fmt;

/// Kinds of synchronization objects.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::EnumString, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum SyncObject {
    /// Only one thread at a time holds the object.
    Mutex,
    /// Threads wait for a signal.
    Condition,
    /// Either one writer or any number of readers hold the object.
    RwLock,
    /// A mutex whose waiters keep a CPU busy.
    #[strum(serialize = "spin lock")]
    SpinLock,
    /// Threads wait for each other.
    Barrier,
    /// A count that threads wait for.
    Semaphore,
    /// Code that the first thread runs, once.
    Once,
}

impl SyncObject {
    /// Its name in texts and files.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The family of the object's operations, which are recorded together.
    pub const fn family(self) -> SyncFamily {
        match self {
            SyncObject::Mutex | SyncObject::Condition => SyncFamily::Mutex,
            SyncObject::RwLock => SyncFamily::RwLock,
            SyncObject::SpinLock => SyncFamily::Spin,
            SyncObject::Barrier => SyncFamily::Barrier,
            SyncObject::Semaphore => SyncFamily::Semaphore,
            SyncObject::Once => SyncFamily::Once,
        }
    }

    /// Its size at most, in glibc and musl on 64-bit machines, bytes.
    pub const fn most_bytes(self) -> u64 {
        match self {
            SyncObject::Mutex => 40,
            SyncObject::Condition => 48,
            SyncObject::RwLock => 56,
            SyncObject::Barrier | SyncObject::Semaphore => 32,
            SyncObject::SpinLock | SyncObject::Once => 4,
        }
    }
}

impl fmt::Display for SyncObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What an operation changes if it succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Creates the object.
    Made,
    /// Destroys the object.
    Gone,
    /// Takes a lock.
    Take {
        /// Together with other readers.
        reads: bool,
        /// Fails instead of waiting.
        tries: bool,
    },
    /// Releases a lock.
    Give,
    /// Waits for a signal, with the mutex released until then.
    Await,
    /// Signals one waiter, or all waiters.
    Signal,
    /// Waits until all threads have come.
    Meet,
    /// Takes one from the semaphore's count.
    TakeOne {
        /// Fails instead of waiting.
        tries: bool,
    },
    /// Adds one to the semaphore's count.
    AddOne,
    /// Runs code once; other threads wait for it.
    RunOnce,
    /// Waits for a thread to end.
    Join {
        /// Fails instead of waiting.
        tries: bool,
    },
    /// Nothing that another thread waits for.
    Other,
}

/// The kind of object that an operation is on (`None`: a thread), and its effect.
pub const fn meaning(operation: SyncOperation) -> (Option<SyncObject>, Effect) {
    use SyncOperation as S;
    const fn take(reads: bool, tries: bool) -> Effect {
        Effect::Take { reads, tries }
    }
    let (object, effect) = match operation {
        S::MutexInit => (SyncObject::Mutex, Effect::Made),
        S::MutexDestroy => (SyncObject::Mutex, Effect::Gone),
        S::MutexLock | S::MutexTimedLock => (SyncObject::Mutex, take(false, false)),
        S::MutexTryLock => (SyncObject::Mutex, take(false, true)),
        S::MutexUnlock => (SyncObject::Mutex, Effect::Give),
        S::MutexConsistent => (SyncObject::Mutex, Effect::Other),
        S::ConditionInit => (SyncObject::Condition, Effect::Made),
        S::ConditionDestroy => (SyncObject::Condition, Effect::Gone),
        S::ConditionWait | S::ConditionTimedWait => (SyncObject::Condition, Effect::Await),
        S::ConditionSignal | S::ConditionBroadcast => (SyncObject::Condition, Effect::Signal),
        S::RwLockInit => (SyncObject::RwLock, Effect::Made),
        S::RwLockDestroy => (SyncObject::RwLock, Effect::Gone),
        S::RwLockRead | S::RwLockTimedRead => (SyncObject::RwLock, take(true, false)),
        S::RwLockTryRead => (SyncObject::RwLock, take(true, true)),
        S::RwLockWrite | S::RwLockTimedWrite => (SyncObject::RwLock, take(false, false)),
        S::RwLockTryWrite => (SyncObject::RwLock, take(false, true)),
        S::RwLockUnlock => (SyncObject::RwLock, Effect::Give),
        S::BarrierInit => (SyncObject::Barrier, Effect::Made),
        S::BarrierDestroy => (SyncObject::Barrier, Effect::Gone),
        S::BarrierWait => (SyncObject::Barrier, Effect::Meet),
        S::SpinInit => (SyncObject::SpinLock, Effect::Made),
        S::SpinDestroy => (SyncObject::SpinLock, Effect::Gone),
        S::SpinLock => (SyncObject::SpinLock, take(false, false)),
        S::SpinTryLock => (SyncObject::SpinLock, take(false, true)),
        S::SpinUnlock => (SyncObject::SpinLock, Effect::Give),
        S::SemaphoreInit => (SyncObject::Semaphore, Effect::Made),
        S::SemaphoreDestroy => (SyncObject::Semaphore, Effect::Gone),
        // Opening one name twice gives one semaphore, and other threads may still use it after one thread closes it.
        S::SemaphoreOpen | S::SemaphoreClose => (SyncObject::Semaphore, Effect::Other),
        S::SemaphoreWait | S::SemaphoreTimedWait => (SyncObject::Semaphore, Effect::TakeOne { tries: false }),
        S::SemaphoreTryWait => (SyncObject::Semaphore, Effect::TakeOne { tries: true }),
        S::SemaphorePost => (SyncObject::Semaphore, Effect::AddOne),
        S::Once => (SyncObject::Once, Effect::RunOnce),
        S::ThreadJoin => return (None, Effect::Join { tries: false }),
        S::ThreadTryJoin => return (None, Effect::Join { tries: true }),
        S::ThreadCreate | S::ThreadDetach | S::ThreadExit | S::ThreadSilent => return (None, Effect::Other),
    };
    (Some(object), effect)
}

/// What an operation changes if it succeeds.
pub const fn effect(operation: SyncOperation) -> Effect {
    meaning(operation).1
}

/// Whether a thread may sleep or spin in this operation. Releases count too, although they only wake other threads.
pub const fn may_wait(operation: SyncOperation) -> bool {
    match meaning(operation) {
        (object, Effect::Give) => !matches!(object, Some(SyncObject::SpinLock)),
        (_, Effect::Take { tries, .. } | Effect::TakeOne { tries } | Effect::Join { tries }) => !tries,
        (_, Effect::Await | Effect::Signal | Effect::Meet | Effect::RunOnce) => true,
        (_, Effect::Made | Effect::Gone | Effect::AddOne | Effect::Other) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_the_family_of_their_operations() {
        for &operation in SyncOperation::ALL {
            let family = meaning(operation).0.map_or(SyncFamily::Thread, SyncObject::family);
            assert_eq!(family, operation.family(), "{}", operation.name());
        }
    }

    #[test]
    fn operations_that_only_try_never_wait() {
        for operation in SyncOperation::ALL.iter().filter(|operation| operation.name().contains(" try")) {
            assert!(!may_wait(*operation), "{}", operation.name());
        }
    }
}
