//! Call stacks with their computing. Operations give the probed functions, samples the functions below them, as in a
//! report ([`crate::attribution`]): the time of a stratum is divided among the stacks of its samples. So a function's
//! self time, summed over stacks, equals that of its row in a report. The same holds for its total time, unless a
//! stratum has stacks of different callers: there a report counts a caller from a sample and one from probes
//! separately, while a stack contains the function once.

use crate::attribution::{Attribution, Grouping, NO_STRATUM};
use crate::cpus::Cpus;
use crate::critical_path::{CallTree, OwnSum, Weights};
use crate::predict::{PathFacts, Timing, Visitor};
use crate::program::{FunctionRef, ObjectId, Operation, PlaceId, Program};
use crate::report::{WaitRow, wait_rows};
use crate::time::Ticks;
use rustc_hash::{FxHashMap, FxHashSet};

/// A function on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// The function.
    pub function: FunctionRef,
    /// The place in the function that samples show; `None` if only probes show the function.
    pub place: Option<PlaceId>,
}

/// A call stack of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// Index in [`Program::threads`].
    pub thread: u32,
    /// The outermost function first; empty if none is known.
    pub frames: Vec<Frame>,
    /// CPU time, nanoseconds.
    pub cpu_ns: f64,
    /// Its part of the predicted time, nanoseconds, for each CPU count in the order of [`Stacks::on`]. May be negative for a
    /// program that runs ideally.
    pub owed_ns: Vec<f64>,
}

/// A CPU count with the predicted time on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighed {
    /// The CPU count.
    pub cpus: Cpus,
    /// The predicted time, nanoseconds.
    pub time_ns: f64,
    /// The part of the time that is not computed, by kind, as in a report.
    pub waits: Vec<WaitRow>,
}

/// All call stacks of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stacks {
    /// Each stack once, in order of threads, then of frames.
    pub stacks: Vec<Stack>,
    /// The CPU counts, in the order asked.
    pub on: Vec<Weighed>,
}

/// Stacks in the making, as [`crate::report::Builder`] for a report: calls of [`StackBuilder::at`] are independent of each
/// other.
#[derive(Debug)]
pub struct StackBuilder<'a> {
    timing: &'a Timing<'a>,
    attribution: Attribution,
    tree: CallTree,
}

/// The part of the result for one CPU count.
#[derive(Debug)]
pub struct StackPart {
    on: Weighed,
    owed: Vec<(OwnSum, f64)>,
}

impl<'a> StackBuilder<'a> {
    /// Prepares the stacks of a program on a machine.
    pub fn new(timing: &'a Timing<'a>) -> StackBuilder<'a> {
        let program = timing.program();
        let attribution = Attribution::of(program, Grouping::Function);
        StackBuilder { timing, attribution, tree: CallTree::of(program) }
    }

    /// Computes the parts for these CPU counts.
    pub fn at(&self, cpus: &[Cpus]) -> Vec<StackPart> {
        let mut parts = self.parts();
        self.timing.weigh(cpus, &mut parts);
        parts.parts
    }

    /// A visitor that collects the parts.
    pub(super) fn parts(&self) -> Parts<'_, 'a> {
        Parts { builder: self, parts: Vec::new() }
    }

    /// All stacks; `parts` are for the CPU counts asked for, in any order.
    pub fn conclude(&self, cpus: &[Cpus], parts: Vec<StackPart>) -> Stacks {
        let ordered = cpus.iter().filter_map(|cpus| parts.iter().find(|part| part.on.cpus == *cpus));
        let ordered: Vec<&StackPart> = ordered.collect();
        let mut sums: FxHashMap<OwnSum, (f64, Vec<f64>)> = FxHashMap::default();
        let none = || (0.0, vec![0.0; ordered.len()]);
        for (own, ticks) in self.computed() {
            sums.entry(own).or_insert_with(none).0 += Ticks(ticks).as_ns_f64();
        }
        for (place, part) in ordered.iter().enumerate() {
            for (own, ns) in &part.owed {
                if let Some(owed) = sums.entry(*own).or_insert_with(none).1.get_mut(place) {
                    *owed += ns;
                }
            }
        }
        let mut sums: Vec<(OwnSum, (f64, Vec<f64>))> = sums.into_iter().collect();
        sums.sort_unstable_by_key(|(own, _)| *own);
        let stacks = Spread::of(self).all(sums);
        Stacks { stacks, on: ordered.iter().map(|part| part.on.clone()).collect() }
    }

    /// CPU time of all operations. A `once` counts in the first thread of the list that reaches it.
    fn computed(&self) -> FxHashMap<OwnSum, u64> {
        let mut sums: FxHashMap<OwnSum, u64> = FxHashMap::default();
        let mut onces: FxHashSet<ObjectId> = FxHashSet::default();
        for (index, thread) in self.timing.program().threads.iter().enumerate() {
            let mut node = 0;
            for (place, operation) in thread.operations.iter().enumerate() {
                let (length, node) = match *operation {
                    Operation::Exec(length) => (length, node),
                    Operation::Once(object, length) if onces.insert(object) => (length, node),
                    Operation::ExecIn(function, length) => (length, self.tree.below(node, function)),
                    Operation::Call(function) => {
                        node = self.tree.below(node, function);
                        continue;
                    }
                    Operation::Return => {
                        node = self.tree.above(node);
                        continue;
                    }
                    _ => continue,
                };
                let stratum = self.attribution.strata.slot(index, place);
                let sum = sums.entry(OwnSum { thread: index as u32, node, stratum }).or_insert(0);
                *sum = sum.saturating_add(length.0);
            }
        }
        sums
    }
}

