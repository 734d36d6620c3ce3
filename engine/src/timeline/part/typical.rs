//! Finds the part of a recording that is most like the whole.
//!
//! Records are compared in stretches, so most of a large file need not be decoded: some stretches represent the whole
//! recording, and a few represent each candidate part.

use crate::event::{Note, NoteKind, Recording};
use crate::timeline::extent;
use crate::timeline::operation_count::OperationCount;
use probe_abi::Record;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::convert::Infallible;
use std::ops::Range;

/// Number of stretches that a recording in memory is cut into.
const STRETCHES: usize = 512;

/// Code addresses within the same block of two to the power of this number of bytes count as one place.
const CODE_SHIFT: u32 = 8;

/// A run of neighbouring records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordStretch {
    /// Number of records.
    pub records: u64,
    /// Time of the stretch's first record (`CLOCK_MONOTONIC` nanoseconds).
    pub first_ns: u64,
    /// Time of the stretch's last record (`CLOCK_MONOTONIC` nanoseconds).
    pub last_ns: u64,
}

/// How many stretches are decoded in order to choose a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Number of stretches that represent the complete recording.
    pub of_all: usize,
    /// Candidate parts.
    pub parts: usize,
    /// Stretches that represent each candidate.
    pub of_each: usize,
}

impl Effort {
    /// Effort for stretches that must be read and decoded: takes a second, whatever the size of the recording.
    pub const FEW: Effort = Effort { of_all: 24, parts: 8, of_each: 2 };
    /// Effort for stretches in memory.
    pub const MANY: Effort = Effort { of_all: 512, parts: 512, of_each: 64 };
}

/// Requirements for [`typical_among`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Largest number of records in the part; fewer if records stand for several operations each.
    pub most: u64,
    /// Length of the complete recording, nanoseconds.
    pub length_ns: u64,
    /// Limits for the search.
    pub effort: Effort,
}

/// The part that was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Typical {
    /// Indices of the part's stretches.
    pub stretches: Range<usize>,
    /// How much the part differs from the complete recording, from 0 to 1.
    ///
    /// The larger of two numbers: the share of the part's records with other kinds, locks and code; and the difference
    /// of the records per second, relative to the sum of both rates.
    pub apart: f64,
}

/// The part with at most `most` records that is most like a recording in memory: its start, its end and [`Typical::apart`].
///
/// `None`: the recording has at most twice as many records.
pub fn typical(recording: &Recording, most: usize) -> Option<(u64, u64, f64)> {
    let events = &recording.events;
    if most == 0 {
        return None;
    }
    let each = events.len().div_ceil(STRETCHES).clamp(1, most);
    let of = |records: &[Record]| {
        let (first, last) = (records.first()?.header().time_ns, records.last()?.header().time_ns);
        Some(RecordStretch { records: records.len() as u64, first_ns: first, last_ns: last })
    };
    let all: Vec<RecordStretch> = events.chunks(each).filter_map(of).collect();
    let starts: Vec<usize> = (0..all.len()).collect();
    let (begin_ns, end_ns) = extent(recording);
    let wanted = Wanted { most: most as u64, length_ns: end_ns - begin_ns, effort: Effort::MANY };
    let census = Census::new(&recording.notes);
    let found = typical_among(&all, &starts, wanted, census, |number, count| {
        events.chunks(each).nth(number).into_iter().for_each(count);
        Ok::<(), Infallible>(())
    });
    let Typical { stretches, apart } = found.ok()??;
    let (first, last) = (all.get(stretches.start)?, all.get(stretches.end.checked_sub(1)?)?);
    Some((first.first_ns, last.last_ns, apart))
}

/// The part with at most [`Wanted::most`] records that is most like the whole recording.
///
/// It begins with one of the stretches `starts` (ascending). `records` passes the records of a stretch to a function. `None`:
/// no part may begin anywhere, or the whole has at most twice as many records, so that a part would save little.
///
/// # Errors
/// Errors of `records`.
pub fn typical_among<E>(
    all: &[RecordStretch],
    starts: &[usize],
    Wanted { most, length_ns, effort }: Wanted,
    census: Census,
    records: impl FnMut(usize, &mut dyn FnMut(&[Record])) -> Result<(), E>,
) -> Result<Option<Typical>, E> {
    let before: Vec<u64> = std::iter::once(0)
        .chain(all.iter().scan(0u64, |sum, stretch| {
            *sum = sum.saturating_add(stretch.records);
            Some(*sum)
        }))
        .collect();
    let total = before.last().copied().unwrap_or(0);
    let mut seen = Seen { census, operations: OperationCount::default(), known: BTreeMap::new(), records };
    let of_all = seen.counts(evenly(all.len(), effort.of_all))?;
    let most = (most as f64 / seen.operations.for_each_record()) as u64;
    let parts: Vec<Range<usize>> =
        starts.iter().filter_map(|&start| part_from(&before, start, most)).collect();
    if total <= most.saturating_mul(2) || parts.is_empty() {
        return Ok(None);
    }
    let rate = total as f64 / length_ns.max(1) as f64;
    let of_part = |part: &Range<usize>, counts: &Counts| {
        let apart = counts.apart(&of_all);
        all.get(part.clone()).map_or(1.0, |part| apart.max(rates_apart(self::rate(part), rate)))
    };
    let mut best: Option<(f64, &Range<usize>)> = None;
    for part in evenly(parts.len(), effort.parts).filter_map(|number| parts.get(number)) {
        let counts = seen.counts(evenly(part.len(), effort.of_each).map(|number| part.start + number))?;
        let apart = of_part(part, &counts);
        if best.is_none_or(|(best, _)| apart < best) {
            best = Some((apart, part));
        }
    }
    let Some((_, part)) = best else { return Ok(None) };
    let apart = of_part(part, &seen.counts(part.clone())?);
    Ok(Some(Typical { stretches: part.clone(), apart }))
}

