//! Turns recorded synchronization operations into operations of the program, which are simulated on each number of CPUs. So a
//! recording on one CPU shows the contention that eight CPUs would have.
//!
//! A recorded operation is an interval of its thread. An acquisition takes effect at its end, a release at its begin. The
//! simulation decides the waits inside, so their wake-ups make no edges: nothing is decided twice. If the object was not free
//! or a thread was woken, computing inside is the cost of waiting or waking; otherwise it is the program's work.
//!
//! The records of an object must make sense as operations of such an object (`decision`). Otherwise it is replayed (`held`
//! and `freed`, with the edges of wake-ups), and a finding names it.
//!
//! **No false deadlock.** The program can finish in the recorded order, but the simulation may choose another. With locks
//! only, taken in an order without cycles, each order finishes: a waiting thread waits for the holder of a later lock, and
//! the holder of the last one runs. With cycles, or with other waits under locks, an order may deadlock, as in the real
//! program. A try-lock never waits in reality, so it becomes no `lock` in a thread that holds another lock; a waiting thread
//! that holds nothing is in no cycle.
//!
//! The program is then simulated in each way that a command may use ([`crate::translation`]). If threads wait forever for
//! conditions, these are replayed, since their assumed counts are wrong. If only for locks, these are replayed, with a
//! finding. Then the program is simulated again, finally without any simulated lock, which cannot deadlock
//! ([`super::from_timeline`]).

mod condvar_model;
mod contention;
mod decision;
mod forced_replay;
mod join_order;
mod lowering;
mod nesting;
mod object_init;
mod sections;
mod threads;

pub use forced_replay::DeadEnd;
pub(super) use forced_replay::ForcedReplay;
pub(super) use nesting::{Begin, NONE, Nesting};
pub(super) use sections::{Section, Sections};
pub(super) use threads::{MadeThreads, made as made_threads};

use super::{EdgeId, LockFact, ObjectId, Operation, ThreadId};
use crate::finding::{Finding, Names, ReplayReason, ReplayedObject};
use crate::time::Ticks;
use crate::timeline::{self, StepKind, Timeline};
use condvar_model::{CondvarModel, UserLock, UserLocks};
use contention::Contention;
use decision::ReplayDecisions;
use join_order::JoinOrder;
use lowering::Known;
use object_init::ObjectInit;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use threads::Threads;

/// The sections of all threads: who held which lock, and when.
pub(super) fn sections(timeline: &Timeline, nesting: &Nesting) -> Sections {
    let contention = Contention::of(timeline, nesting);
    Sections::of(timeline, &contention.contended, &contention.waited)
}

/// The lowered operations of a timeline.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// The operations that replace recorded operations, in the order of the recorded operations.
    operations: Vec<Operation>,
    /// Ranges in `operations`, by recorded operation.
    ranges: Vec<OperationRange>,
    /// For each hole: range of the releases that are written there.
    holes: FxHashMap<u32, Range<u32>>,
    /// For each thread of the timeline: where its recorded operations begin.
    begins: Vec<Vec<Begin>>,
    /// For each thread and wait: whether the simulation decides the wait.
    decided: Vec<Vec<bool>>,
    /// For each wake-up: its edge if the wake-up is replayed.
    pub(super) edges: Vec<Option<EdgeId>>,
    /// Names of the edges that are numbered after those of wake-ups.
    pub(super) extra_edges: Vec<String>,
    /// Operations before all others, which set initial counts.
    pub(super) first: Vec<Operation>,
    /// For each thread of the timeline: releases at its end.
    last: Vec<Vec<Operation>>,
    /// Names of recorded objects.
    pub(super) names: Vec<String>,
    /// Facts about the recorded locks.
    pub(super) facts: Vec<LockFact>,
    /// Findings about replay.
    pub(super) findings: Vec<Finding>,
    /// Whether any operation is simulated.
    pub(super) simulates: bool,
}

