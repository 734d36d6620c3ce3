//! Finds what sampled stacks show about locks: which calls take a lock, and how long threads are under it.

use super::super::model::{NO_STACK, Timeline};
use super::futex_words::Word;
use crate::event::{CodeFact, CodeMap, CodeNames, ReadWrite, frame_address, read_write_wait};
use probe_abi::SampleReason;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Number of a call that takes a lock; one number for each place in a binary.
pub(super) type CallId = u32;

/// Innermost frames of a stack that show what a thread waits for.
const INNERMOST: usize = 4;
/// Weight of all threads' share in each thread's, as a number of samples: threads with few samples get about that share.
const COMMON: f64 = 50.0;

/// What one stack shows about locks.
#[derive(Clone, Debug, Default)]
struct OfStack {
    /// Frames of the stack that are calls after which code is known to run under a lock.
    takes: Vec<CallId>,
    /// Calls that took locks under which this stack's frames run.
    under: Vec<CallId>,
    is_mutex: bool,
    is_barrier: bool,
    /// The side of a read-write lock that the thread waits for on this stack, and the size of such a lock in bytes.
    read_write: Option<(ReadWrite, u64)>,
}

/// For each sampled stack, by its number: what it shows about locks.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls(Vec<OfStack>);

impl Calls {
    pub(super) fn of(timeline: &Timeline) -> Calls {
        let map = CodeMap::of_mappings(&timeline.mappings);
        type Key<'a> = (&'a str, Option<&'a str>, u64);
        let mut numbers: FxHashMap<Key<'_>, CallId> = FxHashMap::default();
        let named = CodeNames::of(&timeline.code);
        for code in &timeline.code {
            let (path, build_id) = (code.path.as_str(), code.build_id.as_deref());
            for &call in &code.under {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                numbers.entry((path, build_id, call)).or_insert(next);
            }
        }
        let of_stack = |stack: &super::super::model::Stack| {
            let mut found = OfStack::default();
            let mut under: BTreeSet<CallId> = BTreeSet::new();
            let (mut is_mutex, mut is_barrier, mut is_other) = (false, false, false);
            let mut read_write = None;
            for (index, &address) in stack.frames.iter().enumerate() {
                let at = map.at(stack.pid, frame_address(index, address), stack.time.0);
                let Some((mapping, offset)) = at else { continue };
                let (path, build_id) = (mapping.path.as_str(), mapping.build_id.as_deref());
                let place = (path, build_id, offset);
                found.takes.extend(numbers.get(&place));
                let Some(code) = named.at(mapping, offset, stack.time.0) else { continue };
                under.extend(code.under.iter().filter_map(|call| numbers.get(&(path, build_id, *call))));
                is_mutex |= index < INNERMOST && names(code, &MUTEXES);
                is_barrier |= index < INNERMOST && names(code, &BARRIERS);
                is_other |= index < INNERMOST && names(code, &OTHERS);
                if index < INNERMOST {
                    read_write = read_write.or_else(|| all_names(code).find_map(read_write_wait));
                }
            }
            found.under = under.into_iter().collect();
            // Names of functions for read-write mutexes contain "mutex", too.
            found.is_mutex = is_mutex && !is_other && read_write.is_none();
            found.is_barrier = is_barrier && !is_other;
            found.read_write = read_write.filter(|_| !is_other);
            found
        };
        Calls(timeline.stacks.iter().map(of_stack).collect())
    }

    fn stack(&self, stack: u32) -> Option<&OfStack> {
        self.0.get(stack as usize)
    }

    pub(super) fn takes(&self, stack: u32) -> impl Iterator<Item = CallId> + '_ {
        self.stack(stack).into_iter().flat_map(|stack| stack.takes.iter().copied())
    }

    /// Whether a thread that sleeps with this stack waits for a mutex.
    pub(super) fn is_mutex(&self, stack: u32) -> bool {
        self.stack(stack).is_some_and(|stack| stack.is_mutex)
    }

    /// Whether a thread that sleeps with this stack waits for a barrier.
    pub(super) fn is_barrier(&self, stack: u32) -> bool {
        self.stack(stack).is_some_and(|stack| stack.is_barrier)
    }

    /// The side of a read-write lock that a thread with this stack waits for, and the size of such a lock in bytes.
    pub(super) fn read_write(&self, stack: u32) -> Option<(ReadWrite, u64)> {
        self.stack(stack).and_then(|stack| stack.read_write)
    }

    /// The calls that took locks under which a thread with this stack runs.
    pub(super) fn under(&self, stack: u32) -> &[CallId] {
        self.stack(stack).map_or(&[], |stack| &stack.under)
    }
}

