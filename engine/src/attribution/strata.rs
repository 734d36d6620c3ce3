//! Groups compute operations that are alike into strata: the operations of a stratum share their samples.

use super::keys::{Keys, NO_KEY};
use crate::program::RunBreaks;
use crate::program::{FunctionRef, ObjectId, Operation, Program, Sample, Thread};
use crate::time::Ticks;
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Expected samples in a stratum: enough for proportions, few enough for one phase of the program.
const EXPECTED: f64 = 16.0;
/// Least number of samples for a stratum to be divided; with fewer samples its time stays undivided.
const FEWEST: usize = 2;

/// No stratum: the time is not divided.
pub(crate) const NO_STRATUM: u32 = u32::MAX;

/// Strata of a program.
#[derive(Debug, Default)]
pub(crate) struct Strata {
    /// Number of the stratum, by thread and operation; empty without samples.
    slots: Vec<Vec<u32>>,
    pub(crate) strata: Vec<Stratum>,
    /// Pairs of a view's number and its number of samples; each stratum has a range of these pairs.
    seen: Vec<(u32, u32)>,
    views: Vec<View>,
    /// Compute time of operations that belong to a stratum.
    pub(crate) divided: Ticks,
    pub(crate) undivided: Ticks,
}

/// Compute time whose samples count together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stratum {
    /// The row that gets the time without samples.
    pub(crate) top: u32,
    /// Number of samples.
    pub(crate) samples: u32,
    seen: (u32, u32),
}

/// What a sampled stack shows in addition to the functions with probes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    /// The innermost row.
    pub(crate) own: u32,
    /// All rows on the stack that are not open as probed functions, each once.
    pub(crate) within: Vec<u32>,
}

impl Strata {
    pub(crate) fn of(program: &Program, keys: &Keys) -> Strata {
        let samples = &program.samples;
        let computed = program.threads.iter().flat_map(|thread| &thread.operations).filter_map(computes);
        let total = computed.fold(0u64, |sum, length| sum.saturating_add(length.0));
        if samples.is_empty() || total == 0 {
            return Strata::default();
        }
        let wanted = EXPECTED * total as f64 / samples.count() as f64;
        let mut gatherer = Gatherer {
            keys,
            wanted: if wanted >= u64::MAX as f64 { u64::MAX } else { (wanted as u64).max(1) },
            chunks: Vec::new(),
            views: Views::of(program, keys),
            seen: Vec::new(),
            open: vec![0; keys.len()],
        };
        let mut slots = Vec::with_capacity(program.threads.len());
        let mut left: Vec<(u32, u32)> = Vec::new();
        for (index, thread) in program.threads.iter().enumerate() {
            let (of_thread, rest) = gatherer.thread(thread, samples.of_thread(index));
            slots.push(of_thread);
            let by_function = rest.into_iter().map(|((top, _), chunk)| (top, chunk));
            left.extend(gatherer.pool(by_function.collect()));
        }
        // Threads that live for less than a stratum are joined by length: threads that compute for about as long
        // probably do the same work.
        let alike =
            left.into_iter().map(|(top, chunk)| ((top, gatherer.length_class(chunk)), chunk)).collect();
        let left = gatherer.pool(alike).into_iter().map(|((top, _), chunk)| (top, chunk)).collect();
        // The remaining threads have no other stratum to join: the number of their samples decides whether they are
        // divided.
        gatherer.pool::<u32>(left);
        let mut strata = gatherer.finish(slots);
        for (index, thread) in program.threads.iter().enumerate() {
            for (number, operation) in thread.operations.iter().enumerate() {
                let Some(length) = computes(operation) else { continue };
                let slot = strata.slot(index, number);
                let sum = if slot == NO_STRATUM { &mut strata.undivided } else { &mut strata.divided };
                sum.0 = sum.0.saturating_add(length.0);
            }
        }
        strata
    }

