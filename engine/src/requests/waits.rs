//! Finds what single waits were for: a lock, something outside the recorded threads, or another thread.

use super::cause::{Cause, LockRef, Outside, Source};
use super::sampled::users_function;
use super::tops::Tops;
use crate::event::{CallKind, SyncObject};
use crate::program::{FunctionRef, ObjectKind, Occurrences, Primitive, Program};
use crate::timeline::{External, Timeline, Wait, WaitReason, Wake};
use probe_abi::{Descriptor, SampleReason};
use rustc_hash::{FxHashMap, FxHashSet};

/// Waits of one kind for more files than this are one cause.
const FEW: usize = 4;

/// Finds what threads waited for.
#[derive(Debug)]
pub(super) struct Waits<'a> {
    timeline: &'a Timeline,
    program: &'a Program,
    occurrences: &'a Occurrences<'a>,
    /// Objects that are locks, by index in [`Timeline::locks`].
    locks: FxHashSet<u32>,
    /// Futex words that threads waited for as for locks, by process and address.
    words: FxHashMap<(u32, u64), LockRef>,
    /// Of these words those for which only one thread waited.
    of_one: FxHashSet<LockRef>,
    /// Kinds of waits for few files or other ends of sockets, which are causes of their own.
    few: FxHashSet<&'a str>,
}

impl<'a> Waits<'a> {
    pub(super) fn of(
        timeline: &'a Timeline,
        program: &'a Program,
        occurrences: &'a Occurrences<'a>,
    ) -> Waits<'a> {
        let is_lock =
            |kind: SyncObject| matches!(kind, SyncObject::Mutex | SyncObject::RwLock | SyncObject::SpinLock);
        let recorded = (0u32..).zip(&timeline.locks).filter(|(_, lock)| is_lock(lock.kind));
        let made = program.locks.iter().map(|fact| fact.object.0);
        let words = (0u32..).zip(&program.recorded.objects).filter(|(_, object)| {
            object.kind == ObjectKind::Futex && object.primitive == Some(Primitive::Lock)
        });
        let words = words.filter_map(|(number, object)| {
            let digits = object.address.strip_prefix("0x")?;
            Some(((object.pid, u64::from_str_radix(digits, 16).ok()?), LockRef::Word(number)))
        });
        // A mutex begins with its futex word: at the end of a condition wait, a thread may wait for that word.
        let mutexes = (0u32..).zip(&timeline.locks).filter(|(_, lock)| lock.kind == SyncObject::Mutex);
        let mutexes = mutexes.map(|(number, lock)| ((lock.pid, lock.address), LockRef::Object(number)));
        let words: FxHashMap<(u32, u64), LockRef> = words.chain(mutexes).collect();
        let few = program.recorded.waits.iter().filter(|wait| wait.of.len() <= FEW);
        Waits {
            timeline,
            program,
            occurrences,
            locks: recorded.map(|(number, _)| number).chain(made).collect(),
            of_one: of_one(timeline, &words),
            words,
            few: few.map(|wait| wait.name.as_str()).collect(),
        }
    }

    /// Whether it is a futex word for which only one thread waited.
    pub(super) fn is_of_one(&self, lock: LockRef) -> bool {
        self.of_one.contains(&lock)
    }

    fn wait(&self, thread: u32, number: u32) -> Option<&'a Wait> {
        self.timeline.threads.get(thread as usize)?.waits.get(number as usize)
    }

    /// The lock that a wait was for; `None`: the wait was for no lock.
    pub(super) fn lock(&self, thread: u32, number: u32) -> Option<LockRef> {
        let words = self.occurrences.wait(thread as usize, number)?;
        if let Some(object) = words.object.filter(|object| self.locks.contains(object)) {
            return Some(LockRef::Object(object));
        }
        let WaitReason::Futex(futex) = self.wait(thread, number)?.reason else { return None };
        let pid = self.timeline.threads.get(thread as usize)?.pid;
        self.words.get(&(pid, futex.word)).copied()
    }

    /// The name of a wait outside of all recorded operations on objects.
    pub(super) fn without_object(&self, thread: u32, number: u32) -> Option<&'static str> {
        let words = self.occurrences.wait(thread as usize, number)?;
        words.object.is_none().then_some(words.name)
    }

    /// Whether the wait is for a lock of a file, which another request has.
    pub(super) fn is_file_lock(&self, thread: u32, number: u32) -> bool {
        self.wait(thread, number).is_some_and(|wait| wait.kind() == CallKind::FileLock)
    }

    /// The thread that ended the wait, if a thread of the recording did.
    pub(super) fn ended_by(&self, thread: u32, number: u32) -> Option<u32> {
        let Wake::By(wakeup) = self.wait(thread, number)?.wake else { return None };
        let waker = self.timeline.wakeups.get(wakeup as usize)?.waker;
        ((waker as usize) < self.timeline.threads.len() && waker != thread).then_some(waker)
    }

    /// When the message from another host was sent that ended the wait; `None`: no such message ended it.
    pub(super) fn sent(&self, thread: u32, number: u32) -> Option<u64> {
        let Wake::By(wakeup) = self.wait(thread, number)?.wake else { return None };
        self.timeline.messages.binary_search(&wakeup).ok()?;
        Some(self.timeline.wakeups.get(wakeup as usize)?.time.0)
    }

    /// The cause of a wait that no thread of the recording ended; the wait began at `start`.
    pub(super) fn outside(&self, thread: u32, number: u32, start: u64, tops: &Tops) -> Cause {
        let Some((wait, words)) =
            self.wait(thread, number).zip(self.occurrences.wait(thread as usize, number))
        else {
            return Cause::Unknown;
        };
        let source = match wait.wake {
            Wake::External(external) => source(wait, external),
            Wake::By(_) | Wake::CutAtEnd | Wake::CutByUnknown => None,
        };
        let Some(source) = source else { return Cause::Unknown };
        let function = self.slept_in(thread, start).or_else(|| tops.before(thread, start).1);
        let of = wait.awaited().filter(|_| self.few.contains(words.name));
        Cause::Waiting(Outside { source, name: words.name, of, function })
    }

    fn slept_in(&self, thread: u32, start: u64) -> Option<FunctionRef> {
        let thread = self.timeline.threads.get(thread as usize)?;
        let stack = thread.stack_at(crate::time::Timestamp(start), SampleReason::Block)?;
        users_function(self.program, stack)
    }
}

