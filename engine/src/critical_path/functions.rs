//! Calls, TET and TETID per function (2001, section 2.2), one pass over the operations of each thread.
//!
//! A stack a thousand frames deep must not cost a thousand additions per segment: with C the sum of weight · length of
//! the thread so far, the share of a function between its outermost entry and exit is the difference of C at the two.
//!
//! An entry counts on the first compute operation that its thread does at or after the call (after the last one: on that).

use super::lanes::{LANES, Lane, Scaled, Sum, add, subtract};
use super::weights::Weights;
use crate::program::{FunctionRef, ObjectId, Operation, ThreadId};
use crate::schedule::{PointId, RunBreaks};
use crate::time::Ticks;

/// Sums of all functions for up to eight CPU counts, exact.
#[derive(Debug)]
pub struct FunctionTotals {
    totals: Vec<Totals<i128>>,
    /// By object; empty if the program has no locks.
    locks: Vec<Lane<i128>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals<S> {
    calls: [u64; LANES],
    tet: Lane<S>,
    tetid: Lane<S>,
}

impl FunctionTotals {
    pub(super) fn of(weights: &Weights<'_>) -> FunctionTotals {
        // No sum is larger than the largest weight · the lengths of all operations. That of the lengths is below 2^63
        // (`Program::check`) and every |P·weight| below 2^63: 128 bits always suffice, and mostly half of them.
        let length: u64 = weights.path.executed();
        match i64::try_from(u128::from(weights.peak) * u128::from(length)) {
            Ok(_) => walk::<i64>(weights),
            Err(_) => walk::<i128>(weights),
        }
    }

    /// Entries on operations whose weight is not 0, for the CPU count with this place.
    pub fn calls(&self, function: FunctionRef, place: usize) -> u64 {
        let totals = self.totals.get(function.0 as usize);
        totals.and_then(|totals| totals.calls.get(place)).copied().unwrap_or(0)
    }

    /// Σ weight · length with the function on top of the stack.
    pub fn tet(&self, weights: &Weights<'_>, function: FunctionRef, place: usize) -> Scaled {
        let totals = self.totals.get(function.0 as usize);
        weights.unscale(totals.and_then(|totals| totals.tet.get(place)).copied().unwrap_or(0), place)
    }

    /// Σ weight · length of what threads compute while they have this lock; 0 for what is no lock.
    pub fn held(&self, weights: &Weights<'_>, object: ObjectId, place: usize) -> Scaled {
        let total = self.locks.get(object.0 as usize);
        weights.unscale(total.and_then(|total| total.get(place)).copied().unwrap_or(0), place)
    }

    /// Σ weight · length with the function anywhere on the stack, once per operation.
    pub fn tetid(&self, weights: &Weights<'_>, function: FunctionRef, place: usize) -> Scaled {
        let totals = self.totals.get(function.0 as usize);
        weights.unscale(totals.and_then(|totals| totals.tetid.get(place)).copied().unwrap_or(0), place)
    }
}

fn walk<S: Sum>(weights: &Weights<'_>) -> FunctionTotals {
    let functions = weights.path.program.functions.len();
    let mut walk = Walk::<S> {
        totals: vec![Totals::default(); functions],
        open: vec![0; functions],
        stack: Vec::new(),
        entered: Vec::new(),
        so_far: Lane::default(),
        weight: Lane::default(),
        calls: [0; LANES],
        computed: false,
        length: 0,
        held: Held::default(),
    };
    for thread in 0..weights.path.program.threads.len() {
        walk.thread(weights, ThreadId(thread as u32));
    }
    let wide = |totals: Totals<S>| Totals {
        calls: totals.calls,
        tet: totals.tet.map(S::to_wide),
        tetid: totals.tetid.map(S::to_wide),
    };
    let locks = walk.held.totals.into_iter().map(|total| total.map(S::to_wide)).collect();
    FunctionTotals { totals: walk.totals.into_iter().map(wide).collect(), locks }
}

/// Locks: what is computed while they are held, in the same way as what is computed in functions.
#[derive(Default)]
struct Held<S> {
    /// By object.
    totals: Vec<Lane<S>>,
    /// How often the present thread has each object, by object.
    depth: Vec<u32>,
    /// Objects that it has.
    now: Vec<ObjectId>,
}

impl<S: Sum> Held<S> {
    fn take(&mut self, object: ObjectId, so_far: &Lane<S>, objects: usize) {
        if self.totals.is_empty() {
            self.totals.resize(objects, Lane::default());
            self.depth.resize(objects, 0);
        }
        let depth = &mut self.depth[object.0 as usize];
        *depth += 1;
        if *depth == 1 {
            subtract(&mut self.totals[object.0 as usize], so_far);
            self.now.push(object);
        }
    }

    fn give_back(&mut self, object: ObjectId, so_far: &Lane<S>) {
        let Some(depth) = self.depth.get_mut(object.0 as usize).filter(|depth| **depth > 0) else { return };
        *depth -= 1;
        if *depth == 0 {
            add(&mut self.totals[object.0 as usize], so_far);
            self.now.retain(|held| *held != object);
        }
    }

