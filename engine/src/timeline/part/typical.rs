//! Finds the part of a recording that is most like the whole.
//!
//! Records are compared in stretches, so most of a large file need not be decoded: some stretches represent the whole
//! recording, and a few represent each candidate part. Stretches count by their length in time, not by their number of
//! records: a start that takes a tenth of a second and makes most of the records is not what the program does.

use crate::event::{Note, NoteKind, Recording};
use crate::timeline::extent;
use crate::timeline::operation_count::OperationCount;
use crate::timeline::part::pauses::Pauses;
use probe_abi::Record;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::convert::Infallible;
use std::ops::Range;

/// Number of stretches that a recording in memory is cut into.
const STRETCHES: usize = 512;

/// A part with less than one part in this many of another's records and time says less than that one.
const MUCH_MORE: u64 = 4;

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
    /// The larger of two numbers, both weighted by time: the share of the part's records with other kinds, locks and code;
    /// and the difference of the usual (median) records per second, relative to the sum of both rates.
    pub apart: f64,
}

/// The part with at most `most` records that is most like a recording in memory: its start, its end and [`Typical::apart`].
/// It avoids what it must ([`Pauses::to_avoid`]).
///
/// `None`: the recording has no pauses and at most twice as many records.
pub fn typical(recording: &Recording, most: usize) -> Option<(u64, u64, f64)> {
    let events = &recording.events;
    if most == 0 {
        return None;
    }
    let pauses = Pauses::to_avoid(recording);
    let each = events.len().div_ceil(STRETCHES).clamp(1, most);
    let time_ns = |record: &Record| record.header().time_ns;
    let between: Vec<&[Record]> = events
        .chunk_by(|a, b| pauses.is_empty() || pauses.before(time_ns(a)) == pauses.before(time_ns(b)))
        .map(|records| {
            let paused = records.iter().take_while(|record| pauses.meet(time_ns(record), time_ns(record)));
            &records[paused.count()..]
        })
        .collect();
    let (begin_ns, end_ns) = extent(recording);
    let (mut all, mut chunks, mut fences) = (Vec::new(), Vec::new(), Vec::new());
    for records in between {
        for chunk in records.chunks(each) {
            let (first, last) = (chunk.first()?, chunk.last()?);
            let (first_ns, last_ns) = (pauses.without(time_ns(first)), pauses.without(time_ns(last)));
            all.push(RecordStretch { records: chunk.len() as u64, first_ns, last_ns });
            chunks.push(chunk);
        }
        fences.push(all.len());
    }
    let starts: Vec<usize> = (0..all.len()).collect();
    let length_ns = pauses.without(end_ns) - pauses.without(begin_ns);
    let wanted = Wanted { most: most as u64, length_ns, effort: Effort::MANY };
    let fences = if pauses.is_empty() { &[] } else { fences.as_slice() };
    let census = Census::new(&recording.notes);
    let found = typical_among(&all, Places { starts: &starts, fences }, wanted, census, |number, count| {
        chunks.get(number).copied().into_iter().for_each(count);
        Ok::<(), Infallible>(())
    });
    let Typical { stretches, apart } = found.ok()??;
    let (first, last) =
        (chunks.get(stretches.start)?.first()?, chunks.get(stretches.end.checked_sub(1)?)?.last()?);
    // A stretch lasts until the next one or a pause begins.
    let next_ns = chunks.get(stretches.end).and_then(|next| next.first()).map(time_ns);
    let next_ns = next_ns.into_iter().chain(pauses.next_ns(time_ns(first))).min();
    let until_ns = next_ns.map_or(end_ns, |next_ns| next_ns.saturating_sub(1).min(end_ns));
    Some((time_ns(first), until_ns.max(time_ns(last)), apart))
}

/// Where a part may begin and must end, as indices of stretches.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// Stretches with which a part may begin, ascending.
    pub starts: &'a [usize],
    /// A part that begins before one of these stretches ends before it, ascending; empty: the recording has no pauses.
    pub fences: &'a [usize],
}

impl Places<'_> {
    /// The stretch before which a part that begins here must end, if there is one.
    fn fence(&self, start: usize) -> usize {
        let next = self.fences.partition_point(|&fence| fence <= start);
        self.fences.get(next).copied().unwrap_or(usize::MAX)
    }
}

