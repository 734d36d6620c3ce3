//! Assigns samples to threads and stacks.

use super::model::{InKernel, NO_STACK, Stack, StackSample, Thread};
use super::thread::thread_tracker::{RunState, ThreadTracker};
use crate::event::{CodeMap, CodeNames, Facts, Note, NoteKind, frame_address};
use crate::time::Timestamp;
use probe_abi::{Sample, SampleFlags, SampleReason};
use rustc_hash::{FxHashMap, FxHashSet};

/// The stacks of a recording, and the index of each by its number.
#[derive(Clone, Debug, Default)]
pub(super) struct Stacks {
    pub(super) all: Vec<Stack>,
    numbers: FxHashMap<u32, u32>,
    /// Indices of stacks that have more frames than were recorded.
    cut: FxHashSet<u32>,
}

impl Stacks {
    /// Collects the stacks of the notes. Numbers are unique; in a malformed recording the first stack with a number
    /// counts.
    pub(super) fn new(notes: &[Note]) -> Stacks {
        let mut stacks = Stacks::default();
        for note in notes {
            let NoteKind::Stack { id, pid, frames, cut } = &note.kind else { continue };
            let Ok(next) = u32::try_from(stacks.all.len()) else { break };
            if let std::collections::hash_map::Entry::Vacant(free) = stacks.numbers.entry(*id) {
                free.insert(next);
                if *cut {
                    stacks.cut.insert(next);
                }
                let frames = frames.clone();
                stacks.all.push(Stack {
                    pid: *pid,
                    time: Timestamp(note.time_ns),
                    frames,
                    ..Stack::default()
                });
            }
        }
        for note in notes {
            let (NoteKind::Changed { stack, .. } | NoteKind::InKernel { stack, .. }) = note.kind else {
                continue;
            };
            let number = stacks.numbers.get(&stack);
            let Some(stack) = number.and_then(|number| stacks.all.get_mut(*number as usize)) else {
                continue;
            };
            match note.kind {
                NoteKind::Changed { address, access, .. } => stack.changed = Some((address, access)),
                NoteKind::InKernel { call, .. } => stack.in_kernel = Some(InKernel { call }),
                _ => {}
            }
        }
        stacks
    }

    /// Adds a sample to its thread, which is the one with the sample's thread id. A sample shows where in its code a thread
    /// was, but proves no state.
    pub(super) fn sample(&self, sample: &Sample, thread: &mut ThreadTracker) {
        let header = &sample.header;
        let Some(reason) = SampleReason::from_byte(sample.reason) else { return };
        let stack = self.numbers.get(&sample.stack).copied().unwrap_or(NO_STACK);
        if thread.out.pid == header.pid && thread.state != RunState::Dead {
            thread.out.samples.push(StackSample {
                time: Timestamp(header.time_ns),
                stack,
                reason,
                truncated: sample.flags & SampleFlags::TRUNCATED != 0 || self.cut.contains(&stack),
            });
        }
    }
}

/// Gives a sample its own copy of a stack if code at the stack's addresses changed between the note and the sample.
/// Returns all stacks.
///
/// A number stands for the same addresses during the whole recording, but names of code are looked up by the stack's
/// time.
pub(super) fn split_by_time(threads: &mut [Thread], mut stacks: Vec<Stack>, facts: &Facts) -> Vec<Stack> {
    let names = CodeNames::of(&facts.code);
    if names.never_change() {
        return stacks;
    }
    let map = CodeMap::of(facts);
    let changes = |stack: &Stack| {
        let places =
            stack.frames.iter().enumerate().filter_map(|(index, address)| {
                map.at(stack.pid, frame_address(index, *address), stack.time.0)
            });
        let mut changes: Vec<u64> =
            places.flat_map(|(mapping, offset)| names.changes(mapping, offset)).collect();
        changes.sort_unstable();
        changes
    };
    let changes: Vec<Vec<u64>> = stacks.iter().map(changes).collect();
    let mut others: FxHashMap<(u32, usize), u32> = FxHashMap::default();
    for sample in threads.iter_mut().flat_map(|thread| &mut thread.samples) {
        let Some(changes) = changes.get(sample.stack as usize) else { continue };
        let Some(stack) = stacks.get(sample.stack as usize) else { continue };
        let by = |time: Timestamp| changes.partition_point(|&change| change <= time.0);
        if by(sample.time) == by(stack.time) {
            continue;
        }
        let Ok(next) = u32::try_from(stacks.len()) else { break };
        let other = *others.entry((sample.stack, by(sample.time))).or_insert(next);
        if other == next {
            let stack = Stack { time: sample.time, ..stack.clone() };
            stacks.push(stack);
        }
        sample.stack = other;
    }
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{CodeFact, MappingFact, jit_code};

    /// If a just-in-time compiler puts a function at the address of an earlier one, samples of both must not share a
    /// stack and a name.
    #[test]
    fn samples_of_an_address_that_was_used_again_have_stacks_of_their_time() {
        let code = |since_ns| CodeFact { path: jit_code(7), offset: 0x1010, since_ns, ..CodeFact::default() };
        let mapping = MappingFact {
            pid: 7,
            start: 0x1000,
            end: 0x2000,
            file_offset: 0x1000,
            path: jit_code(7),
            ..MappingFact::default()
        };
        let facts = Facts { mappings: vec![mapping], code: vec![code(0), code(50)], ..Facts::default() };
        let stack =
            |frame, time| Stack { pid: 7, time: Timestamp(time), frames: vec![frame], ..Stack::default() };
        let stacks = vec![stack(0x1010, 10), stack(0x1018, 10), stack(0x1010, 60)];
        let sample = |time, stack| StackSample {
            time: Timestamp(time),
            stack,
            reason: SampleReason::Tick,
            truncated: false,
        };
        let samples = [(10, 0), (49, 0), (50, 0), (70, 0), (70, 1), (70, 2), (40, 2), (70, NO_STACK)];
        let samples = samples.map(|(time, stack)| sample(time, stack)).to_vec();
        let mut threads = [Thread { samples, ..Thread::default() }];
        let stacks = split_by_time(&mut threads, stacks, &facts);
        let numbers: Vec<u32> = threads[0].samples.iter().map(|sample| sample.stack).collect();
        assert_eq!(numbers, [0, 0, 3, 3, 1, 2, 4, NO_STACK]);
        assert_eq!(stacks[3..], [stack(0x1010, 50), stack(0x1010, 40)]);
    }
}
