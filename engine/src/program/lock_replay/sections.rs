//! Finds which thread held which lock, and when, from each thread's operations in its own order. A lock counts as held
//! from the return of the lock call to the beginning of the unlock call: in this time no other thread can hold it.

use super::nesting::NONE;
use crate::event::{Effect, effect};
use crate::timeline::{LockOperation, NO_OBJECT, StepKind, Thread, Timeline};
use probe_abi::{OperationFlags, SyncOperation as S};
use rustc_hash::{FxHashMap, FxHashSet};

/// Outcome of a lock call if the owner of a robust mutex died: the caller has the lock all the same.
pub(super) const EOWNERDEAD: i32 = 130;

/// A thread holds a lock. A recursive acquisition makes no further section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::program) struct Section {
    /// Index of the lock.
    pub(in crate::program) object: u32,
    pub(in crate::program) thread: u32,
    /// Index of the operation that took the lock.
    pub(super) taken_by: u32,
    /// Index of the operation that released the lock; [`NONE`]: not known.
    pub(in crate::program) given_by: u32,
    /// Times at which the lock was taken and released, ns; `to` equals `from` if the release is not known.
    pub(in crate::program) from: u64,
    pub(in crate::program) to: u64,
    /// Time for which the thread waited for the lock, ns; 0 if the lock was free.
    pub(in crate::program) waited: u64,
    pub(in crate::program) reads: bool,
    /// Taken by a try-call, while the thread held another lock.
    pub(super) tried_under_another: bool,
    /// Whether a condition wait took the lock at its end.
    pub(super) after_wait: bool,
}

impl Section {
    /// Index of the operation that took the lock.
    pub(in crate::program) fn taken_by(&self) -> u32 {
        self.taken_by
    }
}

/// The effect of an operation; `None` if it neither took nor released a lock.
pub(super) fn lock_effect(used: &LockOperation) -> Option<Effect> {
    let succeeded = used.outcome == 0 || used.outcome == EOWNERDEAD;
    let effect = effect(used.operation);
    match effect {
        Effect::Await => used.second != NO_OBJECT,
        Effect::Take { .. } | Effect::Give => succeeded,
        _ => false,
    }
    .then_some(effect)
}

/// All sections, and the operations that begin and end them.
#[derive(Clone, Debug, Default)]
pub(in crate::program) struct Sections {
    /// All sections, by thread and in the order of acquisition.
    pub(in crate::program) all: Vec<Section>,
    /// For each operation: the section that it begins.
    pub(super) taken: Vec<u32>,
    /// For each operation: the section that it ends.
    pub(super) given: Vec<u32>,
    /// Operations that follow missing ones, each with a section that was open before the missing operations.
    pub(super) forgotten: Vec<(u32, u32)>,
    /// Holes ([`StepKind::Hole`]), each with a section that was open there.
    pub(super) open_at_holes: Vec<(u32, u32)>,
    /// For each thread: sections that are open at its end.
    pub(super) open: Vec<Vec<u32>>,
    /// Releases of locks that the thread did not hold.
    pub(super) strays: Vec<u32>,
    /// Try-operations (on semaphores and joins) by threads that held a lock.
    pub(super) holding: FxHashSet<u32>,
}

/// Locks that a thread holds, each with its depth and its section. A thread may hold a table of many locks at once.
type Held = FxHashMap<u32, (u32, u32)>;

/// The open sections of a thread, in the order of acquisition.
fn sections_of(held: &Held) -> Vec<u32> {
    let mut sections: Vec<u32> = held.values().map(|(_, section)| *section).collect();
    sections.sort_unstable();
    sections
}

impl Sections {
    /// Sections that are not released before the end of their thread or of the recording.
    pub(in crate::program) fn still_open(&self) -> impl Iterator<Item = &Section> {
        self.open.iter().flatten().filter_map(|section| self.all.get(*section as usize))
    }