    /// The stratum of an operation.
    #[inline]
    pub(crate) fn slot(&self, thread: usize, operation: usize) -> u32 {
        let of_thread = self.slots.get(thread);
        of_thread.and_then(|slots| slots.get(operation)).copied().unwrap_or(NO_STRATUM)
    }

    /// The sampled views of a stratum, with their counts.
    pub(crate) fn seen(&self, stratum: &Stratum) -> impl Iterator<Item = (&View, u32)> {
        let range = stratum.seen.0 as usize..stratum.seen.1 as usize;
        let seen = self.seen.get(range).unwrap_or_default();
        seen.iter().filter_map(|&(view, count)| self.views.get(view as usize).map(|view| (view, count)))
    }
}

/// How long a compute operation lasts; `None` for any other operation.
pub(super) fn computes(operation: &Operation) -> Option<Ticks> {
    match *operation {
        Operation::Exec(length) | Operation::ExecIn(_, length) | Operation::Once(_, length) => Some(length),
        _ => None,
    }
}

/// The context of a run: codes of the operations before and after it, and the lock held.
type Surrounding = (u64, u64, Option<ObjectId>);

/// Compute time of one thread that becomes a stratum or a part of one.
#[derive(Clone, Debug)]
struct Chunk {
    top: u32,
    length: u64,
    /// Number of the chunk that this chunk was joined to; its own number if it was not joined.
    into: u32,
}

struct Gatherer<'a> {
    keys: &'a Keys,
    /// Wanted length of a stratum, ticks.
    wanted: u64,
    chunks: Vec<Chunk>,
    views: Views,
    /// Samples as pairs of chunk and view.
    seen: Vec<(u32, u32)>,
    /// For each row: how many of its functions' calls are open.
    open: Vec<u32>,
}

type Kind = (u32, Surrounding);