/// A visitor that makes parts of stacks.
pub(super) struct Parts<'b, 'a> {
    builder: &'b StackBuilder<'a>,
    pub(super) parts: Vec<StackPart>,
}

impl Visitor for Parts<'_, '_> {
    fn visit<const N: usize>(&mut self, weights: &Weights<'_, N>, paths: &[PathFacts]) {
        let sums = weights.by_stack(&self.builder.attribution, &self.builder.tree);
        for path in paths {
            let waits = wait_rows(self.builder.timing.program(), path);
            let on = Weighed { cpus: path.cpus, time_ns: path.time_ns, waits };
            let owed =
                sums.iter().map(|(own, sum)| (*own, path.mean(|place| weights.owed_ns(sum, place)).ns));
            self.parts.push(StackPart { on, owed: owed.collect() });
        }
    }
}

/// A sampled stack and the probed functions open at the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Sampled {
    /// Number of the stack in the program's samples.
    stack: u32,
    /// Node of the open probed functions in the [`CallTree`].
    open: u32,
}

/// Divides the time of strata among the stacks of their samples.
struct Spread<'b> {
    program: &'b Program,
    tree: &'b CallTree,
    /// For each stratum: its samples, with their counts.
    seen: FxHashMap<u32, Vec<(Sampled, u32)>>,
    /// Number of the frames, by the node of probed functions and the sample.
    frames: FxHashMap<(u32, Option<Sampled>), u32>,
    numbers: FxHashMap<Vec<Frame>, u32>,
    lists: Vec<Vec<Frame>>,
}