/// The part with at most [`Wanted::most`] records that is most like the whole recording.
///
/// `records` passes the records of a stretch to a function. `None`: no part may begin anywhere, or the whole has no pauses and
/// at most twice as many records, so that a part would save little.
///
/// # Errors
/// Errors of `records`.
pub fn typical_among<E>(
    all: &[RecordStretch],
    places: Places<'_>,
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
    let times =
        Times { all, end_ns: all.first().map_or(0, |first| first.first_ns.saturating_add(length_ns)) };
    let of_all = seen.counts(times.evenly(0..all.len(), effort.of_all))?;
    let fitting = (most as f64 / seen.operations.for_each_record()) as u64;
    let parts = parts(&times, &before, places, fitting);
    let saves_little = places.fences.is_empty() && total <= fitting.saturating_mul(2);
    if saves_little || parts.is_empty() {
        return Ok(None);
    }
    let rate = times.rate(0..all.len());
    let of_part = |part: &Range<usize>, counts: &Counts| {
        counts.apart(&of_all).max(rates_apart(times.rate(part.clone()), rate))
    };
    let mut best: Option<(f64, &Range<usize>)> = None;
    for part in candidates(&times, &parts, effort.parts).into_iter().filter_map(|number| parts.get(number)) {
        let counts = seen.counts(times.evenly(part.clone(), effort.of_each))?;
        let apart = of_part(part, &counts);
        if best.is_none_or(|(best, _)| apart < best) {
            best = Some((apart, part));
        }
    }
    let Some((_, part)) = best else { return Ok(None) };
    let mut part = part.clone();
    if fitting < most {
        part.end = seen.end_of(part.start, places.fence(part.start).min(all.len()), most)?;
    }
    let apart = of_part(&part, &seen.counts(times.evenly(part.clone(), effort.of_all))?);
    Ok(Some(Typical { stretches: part, apart }))
}

/// The times of stretches. A stretch lasts until the next one begins.
struct Times<'a> {
    all: &'a [RecordStretch],
    /// End of the last stretch.
    end_ns: u64,
}

impl Times<'_> {
    fn begin_ns(&self, number: usize) -> u64 {
        self.all.get(number).map_or(self.end_ns, |stretch| stretch.first_ns)
    }

    /// The stretches at `wanted` instants with equal distances, ascending; a long stretch may come several times.
    fn evenly(&self, part: Range<usize>, wanted: usize) -> impl Iterator<Item = usize> {
        let (begin_ns, end_ns) = (self.begin_ns(part.start), self.begin_ns(part.end));
        let length = u128::from(end_ns.saturating_sub(begin_ns));
        let of_part = self.all.get(part.clone()).unwrap_or_default();
        (0..wanted as u128).map(move |number| {
            let after = length * (2 * number + 1) / (2 * wanted as u128);
            let at_ns = begin_ns.saturating_add(u64::try_from(after).unwrap_or(u64::MAX));
            part.start + of_part.partition_point(|stretch| stretch.first_ns <= at_ns).saturating_sub(1)
        })
    }

    /// Records per nanosecond in the middle one of all nanoseconds of a part, in ascending order of the rates around
    /// them.
    fn rate(&self, part: Range<usize>) -> f64 {
        let of = |number: usize| {
            let length = self.begin_ns(number + 1).saturating_sub(self.begin_ns(number)).max(1);
            let records = self.all.get(number).map_or(0, |stretch| stretch.records);
            (records as f64 / length as f64, length)
        };
        let mut rates: Vec<(f64, u64)> = part.map(of).collect();
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut half = rates.iter().fold(0u64, |sum, (_, length)| sum.saturating_add(*length)) / 2;
        let middle = rates.iter().find(|(_, length)| {
            let is_here = *length > half;
            half = half.saturating_sub(*length);
            is_here
        });
        middle.or(rates.last()).map_or(0.0, |(rate, _)| *rate)
    }
}

