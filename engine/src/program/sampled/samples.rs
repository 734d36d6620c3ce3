//! Samples of the compute time between probes: a thread's stack at instants of a clock that is independent of the program.

use crate::program::{FunctionRef, Program};

/// Index of a place in [`Samples::places`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(pub u32);

/// Samples of a program; empty if none were taken, or for a hand-written program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Places in code, without duplicates.
    pub places: Vec<Place>,
    /// Stacks without duplicates: the innermost place first, with inlined functions. Empty if nothing is known.
    pub stacks: Vec<Vec<PlaceId>>,
    /// For each thread, by its index: samples in order of operations. May be shorter than the list of threads.
    pub threads: Vec<Vec<Sample>>,
    /// Requested samples per second of a thread's running time; 0 if not known.
    pub rate_hz: u32,
    /// Samples outside of all operations, for example while the thread waited for a lock.
    pub elsewhere: u64,
    /// Samples whose outermost frames are missing.
    pub truncated: u64,
}

/// A place in code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The function of the line: the inlined function, if it is inlined.
    pub function: FunctionRef,
    /// `file:line` of the place, if debug information has it.
    pub line: Option<String>,
    /// Whether this is a copy of the function, inlined into the stack's next place.
    pub inlined: bool,
}

/// A sample of a computing thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Index of the operation in the thread's list.
    pub operation: u32,
    /// Index in [`Samples::stacks`].
    pub stack: u32,
}

impl Program {
    /// The user's function nearest to the top of a stack. For code of the kernel, a library or an inlined function, it is the
    /// one that uses it.
    pub(crate) fn users_function(&self, stack: u32) -> Option<FunctionRef> {
        self.samples.stack(stack).find_map(|(_, place)| {
            let function = self.functions.get(place.function.0 as usize)?;
            function.origin_at(place.line.as_deref()).can_be_changed().then_some(place.function)
        })
    }

    /// The function that the user's function calls there: a library's, or an inlined standard function.
    pub(super) fn called_by_user(&self, stack: u32) -> Option<FunctionRef> {
        let users = self.users_function(stack)?;
        let inner = self.samples.stack(stack).take_while(|(_, place)| place.function != users);
        inner.last().map(|(_, place)| place.function)
    }
}

impl Samples {
    /// Whether there are no samples in operations.
    pub fn is_empty(&self) -> bool {
        self.threads.iter().all(Vec::is_empty)
    }

    /// Number of samples in operations.
    pub fn count(&self) -> u64 {
        self.threads.iter().map(|thread| thread.len() as u64).sum()
    }

    /// The samples of a thread.
    pub fn of_thread(&self, thread: usize) -> &[Sample] {
        self.threads.get(thread).map_or(&[], Vec::as_slice)
    }

    /// The places of a stack, the innermost first.
    pub fn stack(&self, stack: u32) -> impl DoubleEndedIterator<Item = (PlaceId, &Place)> {
        let places = self.stacks.get(stack as usize).map_or(&[][..], Vec::as_slice);
        places.iter().filter_map(|&id| self.places.get(id.0 as usize).map(|place| (id, place)))
    }

    /// Whether all indices are valid in this program, and samples are in order of operations.
    pub(in crate::program) fn fit(&self, program: &Program) -> bool {
        let functions = program.functions.len();
        self.threads.len() <= program.threads.len()
            && self.places.iter().all(|place| (place.function.0 as usize) < functions)
            && self.stacks.iter().flatten().all(|place| (place.0 as usize) < self.places.len())
            && self.threads.iter().zip(&program.threads).all(|(samples, thread)| {
                samples.is_sorted_by_key(|sample| sample.operation)
                    && samples.iter().all(|sample| {
                        (sample.operation as usize) < thread.operations.len()
                            && (sample.stack as usize) < self.stacks.len()
                    })
            })
    }
}
