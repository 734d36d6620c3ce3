//! Reads a part of a recording's file without reading all of it. The part begins at a snapshot of the threads, and the
//! index shows where its events are.

use crate::exit::UserError;
use crate::part::{asked, chosen, is_chosen, stands_for_all};
use crate::plan::part::RecordingPart;
use engine::event::Recording;
use engine::report::Finding;
use engine::timeline::{
    Census, Effort, Pauses, Places, RecordStretch, Wanted, beginning_at, excerpt, extent, typical_among,
};
use probe_abi::Record;
use recording::{Outline, SessionInfo};
use std::io::{self, Read, Seek};
use std::ops::{Range, RangeInclusive};

/// A part of a file.
pub struct PartOfFile {
    /// The recording, as if only that part had been recorded.
    pub recording: Recording,
    /// Facts about the file: format, records, chunks.
    pub info: SessionInfo,
    /// A finding that says which part was read.
    pub finding: Finding,
}

/// Why no part was read.
pub enum NoPart {
    /// The file must be read from its start: it is small, all of it is wanted, it has no snapshots, or its content does
    /// not agree with its index.
    ReadAll,
    /// Reading failed.
    Io(io::Error),
    /// The recording has no such part.
    User(UserError),
}

impl From<io::Error> for NoPart {
    fn from(error: io::Error) -> NoPart {
        NoPart::Io(error)
    }
}

/// Reads the part asked for, with at most `most` records unless all of the recording is wanted.
///
/// # Errors
/// See [`NoPart`].
pub fn part_of_file<R: Read + Seek>(
    outline: &mut Outline<R>,
    part: RecordingPart,
    most: usize,
) -> Result<PartOfFile, NoPart> {
    let is_asked = part.from.is_some() || part.to.is_some();
    let stretches: Vec<RecordStretch> = outline
        .events()
        .map(|at| RecordStretch { records: at.records.into(), first_ns: at.first_ns, last_ns: at.last_ns })
        .collect();
    let of: u64 = stretches.iter().map(|stretch| stretch.records).sum();
    let snapshots: Vec<u64> = outline.snapshots().collect();
    let in_order = stretches.is_sorted_by_key(|stretch| stretch.first_ns) && snapshots.is_sorted();
    if !in_order || snapshots.is_empty() || (!is_asked && !is_chosen(part, of, most)) {
        return Err(NoPart::ReadAll);
    }
    let (mut recording, info) = outline.without_events()?.ok_or(NoPart::ReadAll)?;
    let (begin_ns, end_ns) = extent(&recording);
    let clock = info.meta.as_ref().map(|meta| meta.clock).unwrap_or_default();
    let mut wanted = asked(part, begin_ns..=end_ns, clock).map_err(NoPart::User)?;
    let mut apart = None;
    let within = overlapping(&stretches, &wanted);
    let records_within: u64 = stretches[within.clone()].iter().map(|stretch| stretch.records).sum();
    let pauses = Pauses::to_avoid(&recording);
    let has_pauses = pauses.meet(*wanted.start(), *wanted.end());
    if is_chosen(part, records_within, most) || has_pauses && !part.whole {
        let kept = Kept::of(&stretches, within, &pauses);
        let starts = kept.starts(&snapshots, &wanted, begin_ns);
        let length_ns = pauses.without(*wanted.end()) - pauses.without(*wanted.start());
        let asked = Wanted { most: most as u64, length_ns, effort: Effort::FEW };
        let numbers: Vec<usize> = starts.iter().map(|(number, _)| *number).collect();
        let census = Census::new(&recording.notes);
        let mut records: Vec<Record> = Vec::new();
        let places = Places { starts: &numbers, fences: &kept.fences };
        let found = typical_among(&kept.stretches, places, asked, census, |number, count| {
            records.clear();
            let number = kept.numbers.get(number).copied().unwrap_or(usize::MAX);
            outline.add_records(number, &mut records)?.ok_or(NoPart::ReadAll)?;
            count(&records);
            Ok::<(), NoPart>(())
        })?;
        let found = found
            .filter(|found| stands_for_all(found.apart, records_within) || has_pauses)
            .ok_or(NoPart::ReadAll)?;
        let from_ns = starts.iter().find(|(number, _)| *number == found.stretches.start);
        let last = kept.numbers.get(found.stretches.end - 1).and_then(|number| stretches.get(*number));
        let (Some((_, from_ns)), Some(last)) = (from_ns, last) else { return Err(NoPart::ReadAll) };
        // A stretch lasts until the next one or a pause begins.
        let next = kept.numbers.get(found.stretches.end).and_then(|number| stretches.get(*number));
        let next_ns = next.map_or(*wanted.end(), |next| next.first_ns.saturating_sub(1));
        let next_ns = pauses.next_ns(*from_ns).map_or(next_ns, |pause_ns| pause_ns.min(next_ns));
        wanted = *from_ns..=next_ns.max(last.last_ns).min(*wanted.end());
        apart = Some(found.apart);
    }
    let snapshot = snapshots.partition_point(|at_ns| at_ns <= wanted.start()).checked_sub(1);
    let loaded_from = snapshot.and_then(|number| snapshots.get(number)).copied().unwrap_or(begin_ns);
    let loaded = overlapping(&stretches, &(loaded_from..=*wanted.end()));
    let count: u64 = stretches[loaded.clone()].iter().map(|stretch| stretch.records).sum();
    if count > outline.most_events() {
        return Err(NoPart::User(too_large(count)));
    }
    // Reserves no more than a part has: the index's claim must not use up memory.
    recording.events.reserve(usize::try_from(count).unwrap_or(0).min(most.saturating_mul(2)));
    for number in loaded {
        outline.add_records(number, &mut recording.events)?.ok_or(NoPart::ReadAll)?;
    }
    if let Some(number) = snapshot {
        recording = beginning_at(recording, outline.snapshot(number)?.ok_or(NoPart::ReadAll)?);
    }
    let mut recording = excerpt(recording, *wanted.start(), *wanted.end(), of);
    // Few records may stand for many operations, which take long to analyse.
    if apart.is_none()
        && let Some((from_ns, to_ns, unlike)) = chosen(&recording, part, most)
    {
        apart = Some(unlike);
        recording = excerpt(recording, from_ns, to_ns, of);
    }
    let (from_ns, to_ns) = extent(&recording);
    let finding = Finding::Excerpt {
        from_ns: from_ns.saturating_sub(begin_ns),
        length_ns: to_ns.saturating_sub(from_ns),
        whole_ns: end_ns.saturating_sub(begin_ns),
        records: recording.events.len() as u64,
        of,
        apart,
        sampled: apart.is_some(),
    };
    Ok(PartOfFile { recording, info, finding })
}