/// Counts of the stretches decoded so far.
struct Seen<R> {
    census: Census,
    operations: OperationCount,
    /// Counts of each stretch that was decoded, by its index.
    known: BTreeMap<usize, Counts>,
    /// Passes the records of a stretch to a function.
    records: R,
}

impl<R> Seen<R> {
    /// Counts of all records in these stretches, added up.
    fn counts<E>(&mut self, stretches: impl Iterator<Item = usize>) -> Result<Counts, E>
    where
        R: FnMut(usize, &mut dyn FnMut(&[Record])) -> Result<(), E>,
    {
        let mut sum = Counts::default();
        for number in stretches {
            let counts = match self.known.entry(number) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let mut counts = Counts::default();
                    let (census, operations) = (&mut self.census, &mut self.operations);
                    (self.records)(number, &mut |records| {
                        census.count(records, &mut counts);
                        operations.count(records);
                    })?;
                    unknown.insert(counts)
                }
            };
            sum.add(counts);
        }
        Ok(sum)
    }
}

/// The stretches from `start` on that together have at most `most` records; at least one stretch.
///
/// `None` if the recording ends before the part has half of `most`. `before`: number of records before each stretch,
/// and last the number of all records.
fn part_from(before: &[u64], start: usize, most: u64) -> Option<Range<usize>> {
    let first = *before.get(start)?;
    let end = before.partition_point(|records| records - first.min(*records) <= most) - 1;
    let end = end.max(start + 1);
    let records = before.get(end)? - first;
    (records >= most / 2 || end + 1 < before.len()).then_some(start..end)
}

/// At most `wanted` indices below `of`, at equal distances, including the first and the last one.
fn evenly(of: usize, wanted: usize) -> impl Iterator<Item = usize> {
    let count = of.min(wanted);
    (0..count).map(move |number| if count == 1 { 0 } else { number * (of - 1) / (count - 1) })
}

/// Records per nanosecond.
fn rate(stretches: &[RecordStretch]) -> f64 {
    let records: u64 = stretches.iter().map(|stretch| stretch.records).sum();
    let first = stretches.iter().map(|stretch| stretch.first_ns).min().unwrap_or(0);
    let last = stretches.iter().map(|stretch| stretch.last_ns).max().unwrap_or(0);
    records as f64 / last.saturating_sub(first).max(1) as f64
}

fn rates_apart(here: f64, all: f64) -> f64 {
    if here + all > 0.0 { (here - all).abs() / (here + all) } else { 0.0 }
}

/// Numbers for what records are about.
#[derive(Clone, Debug, Default)]
pub struct Census {
    numbers: FxHashMap<Feature, usize>,
    /// Innermost address of each stack.
    leaves: FxHashMap<u32, u64>,
}

impl Census {
    /// A census without samples yet. `notes` have the stacks that samples refer to.
    pub fn new(notes: &[Note]) -> Census {
        let stacks = notes.iter().filter_map(|note| match &note.kind {
            NoteKind::Stack { id, frames, .. } => Some((*id, *frames.first()?)),
            _ => None,
        });
        Census { numbers: FxHashMap::default(), leaves: stacks.collect() }
    }

    fn count(&mut self, records: &[Record], counts: &mut Counts) {
        for record in records {
            let feature = self.feature(record);
            let next = self.numbers.len();
            let number = *self.numbers.entry(feature).or_insert(next);
            *counts.of.entry(number).or_insert(0) += 1;
            counts.all += 1;
        }
    }

    fn feature(&self, record: &Record) -> Feature {
        let header = record.header();
        let about = match record {
            Record::Operation(operation) => operation.object,
            Record::Burst(burst) => burst.object,
            Record::FunctionEnter(call) => u64::from(call.function),
            Record::Sample(sample) => self.leaves.get(&sample.stack).copied().unwrap_or(0) >> CODE_SHIFT,
            _ => 0,
        };
        Feature { kind: header.kind, pid: header.pid, about }
    }
}

/// What a record is about, as far as parts are compared by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Feature {
    kind: u8,
    pid: u32,
    /// A lock's address, a function id or a place of code.
    about: u64,
}

/// Number of records for each feature.
#[derive(Clone, Debug, Default)]
struct Counts {
    of: FxHashMap<usize, u64>,
    all: u64,
}

impl Counts {
    fn add(&mut self, more: &Counts) {
        more.of.iter().for_each(|(feature, count)| *self.of.entry(*feature).or_insert(0) += count);
        self.all += more.all;
    }

    /// Half of the summed differences of two distributions: the share of one that the other lacks.
    fn apart(&self, other: &Counts) -> f64 {
        let share = |counts: &Counts, feature: &usize| {
            counts.of.get(feature).copied().unwrap_or(0) as f64 / counts.all.max(1) as f64
        };
        let here = self.of.keys().map(|feature| (share(self, feature) - share(other, feature)).abs());
        let only_there = other.of.keys().filter(|feature| !self.of.contains_key(feature));
        (here.sum::<f64>() + only_there.map(|feature| share(other, feature)).sum::<f64>()) / 2.0
    }
}