/// A recorded operation's range in [`Plan::operations`].
#[derive(Clone, Copy, Debug, Default)]
struct OperationRange {
    first: u32,
    begin: u32,
    end: u32,
    muted: bool,
}

impl Plan {
    /// Makes the plan. `numbers`: index in the timeline → index in the program. Objects that `forced` has are replayed.
    pub(super) fn of(timeline: &Timeline, numbers: &FxHashMap<u32, ThreadId>, forced: &ForcedReplay) -> Plan {
        let nesting = Nesting::of(timeline);
        let contention = Contention::of(timeline, &nesting);
        let sections = Sections::of(timeline, &contention.contended, &contention.waited);
        let joined = Threads::of(timeline);
        let mut decisions = ReplayDecisions::new(timeline.locks.len());
        decisions.check_loss(timeline);
        for object in forced.objects(timeline.locks.len()) {
            decisions.replay(object, ReplayReason::Deadlock);
        }
        decisions.check_locks(timeline, &sections);
        decisions.check_wakers(timeline, &nesting, &sections, &joined);
        let object_init = ObjectInit::of(timeline, &nesting, &mut decisions);
        let joined = if forced.is_all() { Threads::default() } else { joined };
        let conditions = CondvarModel::of(timeline, &sections, &decisions, forced);
        let mut known = Known {
            timeline,
            nesting,
            contention,
            sections,
            joined,
            decisions,
            object_init,
            conditions,
            extra_edges: FxHashMap::default(),
            first_extra_edge: 0,
            join_order: JoinOrder::default(),
            numbers,
            left_out: timeline
                .findings
                .iter()
                .any(|finding| matches!(finding, Finding::OperationsLeftOut { .. })),
        };
        let made = UserLocks::of(timeline, &known.sections, |object| known.conditions.is_simulated(object));
        let mut plan = Plan { names: names(timeline, &made.all), ..Plan::default() };
        plan.decide(&mut known, forced);
        plan.write(&known, &made);
        plan.facts = facts(&known);
        plan.facts.extend(made.all.iter().map(|made| made.fact));
        plan.findings = findings(&known, &plan.names);
        plan
    }

    /// Decides which waits are simulated, and makes edges for all other waits.
    fn decide(&mut self, known: &mut Known<'_>, forced: &ForcedReplay) {
        let timeline = known.timeline;
        for (index, thread) in timeline.threads.iter().enumerate() {
            let waits = (0..thread.waits.len()).map(|wait| known.decides(index, wait));
            self.decided.push(waits.collect());
        }
        let mut number = 0;
        for (place, wakeup) in (0u32..).zip(&timeline.wakeups) {
            let decided = |wait: u32| {
                let thread = self.decided.get(wakeup.wakee as usize);
                thread.and_then(|waits| waits.get(wait as usize)).copied().unwrap_or(false)
            };
            let replayed = wakeup.ended.is_some_and(|wait| !decided(wait)) && !forced.is_cut(place);
            self.edges.push(replayed.then_some(lowering::edge(number)));
            number += usize::from(replayed);
        }
        known.first_extra_edge = number;
        let mut onces: Vec<(u32, u32)> =
            known.object_init.onces.iter().map(|(object, u)| (*object, *u)).collect();
        onces.sort_unstable();
        for (object, runner) in onces {
            if known.decisions.is_simulated(object) && known.plain_once(runner).is_none() {
                known.extra_edges.insert(object, self.extra_edges.len());
                let name = |lock: &timeline::Lock| format!("{} {:#x} #{number}", lock.kind, lock.address);
                self.extra_edges.push(timeline.locks.get(object as usize).map(name).unwrap_or_default());
                number += 1;
            }
        }
        known.join_order = JoinOrder::of(known, number);
        self.extra_edges
            .extend((0..known.join_order.edges()).map(|count| format!("join #{}", number + count)));
    }

