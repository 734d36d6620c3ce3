//! The operations of programs (see the table in docs/algorithms.md; papers 1999 section 3.1 and 2001 section 2).

use crate::time::Ticks;

/// Index of a function in [`super::Program::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionRef(pub u32);

/// Index of a synchronization object or device in [`super::Program::objects`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u32);

/// Number of a replayed wake edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeId(pub u32);

/// Index of a thread in [`super::Program::threads`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u32);

/// One operation of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Compute in the function on top of the stack.
    Exec(Ticks),
    /// Call the function, compute, return: one call of it.
    ExecIn(FunctionRef, Ticks),
    /// Enter a function.
    Call(FunctionRef),
    /// Leave the function on top of the stack.
    Return,
    /// Add one to a counting semaphore, whose waiters are served in order of arrival (the papers' "Signal event").
    Signal(ObjectId),
    /// Take one from the semaphore, or wait until there is one ("Wait for event").
    Wait(ObjectId),
    /// Take a mutex. There is no direct hand-over: unlock frees it and wakes one waiter, which tries again.
    Lock(ObjectId),
    /// Release a mutex; see `Lock`.
    Unlock(ObjectId),
    /// Take the shared side of a read-write lock. As in glibc, the lock is passed on directly: by the last reader to the next
    /// writer, by a writer to all waiting readers.
    ReadLock(ObjectId),
    /// Take the exclusive side of a read-write lock.
    WriteLock(ObjectId),
    /// Release the side that the thread holds.
    ReadWriteUnlock(ObjectId),
    /// Take a lock whose waiters keep a processor busy.
    SpinLock(ObjectId),
    /// Release a spin lock; see `SpinLock`.
    SpinUnlock(ObjectId),
    /// Wait until this many threads have come.
    Barrier(ObjectId, u32),
    /// Condition variable, mutex: release the mutex, wait for a signal, lock the mutex again.
    CondWait(ObjectId, ObjectId),
    /// Wake one thread that waits for the condition variable, if any.
    CondSignal(ObjectId),
    /// Wake all waiters.
    CondBroadcast(ObjectId),
    /// Set a POSIX semaphore's count. At the start of a thread without a creator, done before anything else.
    SemInit(ObjectId, u32),
    /// Like `Wait`, on a POSIX semaphore.
    SemWait(ObjectId),
    /// Like `Signal`, on a POSIX semaphore.
    SemPost(ObjectId),
    /// The first thread to come computes this long; others wait until it is done.
    Once(ObjectId, Ticks),
    /// Create a thread, which starts at once.
    Create(ThreadId),
    /// Wait for a thread to end.
    Join(ThreadId),
    /// Wait for a device: uses no processor, and depends on no other thread.
    Io(ObjectId, Ticks),
    /// Wait for time to pass: uses no processor.
    Sleep(Ticks),
    /// Wait until this long after the start of the program, if that is in the future: an absolute timer.
    SleepUntil(Ticks),
    /// Wait until this long after the end of the thread's last `SleepNext`, if that is in the future. The ends of such a
    /// timer do not move with the work in between. A thread's first one takes this long.
    SleepNext(Ticks),
    /// Source of a recorded wake edge.
    Release(EdgeId),
    /// Target of a recorded wake edge: wait for its release.
    Await(EdgeId),
    /// The thread gets a replayed lock, after waiting this long in the recording. Takes no time and waits for no thread,
    /// since edges replay the wait. Only marks the computing with the lock held.
    Held(ObjectId, Ticks),
    /// The thread releases a replayed lock after holding it for this time in the recording; see `Held`.
    Freed(ObjectId, Ticks),
}

const _: () = assert!(size_of::<Operation>() == 16);
