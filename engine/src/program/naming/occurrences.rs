//! Single waits, lock sections and stretches of spinning of a recording, named as in reports.

use crate::program::Program;
use crate::program::lock_replay::{NONE, Nesting, Sections, sections};
use crate::program::recorded::{EnteredAgain, ended_by, is_idle, wait_name};
use crate::program::sampled::sampled_code::SampledCode;
use crate::program::spinning::spins::{Spins, spun};
use crate::time::Timestamp;
use crate::timeline::{NO_OBJECT, Timeline};
use rustc_hash::FxHashSet;
use std::sync::OnceLock;

/// Single events that a report sums up: the waits add up to its `waits`, the lock sections to its `locks`.
#[derive(Debug)]
pub struct Occurrences<'a> {
    timeline: &'a Timeline,
    nesting: Nesting,
    sections: Sections,
    /// Locks with a row in reports, by index in [`Timeline::locks`].
    listed: FxHashSet<u32>,
    /// For each thread of the timeline: beginning and end of each stretch of spinning, ascending. Found when asked for.
    spins: OnceLock<Vec<Vec<(Timestamp, Timestamp)>>>,
    again: EnteredAgain,
}

/// What a wait was for, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaitWords {
    /// The name of such waits in reports, e.g. `mutex lock` or `pipe read`.
    pub name: &'static str,
    /// The thread waited for work.
    pub idle: bool,
    /// Index in [`Timeline::locks`] of the object that the wait was for, if it was inside an operation on one.
    pub object: Option<u32>,
    /// What ended the wait, e.g. `thread` or `timer`.
    pub ended_by: &'static str,
}

/// A thread holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockSection {
    /// Index in [`Timeline::locks`].
    pub object: u32,
    /// Index in [`Timeline::threads`].
    pub thread: u32,
    /// Time at which the lock was taken.
    pub from: Timestamp,
    /// Time at which the lock was released; equal to `from` if that is not known.
    pub to: Timestamp,
    /// Time for which the thread waited for the lock, ns; 0 if the lock was free.
    pub waited_ns: u64,
    /// Held for reading.
    pub reads: bool,
    /// Its release was recorded.
    pub given_back: bool,
}

impl<'a> Occurrences<'a> {
    /// Finds the occurrences in a timeline. `program` must be made from the same timeline.
    pub fn of(timeline: &'a Timeline, program: &Program) -> Occurrences<'a> {
        let nesting = Nesting::of(timeline);
        let sections = sections(timeline, &nesting);
        let listed = program.locks.iter().map(|fact| fact.object.0).collect();
        let again = EnteredAgain::of(timeline, &nesting);
        Occurrences { timeline, nesting, sections, listed, spins: OnceLock::new(), again }
    }

    /// The wait with this index of the thread with this index.
    pub fn wait(&self, thread: usize, number: u32) -> Option<WaitWords> {
        let of = self.timeline.threads.get(thread)?;
        let wait = of.waits.get(number as usize)?;
        let used = self.nesting.operation(self.timeline, thread, number);
        let operation = used.map(|used| used.operation);
        Some(WaitWords {
            name: wait_name(self.timeline, of.pid, wait, operation),
            idle: is_idle(wait, operation) && !self.again.contains(thread, number),
            object: used.map(|used| used.object).filter(|object| *object != NO_OBJECT),
            ended_by: ended_by(wait),
        })
    }

    /// Sections of all locks with a row in reports, by thread, in the order of acquisition.
    pub fn lock_sections(&self) -> impl Iterator<Item = LockSection> + '_ {
        let listed = self.sections.all.iter().filter(|section| self.listed.contains(&section.object));
        listed.map(|section| LockSection {
            object: section.object,
            thread: section.thread,
            from: Timestamp(section.from),
            to: Timestamp(section.to),
            waited_ns: section.waited,
            reads: section.reads,
            given_back: section.given_by != NONE,
        })
    }

    /// Begins and ends of spinning of the thread with this index, ascending and without overlap.
    pub fn spins(&self, thread: usize) -> &[(Timestamp, Timestamp)] {
        let spins = self.spins.get_or_init(|| stretches_of_spinning(self.timeline));
        spins.get(thread).map_or(&[], Vec::as_slice)
    }
}

fn stretches_of_spinning(timeline: &Timeline) -> Vec<Vec<(Timestamp, Timestamp)>> {
    let found = Spins::of(timeline, &SampledCode::of(timeline));
    let of_thread = found.marks.iter().map(|marks| {
        let spun = spun(marks).into_iter().filter(|(from, to)| from < to);
        spun.map(|(from, to)| (Timestamp(from), Timestamp(to))).collect()
    });
    of_thread.collect()
}
