//! The state from before the start of a recording's part that the part needs: facts, which functions have probes, and
//! stacks to which later samples may refer.

use super::merge::Merger;
use super::{FileLimits, stacks};
use engine::event::{Facts, Note, NoteKind, STACKS_AT_ONCE};
use std::collections::VecDeque;

/// Largest number of facts of one kind that are kept; the oldest ones are removed. Some programs produce facts without
/// end, such as names of generated code.
const MOST_OF_A_KIND: usize = 1 << 17;

/// Largest number of notes that are kept, without stacks.
const MOST_NOTES: usize = 1 << 16;

/// Memory of a note that is no stack, in bytes. Most notes have no list.
const NOTE_BYTES: u64 = 128;

/// The state from before the start of a recording; see the module's documentation.
#[derive(Default)]
pub struct Carried {
    facts: Merger,
    notes: VecDeque<Note>,
    /// Stacks and notes about stacks, oldest first.
    stacks: VecDeque<Note>,
    /// The highest number of a stack so far.
    latest_stack: u32,
    bytes: u64,
}

impl Carried {
    /// Adds facts, without [`Facts::end`].
    pub fn facts(&mut self, more: &Facts) {
        let all = Facts { end: None, ..more.clone() };
        // Facts beyond a file's limit are omitted here, because a file would omit them, too.
        let _ = self.facts.add(all, FileLimits::FILE.facts);
        let facts = self.facts.facts();
        let longest = facts.mappings.len().max(facts.code.len()).max(facts.addresses.len());
        if longest > MOST_OF_A_KIND {
            self.forget_oldest_facts();
        }
    }

    /// Removes a quarter more facts than needed, so that removing is rare.
    fn forget_oldest_facts(&mut self) {
        fn keep<T>(all: &mut Vec<T>) {
            let kept = MOST_OF_A_KIND - MOST_OF_A_KIND / 4;
            if all.len() > MOST_OF_A_KIND {
                all.drain(..all.len() - kept);
            }
        }
        let mut facts = std::mem::take(&mut self.facts).finish();
        keep(&mut facts.mappings);
        keep(&mut facts.code);
        keep(&mut facts.addresses);
        let _ = self.facts.add(facts, FileLimits::FILE.facts);
    }

    /// Adds a note.
    pub fn note(&mut self, note: &Note) {
        self.bytes = self.bytes.saturating_add(memory(note));
        match note.stack() {
            Some(stack) => {
                self.latest_stack = self.latest_stack.max(stack);
                self.stacks.push_back(note.clone());
            }
            None => {
                self.notes.push_back(note.clone());
                if self.notes.len() > MOST_NOTES {
                    let gone = self.notes.pop_front();
                    self.bytes = self.bytes.saturating_sub(gone.as_ref().map_or(0, memory));
                }
            }
        }
    }

    /// The highest number of a stack so far.
    pub fn latest_stack(&self) -> u32 {
        self.latest_stack
    }

    /// Memory of notes and stacks, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Removes notes that matter only before `start_ns`, and old stacks. `latest_stack` is the number of the latest
    /// stack at that time. A sample may refer to an older stack than the latest one at its arrival, so twice as many
    /// stacks stay as a sample can refer to.
    pub fn forget_before(&mut self, start_ns: u64, latest_stack: u32) {
        self.forget_stacks(latest_stack);
        self.notes.retain(|note| match note.kind {
            NoteKind::Gap { until_ns, .. } | NoteKind::EndedUnprobed { until_ns, .. } => until_ns > start_ns,
            // All other notes say which functions have probes, so they stay.
            _ => true,
        });
        self.bytes = self.stacks.iter().chain(&self.notes).map(memory).fold(0, u64::saturating_add);
    }

    /// Removes old stacks by the same rule as `Carried::forget_before`.
    pub fn forget_stacks(&mut self, latest_stack: u32) {
        let oldest = latest_stack.saturating_sub(STACKS_AT_ONCE.saturating_mul(2));
        while let Some(note) = self.stacks.front()
            && note.stack().is_some_and(|stack| stack < oldest)
        {
            self.bytes = self.bytes.saturating_sub(memory(note));
            self.stacks.pop_front();
        }
    }

    /// The facts of a recording that begins at the instant when the processes and threads of `seen` were read.
    pub fn beginning(&self, seen: &Facts) -> Facts {
        let facts = self.facts.facts();
        let is_later = seen.start_ns > facts.start_ns;
        Facts {
            start_ns: seen.start_ns,
            processes: if seen.processes.is_empty() {
                facts.processes.clone()
            } else {
                seen.processes.clone()
            },
            threads: seen.threads.clone(),
            // The launched command starts only once, so only the first part of the recording has this fact.
            launched: facts.launched.filter(|_| !is_later),
            ..facts.clone()
        }
    }

    /// The notes of a recording that begins here, up to its end.
    pub fn notes(&self, end_ns: u64) -> impl Iterator<Item = &Note> {
        self.stacks.iter().chain(self.notes.iter().filter(move |note| note.time_ns <= end_ns))
    }

