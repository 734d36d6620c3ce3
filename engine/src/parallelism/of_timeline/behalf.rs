//! On whose behalf threads work, as far as the recording shows it (1989, section 3.3: a thread has its creator's profile
//! stack). Probes tell what was open when a thread was created. What only samples know was open if the sample at the waking
//! of the new thread has it, or those before and after it in their outermost frames; before the first sample, what all
//! samples of the creator have in common there. A thread that another one wakes while it waits for something to do (for a
//! condition, a semaphore, a futex, a pipe, not for a lock) works for that one until it waits so again: what a pool does is
//! done for who submitted it, and an OpenMP region for its function. Who was created by the woken thread only answers it.
//! Only the author's functions are taken over, and none that threads have on their own stacks anyway.

use crate::attribution::{Keys, NO_KEY, is_standard};
use crate::program::Program;
use crate::time::Timestamp;
use crate::timeline::{Birth, NO_STACK, Seen, Thread, Timeline};
use probe_abi::SampleReason;
use rustc_hash::FxHashSet;

/// Samples of a creator that are compared, at most.
const COMPARED: usize = 64;
/// Frames that are taken over, at most.
const DEEPEST: usize = 64;

/// Parts of names of functions that wake threads to work: of the C library, Rust's, C++'s, and of OpenMP's libraries.
const SUBMITS: [&str; 10] = [
    "pthread_cond_",
    "cnd_signal",
    "cnd_broadcast",
    "sem_post",
    "ondvar",
    "condition_variable",
    "unpark",
    "gomp_team_start",
    "GOMP_parallel",
    "__kmp",
];

/// The rows of stacks of a recording.
pub(super) struct Stacks<'a> {
    pub(super) program: &'a Program,
    pub(super) keys: &'a Keys,
}

impl Stacks<'_> {
    /// The author's functions on a stack, the outermost first.
    fn rows(&self, stack: u32) -> Vec<u32> {
        let places = self.program.samples.stack(stack).filter(|(_, place)| {
            let function = self.program.functions.get(place.function.0 as usize);
            function.is_some_and(|function| !is_standard(function, None) && !function.name.starts_with('['))
        });
        let mut rows: Vec<u32> = places.map(|(place, _)| self.keys.of_place(place)).collect();
        rows.retain(|row| *row != NO_KEY);
        rows.reverse();
        rows
    }

    /// Whether a thread that wakes another one at this instant was seen in a function that hands work over.
    pub(super) fn submits(&self, thread: &Thread, time: Timestamp) -> bool {
        let from = thread.samples.partition_point(|seen| seen.time < time);
        let at = thread.samples.get(from..).unwrap_or_default().iter().take_while(|seen| seen.time == time);
        let seen = at.filter(|seen| seen.reason == SampleReason::Wake).map(|seen| seen.stack).next();
        let functions = seen.into_iter().flat_map(|stack| self.program.samples.stack(stack));
        let functions =
            functions.filter_map(|(_, place)| self.program.functions.get(place.function.0 as usize));
        let mut names = functions.map(|function| function.name.as_str());
        names.any(|name| SUBMITS.iter().any(|part| name.contains(part)))
    }

    /// What was open on a thread's stack at this instant, the outermost first.
    pub(super) fn open_at(&self, thread: &Thread, time: Timestamp) -> Vec<u32> {
        let whole = |seen: &&Seen| seen.stack != NO_STACK && !seen.truncated;
        let later = thread.samples.partition_point(|seen| seen.time < time);
        let (before, after) = thread.samples.split_at(later);
        let mut rows = match after.iter().find(|seen| seen.time == time && seen.reason == SampleReason::Wake)
        {
            Some(seen) if whole(&seen) => self.rows(seen.stack),
            _ => {
                let before = before.iter().rev().find(whole);
                let most = if before.is_some() { 1 } else { COMPARED };
                let mut stacks = before.into_iter().chain(after.iter().filter(whole).take(most));
                let first = stacks.next().map_or(Vec::new(), |seen| self.rows(seen.stack));
                let mut stacks = stacks.peekable();
                // One sample alone does not tell what was open at another instant.
                let is_known = stacks.peek().is_some();
                let common = stacks.fold(first, |common, seen| {
                    let other = self.rows(seen.stack);
                    let same = common.iter().zip(&other).take_while(|(a, b)| a == b).count();
                    common.into_iter().take(same).collect()
                });
                if is_known { common } else { Vec::new() }
            }
        };
        rows.truncate(DEEPEST);
        rows
    }
}

/// All rows that were seen on the stacks of threads other than the first: they have them anyway.
pub(super) fn own_rows(timeline: &Timeline, program: &Program, keys: &Keys) -> FxHashSet<u32> {
    let samples = timeline.threads.iter().skip(1).flat_map(|thread| &thread.samples);
    let stacks: FxHashSet<u32> = samples.map(|seen| seen.stack).filter(|stack| *stack != NO_STACK).collect();
    let places = stacks.into_iter().flat_map(|stack| program.samples.stack(stack));
    places.map(|(place, _)| keys.of_place(place)).collect()
}

/// Whether a thread of the timeline has created another, or one that created it, and so on.
pub(super) fn is_ancestor(timeline: &Timeline, ancestor: usize, of: usize) -> bool {
    let mut at = of;
    // A hostile recording may go round in circles.
    for _ in 0..DEEPEST {
        match timeline.threads.get(at).map(|thread| thread.birth) {
            Some(Birth::By(parent)) if parent as usize == ancestor => return true,
            Some(Birth::By(parent)) => at = parent as usize,
            _ => return false,
        }
    }
    false
}