    fn write(&mut self, known: &Known<'_>, made: &UserLocks) {
        let timeline = known.timeline;
        self.ranges = vec![OperationRange::default(); timeline.lock_operations.len()];
        let mut forgotten: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (number, section) in &known.sections.forgotten {
            forgotten.entry(*number).or_default().push(*section);
        }
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        for (index, thread) in timeline.threads.iter().enumerate() {
            let mut passed = FxHashSet::default();
            for step in &thread.steps {
                let StepKind::Operated(number) = step.kind else { continue };
                let mut lowered = known.lower(number, &mut passed);
                let first = count(self.operations.len());
                for &section in forgotten.get(&number).map_or(&[][..], Vec::as_slice) {
                    known.forget(number, section, &mut lowered);
                }
                let (held, freed) = made.marks(number);
                self.operations.extend(held);
                self.operations.extend(lowered.begin);
                let begin = count(self.operations.len()).saturating_sub(first);
                let end = count(lowered.end.len().saturating_add(usize::from(freed.is_some())));
                self.operations.extend(lowered.end);
                self.operations.extend(freed);
                if let Some(range) = self.ranges.get_mut(number as usize) {
                    *range = OperationRange { first, begin, end, muted: lowered.muted };
                }
            }
            self.last.push(known.at_end(index));
        }
        for open in known.sections.open_at_holes.chunk_by(|(one, _), (other, _)| one == other) {
            let Some((hole, _)) = open.first() else { continue };
            let first = count(self.operations.len());
            // The lock taken last is released first.
            self.operations.extend(open.iter().rev().filter_map(|(_, section)| known.give_at_hole(*section)));
            self.holes.insert(*hole, first..count(self.operations.len()));
        }
        self.begins.clone_from(&known.nesting.begins);
        let mut held: Vec<(u32, u32)> =
            known.object_init.semaphores.iter().map(|(object, count)| (*object, *count)).collect();
        held.sort_unstable();
        let held =
            held.into_iter().filter(|(object, count)| *count > 0 && known.decisions.is_simulated(*object));
        self.first.extend(held.map(|(object, count)| Operation::SemInit(ObjectId(object), count)));
        self.first.extend(&known.conditions.first);
        let marks = |operation: &Operation| matches!(operation, Operation::Held(..) | Operation::Freed(..));
        self.simulates = self.operations.iter().any(|operation| !marks(operation));
    }

    /// Ranges of indices for [`Plan::operation`] at the recorded operation's beginning and at its end. The flag says
    /// whether the computing in between counts for no function.
    pub(super) fn lowered(&self, number: u32) -> (Range<u32>, Range<u32>, bool) {
        let range = self.ranges.get(number as usize).copied().unwrap_or_default();
        let middle = range.first.saturating_add(range.begin);
        (range.first..middle, middle..middle.saturating_add(range.end), range.muted)
    }

    /// Range of [`Plan::operation`] indices at a hole.
    pub(super) fn at_hole(&self, number: u32) -> Range<u32> {
        self.holes.get(&number).cloned().unwrap_or_default()
    }

    /// An operation of the program by its index; see [`Plan::lowered`].
    pub(super) fn operation(&self, index: u32) -> Option<Operation> {
        self.operations.get(index as usize).copied()
    }

    /// Begins of operations of a thread of the timeline; removes them from the plan.
    pub(super) fn take_begins(&mut self, thread: usize) -> Vec<Begin> {
        self.begins.get_mut(thread).map(std::mem::take).unwrap_or_default()
    }

    /// Whether the simulation decides a wait of a thread of the timeline.
    pub(super) fn is_decided(&self, thread: usize, wait: u32) -> bool {
        let waits = self.decided.get(thread);
        waits.and_then(|waits| waits.get(wait as usize)).copied().unwrap_or(false)
    }

    /// Operations at the end of a thread of the timeline.
    pub(super) fn last(&self, thread: usize) -> &[Operation] {
        self.last.get(thread).map_or(&[], Vec::as_slice)
    }
}

