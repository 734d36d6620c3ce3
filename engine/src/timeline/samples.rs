//! Samples find their threads and stacks.

use super::builder::Builder;
use super::model::{NO_STACK, Stack, StackSample};
use super::thread_tracker::RunState;
use crate::event::{Note, NoteKind};
use crate::time::Timestamp;
use probe_abi::{Sample, SampleFlags, SampleReason};
use rustc_hash::{FxHashMap, FxHashSet};

/// The recording's stacks by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Stacks {
    pub(super) all: Vec<Stack>,
    numbers: FxHashMap<u32, u32>,
    /// Indices of those that go on above their last frame.
    cut: FxHashSet<u32>,
}

impl Stacks {
    /// As the notes have them. No number is used twice; in a malformed recording the first one counts.
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
                stacks.all.push(Stack { pid: *pid, time: Timestamp(note.time_ns), frames });
            }
        }
        stacks
    }
}

impl Builder {
    /// Evidence of where a thread was in its code, and of nothing else.
    pub(super) fn sample(&mut self, sample: &Sample) {
        let header = &sample.header;
        let Some(reason) = SampleReason::from_byte(sample.reason) else { return };
        let stack = self.stacks.numbers.get(&sample.stack).copied().unwrap_or(NO_STACK);
        // A thread that occurs nowhere else is not invented.
        let Some(&index) = self.live.get(&header.tid) else { return };
        let Some(thread) = self.threads.get_mut(index as usize) else { return };
        if thread.out.pid == header.pid && thread.state != RunState::Dead {
            thread.out.samples.push(StackSample {
                time: Timestamp(header.time_ns),
                stack,
                reason,
                truncated: sample.flags & SampleFlags::TRUNCATED != 0 || self.stacks.cut.contains(&stack),
            });
        }
    }
}