impl Gatherer<'_> {
    /// The chunks of a thread's operations, and those chunks that are too short although no full chunk of their kind
    /// exists.
    fn thread(&mut self, thread: &Thread, samples: &[Sample]) -> (Vec<u32>, Vec<(Kind, u32)>) {
        let mut slots = vec![NO_STRATUM; thread.operations.len()];
        let mut filling: FxHashMap<Kind, u32> = FxHashMap::default();
        let mut full: FxHashMap<Kind, u32> = FxHashMap::default();
        let mut samples = samples.iter().peekable();
        let mut stack = Vec::new();
        let mut breaks = Breaks::of(thread);
        let mut held: Option<ObjectId> = None;
        for (index, operation) in thread.operations.iter().enumerate() {
            breaks.pass(index);
            match *operation {
                Operation::Call(function) => self.enter(function, &mut stack),
                Operation::Return => self.leave(&mut stack),
                Operation::Held(object, _) => held = Some(object),
                Operation::Freed(object, _) if held == Some(object) => held = None,
                _ => {}
            }
            let Some(length) = computes(operation) else { continue };
            let inside = match *operation {
                Operation::ExecIn(function, _) => Some(function),
                _ => None,
            };
            let top = inside.or(stack.last().copied()).map_or(NO_KEY, |function| self.keys.own(function));
            let kind = (top, breaks.around(held));
            let chunk = *filling.entry(kind).or_insert_with(|| new_chunk(&mut self.chunks, top));
            if let Some(slot) = slots.get_mut(index) {
                *slot = chunk;
            }
            if let Some(function) = inside {
                self.enter(function, &mut stack);
            }
            while let Some(sample) = samples.next_if(|sample| sample.operation as usize <= index) {
                if sample.operation as usize == index {
                    let view = self.views.number(sample.stack, top, &self.open);
                    self.seen.push((chunk, view));
                }
            }
            if inside.is_some() {
                self.leave(&mut stack);
            }
            if self.grown(chunk, length.0) {
                filling.remove(&kind);
                full.insert(kind, chunk);
            }
        }
        while !stack.is_empty() {
            self.leave(&mut stack);
        }
        (slots, self.join_full(filling, &full))
    }

    /// Joins each chunk that is too short to the last full chunk of its kind. Returns the short chunks whose kind has
    /// no full one.
    fn join_full<K: Copy + Eq + Hash>(
        &mut self,
        short: FxHashMap<K, u32>,
        full: &FxHashMap<K, u32>,
    ) -> Vec<(K, u32)> {
        let mut rest: Vec<(K, u32)> = short.into_iter().collect();
        rest.sort_unstable_by_key(|(_, chunk)| *chunk);
        rest.retain(|(kind, chunk)| match full.get(kind) {
            Some(last) => {
                self.put(*chunk, *last);
                false
            }
            None => true,
        });
        rest
    }

    /// The length of a chunk's computing, in classes of half an octave.
    fn length_class(&self, chunk: u32) -> u32 {
        let length = self.chunks.get(chunk as usize).map_or(1, |chunk| chunk.length.max(1));
        let octave = length.ilog2();
        2 * octave + u32::from((length >> octave.saturating_sub(1)) & 1 == 1)
    }

    /// Joins chunks of the same kind, in their order. Returns the chunks that are too short even after that.
    fn pool<K: Copy + Eq + Hash>(&mut self, chunks: Vec<(K, u32)>) -> Vec<(K, u32)> {
        let mut filling: FxHashMap<K, u32> = FxHashMap::default();
        let mut full: FxHashMap<K, u32> = FxHashMap::default();
        for (kind, chunk) in chunks {
            let into = *filling.entry(kind).or_insert(chunk);
            let is_full = if into == chunk { self.grown(chunk, 0) } else { self.put(chunk, into) };
            if is_full {
                filling.remove(&kind);
                full.insert(kind, into);
            }
        }
        self.join_full(filling, &full)
    }

    /// Adds to a chunk's length; returns whether it is long enough now.
    fn grown(&mut self, chunk: u32, length: u64) -> bool {
        let Some(chunk) = self.chunks.get_mut(chunk as usize) else { return false };
        chunk.length = chunk.length.saturating_add(length);
        chunk.length >= self.wanted
    }

    fn put(&mut self, chunk: u32, into: u32) -> bool {
        let Some(put) = self.chunks.get_mut(chunk as usize) else { return false };
        put.into = into;
        let length = put.length;
        self.grown(into, length)
    }

    fn enter(&mut self, function: FunctionRef, stack: &mut Vec<FunctionRef>) {
        stack.push(function);
        if let Some(open) = self.open.get_mut(self.keys.opened_by(function) as usize) {
            *open = open.saturating_add(1);
        }
    }

    fn leave(&mut self, stack: &mut Vec<FunctionRef>) {
        let Some(function) = stack.pop() else { return };
        if let Some(open) = self.open.get_mut(self.keys.opened_by(function) as usize) {
            *open = open.saturating_sub(1);
        }
    }

    /// Numbers the strata and counts the samples in each.
    fn finish(mut self, mut slots: Vec<Vec<u32>>) -> Strata {
        // Chunks may have been joined in chains: each gets the last one of its chain.
        for chunk in 0..self.chunks.len() {
            let mut into = self.chunks[chunk].into;
            while let Some(next) = self.chunks.get(into as usize).filter(|next| next.into != into) {
                into = next.into;
            }
            self.chunks[chunk].into = into;
        }
        let into: Vec<u32> = self.chunks.iter().map(|chunk| chunk.into).collect();
        let end = |chunk: u32| into.get(chunk as usize).copied().unwrap_or(NO_STRATUM);
        self.seen.iter_mut().for_each(|(chunk, _)| *chunk = end(*chunk));
        self.seen.sort_unstable();
        let mut strata = Strata { views: self.views.list, ..Strata::default() };
        let mut numbers = vec![NO_STRATUM; self.chunks.len()];
        for seen in self.seen.chunk_by(|a, b| a.0 == b.0) {
            let Some(chunk) = seen.first().and_then(|(chunk, _)| self.chunks.get(*chunk as usize)) else {
                continue;
            };
            if seen.len() < FEWEST {
                continue;
            }
            let from = strata.seen.len() as u32;
            strata.seen.extend(
                seen.chunk_by(|a, b| a == b)
                    .filter_map(|same| same.first().map(|(_, view)| (*view, same.len() as u32))),
            );
            if let Some(number) = numbers.get_mut(chunk.into as usize) {
                *number = strata.strata.len() as u32;
            }
            let range = (from, strata.seen.len() as u32);
            strata.strata.push(Stratum { top: chunk.top, samples: seen.len() as u32, seen: range });
        }
        for slot in slots.iter_mut().flatten().filter(|slot| **slot != NO_STRATUM) {
            *slot = numbers.get(end(*slot) as usize).copied().unwrap_or(NO_STRATUM);
        }
        strata.slots = slots;
        strata
    }
}