/// Numbers of parts that are tried: those that begin at equal distances in time, and the last one.
fn candidates(times: &Times<'_>, parts: &[Range<usize>], wanted: usize) -> Vec<usize> {
    let begin_ns = |number: usize| parts.get(number).map_or(0, |part| times.begin_ns(part.start));
    let last = parts.len().saturating_sub(1);
    let (first_ns, last_ns) = (begin_ns(0), begin_ns(last));
    let at = |number: usize| {
        let after = u128::from(last_ns.saturating_sub(first_ns)) * number as u128 / wanted.max(1) as u128;
        let at_ns = first_ns.saturating_add(u64::try_from(after).unwrap_or(u64::MAX));
        parts.partition_point(|part| times.begin_ns(part.start) < at_ns)
    };
    let mut numbers: Vec<usize> = (0..wanted).map(at).chain([last]).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The parts that begin at these stretches, with at most `most` records but at least one stretch. Of those that reach a fence
/// or the recording's end, only the longest. A part is dropped if another has [`MUCH_MORE`] times its records and its time.
/// `before`: number of records before each stretch, and last the number of all records.
fn parts(times: &Times<'_>, before: &[u64], places: Places<'_>, most: u64) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut ends = 0;
    for &start in places.starts.iter().filter(|&&start| start + 1 < before.len()) {
        if start < ends {
            continue;
        }
        let Some(first) = before.get(start).copied() else { continue };
        let end = before.partition_point(|records| records - first.min(*records) <= most) - 1;
        let limit = places.fence(start).min(before.len() - 1);
        let end = end.max(start + 1).min(limit);
        parts.push(start..end);
        if end == limit {
            ends = end;
        }
    }
    let size = |part: &Range<usize>| {
        let records = |index: usize| before.get(index).copied().unwrap_or(0);
        let length_ns = times.begin_ns(part.end).saturating_sub(times.begin_ns(part.start));
        (records(part.end).saturating_sub(records(part.start)), length_ns)
    };
    let most = |of: fn((u64, u64)) -> u64| parts.iter().map(|part| of(size(part))).max().unwrap_or(0);
    let (most_records, longest_ns) = (most(|size| size.0), most(|size| size.1));
    parts.retain(|part| {
        let (records, length_ns) = size(part);
        records.saturating_mul(MUCH_MORE) >= most_records || length_ns.saturating_mul(MUCH_MORE) >= longest_ns
    });
    parts
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
    /// The end of a part that begins with this stretch and whose records stand for at most `most` operations, before `limit`.
    /// All of them are decoded: the number of operations differs a lot from stretch to stretch.
    fn end_of<E>(&mut self, start: usize, limit: usize, most: u64) -> Result<usize, E>
    where
        R: FnMut(usize, &mut dyn FnMut(&[Record])) -> Result<(), E>,
    {
        let mut operations = OperationCount::default();
        for number in start..limit {
            (self.records)(number, &mut |records| operations.count(records))?;
            if operations.cost() > most as f64 {
                return Ok(number.max(start + 1));
            }
        }
        Ok(limit)
    }

    /// The shares of what records are about in these stretches, added up.
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
            sum.add_shares(counts);
        }
        Ok(sum)
    }
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
            *counts.of.entry(number).or_insert(0.0) += 1.0;
            counts.all += 1.0;
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

/// Number of records for each feature, or sums of shares.
#[derive(Clone, Debug, Default)]
struct Counts {
    of: FxHashMap<usize, f64>,
    all: f64,
}

impl Counts {
    /// Adds the shares of the records of a stretch.
    fn add_shares(&mut self, more: &Counts) {
        let share = 1.0 / more.all.max(1.0);
        more.of.iter().for_each(|(feature, count)| *self.of.entry(*feature).or_insert(0.0) += count * share);
        self.all += more.all * share;
    }

    /// Half of the summed differences of two distributions: the share of one that the other lacks.
    fn apart(&self, other: &Counts) -> f64 {
        let share = |counts: &Counts, feature: &usize| {
            counts.of.get(feature).copied().unwrap_or(0.0) / counts.all.max(f64::MIN_POSITIVE)
        };
        let here = self.of.keys().map(|feature| (share(self, feature) - share(other, feature)).abs());
        let only_there = other.of.keys().filter(|feature| !self.of.contains_key(feature));
        (here.sum::<f64>() + only_there.map(|feature| share(other, feature)).sum::<f64>()) / 2.0
    }
}