/// The stretches that have records between two instants.
fn overlapping(stretches: &[RecordStretch], wanted: &RangeInclusive<u64>) -> Range<usize> {
    let end = stretches.partition_point(|stretch| stretch.first_ns <= *wanted.end());
    let begin = stretches.iter().take(end).position(|stretch| stretch.last_ns >= *wanted.start());
    begin.unwrap_or(end)..end
}

/// The stretches among which a part is chosen: those without a pause.
struct Kept {
    /// Their numbers in the file.
    numbers: Vec<usize>,
    /// Their records and times, as if pauses took no time.
    stretches: Vec<RecordStretch>,
    /// Number of pauses before each.
    begun: Vec<usize>,
    /// The first one after each pause.
    fences: Vec<usize>,
    pauses: Pauses,
}

impl Kept {
    fn of(all: &[RecordStretch], within: Range<usize>, pauses: &Pauses) -> Kept {
        let pauses = pauses.clone();
        let is_whole = |stretch: &RecordStretch| !pauses.meet(stretch.first_ns, stretch.last_ns);
        let numbers: Vec<usize> = within.filter(|number| all.get(*number).is_some_and(is_whole)).collect();
        let of = |number: &usize| {
            let stretch = all.get(*number)?;
            let (first_ns, last_ns) = (pauses.without(stretch.first_ns), pauses.without(stretch.last_ns));
            Some((RecordStretch { first_ns, last_ns, ..*stretch }, pauses.before(stretch.first_ns)))
        };
        let (stretches, begun): (Vec<_>, Vec<_>) = numbers.iter().filter_map(of).unzip();
        let after =
            |window: &[usize]| window.first().map(|begun_here| begun.partition_point(|b| b <= begun_here));
        let fences = if pauses.is_empty() {
            Vec::new()
        } else {
            begun.chunk_by(|a, b| a == b).filter_map(after).collect()
        };
        Kept { numbers, stretches, begun, fences, pauses }
    }

    /// The places where a part may begin, ascending: index of a stretch, and time of a snapshot in or before it, or of the
    /// recording's start.
    fn starts(&self, snapshots: &[u64], wanted: &RangeInclusive<u64>, begin_ns: u64) -> Vec<(usize, u64)> {
        let at_start = (*wanted.start() == begin_ns).then_some(begin_ns);
        let instants =
            at_start.into_iter().chain(snapshots.iter().copied().filter(|at_ns| wanted.contains(at_ns)));
        let instants = instants.filter(|at_ns| !self.pauses.meet(*at_ns, *at_ns));
        let place = |at_ns: u64| {
            let without_ns = self.pauses.without(at_ns);
            let number = self.stretches.partition_point(|stretch| stretch.last_ns < without_ns);
            (*self.begun.get(number)? == self.pauses.before(at_ns)).then_some((number, at_ns))
        };
        let mut starts: Vec<(usize, u64)> = instants.filter_map(place).collect();
        starts.dedup_by_key(|(number, _)| *number);
        starts
    }
}

fn too_large(records: u64) -> UserError {
    UserError::runtime(
        format!("this part has {} records, more than fit into memory", crate::cell::grouped(records)),
        "take a shorter part with --from and --to, or leave --whole out",
    )
}
