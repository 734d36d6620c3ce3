//! A barrier made of a mutex and a condition variable (a method of longpole's own).
//!
//! All visits of a group wait, except the last one, which broadcasts (VPPB, 1999, treats broadcasts this way). The simulation
//! decides which thread comes last.

use super::super::nesting::NONE;
use super::mutex_history::{Give, Visit};
use super::semaphore::Question;
use rustc_hash::{FxHashMap, FxHashSet};

/// A condition variable understood as a barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BarrierPattern {
    /// Number of threads that meet.
    pub(super) count: u32,
    /// The first wait of each visit, and further waits.
    pub(super) waits: Vec<u32>,
    pub(super) further: Vec<u32>,
    /// Broadcasts of the condition variable.
    pub(super) broadcasts: Vec<u32>,
}

impl Question<'_> {
    /// The condition as a barrier, if each visit of the waiting kinds waits or broadcasts, as many visits before each
    /// broadcast.
    ///
    /// There may be several kinds (one barrier at several places of the program), but visits that meet are of one kind: a
    /// producer and a consumer in turn are no barrier.
    pub(super) fn as_barrier(&self) -> Option<BarrierPattern> {
        let history = self.history;
        let mut barrier = BarrierPattern::default();
        let mut waited: FxHashSet<u32> = FxHashSet::default();
        let mut gave: FxHashMap<u32, Give> = FxHashMap::default();
        for (part, place) in history.parts.iter().zip(0u32..) {
            if part.condition == self.condition {
                let list = if waited.insert(part.visit) { &mut barrier.waits } else { &mut barrier.further };
                list.push(part.wait);
                if part.timed_out {
                    return None;
                }
            }
            for (_, give) in history
                .gives
                .get(&place)
                .into_iter()
                .flatten()
                .filter(|(object, _)| *object == self.condition)
            {
                if !give.is_broadcast || gave.insert(part.visit, *give).is_some() {
                    return None;
                }
            }
        }
        let visit = |number: &u32| history.visits.get(*number as usize);
        let kinds: FxHashSet<u64> =
            waited.iter().filter_map(visit).map(|visit| self.kind.of(visit)).collect();
        if kinds.is_empty() || gave.is_empty() {
            return None;
        }
        let (mut came, mut count) = (0u32, 0u32);
        let mut first_kind = 0;
        let mut arrived: FxHashSet<u32> = FxHashSet::default();
        let is_whole = |visit: &Visit| visit.given_by != NONE;
        for part in &history.parts {
            let visit = history.visits.get(part.visit as usize)?;
            let kind = self.kind.of(visit);
            if !kinds.contains(&kind) || !arrived.insert(part.visit) {
                continue;
            }
            if came == 0 {
                first_kind = kind;
            } else if kind != first_kind {
                return None;
            }
            match (waited.contains(&part.visit), gave.get(&part.visit)) {
                (true, None) if is_whole(visit) => came = came.checked_add(1)?,
                (false, Some(give)) if is_whole(visit) => {
                    came = came.checked_add(1)?;
                    if count != 0 && count != came {
                        return None;
                    }
                    count = std::mem::take(&mut came);
                    barrier.broadcasts.push(give.used);
                }
                // A visit that waits until the end of the recording.
                (false, None) if !is_whole(visit) => {}
                _ => return None,
            }
        }
        barrier.count = count;
        (came == 0 && count > 1 && barrier.broadcasts.len() == gave.len()).then_some(barrier)
    }
}
