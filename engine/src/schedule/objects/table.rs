//! States of the synchronization objects of one kind. A state is created when an object is first used as that kind.

use crate::program::ObjectId;

/// States by object. Each kind has its own table, since one name may be used for objects of several kinds.
#[derive(Debug)]
pub(in crate::schedule) struct Table<T> {
    /// Object to place in `states` + 1; empty until the first use, so that unused kinds cost nothing.
    places: Vec<u32>,
    states: Vec<T>,
    objects: usize,
}

impl<T: Default> Table<T> {
    pub(in crate::schedule) fn new(objects: usize) -> Table<T> {
        Table { places: Vec::new(), states: Vec::new(), objects }
    }

    /// The object's state. The number is below the count given to `new` ([`crate::program::Program::check`]).
    pub(in crate::schedule) fn at(&mut self, object: ObjectId) -> &mut T {
        if self.places.is_empty() {
            self.places = vec![0; self.objects];
        }
        let place = &mut self.places[object.0 as usize];
        if *place == 0 {
            self.states.push(T::default());
            *place = self.states.len() as u32;
        }
        &mut self.states[(*place - 1) as usize]
    }

    /// The object's state, if the object was used as this kind.
    pub(in crate::schedule) fn get(&self, object: ObjectId) -> Option<&T> {
        let place = *self.places.get(object.0 as usize)?;
        self.states.get((place as usize).checked_sub(1)?)
    }
}
