//! Bounded resources as rows of the ledger: threads wait for the permit, not for what its holders sleep for.

use crate::experiment::{Edit, Permits, timers};
use crate::limit::search::Search;
use crate::program::{ObjectId, Operation, taking};
use crate::schedule::RunOutcome;

impl Search {
    /// The edits that give as many permits as threads want, for resources with waits of at least `worth`; with the waits,
    /// ticks.
    pub(in crate::limit) fn more_permits(&self, base: &RunOutcome, worth: u64) -> Vec<(Edit, u64)> {
        let waited =
            |permits: &Permits| base.objects.get(permits.semaphore.0 as usize).map_or(0, |used| used.blocked);
        let waited_for = self.permits.iter().filter(move |permits| waited(permits) >= worth);
        let edit = |of: &Permits| Edit::Permits { semaphore: of.semaphore, now: of.permits, then: of.users };
        waited_for.map(|of| (edit(of), waited(of))).collect()
    }

    /// The edit with twice as many permits, if threads want more than that.
    pub(in crate::limit) fn twice_the_permits(edit: &Edit) -> Option<Edit> {
        let Edit::Permits { semaphore, now, then } = *edit else { return None };
        let twice = now.saturating_mul(2);
        (twice < then).then_some(Edit::Permits { semaphore, now, then: twice })
    }

    /// Whether threads sleep, or wait for devices, mostly while they hold this lock or permit, or work in this pool.
    /// Then other threads wait for the lock or permit, and the sleep is part of its holder's work.
    pub(in crate::limit) fn is_inside(&self, sleeping: &Edit, holding: &Edit) -> bool {
        let of_pool = |thread: usize| matches!(holding, Edit::MoreSleepers { threads, .. } if threads.contains(&thread));
        let timers = timers(self.program());
        let is_timer = |object: &ObjectId| timers.get(object.0 as usize) == Some(&true);
        let length = |operation: &Operation| match (sleeping, operation) {
            (Edit::FreeDevices(devices), Operation::Io(device, length)) if devices.contains(device) => {
                length.0
            }
            (
                Edit::NoSleeps | Edit::NoPolling(_),
                Operation::Sleep(length) | Operation::SleepNext(length),
            ) => length.0,
            (Edit::NoSleeps | Edit::NoPolling(_), Operation::Io(device, length)) if is_timer(device) => {
                length.0
            }
            _ => 0,
        };
        let is_held = |object: ObjectId| match holding {
            Edit::FreeLocks(locks) => locks.contains(&object),
            Edit::Permits { semaphore, .. } => *semaphore == object,
            _ => false,
        };
        let (mut inside, mut all) = (0u64, 0u64);
        for (number, thread) in self.program().threads.iter().enumerate() {
            let mut held = u32::from(of_pool(number));
            for operation in thread.operations.iter().take(thread.once()) {
                let change = match *operation {
                    Operation::SemWait(object) => Some((object, true)),
                    Operation::SemPost(object) => Some((object, false)),
                    _ => taking(operation),
                };
                match change.filter(|(object, _)| is_held(*object)) {
                    Some((_, true)) => held += 1,
                    Some((_, false)) => held = held.saturating_sub(1),
                    None => {}
                }
                let length = length(operation);
                all = all.saturating_add(length);
                inside = inside.saturating_add(if held > 0 { length } else { 0 });
            }
        }
        inside > all / 2
    }
}