    /// Objects that a thread released without holding them.
    pub(in crate::program) fn stray_releases<'a>(
        &'a self,
        timeline: &'a Timeline,
    ) -> impl Iterator<Item = u32> + 'a {
        let used = |number: &u32| timeline.lock_operations.get(*number as usize).map(|used| used.object);
        self.strays.iter().filter_map(used)
    }

    /// The sections of the timeline's locks. `contended`: by operation, whether it had to wait; `waited`: how long, ns.
    pub(super) fn of(timeline: &Timeline, contended: &[bool], waited: &[u64]) -> Sections {
        let count = timeline.lock_operations.len();
        let mut sections =
            Sections { taken: vec![NONE; count], given: vec![NONE; count], ..Sections::default() };
        for thread in &timeline.threads {
            sections.thread(timeline, thread, contended, waited);
        }
        sections
    }

    fn thread(&mut self, timeline: &Timeline, thread: &Thread, contended: &[bool], waited: &[u64]) {
        let mut held = Held::default();
        for step in &thread.steps {
            let number = match step.kind {
                StepKind::Operated(number) => number,
                StepKind::Hole(hole) => {
                    let open = sections_of(&held).into_iter();
                    self.open_at_holes.extend(open.map(|section| (hole, section)));
                    held.clear();
                    continue;
                }
                _ => continue,
            };
            let Some(used) = timeline.lock_operations.get(number as usize) else { continue };
            if used.after_hole {
                // Any lock that the thread held may have been released in the hole.
                self.forgotten.extend(sections_of(&held).into_iter().map(|section| (number, section)));
                held.clear();
            }
            let of = |contended: bool, waited: u64| if contended { waited.max(1) } else { 0 };
            let index = number as usize;
            match lock_effect(used) {
                Some(Effect::Take { reads, tries }) => {
                    let waited =
                        of(contended.get(index) == Some(&true), waited.get(index).copied().unwrap_or(0));
                    self.take(&mut held, number, used, used.object, Taking { reads, tries, waited });
                }
                Some(Effect::Give) if used.object != NO_OBJECT => {
                    self.give(&mut held, number, used, used.object, false);
                }
                Some(Effect::Await) => {
                    let depth = self.give(&mut held, number, used, used.second, true);
                    let before = self.given.get(index).and_then(|&section| self.all.get(section as usize));
                    let tried = before.is_some_and(|section| section.tried_under_another);
                    self.take(&mut held, number, used, used.second, Taking::default());
                    let taken = self.taken.get(index).copied().unwrap_or(NONE);
                    if let Some(section) = self.all.get_mut(taken as usize) {
                        section.tried_under_another = tried;
                    }
                    if let Some((again, _)) = held.get_mut(&used.second) {
                        *again = depth.max(1);
                    }
                }
                _ => {
                    let effect = effect(used.operation);
                    let tries =
                        matches!(effect, Effect::TakeOne { tries: true } | Effect::Join { tries: true });
                    if tries && !held.is_empty() {
                        self.holding.insert(number);
                    }
                }
            }
        }
        self.open.push(sections_of(&held));
    }

    fn take(&mut self, held: &mut Held, number: u32, used: &LockOperation, object: u32, taking: Taking) {
        if object == NO_OBJECT {
            return;
        }
        if let Some((depth, before)) = held.get_mut(&object) {
            let recursive = used.flags & OperationFlags::RECURSIVE != 0
                || used.flags & OperationFlags::KIND_KNOWN == 0 && used.operation != S::SpinLock;
            if recursive {
                *depth = depth.saturating_add(1);
                return;
            }
            // Taken twice though not recursive: its release was not recorded.
            self.forgotten.push((number, *before));
            held.remove(&object);
        }
        let section = u32::try_from(self.all.len()).unwrap_or(NONE);
        self.all.push(Section {
            object,
            thread: used.thread,
            taken_by: number,
            given_by: NONE,
            from: used.ended.0,
            to: used.ended.0,
            waited: taking.waited,
            reads: taking.reads,
            tried_under_another: taking.tries && !held.is_empty(),
            after_wait: used.object != object,
        });
        held.insert(object, (1, section));
        if let Some(taken) = self.taken.get_mut(number as usize) {
            *taken = section;
        }
    }

    /// Releases a lock once, or at all depths if `whole`. Returns the depth before that.
    fn give(&mut self, held: &mut Held, number: u32, used: &LockOperation, object: u32, whole: bool) -> u32 {
        // A lock taken before the recording began is not in `held`.
        let Some((times, section)) = held.get_mut(&object) else {
            if !whole {
                self.strays.push(number);
            }
            return 0;
        };
        let (depth, section) = (*times, *section);
        *times = depth.saturating_sub(1);
        if *times == 0 || whole {
            held.remove(&object);
            if let Some(section) = self.all.get_mut(section as usize) {
                section.given_by = number;
                section.to = used.began.0.max(section.from);
            }
            if let Some(given) = self.given.get_mut(number as usize) {
                *given = section;
            }
        }
        depth
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Taking {
    reads: bool,
    tries: bool,
    waited: u64,
}
