//! Facts that an account of the measured run needs in addition to the timeline, with the program's numbers: who held
//! which lock, who waited where, and which running time was only waiting.

use super::lock_replay::{Nesting, sections};
use super::naming::names;
use super::sampled::sampled_code::SampledCode;
use super::spinning::spins::{Spins, spun};
use super::{ObjectKind, Program};
use crate::event::{Effect, FunctionId, effect};
use crate::timeline::{NO_OBJECT, Timeline, Wait, WaitReason, Wake};
use rustc_hash::FxHashMap;

/// Facts about the measured run.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// Functions with probes, ascending: the program's first functions, in this order.
    functions: Vec<FunctionId>,
    /// For each thread of the timeline: its index in the program.
    pub(crate) threads: Vec<Option<u32>>,
    /// For each thread of the timeline: its accesses to objects, in order of arrival.
    pub(crate) turns: Vec<Vec<Turn>>,
    /// For each thread of the timeline: beginning and end of each stretch of spinning, ns.
    pub(crate) spins: Vec<Vec<(u64, u64)>>,
    /// Futex words that are not objects of the program: process and address → number after the program's objects.
    words: FxHashMap<(u32, u64), u32>,
    /// Devices by name: indices of their objects.
    devices: FxHashMap<String, u32>,
}

/// A thread's access to an object; times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Index in the program; futex words come after its objects.
    pub(crate) object: u32,
    pub(crate) came: u64,
    /// Time at which the thread no longer had to wait, ns.
    pub(crate) got: u64,
    /// Time at which the thread released the object, ns; equal to `got` if the object cannot be held.
    pub(crate) gave: u64,
    /// Number of accesses for which this one stands.
    pub(crate) times: u32,
}

impl Measured {
    /// Collects the facts. `program` must be made from `timeline`.
    pub(crate) fn of(timeline: &Timeline, program: &Program) -> Measured {
        let nesting = Nesting::of(timeline);
        let mut numbers = 0u32..;
        let threads =
            timeline.threads.iter().map(|thread| thread.has_lived().then(|| numbers.next()).flatten());
        let recorded = program.recorded.objects.iter().filter(|object| object.kind == ObjectKind::Futex);
        let words = recorded.zip(0u32..).filter_map(|(object, number)| {
            let address = u64::from_str_radix(object.address.strip_prefix("0x")?, 16).ok()?;
            Some(((object.pid, address), program.objects.len() as u32 + number))
        });
        let devices = program.objects.iter().zip(0u32..).skip(timeline.locks.len());
        Measured {
            functions: names::functions_used(timeline),
            threads: threads.collect(),
            turns: turns(timeline, &nesting),
            spins: spins(timeline),
            words: words.collect(),
            devices: devices.map(|(name, number)| (name.clone(), number)).collect(),
        }
    }

    /// The program's index of a function with probes.
    pub(crate) fn function(&self, id: FunctionId) -> Option<u32> {
        self.functions.binary_search(&id).ok().map(|place| place as u32)
    }

    /// The object that a wait outside of recorded operations is for; `None` if it is not known.
    pub(crate) fn awaited(&self, pid: u32, wait: &Wait) -> Option<u32> {
        if let WaitReason::Futex(futex) = wait.reason {
            return self.words.get(&(pid, futex.word)).copied();
        }
        match wait.wake {
            Wake::External(_) => self.devices.get(names::device(wait)).copied(),
            _ => None,
        }
    }
}

/// Names of the futex words that count as objects here but not in the program, in order of their numbers.
pub(crate) fn words(program: &Program) -> impl Iterator<Item = &str> {
    let words = program.recorded.objects.iter().filter(|object| object.kind == ObjectKind::Futex);
    words.map(|object| object.name.as_str())
}

fn turns(timeline: &Timeline, nesting: &Nesting) -> Vec<Vec<Turn>> {
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); timeline.threads.len()];
    for section in sections(timeline, nesting).all {
        let came = section.from.saturating_sub(section.waited);
        let used = timeline.lock_operations.get(section.taken_by() as usize);
        let times = used.map_or(1, |used| used.times.max(1));
        let turn = Turn { object: section.object, came, got: section.from, gave: section.to, times };
        turns.get_mut(section.thread as usize).into_iter().for_each(|turns| turns.push(turn));
    }
    // `once` is omitted: a thread inside it may be the one that runs the code.
    for used in timeline.lock_operations.iter().filter(|used| used.object != NO_OBJECT) {
        let waits =
            matches!(effect(used.operation), Effect::Await | Effect::Meet | Effect::TakeOne { tries: false });
        if waits && let Some(turns) = turns.get_mut(used.thread as usize) {
            let (came, gave) = (used.began.0, used.ended.0);
            turns.push(Turn { object: used.object, came, got: gave, gave, times: used.times.max(1) });
        }
    }
    turns.iter_mut().for_each(|turns| turns.sort_by_key(|turn| (turn.came, turn.got)));
    turns
}

fn spins(timeline: &Timeline) -> Vec<Vec<(u64, u64)>> {
    let marks = Spins::of(timeline, &SampledCode::of(timeline)).marks;
    marks.iter().map(|marks| spun(marks)).collect()
}
