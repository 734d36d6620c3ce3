//! The operations (see the table in docs/algorithms.md; papers 1999 section 3.1 and 2001 section 2).

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

/// One step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Compute in the function that is on top of the stack.
    Exec(Ticks),
    /// Call the function, compute, return: one entry of it.
    ExecIn(FunctionRef, Ticks),
    /// Enter a function.
    Call(FunctionRef),
    /// Leave the function on top of the stack.
    Return,
    /// Add one to a counting semaphore, first come first served (the papers' "Signal event").
    Signal(ObjectId),
    /// Take one from it, waiting for one if there is none ("Wait for event").
    Wait(ObjectId),
    /// Mutex without direct hand-over: unlock frees it and wakes one waiter, which tries again.
    Lock(ObjectId),
    /// See `Lock`.
    Unlock(ObjectId),
    /// Shared side of a read-write lock. As in glibc, ownership is passed on directly: by the last reader to
    /// the next writer, by a writer to all waiting readers.
    ReadLock(ObjectId),
    /// Exclusive side of a read-write lock.
    WriteLock(ObjectId),
    /// Releases whichever side the thread holds.
    ReadWriteUnlock(ObjectId),
    /// Lock whose waiters keep a processor busy.
    SpinLock(ObjectId),
    /// See `SpinLock`.
    SpinUnlock(ObjectId),
    /// Wait until this many threads have come.
    Barrier(ObjectId, u32),
    /// Condition variable, mutex: release the mutex, wait for a signal, lock the mutex again.
    CondWait(ObjectId, ObjectId),
    /// Wakes one waiter, if any.
    CondSignal(ObjectId),
    /// Wakes all waiters.
    CondBroadcast(ObjectId),
    /// Sets a POSIX semaphore's count. Those at the start of a thread without a creator are done before
    /// anything else.
    SemInit(ObjectId, u32),
    /// See `Wait`, on a semaphore.
    SemWait(ObjectId),
    /// See `Signal`, on a semaphore.
    SemPost(ObjectId),
    /// The first thread to come computes this long; the others wait for it to finish.
    Once(ObjectId, Ticks),
    /// Starts a thread, which begins when it is created.
    Create(ThreadId),
    /// Waits for a thread to end.
    Join(ThreadId),
    /// Wait for a device: no processor used, no other thread behind it.
    Io(ObjectId, Ticks),
    /// Wait for time to pass: no processor used.
    Sleep(Ticks),
    /// Wait until this long after the start of the program, if that is yet to come: an absolute timer.
    SleepUntil(Ticks),
    /// Wait until this long after the end of the thread's last `SleepNext`, if that is yet to come: a timer whose ends do
    /// not move with what is done in between. The first one of a thread takes this long.
    SleepNext(Ticks),
    /// Source of one recorded wake edge.
    Release(EdgeId),
    /// Target of one recorded wake edge: waits until the release has happened.
    Await(EdgeId),
    /// The thread has got a recorded lock, after waiting this long in the recording. Takes no time and waits
    /// for no thread: the wait itself is replayed by its edges. Says only what is computed while the lock is
    /// held.
    Held(ObjectId, Ticks),
    /// The thread has given a recorded lock back, which it had for this long in the recording. See `Held`.
    Freed(ObjectId, Ticks),
}

const _: () = assert!(size_of::<Operation>() == 16);