    /// The thread ends, whatever it still has.
    fn ends(&mut self, so_far: &Lane<S>) {
        for object in self.now.drain(..) {
            self.depth[object.0 as usize] = 0;
            add(&mut self.totals[object.0 as usize], so_far);
        }
    }
}

struct Walk<S> {
    totals: Vec<Totals<S>>,
    /// How often each function is on the stack.
    open: Vec<u32>,
    stack: Vec<FunctionRef>,
    /// Functions entered since the last compute operation.
    entered: Vec<FunctionRef>,
    /// C: weight · length of the thread so far, without `length`.
    so_far: Lane<S>,
    /// Weight of the present run.
    weight: Lane<S>,
    /// What an entry in the present run counts: 1 where the weight is not 0.
    calls: [u64; LANES],
    /// Whether the thread has computed: `weight` means something.
    computed: bool,
    /// Length since the last change of run, stack or locks, not yet added.
    length: u64,
    held: Held<S>,
}

impl<S: Sum> Walk<S> {
    fn thread(&mut self, weights: &Weights<'_>, thread: ThreadId) {
        let index = thread.0 as usize;
        let mut runs = weights.path.schedule.runs.of_thread(thread);
        let mut breaks = RunBreaks::default();
        self.so_far = Lane::default();
        self.computed = false;
        let done = weights.path.schedule.done[index];
        for operation in weights.path.program.threads[index].operations.iter().take(done) {
            if breaks.starts_run(operation) {
                self.settle();
                match runs.next().flatten() {
                    Some(run) => self.begin(weights, run),
                    // Another thread computed the `once`.
                    None => continue,
                }
            }
            match *operation {
                Operation::Exec(length) | Operation::Once(_, length) => {
                    self.count_entries();
                    self.length += length.0;
                }
                Operation::ExecIn(function, length) => {
                    self.count_entries();
                    self.settle();
                    self.compute_in(function, length);
                }
                Operation::Call(function) => {
                    self.settle();
                    self.enter(function);
                }
                Operation::Return => {
                    self.settle();
                    self.leave();
                }
                Operation::Held(object, _)
                | Operation::Lock(object)
                | Operation::ReadLock(object)
                | Operation::WriteLock(object)
                | Operation::SpinLock(object) => {
                    self.settle();
                    self.held.take(object, &self.so_far, weights.path.program.objects.len());
                }
                Operation::Freed(object, _)
                | Operation::Unlock(object)
                | Operation::ReadWriteUnlock(object)
                | Operation::SpinUnlock(object) => {
                    self.settle();
                    self.held.give_back(object, &self.so_far);
                }
                _ => {}
            }
        }
        self.settle();
        self.held.ends(&self.so_far);
        while !self.stack.is_empty() {
            self.leave();
        }
        if self.computed {
            self.count_entries();
        }
        self.entered.clear();
    }

    fn begin(&mut self, weights: &Weights<'_>, (point, _): (PointId, Ticks)) {
        let weight = weights.lane(point);
        self.weight = weight.map(|weight| S::from_wide(i128::from(weight)));
        self.calls = weight.map(|weight| u64::from(weight != 0));
        self.computed = true;
    }

    /// Adds what was computed since the last change to the thread's sum and to the function on top.
    #[inline]
    fn settle(&mut self) {
        if self.length == 0 {
            return;
        }
        let product = self.product(self.length);
        self.length = 0;
        add(&mut self.so_far, &product);
        if let Some(top) = self.stack.last() {
            add(&mut self.totals[top.0 as usize].tet, &product);
        }
    }

    #[inline]
    fn product(&self, length: u64) -> Lane<S> {
        let length = S::from_wide(i128::from(length));
        self.weight.map(|weight| weight.times(length))
    }

    fn compute_in(&mut self, function: FunctionRef, length: Ticks) {
        let product = self.product(length.0);
        add(&mut self.so_far, &product);
        let totals = &mut self.totals[function.0 as usize];
        add(&mut totals.tet, &product);
        if self.open[function.0 as usize] == 0 {
            add(&mut totals.tetid, &product);
        }
        add_calls(&mut totals.calls, &self.calls);
    }

    fn enter(&mut self, function: FunctionRef) {
        self.stack.push(function);
        self.entered.push(function);
        let open = &mut self.open[function.0 as usize];
        *open += 1;
        if *open == 1 {
            subtract(&mut self.totals[function.0 as usize].tetid, &self.so_far);
        }
    }

    fn leave(&mut self) {
        // `Program::check` has made sure that there is one.
        let Some(function) = self.stack.pop() else { return };
        let open = &mut self.open[function.0 as usize];
        *open -= 1;
        if *open == 0 {
            add(&mut self.totals[function.0 as usize].tetid, &self.so_far);
        }
    }

    #[inline]
    fn count_entries(&mut self) {
        for function in self.entered.drain(..) {
            add_calls(&mut self.totals[function.0 as usize].calls, &self.calls);
        }
    }
}

#[inline]
fn add_calls(to: &mut [u64; LANES], calls: &[u64; LANES]) {
    for (to, calls) in to.iter_mut().zip(calls) {
        *to = to.wrapping_add(*calls);
    }
}