/// Facts about each lock with acquisitions, in the order of locks.
fn facts(known: &Known<'_>) -> Vec<LockFact> {
    let mut facts: Vec<LockFact> = (0u32..)
        .zip(&known.timeline.locks)
        .map(|(object, _)| LockFact { object: ObjectId(object), ..LockFact::default() })
        .collect();
    // If releases were not recorded, it is unknown how long locks that seem to be open were held.
    let open: FxHashSet<u32> =
        known.sections.still_open().filter(|_| !known.left_out).map(Section::taken_by).collect();
    for section in known.sections.all.iter().filter(|section| !known.decisions.is_lost(section.object)) {
        let Some(fact) = facts.get_mut(section.object as usize) else { continue };
        let contended = u64::from(section.waited > 0);
        let taken_by = known.timeline.lock_operations.get(section.taken_by as usize);
        let times = taken_by.map_or(1, |used| u64::from(used.times));
        fact.acquisitions = fact.acquisitions.saturating_add(times);
        fact.contended = fact.contended.saturating_add(contended);
        let add = |to: &mut Ticks, ns: u64| to.0 = to.0.saturating_add(Ticks::from_ns(ns).0);
        let end =
            known.timeline.threads.get(section.thread as usize).map_or(section.to, |thread| thread.end.0);
        let to = if open.contains(&section.taken_by) { end } else { section.to };
        let held = to.saturating_sub(section.from);
        add(&mut fact.waited, section.waited);
        add(&mut fact.held, held);
        if section.reads {
            let reading = &mut fact.reading;
            reading.acquisitions = reading.acquisitions.saturating_add(times);
            reading.contended = reading.contended.saturating_add(contended);
            add(&mut reading.waited, section.waited);
            add(&mut reading.held, held);
        }
    }
    facts.retain(|fact| fact.acquisitions > 0);
    facts
}

/// Largest number of objects that a finding names; further ones are counted.
const NAMED: usize = 5;

/// Names of the recorded objects. A user lock's name replaces that of its condition variable.
fn names(timeline: &Timeline, made: &[UserLock]) -> Vec<String> {
    let mut names = super::naming::lock_names::names(&timeline.locks, timeline);
    for lock in made {
        let name = super::naming::lock_names::user_lock(
            timeline,
            &names,
            lock.fact.object.0,
            lock.mutex,
            lock.taken_at,
        );
        if let Some(own) = names.get_mut(lock.fact.object.0 as usize) {
            *own = name;
        }
    }
    names
}

fn findings(known: &Known<'_>, names: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let name = |object: u32| names.get(object as usize).map_or("?", String::as_str);
    let mut replayed: Vec<(ReplayReason, u32)> =
        known.decisions.replayed().map(|(object, reason)| (reason, object)).collect();
    replayed.sort_unstable();
    if !replayed.is_empty() {
        let object = |(reason, object): &(ReplayReason, u32)| ReplayedObject {
            name: name(*object).to_owned(),
            reason: *reason,
        };
        let objects = replayed.iter().take(NAMED).map(object).collect();
        findings.push(Finding::Replayed { objects, more: replayed.len().saturating_sub(NAMED) });
    }
    let own = |object: &&u32| known.decisions.is_simulated(**object);
    let named = |objects: &mut dyn Iterator<Item = &u32>| {
        let names = Names::first(NAMED, objects.map(|object| name(*object).to_owned()));
        Some(names).filter(|names| names.count() > 0)
    };
    let conditions = named(&mut known.conditions.replayed.iter().filter(own));
    findings.extend(conditions.map(|conditions| Finding::ConditionsReplayed { conditions }));
    let conditions = named(&mut known.conditions.unawaited.iter());
    findings.extend(conditions.map(|conditions| Finding::NeverAwaited { conditions }));
    findings
}