fn new_chunk(chunks: &mut Vec<Chunk>, top: u32) -> u32 {
    // Cannot overflow: `Program::check` allows fewer operations.
    let number = u32::try_from(chunks.len()).unwrap_or(NO_STRATUM);
    chunks.push(Chunk { top, length: 0, into: number });
    number
}

/// Views of sampled stacks, each with a number.
struct Views {
    /// For each stack: its innermost row, and all its rows without repetition.
    stacks: Vec<(u32, Vec<u32>)>,
    numbers: FxHashMap<View, u32>,
    list: Vec<View>,
}

impl Views {
    fn of(program: &Program, keys: &Keys) -> Views {
        let samples = &program.samples;
        let mut last: Vec<u32> = vec![0; keys.len()];
        let stacks = (1u32..).zip(0..samples.stacks.len()).map(|(stamp, stack)| {
            let rows = samples.stack(stack as u32).map(|(place, _)| keys.of_place(place));
            let rows: Vec<u32> = rows.collect();
            let own = rows.first().copied().unwrap_or(NO_KEY);
            let each = rows.into_iter().filter(|row| {
                let last = last.get_mut(*row as usize);
                last.is_some_and(|last| std::mem::replace(last, stamp) != stamp)
            });
            (own, each.collect())
        });
        Views { stacks: stacks.collect(), numbers: FxHashMap::default(), list: Vec::new() }
    }

    fn number(&mut self, stack: u32, top: u32, open: &[u32]) -> u32 {
        let empty = (NO_KEY, Vec::new());
        let (own, rows) = self.stacks.get(stack as usize).unwrap_or(&empty);
        let is_open = |row: &u32| open.get(*row as usize).is_some_and(|open| *open > 0);
        let view = View {
            own: if *own == NO_KEY { top } else { *own },
            within: rows.iter().copied().filter(|row| !is_open(row)).collect(),
        };
        if let Some(number) = self.numbers.get(&view) {
            return *number;
        }
        let number = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(view.clone());
        self.numbers.insert(view, number);
        number
    }
}

/// The operations of a thread that separate its runs of compute operations.
struct Breaks<'a> {
    thread: &'a Thread,
    /// Code of the last separating operation that was passed.
    before: u64,
    after: u64,
    next: usize,
}

