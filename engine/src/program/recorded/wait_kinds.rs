//! Groups waits by what threads slept for.
//!
//! A wait is *idle* if the thread waited for work, and no recorded thread sent any. It is a call of the poll family,
//! `accept`, a wait for a signal, a read of a descriptor for events, a condition or semaphore wait, or a timed-out futex
//! wait. It was ended from outside the recording, or not at all. A condition wait that a recorded thread signalled is never
//! idle. Neither is a timed wait that was entered again until a recorded thread ended it.
//!
//! A thread that sleeps from the recording's start to its end in an unknown call counts as idle, too.

use super::EnteredAgain;
use super::model::{AwaitedPart, RecordedWait, WaitStack, shares};
use super::threads::Context;
use super::waited_for::{SLEEP, WaitedFor};
use crate::event::{CallKind, Effect, SupportSubject, effect, futex_operation, io_name, kernel_work};
use crate::program::lock_replay::Nesting;
use crate::program::naming::awaited_names::awaited_name;
use crate::program::naming::names::{STOPPED, TIMER, UNKNOWN, waker};
use crate::timeline::{External, State, Timeline, Wait, WaitReason, Wake};
use probe_abi::{Call, SyncFamily, SyncOperation as S};
use rustc_hash::{FxHashMap, FxHashSet};

/// Name of a wait in no system call that shows the reason: in a page fault, or while memory is mapped.
const IN_KERNEL: &str = "in the kernel";
/// Name of a wait in a call that maps or unmaps memory, if a thread ended it: another thread was changing the process's
/// memory.
const MEMORY_MAP: &str = "memory map";
/// Name of a wait of the C library for the end of a thread, where no operation was recorded.
const THREAD_END: &str = "end of a thread";
/// Name of a wait that did not end, in an unknown call that began before the recording.
const NEVER_WOKEN: &str = "never woken";
/// Largest number of files and other ends of sockets that are listed for one kind of waits.
const MOST_NAMED: usize = 16;
/// Largest number of stacks that are listed for one kind of waits.
const MOST_STACKS: usize = 8;
/// Ended by a recorded thread.
const BY_THREAD: &str = "thread";
/// What ended a wait, if it did not end within the recording.
const NOT_ENDED: &str = "not ended";

impl RecordedWait {
    /// Whether mostly other threads of the program ended the waits.
    pub fn is_ended_by_threads(&self) -> bool {
        self.ended_by.first().is_some_and(|by| by.name == BY_THREAD)
    }

    /// Whether threads wait until other threads of the program go on with their work, not until they have ended.
    pub(crate) fn is_for_threads_at_work(&self) -> bool {
        let is_for_end = matches!(self.name, WaitedFor::Operation(S::ThreadJoin | S::ThreadTryJoin))
            || self.name.as_str() == THREAD_END;
        !self.idle && !is_for_end && self.is_ended_by_threads()
    }

    /// The wait with the function in which most threads sleep: `pipe read in acquire`.
    pub fn with_sleepers(&self) -> String {
        let within = self.sleepers.first().map_or(String::new(), |sleeper| format!(" in {}", sleeper.name));
        format!("{}{within}", self.name.as_str())
    }

    /// Whether the waits are for a lock of the C library.
    fn is_for_lock(&self) -> bool {
        let WaitedFor::Operation(operation) = self.name else { return false };
        match operation.family() {
            SyncFamily::Mutex => effect(operation) != Effect::Await,
            family => matches!(family, SyncFamily::RwLock | SyncFamily::Spin),
        }
    }

    /// Whether the waits are for work or for time, or for something that never came.
    pub(crate) fn is_rest(&self) -> bool {
        let never_ended = || matches!(&self.ended_by[..], [by] if by.name == NOT_ENDED);
        self.idle || self.name == WaitedFor::Sleep || (never_ended() && !self.is_for_lock())
    }

    /// Whether the threads wait for time to pass.
    pub(crate) fn is_for_time(&self) -> bool {
        self.name == WaitedFor::Sleep || self.ended_by.first().is_some_and(|by| by.name == TIMER)
    }

    /// The file, or the other end of sockets, for which threads waited more than half of the time.
    pub(crate) fn mostly_of(&self) -> Option<&str> {
        let most = self.of.first()?;
        (most.wait_ns.saturating_mul(2) > self.wait_ns).then_some(most.name.as_str())
    }

