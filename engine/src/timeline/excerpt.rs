//! A part of a recording, as if only that had been recorded; and the part that is most like all of it.

use super::Window;
use crate::event::{NoteKind, Recording, WindowEnd};
use probe_abi::Record;
use rustc_hash::FxHashMap;

/// Into how many parts with equally many records a recording is cut to find the one that is most like it.
const PARTS: usize = 512;
/// Places of code that are nearer to each other than two to the power of this many bytes are one.
const CODE_SHIFT: u32 = 8;

/// A part of a recording that was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Excerpt {
    /// Where it begins (`CLOCK_MONOTONIC` nanoseconds).
    pub from_ns: u64,
    /// Its last instant, likewise.
    pub to_ns: u64,
    /// How much it differs from all of it, from 0 to 1: the larger one of the share of its records that are of other kinds, locks
    /// and code, and of how much more or fewer there are in a second, relative to the sum of both rates.
    pub apart: f64,
}

/// The first and the last instant of a recording.
pub fn extent(recording: &Recording) -> (u64, u64) {
    let from_ns = recording.facts.start_ns;
    let last_ns = || recording.events.last().map(|event| event.header().time_ns);
    let to_ns = recording.facts.end.as_ref().map(|end| end.end_ns).or_else(last_ns).unwrap_or(from_ns);
    (from_ns, to_ns.max(from_ns))
}

/// What was recorded from one instant to another, both included: what came before it becomes facts. Costs and
/// counts of samples are those of all of it, in proportion to the records. Counts of lost records stay those of all of it.
pub fn excerpt(recording: Recording, from_ns: u64, to_ns: u64) -> Recording {
    let (begin_ns, end_ns) = extent(&recording);
    let (from_ns, to_ns) = (from_ns.max(begin_ns), to_ns.min(end_ns));
    let all = recording.events.len();
    let end = recording.facts.end.clone();
    let mut window = Window::of(recording);
    window.advance(from_ns);
    let mut cut = window.into_ending(WindowEnd { end_ns: to_ns, ..WindowEnd::default() });
    let share = cut.events.len() as f64 / all.max(1) as f64;
    let is_last = to_ns == end_ns;
    cut.facts.end = end.map(|end| WindowEnd {
        end_ns: to_ns,
        threads: if is_last { end.threads } else { Vec::new() },
        pending: if is_last { end.pending } else { Vec::new() },
        overhead: end.overhead.map(|cost| cost.scaled(share)),
        kernel_locks: end.kernel_locks.map(|locks| locks.scaled(share)),
        samples: end.samples.map(|counts| counts.scaled(share)),
        ..end
    });
    cut
}

/// The part with at most `most` records that is most like all of the recording; `None`: all of it has no more.
pub fn typical(recording: &Recording, most: usize) -> Option<Excerpt> {
    let events = &recording.events;
    if events.len() <= most || most == 0 {
        return None;
    }
    let each = events.len().div_ceil(PARTS).min(most);
    let leaves = leaves(recording);
    let mut numbers: FxHashMap<Feature, usize> = FxHashMap::default();
    let mut parts: Vec<Vec<(usize, u32)>> = Vec::new();
    let mut all: Vec<u64> = Vec::new();
    for part in events.chunks(each) {
        let mut counts: FxHashMap<usize, u32> = FxHashMap::default();
        for event in part {
            let next = numbers.len();
            let number = *numbers.entry(Feature::of(event, &leaves)).or_insert(next);
            *counts.entry(number).or_insert(0) += 1;
        }
        all.resize(numbers.len(), 0);
        counts.iter().for_each(|(number, count)| all[*number] += u64::from(*count));
        parts.push(counts.into_iter().collect());
    }
    let (begin_ns, end_ns) = extent(recording);
    let rate = events.len() as f64 / (end_ns - begin_ns).max(1) as f64;
    let length = most / each;
    let mut here: Vec<u64> = vec![0; all.len()];
    let mut best: Option<Excerpt> = None;
    for (number, part) in parts.iter().enumerate() {
        part.iter().for_each(|(feature, count)| here[*feature] += u64::from(*count));
        if let Some(gone) = number.checked_sub(length).and_then(|gone| parts.get(gone)) {
            gone.iter().for_each(|(feature, count)| here[*feature] -= u64::from(*count));
        }
        let Some(first) = (number + 1).checked_sub(length) else { continue };
        let held = events.get(first * each..((number + 1) * each).min(events.len())).unwrap_or_default();
        let (Some(begin), Some(end)) = (held.first(), held.last()) else { continue };
        let (from_ns, to_ns) = (begin.header().time_ns, end.header().time_ns);
        let apart = apart(&here, &all)
            .max(rates_apart(held.len() as f64 / to_ns.saturating_sub(from_ns).max(1) as f64, rate));
        if best.is_none_or(|best| apart < best.apart) {
            best = Some(Excerpt { from_ns, to_ns, apart });
        }
    }
    best
}

/// What a record is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Feature {
    kind: u8,
    pid: u32,
    /// A lock's address, a function, a place of code.
    about: u64,
}

impl Feature {
    fn of(record: &Record, leaves: &FxHashMap<u32, u64>) -> Feature {
        let header = record.header();
        let about = match record {
            Record::Operation(operation) => operation.object,
            Record::Burst(burst) => burst.object,
            Record::FunctionEnter(call) => u64::from(call.function),
            Record::Sample(sample) => leaves.get(&sample.stack).copied().unwrap_or(0) >> CODE_SHIFT,
            _ => 0,
        };
        Feature { kind: header.kind, pid: header.pid, about }
    }
}

/// The innermost address of each stack.
fn leaves(recording: &Recording) -> FxHashMap<u32, u64> {
    let stacks = recording.notes.iter().filter_map(|note| match &note.kind {
        NoteKind::Stack { id, frames, .. } => Some((*id, *frames.first()?)),
        _ => None,
    });
    stacks.collect()
}

/// Half of the sum of differences of two distributions: the share of one that is not in the other.
fn apart(here: &[u64], all: &[u64]) -> f64 {
    let sum = |counts: &[u64]| counts.iter().sum::<u64>().max(1) as f64;
    let (of_here, of_all) = (sum(here), sum(all));
    let differences =
        here.iter().zip(all).map(|(here, all)| (*here as f64 / of_here - *all as f64 / of_all).abs());
    differences.sum::<f64>() / 2.0
}

fn rates_apart(here: f64, all: f64) -> f64 {
    if here + all > 0.0 { (here - all).abs() / (here + all) } else { 0.0 }
}
