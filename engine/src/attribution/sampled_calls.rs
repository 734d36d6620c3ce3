//! Writes functions that samples show as calls, for analyses that change or follow single operations.

use super::strata::{NO_STRATUM, computes};
use super::{Attribution, Grouping, NO_KEY, divide, part};
use crate::finding::Finding;
use crate::program::{FunctionRef, Move, Operation, Program, Samples, Thread};
use crate::time::Ticks;
use std::iter::Peekable;

/// The program with its compute time divided among calls of the functions that samples show, and without samples.
/// Nothing else changes. Each operation computes as long as before, so the program runs as before on any number of
/// CPUs. Each probed function keeps its total time.
///
/// A stratum (see the module) is divided as in a report. An operation at least as long as the time of one sample gets a
/// part for each function. A shorter one goes as a whole to the function that is furthest behind its share of the
/// samples. (This method is longpole's own. The sum over a stratum is off by at most one such operation, and the
/// program does not grow by the number of functions for each operation.) So the sums are a report's, with its ±. Which
/// function a short operation belongs to is not known; a finding says so. The program has passed [`Program::check`].
pub fn with_sampled_calls(mut program: Program) -> Program {
    if program.samples.is_empty() {
        return program;
    }
    let attribution = Attribution::of(&program, Grouping::Function);
    let mut strata = strata_of(&program, &attribution);
    let mut threads = std::mem::take(&mut program.threads);
    for (index, thread) in threads.iter_mut().enumerate() {
        let mut writer = Writer {
            attribution: &attribution,
            strata: &mut strata,
            thread: index,
            operations: Vec::with_capacity(thread.operations.len()),
            moves: Vec::with_capacity(thread.moves.len()),
            stack: Vec::new(),
            repeats_from: None,
            repeats_until: None,
        };
        writer.write(thread);
        let Writer { operations, moves, repeats_from, repeats_until, .. } = writer;
        if let Some(background) = &mut thread.background {
            background.repeats_from = repeats_from.unwrap_or(operations.len()) as u32;
            background.repeats_until = repeats_until.unwrap_or(operations.len()) as u32;
        }
        (thread.operations, thread.moves) = (operations, moves);
    }
    program.threads = threads;
    program.findings.extend(said(&program));
    program.samples = Samples::default();
    program
}

fn said(program: &Program) -> Option<Finding> {
    let sampled = program.samples.places.iter().filter(|place| {
        let function = program.functions.get(place.function.0 as usize);
        function.is_some_and(|function| function.sampled)
    });
    let mut sampled: Vec<FunctionRef> = sampled.map(|place| place.function).collect();
    sampled.sort_unstable();
    sampled.dedup();
    (!sampled.is_empty())
        .then(|| Finding::SpelledOut { functions: sampled.len(), samples: program.samples.count() })
}

/// A stratum whose operations are being distributed among functions.
struct Giving {
    /// Ticks of the stratum as a whole, and of its operations to which time was distributed so far.
    whole: u64,
    given: u64,
    samples: u32,
    parts: Vec<Part>,
}

struct Part {
    key: u32,
    own: u32,
    own_before: u32,
    given: u64,
}

impl Giving {
    /// Distributes the stratum's next operation: appends pieces that add up to it.
    fn give(&mut self, length: u64, pieces: &mut Vec<(u32, u64)>) {
        self.given = self.given.saturating_add(length);
        let Giving { whole, given, samples, parts } = self;
        if length >= *whole / u64::from(*samples).max(1) {
            for of in parts {
                let end = part(i128::from(length), of.own_before.saturating_add(of.own), *samples);
                let start = part(i128::from(length), of.own_before, *samples);
                let piece = u64::try_from(end - start).unwrap_or(0);
                of.given = of.given.saturating_add(piece);
                if piece > 0 {
                    pieces.push((of.key, piece));
                }
            }
            return;
        }
        let behind = |of: &Part| part(i128::from(*given), of.own, *samples) - i128::from(of.given);
        let Some(of) = parts.iter_mut().rev().max_by_key(|of| behind(of)) else { return };
        of.given = of.given.saturating_add(length);
        pieces.push((of.key, length));
    }
}