/// Parts of names of functions that take or release a mutex.
const MUTEXES: [&str; 3] = ["mutex", "lll_lock", "mtx_lock"];
/// Parts of names of functions that wait at a barrier.
const BARRIERS: [&str; 1] = ["barrier"];
/// Parts of other functions' names: conditions, which use a mutex, and locks with a futex word for each waiting thread.
const OTHERS: [&str; 7] =
    ["pthread_cond", "condition_variable", "condvar", "cnd_", "parking_lot", "absl::", "wtf::"];

/// Whether the name of the function, or of one inlined there, contains one of `parts`; parameters do not count.
fn names(code: &CodeFact, parts: &[&str]) -> bool {
    let is_its = |name: &str| {
        let name = name.split('(').next().unwrap_or(name).to_ascii_lowercase();
        parts.iter().any(|part| name.contains(part))
    };
    all_names(code).any(is_its)
}

/// The name of the function, and of the functions inlined at this place.
fn all_names(code: &CodeFact) -> impl Iterator<Item = &str> {
    let inlined = code.inlined.iter().map(|inlined| inlined.function.as_str());
    code.function.as_deref().into_iter().chain(inlined)
}

/// A part of running time, estimated from samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Share {
    pub(super) part: f64,
    /// Two standard errors.
    pub(super) error: f64,
}

/// The share of its running time for which each thread holds the lock, by thread index, and the share for all its users
/// together.
///
/// Samples cannot distinguish locks that the same calls take: each of these locks gets a part in proportion to its
/// number of waits.
pub(super) fn shares(timeline: &Timeline, calls: &Calls, word: &Word, words: &[Word]) -> (Vec<f64>, Share) {
    let alike = words.iter().filter(|other| other.pid == word.pid && !other.calls.is_disjoint(&word.calls));
    let waits: u64 = alike.map(|other| other.waits).sum();
    let part = word.waits as f64 / waits.max(1) as f64;
    let mine: FxHashSet<CallId> = word.calls.iter().copied().collect();
    let mut counts: Vec<(f64, f64)> = Vec::with_capacity(timeline.threads.len());
    let mut common = (0.0, 0.0);
    for (index, thread) in (0u32..).zip(&timeline.threads) {
        let mut count = (0.0, 0.0);
        if thread.pid == word.pid {
            let ticks = thread
                .samples
                .iter()
                .filter(|seen| seen.reason == SampleReason::Tick && seen.stack != NO_STACK);
            for seen in ticks {
                count.1 += 1.0;
                if calls.under(seen.stack).iter().any(|call| mine.contains(call)) {
                    count.0 += part;
                }
            }
        }
        if count.0 > 0.0 || word.threads.contains_key(&index) {
            common = (common.0 + count.0, common.1 + count.1);
        }
        counts.push(count);
    }
    if common.1 == 0.0 {
        return (vec![0.0; counts.len()], Share { part: 0.0, error: 1.0 });
    }
    let share = common.0 / common.1;
    // Agresti and Coull 1998: two successes and two failures more keep the error of a share near 0 or 1 from being 0.
    let (held, all) = (common.0 + 2.0, common.1 + 4.0);
    let error = 2.0 * (held / all * (1.0 - held / all) / all).sqrt();
    let uses = |index: usize, held: f64| held > 0.0 || word.threads.contains_key(&(index as u32));
    let own = |(index, (held, all)): (usize, (f64, f64))| match uses(index, held) {
        true => (held + COMMON * share) / (all + COMMON),
        false => 0.0,
    };
    (counts.into_iter().enumerate().map(own).collect(), Share { part: share, error })
}