impl<'a> Breaks<'a> {
    fn of(thread: &'a Thread) -> Breaks<'a> {
        let mut breaks = Breaks { thread, before: 0, after: 0, next: 0 };
        breaks.advance(0);
        breaks
    }

    fn advance(&mut self, from: usize) {
        let rest = self.thread.operations.iter().enumerate().skip(from);
        let next = rest.map(|(index, operation)| (index, code(operation))).find(|(_, code)| *code != 0);
        (self.next, self.after) = next.unwrap_or((usize::MAX, 0));
    }

    /// Moves on to this operation.
    fn pass(&mut self, index: usize) {
        if index == self.next {
            self.before = self.after;
            self.advance(index + 1);
        }
    }

    fn around(&self, held: Option<ObjectId>) -> Surrounding {
        (self.before, self.after, held)
    }
}

/// A code for an operation that ends a run, equal for operations that are alike; 0 for an operation inside a run.
fn code(operation: &Operation) -> u64 {
    // `RunBreaks` decides which operations start a run.
    let mut breaks = RunBreaks::default();
    breaks.starts_run(&Operation::Exec(Ticks(0)));
    breaks.starts_run(operation);
    if !breaks.starts_run(&Operation::Exec(Ticks(0))) {
        return 0;
    }
    let (kind, object) = match *operation {
        Operation::Signal(object) => (1, object.0),
        Operation::Wait(object) => (2, object.0),
        Operation::Lock(object) => (3, object.0),
        Operation::Unlock(object) => (4, object.0),
        Operation::ReadLock(object) => (5, object.0),
        Operation::WriteLock(object) => (6, object.0),
        Operation::ReadWriteUnlock(object) => (7, object.0),
        Operation::SpinLock(object) => (8, object.0),
        Operation::SpinUnlock(object) => (9, object.0),
        Operation::Barrier(object, _) => (10, object.0),
        Operation::CondWait(object, _) => (11, object.0),
        Operation::CondSignal(object) => (12, object.0),
        Operation::CondBroadcast(object) => (13, object.0),
        Operation::SemInit(object, _) => (14, object.0),
        Operation::SemWait(object) => (15, object.0),
        Operation::SemPost(object) => (16, object.0),
        Operation::Once(object, _) => (17, object.0),
        Operation::Io(object, _) => (18, object.0),
        Operation::Create(_) => (19, 0),
        Operation::Join(_) => (20, 0),
        Operation::Sleep(_) => (21, 0),
        Operation::SleepUntil(_) => (22, 0),
        Operation::SleepNext(_) => (26, 0),
        Operation::Release(_) => (23, 0),
        Operation::Await(_) => (24, 0),
        Operation::Exec(_)
        | Operation::ExecIn(..)
        | Operation::Call(_)
        | Operation::Return
        | Operation::Held(..)
        | Operation::Freed(..) => (25, 0),
    };
    (kind << 32) | u64::from(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::Grouping;
    use crate::program::{Function, Place, PlaceId};

    /// Many threads run a short or a long branch, and each has one sample or none. Time of long branches must not go to short
    /// ones.
    #[test]
    fn short_threads_share_samples_with_threads_that_compute_as_long() {
        let function = |name: &str| Function { name: name.to_owned(), ..Function::default() };
        let mut program =
            Program { functions: vec![function("short"), function("long")], ..Program::default() };
        let place = |number| Place { function: FunctionRef(number), line: None, inlined: false };
        program.samples.places = vec![place(0), place(1)];
        program.samples.stacks = vec![vec![PlaceId(0)], vec![PlaceId(1)]];
        for number in 0..64u32 {
            let kind = number % 2;
            let length = Ticks::from_ns(if kind == 0 { 1_000_000 } else { 4_000_000 + u64::from(number) });
            program.threads.push(Thread { operations: vec![Operation::Exec(length)], ..Thread::default() });
            let is_sampled = kind == 1 || number % 8 == 0;
            let sample = is_sampled.then_some(Sample { operation: 0, stack: kind });
            program.samples.threads.push(sample.into_iter().collect());
        }
        let strata = Strata::of(&program, &Keys::of(&program, Grouping::Function));
        for thread in 0..64 {
            let slot = strata.slot(thread, 0);
            assert_ne!(slot, NO_STRATUM, "{thread}");
            let seen: Vec<u32> =
                strata.seen(&strata.strata[slot as usize]).map(|(view, _)| view.own).collect();
            assert_eq!(seen, [(thread % 2) as u32], "{thread}");
        }
    }
}
