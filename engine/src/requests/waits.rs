//! Finds what single waits were for: a lock, something outside the recorded threads, or another thread.

use super::cause::{Cause, LockRef, Outside, Source};
use super::sampled::users_function;
use super::tops::Tops;
use crate::event::{CallKind, SyncObject};
use crate::program::{FunctionRef, ObjectKind, Occurrences, Primitive, Program};
use crate::timeline::{External, Timeline, Wait, WaitReason, Wake};
use probe_abi::{Descriptor, SampleReason};
use rustc_hash::{FxHashMap, FxHashSet};

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
        Waits {
            timeline,
            program,
            occurrences,
            locks: recorded.map(|(number, _)| number).chain(made).collect(),
            words: words.chain(mutexes).collect(),
        }
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

    /// The thread that ended the wait, if a thread of the recording did.
    pub(super) fn ended_by(&self, thread: u32, number: u32) -> Option<u32> {
        let Wake::By(wakeup) = self.wait(thread, number)?.wake else { return None };
        let waker = self.timeline.wakeups.get(wakeup as usize)?.waker;
        ((waker as usize) < self.timeline.threads.len() && waker != thread).then_some(waker)
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
        Cause::Waiting(Outside { source, name: words.name, function })
    }

    fn slept_in(&self, thread: u32, start: u64) -> Option<FunctionRef> {
        let thread = self.timeline.threads.get(thread as usize)?;
        let stack = thread.stack_at(crate::time::Timestamp(start), SampleReason::Block)?;
        users_function(self.program, stack)
    }
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
        External::Network => Source::Peer,
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