    /// Whether the waits were caused by a lock or by something outside the program, and not by another thread's own
    /// waits.
    pub(crate) fn is_held_up(&self) -> bool {
        let by_thread = || self.ended_by.first().is_some_and(|by| by.name == BY_THREAD);
        self.is_for_lock() || !(self.is_rest() || by_thread())
    }
}

#[derive(Default)]
struct Counts<'a> {
    of: FxHashMap<u32, AwaitedPart>,
    stacks: FxHashMap<u32, u64>,
    sleepers: FxHashMap<&'a str, u64>,
    wakers: FxHashMap<&'a str, u64>,
    waits: u64,
    wait_ns: u64,
    longest_ns: u64,
    threads: FxHashSet<usize>,
    ended_by: FxHashMap<&'static str, u64>,
}

/// All kinds of waits, the longest total first; waits for work come last.
pub(super) fn all(timeline: &Timeline, nesting: &Nesting, context: &Context<'_>) -> Vec<RecordedWait> {
    let again = EnteredAgain::of(timeline, nesting);
    let mut kinds: FxHashMap<(&'static str, bool), Counts<'_>> = FxHashMap::default();
    for (index, thread) in timeline.threads.iter().enumerate() {
        for (start, end, state) in thread.spans() {
            let State::Blocked(number) = state else { continue };
            let Some(wait) = thread.waits.get(number as usize) else { continue };
            let operation = nesting.operation(timeline, index, number).map(|used| used.operation);
            let length_ns = end.0.saturating_sub(start.0);
            let idle = is_idle(wait, operation) && !again.contains(index, number);
            let counts = kinds.entry((wait_name(timeline, thread.pid, wait, operation), idle)).or_default();
            counts.waits += 1;
            counts.wait_ns = counts.wait_ns.saturating_add(length_ns);
            counts.longest_ns = counts.longest_ns.max(length_ns);
            counts.threads.insert(index);
            *counts.ended_by.entry(ended_by(wait)).or_insert(0) += 1;
            if let Some(number) = wait.awaited() {
                let of = counts.of.entry(number).or_default();
                (of.waits, of.wait_ns) = (of.waits + 1, of.wait_ns.saturating_add(length_ns));
            }
            if context.has_stacks() {
                if let Some(stack) = context.sleeper_stack(index, number as usize) {
                    *counts.stacks.entry(stack).or_insert(0) += 1;
                }
                if let Some(sleeper) = context.sleeper(index, number as usize) {
                    *counts.sleepers.entry(sleeper).or_insert(0) += 1;
                }
                if let Wake::By(wakeup) = wait.wake
                    && let Some(waker) = context.waker(wakeup)
                {
                    *counts.wakers.entry(waker).or_insert(0) += 1;
                }
            }
        }
    }
    let names: FxHashMap<u32, String> =
        timeline.awaited.iter().map(|fact| (fact.number, awaited_name(fact))).collect();
    let mut all: Vec<RecordedWait> = kinds
        .into_iter()
        .map(|((name, idle), counts)| RecordedWait {
            name: name.into(),
            idle,
            waits: counts.waits,
            wait_ns: counts.wait_ns,
            longest_ns: counts.longest_ns,
            threads: counts.threads.len() as u64,
            ended_by: shares(counts.ended_by),
            sleepers: shares(counts.sleepers),
            wakers: shares(counts.wakers),
            stacks: stacks(counts.stacks, context),
            of: named(counts.of, &names),
        })
        .collect();
    all.sort_by(|a, b| {
        a.idle.cmp(&b.idle).then(b.wait_ns.cmp(&a.wait_ns)).then_with(|| a.name.as_str().cmp(b.name.as_str()))
    });
    all
}

/// The most frequent stacks; those with the same functions count as one.
fn stacks(waits: FxHashMap<u32, u64>, context: &Context<'_>) -> Vec<WaitStack> {
    let mut by_functions: FxHashMap<Vec<String>, u64> = FxHashMap::default();
    for (stack, waits) in waits {
        *by_functions.entry(context.functions_of(stack)).or_insert(0) += waits;
    }
    by_functions.remove(&Vec::new());
    let stacks = by_functions.into_iter().map(|(functions, waits)| WaitStack { functions, waits });
    let mut stacks: Vec<WaitStack> = stacks.collect();
    stacks.sort_by(|a, b| b.waits.cmp(&a.waits).then_with(|| a.functions.cmp(&b.functions)));
    stacks.truncate(MOST_STACKS);
    stacks
}

/// The parts with their names, those of one name together. Numbers without a name are omitted.
fn named(parts: FxHashMap<u32, AwaitedPart>, names: &FxHashMap<u32, String>) -> Vec<AwaitedPart> {
    let mut by_name: FxHashMap<&str, AwaitedPart> = FxHashMap::default();
    for (number, part) in parts {
        let Some(name) = names.get(&number) else { continue };
        let sum = by_name.entry(name).or_default();
        sum.waits = sum.waits.saturating_add(part.waits);
        sum.wait_ns = sum.wait_ns.saturating_add(part.wait_ns);
    }
    let mut named: Vec<AwaitedPart> =
        by_name.into_iter().map(|(name, sum)| AwaitedPart { name: name.to_owned(), ..sum }).collect();
    named.sort_by(|a, b| b.wait_ns.cmp(&a.wait_ns).then_with(|| a.name.cmp(&b.name)));
    named.truncate(MOST_NAMED);
    named
}

pub(in crate::program) fn wait_name(
    timeline: &Timeline,
    pid: u32,
    wait: &Wait,
    operation: Option<S>,
) -> &'static str {
    if wait.reason.is_stop() {
        return STOPPED;
    }
    if let Some(operation) = operation {
        return operation.name();
    }
    if let Some(name) = io_name(wait.kind(), wait.descriptor()) {
        return name;
    }
    if wait.is_never_woken() {
        return NEVER_WOKEN;
    }
    match (wait.kind(), wait.reason) {
        (CallKind::Futex, WaitReason::Futex(futex)) if timeline.is_thread_end(pid, futex) => THREAD_END,
        (CallKind::Futex, WaitReason::Futex(futex)) => match futex_operation(futex.operation) {
            6 | 13 => "futex, priority inheritance",
            _ => "futex",
        },
        (CallKind::Futex, _) => "one of several futexes",
        (CallKind::Sleep, _) => SLEEP,
        (CallKind::Child, _) => "child process",
        (CallKind::Signal, _) => "signal",
        _ => match wait.wake {
            Wake::External(External::Block) => "disk",
            Wake::By(_) if is_about_memory(wait.reason) => MEMORY_MAP,
            _ => IN_KERNEL,
        },
    }
}