fn of_one(timeline: &Timeline, words: &FxHashMap<(u32, u64), LockRef>) -> FxHashSet<LockRef> {
    let mut waiters: FxHashMap<LockRef, Option<usize>> = FxHashMap::default();
    for (index, thread) in timeline.threads.iter().enumerate() {
        for wait in &thread.waits {
            let WaitReason::Futex(futex) = wait.reason else { continue };
            if let Some(word @ LockRef::Word(_)) = words.get(&(thread.pid, futex.word)) {
                let waiter = waiters.entry(*word).or_insert(Some(index));
                *waiter = waiter.filter(|first| *first == index);
            }
        }
    }
    waiters.into_iter().filter(|(_, waiter)| waiter.is_some()).map(|(word, _)| word).collect()
}

/// What ended the wait; `None`: not known.
fn source(wait: &Wait, external: External) -> Option<Source> {
    let is_storage = match wait.kind() {
        CallKind::Sync => true,
        CallKind::Read | CallKind::Write => {
            matches!(wait.descriptor(), Descriptor::File | Descriptor::Device)
        }
        _ => false,
    };
    if wait.is_for_time() {
        return Some(Source::Timer);
    }
    Some(match external {
        External::Block => Source::Disk,
        External::NotSeen | External::UnknownContext | External::BeforeWindow => return None,
        // File systems have kernel threads that wake a thread when the thread's data is on the disk.
        _ if is_storage => Source::Disk,
        External::Network | External::Request => Source::Peer,
        External::Timer => Source::Timer,
        External::Task if is_of_sockets(wait.kind()) => Source::Peer,
        External::Task => Source::Process,
        External::Device
        | External::HardIrq
        | External::SoftIrq
        | External::Nmi
        | External::Idle
        | External::Signal => Source::Other,
    })
}

fn is_of_sockets(kind: CallKind) -> bool {
    matches!(kind, CallKind::Receive | CallKind::Send | CallKind::Connect | CallKind::Accept)
}
