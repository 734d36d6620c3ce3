//! Finds when the working threads of a process have something to do.

use super::shares::Shares;
use crate::timeline::{State, Timeline};
use rustc_hash::FxHashMap;

/// A wait is parallel to work if at most this fraction (one part in `LITTLE`) of it is without work.
const LITTLE: u64 = 10;

/// Beginning and end of each stretch in which at least one working thread runs or is runnable: ascending, without
/// overlap.
pub(super) struct Occupied(Vec<(u64, u64)>);

/// The stretches of each process, filled in when needed.
#[derive(Default)]
pub(super) struct OfProcesses(FxHashMap<u32, Occupied>);

impl OfProcesses {
    /// The stretches of a thread's process.
    pub(super) fn of_thread(
        &mut self,
        timeline: &Timeline,
        shares: &Shares,
        index: usize,
    ) -> Option<&Occupied> {
        let pid = timeline.threads.get(index)?.pid;
        Some(self.0.entry(pid).or_insert_with(|| Occupied::of(timeline, shares, pid)))
    }
}

impl Occupied {
    fn of(timeline: &Timeline, shares: &Shares, pid: u32) -> Occupied {
        let works = |index: &usize| shares.works(timeline, *index);
        let threads =
            (0..timeline.threads.len()).filter(works).filter_map(|index| timeline.threads.get(index));
        let spans = threads.filter(|thread| thread.pid == pid).flat_map(|thread| thread.spans());
        let has_work = |state| matches!(state, State::Running { .. } | State::Runnable);
        let mut spans: Vec<(u64, u64)> =
            spans.filter(|(.., state)| has_work(*state)).map(|(start, end, _)| (start.0, end.0)).collect();
        spans.sort_unstable();
        spans.dedup_by(|next, before| {
            let joins = next.0 <= before.1;
            if joins {
                before.1 = before.1.max(next.1);
            }
            joins
        });
        Occupied(spans)
    }

    /// Whether some thread had work in nearly all of this time.
    pub(super) fn covers(&self, start: u64, end: u64) -> bool {
        let first = self.0.partition_point(|span| span.1 <= start);
        let spans = self.0.get(first..).unwrap_or_default().iter().take_while(|span| span.0 < end);
        let covered: u64 = spans.map(|span| span.1.min(end).saturating_sub(span.0.max(start))).sum();
        end.saturating_sub(start).saturating_sub(covered).saturating_mul(LITTLE) <= end.saturating_sub(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_occupied_if_at_most_a_tenth_is_without_work() {
        let occupied = Occupied(vec![(10, 30), (31, 50), (100, 200)]);
        assert!(occupied.covers(10, 50));
        assert!(occupied.covers(8, 30));
        assert!(!occupied.covers(0, 50));
        assert!(!occupied.covers(40, 110));
        assert!(!occupied.covers(300, 400));
    }
}
