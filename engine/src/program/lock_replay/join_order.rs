//! Joins of threads under a lock that the joined thread had used (a method of longpole's own): pools whose owner joins
//! its threads with the lock of their list held.
//!
//! The joining thread knows that the other one has released the lock for the last time; otherwise the program would deadlock.
//! How it knows (by a flag, a list, a condition) is not recorded, but the order is clear: the joined thread's last section
//! comes first.
//!
//! In the program, the joining thread releases the lock before the join, waits for that section, and takes the lock again. If
//! the section is over, as in the recording, this takes no time. If not, it stands for the wait for the condition.

use super::lowering::{Known, edge};
use super::nesting::NONE;
use crate::program::EdgeId;
use rustc_hash::FxHashMap;

/// Edges from last sections to joins.
#[derive(Clone, Debug, Default)]
pub(super) struct JoinOrder {
    /// For the operation that ends the last section: its edge.
    released: FxHashMap<u32, EdgeId>,
    /// For each join: sections of the joining thread around the join, each with the edge to wait for.
    awaited: FxHashMap<u32, Vec<(u32, EdgeId)>>,
}

impl JoinOrder {
    /// Finds the edges for these operations, numbered from `first` on.
    pub(super) fn of(known: &Known<'_>, first: usize) -> JoinOrder {
        let mut joins: FxHashMap<u32, Vec<(u64, u32, u32)>> = FxHashMap::default();
        for (number, child) in known.joined.all() {
            let Some(used) = known.timeline.lock_operations.get(number as usize) else { continue };
            joins.entry(used.thread).or_default().push((used.began.0, number, child));
        }
        joins.values_mut().for_each(|joins| joins.sort_unstable());
        let mut last: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for section in &known.sections.all {
            if section.given_by == NONE || !known.is_simulated(section) {
                last.remove(&(section.thread, section.object));
            } else {
                last.insert((section.thread, section.object), section.given_by);
            }
        }
        let mut order = JoinOrder::default();
        for (section, place) in known.sections.all.iter().zip(0u32..) {
            let Some(joins) = joins.get(&section.thread) else { continue };
            if !known.is_simulated(section) {
                continue;
            }
            let later = joins.partition_point(|(began, ..)| *began < section.from);
            let later = joins.get(later..).unwrap_or_default().iter();
            let until = later.take_while(|(began, ..)| section.given_by == NONE || *began <= section.to);
            let within = until.filter(|(_, join, _)| {
                let nesting = &known.nesting;
                let is_over = section.given_by != NONE && nesting.is_after(*join, section.given_by);
                nesting.is_after(*join, section.taken_by) && !is_over
            });
            for (_, join, child) in within {
                let Some(&release) = last.get(&(*child, section.object)) else { continue };
                let next = edge(first.saturating_add(order.released.len()));
                let edge = *order.released.entry(release).or_insert(next);
                order.awaited.entry(*join).or_default().push((place, edge));
            }
        }
        order
    }

    /// Number of edges.
    pub(super) fn edges(&self) -> usize {
        self.released.len()
    }

    /// The edge that this operation releases.
    pub(super) fn released_by(&self, number: u32) -> Option<EdgeId> {
        self.released.get(&number).copied()
    }

    /// The sections around a join, each with the edge to wait for.
    pub(super) fn awaited_by(&self, number: u32) -> &[(u32, EdgeId)] {
        self.awaited.get(&number).map_or(&[], Vec::as_slice)
    }
}
