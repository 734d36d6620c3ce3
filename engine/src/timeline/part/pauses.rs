//! Pauses of recording from inside ([`GapReason::OperationsPaused`]). A part that is chosen for analysis has none, since what
//! threads did with locks in a pause is not known. But where recording them takes much of the program's time, it changes what
//! limits the program. Then the part is in a pause, and its locks are known from waits, as in a program that was attached to.

use super::extent::extent;
use crate::event::{GapReason, Note, NoteKind, Recording};
use std::ops::Range;

/// Lock operations whose recording takes a larger share of the program's CPU time change what limits it. Measured: with 7 %
/// the lock that limits is still named, with 25 % a contended cache line is not.
const DISTORTS: f64 = 0.2;

/// The pauses of a recording, in time order, without overlaps (`CLOCK_MONOTONIC` nanoseconds).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pauses(Vec<Range<u64>>);

impl Pauses {
    /// The pauses that notes tell of.
    pub fn of(notes: &[Note]) -> Pauses {
        let mut all: Vec<Range<u64>> = notes
            .iter()
            .filter_map(|note| match note.kind {
                NoteKind::Gap { until_ns, reason: GapReason::OperationsPaused, .. } => {
                    Some(note.time_ns..until_ns.max(note.time_ns))
                }
                _ => None,
            })
            .collect();
        all.sort_unstable_by_key(|pause| (pause.start, pause.end));
        let mut apart: Vec<Range<u64>> = Vec::with_capacity(all.len());
        for pause in all {
            match apart.last_mut().filter(|last| pause.start <= last.end) {
                Some(last) => last.end = last.end.max(pause.end),
                None => apart.push(pause),
            }
        }
        Pauses(apart)
    }

    /// What a part of this recording must not have: pauses or, if recording from inside distorts, the stretches between them.
    pub fn to_avoid(recording: &Recording) -> Pauses {
        let pauses = Pauses::of(&recording.notes);
        let (begin_ns, end_ns) = extent(recording);
        let recorded_ns = pauses.without(end_ns).saturating_sub(pauses.without(begin_ns));
        let share = recorded_ns as f64 / end_ns.saturating_sub(begin_ns).max(1) as f64;
        let cost = recording.facts.end.as_ref().and_then(|end| end.overhead);
        let distorts =
            cost.is_some_and(|cost| cost.operation_ns as f64 > DISTORTS * cost.target_ns as f64 * share);
        if pauses.is_empty() || !distorts { pauses } else { pauses.between(begin_ns, end_ns) }
    }

    /// The stretches between pauses.
    fn between(&self, begin_ns: u64, end_ns: u64) -> Pauses {
        let starts = std::iter::once(begin_ns).chain(self.0.iter().map(|pause| pause.end));
        let ends = self.0.iter().map(|pause| pause.start).chain([end_ns]);
        Pauses(starts.zip(ends).filter(|(start, end)| start < end).map(|(start, end)| start..end).collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them has some of this time, both ends included.
    pub fn meet(&self, from_ns: u64, to_ns: u64) -> bool {
        let next = self.0.partition_point(|pause| pause.end <= from_ns);
        self.0.get(next).is_some_and(|pause| pause.start <= to_ns)
    }

    /// Number of pauses that have begun by then: the same for all instants between two pauses.
    pub fn before(&self, time_ns: u64) -> usize {
        self.0.partition_point(|pause| pause.start <= time_ns)
    }

    /// The start of the first pause that begins then or later.
    pub fn next_ns(&self, time_ns: u64) -> Option<u64> {
        self.0.get(self.0.partition_point(|pause| pause.start < time_ns)).map(|pause| pause.start)
    }

    /// The time without pauses up to an instant, nanoseconds: pauses take no time.
    pub fn without(&self, time_ns: u64) -> u64 {
        let begun = self.0.get(..self.before(time_ns)).unwrap_or_default();
        let paused = begun.iter().map(|pause| pause.end.min(time_ns).saturating_sub(pause.start));
        time_ns.saturating_sub(paused.fold(0, u64::saturating_add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Overhead, WindowEnd};

    fn note(&(time_ns, until_ns): &(u64, u64)) -> Note {
        let reason = GapReason::OperationsPaused;
        Note { time_ns, kind: NoteKind::Gap { pid: 0, cpu: None, until_ns, lost: 0, reason } }
    }

    fn pauses(of: &[(u64, u64)]) -> Pauses {
        Pauses::of(&of.iter().map(note).collect::<Vec<_>>())
    }

    #[test]
    fn pauses_are_ordered_joined_and_take_no_time() {
        let some = pauses(&[(300, 400), (100, 150), (120, 200), (500, 400)]);
        assert_eq!(some.0, [100..200, 300..400, 500..500]);
        assert_eq!([50, 150, 250, 450, 900].map(|at| some.without(at)), [50, 100, 150, 250, 700]);
        assert_eq!([99, 100, 250, 300].map(|at| some.before(at)), [0, 1, 1, 2]);
        assert!(some.meet(199, 210) && some.meet(0, 100) && !some.meet(200, 299) && !some.meet(501, 900));
        assert_eq!([0, 100, 101, 501].map(|at| some.next_ns(at)), [Some(100), Some(100), Some(300), None]);
        assert!(pauses(&[]).is_empty() && !pauses(&[]).meet(0, u64::MAX));
        assert_eq!(pauses(&[(0, 10), (20, 30)]).between(0, 50).0, [10..20, 30..50]);
    }

    #[test]
    fn a_part_is_in_a_pause_if_recording_from_inside_takes_much_of_the_time() {
        let mut recording = Recording { notes: vec![note(&(200, 900))], ..Recording::default() };
        let with = |recording: &mut Recording, operation_ns: u64| {
            let overhead = Some(Overhead { operation_ns, target_ns: 2_000, ..Overhead::default() });
            recording.facts.end = Some(WindowEnd { end_ns: 1_000, overhead, ..WindowEnd::default() });
            Pauses::to_avoid(recording).0.iter().map(|range| (range.start, range.end)).collect::<Vec<_>>()
        };
        // 600 ns of CPU time are outside the pause.
        assert_eq!(with(&mut recording, 80), [(200, 900)]);
        assert_eq!(with(&mut recording, 130), [(0, 200), (900, 1_000)]);
        recording.notes.clear();
        assert!(with(&mut recording, 130).is_empty());
    }
}
