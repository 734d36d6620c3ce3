//! Calls, TET and TETID per function (2001, section 2.2), one pass over the operations of each thread.
//!
//! A stack a thousand frames deep must not cost a thousand additions per segment: with C the sum of weight · length of
//! the thread so far, the share of a function between its outermost entry and exit is the difference of C at the two.
//!
//! An entry counts on the first compute operation that its thread does at or after the call (after the last one: on that).

use super::lanes::{LANES, Lane, Scaled, WideLane, add_product, add_wide, subtract_wide};
use super::weights::Weights;
use crate::program::{FunctionRef, Operation, ThreadId};
use crate::schedule::{PointId, RunBreaks};
use crate::time::Ticks;

/// Sums of all functions for up to eight CPU counts, exact.
#[derive(Debug)]
pub struct FunctionTotals {
    totals: Vec<Totals>,
}

#[derive(Clone, Copy, Debug)]
struct Totals {
    calls: [u64; LANES],
    tet: WideLane,
    tetid: WideLane,
}

const NOTHING: Totals = Totals { calls: [0; LANES], tet: [0; LANES], tetid: [0; LANES] };

impl FunctionTotals {
    pub(super) fn of(weights: &Weights<'_>) -> FunctionTotals {
        let functions = weights.path.program.functions.len();
        let mut walk = Walk {
            totals: vec![NOTHING; functions],
            open: vec![0; functions],
            stack: Vec::new(),
            entered: Vec::new(),
            so_far: [0; LANES],
            weight: [0; LANES],
            computed: false,
            length: 0,
        };
        for thread in 0..weights.path.program.threads.len() {
            walk.thread(weights, ThreadId(thread as u32));
        }
        FunctionTotals { totals: walk.totals }
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

    /// Σ weight · length with the function anywhere on the stack, once per operation.
    pub fn tetid(&self, weights: &Weights<'_>, function: FunctionRef, place: usize) -> Scaled {
        let totals = self.totals.get(function.0 as usize);
        weights.unscale(totals.and_then(|totals| totals.tetid.get(place)).copied().unwrap_or(0), place)
    }
}

struct Walk {
    totals: Vec<Totals>,
    /// How often each function is on the stack.
    open: Vec<u32>,
    stack: Vec<FunctionRef>,
    /// Functions entered since the last compute operation.
    entered: Vec<FunctionRef>,
    /// C: weight · length of the thread so far, without `length`.
    so_far: WideLane,
    /// Weight of the present run.
    weight: Lane,
    /// Whether the thread has computed: `weight` means something.
    computed: bool,
    /// Length since the last change of run or stack, not yet added.
    length: u64,
}

impl Walk {
    fn thread(&mut self, weights: &Weights<'_>, thread: ThreadId) {
        let index = thread.0 as usize;
        let mut runs = weights.path.schedule.runs.of_thread(thread);
        let mut breaks = RunBreaks::default();
        self.so_far = [0; LANES];
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
                _ => {}
            }
        }
        self.settle();
        while !self.stack.is_empty() {
            self.leave();
        }
        if self.computed {
            self.count_entries();
        }
        self.entered.clear();
    }

    fn begin(&mut self, weights: &Weights<'_>, (point, _): (PointId, Ticks)) {
        self.weight = weights.values[point.index()];
        self.computed = true;
    }

    /// Adds what was computed since the last change to the thread's sum and to the function on top.
    #[inline]
    fn settle(&mut self) {
        if self.length == 0 {
            return;
        }
        let mut product = [0; LANES];
        add_product(&mut product, &self.weight, self.length);
        self.length = 0;
        add_wide(&mut self.so_far, &product);
        if let Some(top) = self.stack.last() {
            add_wide(&mut self.totals[top.0 as usize].tet, &product);
        }
    }

    fn compute_in(&mut self, function: FunctionRef, length: Ticks) {
        let mut product = [0; LANES];
        add_product(&mut product, &self.weight, length.0);
        add_wide(&mut self.so_far, &product);
        let totals = &mut self.totals[function.0 as usize];
        add_wide(&mut totals.tet, &product);
        if self.open[function.0 as usize] == 0 {
            add_wide(&mut totals.tetid, &product);
        }
        count_entry(totals, &self.weight);
    }

    fn enter(&mut self, function: FunctionRef) {
        self.stack.push(function);
        self.entered.push(function);
        let open = &mut self.open[function.0 as usize];
        *open += 1;
        if *open == 1 {
            subtract_wide(&mut self.totals[function.0 as usize].tetid, &self.so_far);
        }
    }

    fn leave(&mut self) {
        // `Program::check` has made sure that there is one.
        let Some(function) = self.stack.pop() else { return };
        let open = &mut self.open[function.0 as usize];
        *open -= 1;
        if *open == 0 {
            add_wide(&mut self.totals[function.0 as usize].tetid, &self.so_far);
        }
    }

    #[inline]
    fn count_entries(&mut self) {
        for function in self.entered.drain(..) {
            count_entry(&mut self.totals[function.0 as usize], &self.weight);
        }
    }
}

fn count_entry(totals: &mut Totals, weight: &Lane) {
    for (calls, weight) in totals.calls.iter_mut().zip(weight) {
        *calls += u64::from(*weight != 0);
    }
}
