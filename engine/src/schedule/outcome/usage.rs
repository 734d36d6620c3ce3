//! Measures how much objects are used: locks taken and held, waits, devices' service. Only machines with a limited
//! number of processors do so.

use crate::program::ObjectId;

/// How an object was used during a simulation; times are in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectUse {
    /// Number of times that the object was taken as a lock.
    pub taken: u64,
    /// Time during which at least one thread held the object.
    pub held: u64,
    /// Number of times that a thread left its processor to wait for the object.
    pub waits: u64,
    /// Time for which threads waited for the object without a processor, summed. For a device it includes the service.
    pub blocked: u64,
    /// Time for which threads busy-waited for the object, summed.
    pub spun: u64,
    /// Time for which a device's servers served, summed.
    pub served: u64,
}

/// Uses of objects so far, and which are held now.
#[derive(Clone, Debug, Default)]
pub(in crate::schedule) struct Usage {
    pub(in crate::schedule) objects: Vec<ObjectUse>,
    /// For each object: number of holders, and the time since which it is held.
    holders: Vec<(u32, u64)>,
}

impl Usage {
    pub(in crate::schedule) fn of(objects: usize) -> Usage {
        Usage { objects: vec![ObjectUse::default(); objects], holders: vec![(0, 0); objects] }
    }

    #[inline]
    pub(in crate::schedule) fn taken(&mut self, object: ObjectId, now: u64) {
        let place = object.0 as usize;
        self.objects[place].taken += 1;
        let (count, since) = &mut self.holders[place];
        if *count == 0 {
            *since = now;
        }
        *count = count.saturating_add(1);
    }

    #[inline]
    pub(in crate::schedule) fn given_back(&mut self, object: ObjectId, now: u64) {
        let place = object.0 as usize;
        let (count, since) = &mut self.holders[place];
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.objects[place].held = self.objects[place].held.saturating_add(now.saturating_sub(*since));
        }
    }

    pub(in crate::schedule) fn served(&mut self, object: ObjectId, length: u64) {
        let served = &mut self.objects[object.0 as usize].served;
        *served = served.saturating_add(length);
    }

    /// Ends sections that are still open at the end of the run.
    pub(in crate::schedule) fn close(&mut self, now: u64) {
        for (object, (count, since)) in self.objects.iter_mut().zip(&self.holders) {
            if *count > 0 {
                object.held = object.held.saturating_add(now.saturating_sub(*since));
            }
        }
    }
}