/// Whether it is only known that the thread slept in the kernel.
pub(in crate::program) fn is_in_kernel(timeline: &Timeline, pid: u32, wait: &Wait) -> bool {
    [IN_KERNEL, MEMORY_MAP].contains(&wait_name(timeline, pid, wait, None))
}

fn is_about_memory(reason: WaitReason) -> bool {
    let WaitReason::Kernel { call, .. } = reason else { return false };
    call != Call::NONE && kernel_work(Some(call.number)).1 == SupportSubject::Memory
}

pub(in crate::program) fn is_idle(wait: &Wait, operation: Option<S>) -> bool {
    let by_nobody = match wait.wake {
        Wake::External(External::NotSeen | External::UnknownContext | External::BeforeWindow) => false,
        Wake::External(_) | Wake::CutAtEnd => true,
        Wake::By(_) | Wake::CutByUnknown => false,
    };
    let for_anything = match operation.map(effect) {
        Some(Effect::Await | Effect::TakeOne { tries: false }) => true,
        Some(_) => false,
        // A word that no thread woke may be a lock: its purpose is unknown.
        None => wait.timed_out() || wait.is_for_anything() || wait.is_never_woken(),
    };
    by_nobody && for_anything
}

pub(in crate::program) fn ended_by(wait: &Wait) -> &'static str {
    match wait.wake {
        Wake::By(_) => BY_THREAD,
        Wake::External(external) => waker(external),
        Wake::CutAtEnd => NOT_ENDED,
        Wake::CutByUnknown => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::SyncObject;
    use crate::program::ObjectKind;

    /// A hand-written file may have any text.
    #[test]
    fn kinds_of_objects_and_waits_keep_any_text() {
        for text in ["mutex", "spin lock", "futex", "gate", "Mutex", ""] {
            assert_eq!(ObjectKind::from(text.to_owned()).to_string(), text);
        }
        assert_eq!(ObjectKind::from("rwlock".to_owned()), ObjectKind::Sync(SyncObject::RwLock));
        for text in ["mutex lock", "spin lock", "sleep", "pipe read", "juggling", ""] {
            assert_eq!(WaitedFor::from(text).to_string(), text);
        }
        let is_for_lock = |name: &str| RecordedWait { name: name.into(), ..Default::default() }.is_for_lock();
        let found = ["mutex lock", "condition wait", "rwlock rdlock", "sleep"].map(is_for_lock);
        assert_eq!(found, [true, false, true, false]);
    }
}