    /// All notes, but only the newest stacks: these take at most `most_bytes` in a file before packing. A sample that
    /// refers to an omitted stack has an unknown stack.
    pub fn newest(&self, most_bytes: u64) -> impl Iterator<Item = &Note> {
        let (mut encoder, mut others) = (stacks::Encoder::default(), 0u64);
        let fits = |note: &&Note| {
            match &note.kind {
                NoteKind::Stack { id, pid, frames, cut } => {
                    encoder.push(note.time_ns, (*id, *pid), frames, *cut);
                }
                _ => others = others.saturating_add(NOTE_BYTES),
            }
            others.saturating_add(encoder.bytes() as u64) <= most_bytes
        };
        let newest = self.stacks.iter().rev().take_while(fits).count();
        self.stacks.iter().skip(self.stacks.len().saturating_sub(newest)).chain(&self.notes)
    }
}

fn memory(note: &Note) -> u64 {
    match &note.kind {
        NoteKind::Stack { frames, .. } => stacks::memory(frames.len()),
        NoteKind::ProbesOff { functions, .. } | NoteKind::ProbesOn { functions, .. } => {
            NOTE_BYTES.saturating_add(12 * functions.len() as u64)
        }
        _ => NOTE_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::event::{AddressFact, GapReason, ThreadFact};

    fn stack(time_ns: u64, id: u32) -> Note {
        Note { time_ns, kind: NoteKind::Stack { id, pid: 7, frames: vec![1, 2], cut: false } }
    }

    fn gap(time_ns: u64, until_ns: u64) -> Note {
        let kind = NoteKind::Gap { pid: 0, cpu: None, until_ns, lost: 1, reason: GapReason::RingFull };
        Note { time_ns, kind }
    }

    #[test]
    fn carried_stacks_and_gaps_stay_while_samples_may_need_them() {
        let mut carried = Carried::default();
        let latest = 2 * STACKS_AT_ONCE + 5;
        let off = Note { time_ns: 1, kind: NoteKind::ProbesOff { functions: vec![3], rates: vec![0] } };
        for note in [stack(1, 4), stack(1, 5), stack(9, latest), gap(1, 5), gap(2, 6), off.clone()] {
            carried.note(&note);
        }
        carried.forget_before(5, latest);
        let left: Vec<Note> = carried.notes(9).cloned().collect();
        assert_eq!(left, [stack(1, 5), stack(9, latest), gap(2, 6), off.clone()]);
        let bytes = carried.bytes();
        carried.forget_before(6, u32::MAX);
        assert_eq!(carried.notes(9).cloned().collect::<Vec<_>>(), [off]);
        assert!(carried.bytes() < bytes);
    }

    #[test]
    fn with_little_room_the_newest_stacks_are_carried() {
        let mut carried = Carried::default();
        let off = Note { time_ns: 1, kind: NoteKind::ProbesOff { functions: vec![3], rates: vec![0] } };
        let stacks: Vec<Note> = (1..=100).map(|id| stack(u64::from(id), id)).collect();
        stacks.iter().chain([&off]).for_each(|note| carried.note(note));
        let kept = |bytes| carried.newest(bytes).cloned().collect::<Vec<Note>>();
        assert_eq!((kept(0), kept(u64::MAX).len()), (vec![off.clone()], 101));
        let some = kept(200);
        assert!((10..60).contains(&some.len()), "{}", some.len());
        assert!([stacks, vec![off]].concat().ends_with(&some));
    }

    #[test]
    fn a_later_beginning_has_its_own_threads() {
        let mut carried = Carried::default();
        let thread = |tid| ThreadFact { tid, pid: 7, ..ThreadFact::default() };
        let first = Facts { start_ns: 5, threads: vec![thread(7)], launched: Some(7), ..Facts::default() };
        carried.facts(&first);
        carried.facts(&Facts { spin: vec!["wait".into()], ..Facts::default() });
        assert_eq!(carried.beginning(&first).launched, Some(7));
        let later = carried.beginning(&Facts { start_ns: 9, threads: vec![thread(8)], ..Facts::default() });
        assert_eq!((later.start_ns, later.launched, later.spin.len()), (9, None, 1));
        assert_eq!(later.threads, [thread(8)]);
    }

    #[test]
    fn carried_facts_of_one_kind_are_bounded() {
        let mut carried = Carried::default();
        let address = |address| AddressFact { pid: 7, address, ..AddressFact::default() };
        let most = MOST_OF_A_KIND as u64;
        for round in 0..6 {
            let addresses = (round * most / 2..(round + 1) * most / 2).map(address).collect();
            carried.facts(&Facts { addresses, ..Facts::default() });
        }
        let kept = carried.beginning(&Facts::default()).addresses;
        assert!(kept.len() <= MOST_OF_A_KIND);
        assert_eq!(kept.last(), Some(&address(3 * most - 1)), "the newest");
    }
}