fn strata_of(program: &Program, attribution: &Attribution) -> Vec<Giving> {
    let Attribution { keys, strata } = attribution;
    let giving = strata.strata.iter().map(|stratum| Giving {
        whole: 0,
        given: 0,
        samples: stratum.samples,
        parts: divide(keys, strata, stratum)
            .into_iter()
            .map(|share| Part { key: share.key, own: share.own, own_before: share.own_before, given: 0 })
            .collect(),
    });
    let mut giving: Vec<Giving> = giving.collect();
    for (index, thread) in program.threads.iter().enumerate() {
        for (number, operation) in thread.operations.iter().enumerate() {
            if let Some(length) = computes(operation)
                && let Some(of) = giving.get_mut(strata.slot(index, number) as usize)
            {
                of.whole = of.whole.saturating_add(length.0);
            }
        }
    }
    giving
}

struct Writer<'a> {
    attribution: &'a Attribution,
    strata: &'a mut [Giving],
    thread: usize,
    operations: Vec<Operation>,
    moves: Vec<Move>,
    stack: Vec<FunctionRef>,
    /// Index in the output of the first operation that the thread repeats; `None` until it is written.
    repeats_from: Option<usize>,
    /// Index in the output after the last operation that the thread repeats; `None` until it is written.
    repeats_until: Option<usize>,
}

impl Writer<'_> {
    fn write(&mut self, thread: &Thread) {
        let mut moves = thread.moves.iter().peekable();
        let mut pieces = Vec::new();
        for (index, operation) in thread.operations.iter().enumerate() {
            let first = self.operations.len();
            if thread.background.is_some_and(|background| background.repeats_from as usize == index) {
                self.repeats_from = Some(first);
            }
            if thread.background.is_some_and(|background| background.repeats_until as usize == index) {
                self.repeats_until = Some(first);
            }
            match *operation {
                Operation::Exec(length) => {
                    let top = self.stack.last().copied();
                    self.divide(index, length, &mut pieces);
                    self.compute(&pieces, top);
                }
                Operation::ExecIn(function, length) => {
                    self.divide(index, length, &mut pieces);
                    let own = self.attribution.keys.own(function);
                    if pieces.iter().all(|(key, _)| *key == own || *key == NO_KEY) {
                        self.operations.push(*operation);
                    } else {
                        self.operations.push(Operation::Call(function));
                        self.compute(&pieces, Some(function));
                        self.operations.push(Operation::Return);
                    }
                }
                other => {
                    match other {
                        Operation::Call(function) => self.stack.push(function),
                        Operation::Return => drop(self.stack.pop()),
                        _ => {}
                    }
                    self.operations.push(other);
                }
            }
            self.follow(index, first, &mut moves);
        }
    }

    fn divide(&mut self, index: usize, length: Ticks, pieces: &mut Vec<(u32, u64)>) {
        pieces.clear();
        let slot = self.attribution.strata.slot(self.thread, index);
        if slot != NO_STRATUM
            && let Some(giving) = self.strata.get_mut(slot as usize)
        {
            giving.give(length.0, pieces);
        }
        if pieces.is_empty() {
            pieces.push((NO_KEY, length.0));
        }
    }

    fn compute(&mut self, pieces: &[(u32, u64)], top: Option<FunctionRef>) {
        let own = top.map_or(NO_KEY, |function| self.attribution.keys.own(function));
        self.operations.extend(pieces.iter().map(|&(key, length)| {
            let length = Ticks(length);
            // In rows of functions, a row's number is the function's.
            if key == own || key == NO_KEY {
                Operation::Exec(length)
            } else {
                Operation::ExecIn(FunctionRef(key), length)
            }
        }));
    }

    /// Splits moves between CPUs within one operation into moves within the pieces of that operation.
    fn follow<'m>(
        &mut self,
        index: usize,
        first: usize,
        moves: &mut Peekable<impl Iterator<Item = &'m Move>>,
    ) {
        if moves.peek().is_none_or(|moved| moved.operation as usize > index) {
            return;
        }
        // Compute pieces, each with the offset of its start in the operation.
        let mut pieces: Vec<(u32, u64)> = Vec::new();
        let mut before = 0u64;
        for (number, operation) in (first..).zip(self.operations.get(first..).unwrap_or_default()) {
            if let (Some(length), Ok(number)) = (computes(operation), u32::try_from(number)) {
                pieces.push((number, before));
                before = before.saturating_add(length.0);
            }
        }
        while let Some(moved) = moves.next_if(|moved| moved.operation as usize <= index) {
            let next = pieces.partition_point(|(_, start)| *start <= moved.after.0);
            if let Some((operation, start)) = next.checked_sub(1).and_then(|at| pieces.get(at)) {
                let after = Ticks(moved.after.0.saturating_sub(*start));
                self.moves.push(Move { operation: *operation, after, cpu: moved.cpu });
            }
        }
    }
}