impl<'b> Spread<'b> {
    fn of(builder: &'b StackBuilder<'_>) -> Spread<'b> {
        let program = builder.timing.program();
        let mut counts: FxHashMap<(u32, Sampled), u32> = FxHashMap::default();
        for (index, (thread, samples)) in program.threads.iter().zip(&program.samples.threads).enumerate() {
            let mut samples = samples.iter().peekable();
            let mut node = 0;
            for (place, operation) in thread.operations.iter().enumerate() {
                let open = match *operation {
                    Operation::ExecIn(function, _) => builder.tree.below(node, function),
                    Operation::Call(function) => {
                        node = builder.tree.below(node, function);
                        node
                    }
                    Operation::Return => {
                        node = builder.tree.above(node);
                        node
                    }
                    _ => node,
                };
                let stratum = builder.attribution.strata.slot(index, place);
                while let Some(sample) = samples.next_if(|sample| sample.operation as usize <= place) {
                    if stratum != NO_STRATUM {
                        *counts.entry((stratum, Sampled { stack: sample.stack, open })).or_insert(0) += 1;
                    }
                }
            }
        }
        let mut seen: FxHashMap<u32, Vec<(Sampled, u32)>> = FxHashMap::default();
        for ((stratum, sampled), count) in counts {
            seen.entry(stratum).or_default().push((sampled, count));
        }
        seen.values_mut().for_each(|stacks| stacks.sort_unstable());
        Spread {
            program,
            tree: &builder.tree,
            seen,
            frames: FxHashMap::default(),
            numbers: FxHashMap::default(),
            lists: Vec::new(),
        }
    }

    fn all(mut self, sums: Vec<(OwnSum, (f64, Vec<f64>))>) -> Vec<Stack> {
        let mut totals: FxHashMap<(u32, u32), (f64, Vec<f64>)> = FxHashMap::default();
        let seen = std::mem::take(&mut self.seen);
        for (own, (cpu_ns, owed_ns)) in sums {
            let stacks = seen.get(&own.stratum).map_or(&[][..], Vec::as_slice);
            let samples: u64 = stacks.iter().map(|(_, count)| u64::from(*count)).sum();
            let mut add = |list: u32, share: f64| {
                let total =
                    totals.entry((own.thread, list)).or_insert_with(|| (0.0, vec![0.0; owed_ns.len()]));
                total.0 += cpu_ns * share;
                total.1.iter_mut().zip(&owed_ns).for_each(|(total, owed)| *total += owed * share);
            };
            if samples == 0 {
                add(self.list(own.node, None), 1.0);
            }
            for (sampled, count) in stacks {
                add(self.list(own.node, Some(*sampled)), f64::from(*count) / samples as f64);
            }
        }
        let lists = self.lists;
        let stacks = totals.into_iter().map(|((thread, list), (cpu_ns, owed_ns))| {
            let frames = lists.get(list as usize).cloned().unwrap_or_default();
            Stack { thread, frames, cpu_ns, owed_ns }
        });
        let mut stacks: Vec<Stack> = stacks.collect();
        stacks.sort_by(|a, b| a.thread.cmp(&b.thread).then_with(|| a.frames.cmp(&b.frames)));
        stacks
    }

    /// The number of the list of frames that combines these probed functions with the functions of the sample. Probed
    /// functions that were open at the sample but are not in `node` are known not to be open, and are omitted, as in a
    /// report.
    fn list(&mut self, node: u32, seen: Option<Sampled>) -> u32 {
        if let Some(list) = self.frames.get(&(node, seen)) {
            return *list;
        }
        let probed = self.tree.functions(node);
        let mut elsewhere = seen.map_or(Vec::new(), |seen| self.tree.functions(seen.open));
        elsewhere.retain(|function| !probed.contains(function));
        let stack = seen.into_iter().flat_map(|seen| self.program.samples.stack(seen.stack).rev());
        let mut sampled: Vec<Frame> =
            stack.map(|(id, place)| Frame { function: place.function, place: Some(id) }).collect();
        if let Some(innermost) = sampled.pop() {
            sampled.retain(|frame| !elsewhere.contains(&frame.function));
            sampled.push(innermost);
        }
        let frames = merged(&probed, sampled);
        let list = match self.numbers.get(&frames) {
            Some(list) => *list,
            None => {
                let next = self.lists.len() as u32;
                self.lists.push(frames.clone());
                self.numbers.insert(frames, next);
                next
            }
        };
        self.frames.insert((node, seen), list);
        list
    }
}

/// Adds the open probed functions to a sample's stack. A function that the sample does not show lies inside the one before
/// it, outermost first. The innermost function is the sample's.
fn merged(probed: &[FunctionRef], sampled: Vec<Frame>) -> Vec<Frame> {
    let has_leaf = !sampled.is_empty();
    let mut frames = sampled;
    let mut inside = 0;
    for function in probed {
        let found = frames.iter().skip(inside).position(|frame| frame.function == *function);
        match found {
            Some(further) => inside += further + 1,
            None if frames.iter().any(|frame| frame.function == *function) => {}
            None => {
                // The function is not inserted as the innermost frame, which is the sample's.
                let place = inside.min(frames.len().saturating_sub(usize::from(has_leaf)));
                frames.insert(place, Frame { function: *function, place: None });
                inside = place + 1;
            }
        }
    }
    frames
}
