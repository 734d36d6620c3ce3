//! What samples of the recording show of the compute time between the probes: which stack a thread had at
//! instants of a clock that is independent of the program.

use super::{FunctionRef, Program};

/// Index of a place in [`Samples::places`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(pub u32);

/// Samples of a program; empty if it was recorded without, or written by hand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Places in code, each only once.
    pub places: Vec<Place>,
    /// Stacks, each only once: the innermost place first, functions that were inlined among them. An unknown
    /// one is empty.
    pub stacks: Vec<Vec<PlaceId>>,
    /// By thread (as [`super::ThreadId`] counts), in order of operations; may be shorter than the list of threads.
    pub threads: Vec<Vec<Sample>>,
    /// Samples asked for per second of a thread's running time; 0 if that is not known.
    pub rate_hz: u32,
    /// Samples that are in no operation: taken while the thread waited for a lock, say.
    pub elsewhere: u64,
    /// Samples whose stack ends before its beginning.
    pub truncated: u64,
}

/// A place in code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The function that its line belongs to: the inlined one, if it was inlined.
    pub function: FunctionRef,
    /// `file:line`, if debug information gives it.
    pub line: Option<String>,
    /// Whether this is a copy of the function that was inlined into the next place of the stack.
    pub inlined: bool,
}

/// A thread was sampled computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Index of the operation in the thread's list.
    pub operation: u32,
    /// Index in [`Samples::stacks`].
    pub stack: u32,
}

impl Program {
    /// The user's function nearest to the innermost place of a stack: in the kernel, in a library or in code that was inlined, the
    /// one that uses it.
    pub(crate) fn users_function(&self, stack: u32) -> Option<FunctionRef> {
        self.samples.stack(stack).find_map(|(_, place)| {
            let function = self.functions.get(place.function.0 as usize)?;
            function.origin_at(place.line.as_deref()).can_be_changed().then_some(place.function)
        })
    }

    /// The function that the user's one calls there: a library's, or a standard one that was inlined.
    pub(super) fn called_by_user(&self, stack: u32) -> Option<FunctionRef> {
        let users = self.users_function(stack)?;
        let inner = self.samples.stack(stack).take_while(|(_, place)| place.function != users);
        inner.last().map(|(_, place)| place.function)
    }
}

impl Samples {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.threads.iter().all(Vec::is_empty)
    }

    /// How many there are, in operations.
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

    /// Whether all numbers refer to something of this program, and operations do not go back.
    pub(super) fn fit(&self, program: &Program) -> bool {
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
