//! Calls, TET and TETID per function (2001, section 2.2), one pass over the operations of each thread.
//!
//! A stack of a thousand frames must not cost a thousand additions for each segment. Let C be the sum of weight ·
//! length in the thread so far. The share of a function between its outermost entry and exit is the difference of C
//! between the two.
//!
//! An entry counts on its thread's first computation at or after the call, or if there is none, on the last one before.
//!
//! Where samples show more functions than probes do, self time of the function on top is summed by stratum instead, and
//! finally divided ([`crate::attribution`]).

use super::lanes::{LANES, Lane, Scaled, Sum, add, subtract};
use super::pieces::Walked;
use super::weights::Weights;
use crate::attribution::{Attribution, Errors, NO_KEY, NO_STRATUM, divide, part};
use crate::program::{FunctionRef, ObjectId, Operation, RunBreaks, ThreadId};
use crate::schedule::PointId;
use crate::time::Ticks;

/// Sums of all rows for up to eight CPU counts. Rows are functions, unless grouped otherwise.
#[derive(Debug)]
pub struct FunctionTotals<const N: usize = LANES> {
    totals: Vec<Totals<i128, N>>,
    /// For each row: the possible error from samples; empty without samples.
    errors: Vec<RowErrors<N>>,
    /// For each object: weight · length computed while it was held; empty if the program has no locks.
    locks: Vec<Lane<i128, N>>,
}

#[derive(Clone, Copy, Debug)]
struct Totals<S, const N: usize> {
    calls: [u64; N],
    tet: Lane<S, N>,
    tetid: Lane<S, N>,
}

impl<S: Sum, const N: usize> Totals<S, N> {
    fn none() -> Totals<S, N> {
        Totals { calls: [0; N], tet: [S::default(); N], tetid: [S::default(); N] }
    }
}

#[derive(Clone, Copy, Debug)]
struct RowErrors<const N: usize> {
    tet: [Errors; N],
    tetid: [Errors; N],
}

impl<const N: usize> FunctionTotals<N> {
    pub(super) fn of(weights: &Weights<'_, N>, attribution: &Attribution) -> FunctionTotals<N> {
        // No sum exceeds the largest weight · the sum of all lengths. The latter is below 2^63 (`Program::check`), and so is
        // each scaled weight: 128 bits always suffice, and mostly 64 do.
        let length: u64 = weights.executed;
        match i64::try_from(u128::from(weights.peak) * u128::from(length)) {
            Ok(_) => walk::<i64, N>(weights, attribution),
            Err(_) => walk::<i128, N>(weights, attribution),
        }
    }

    /// Number of entries on operations with a weight other than 0, for the CPU count with this index.
    pub fn calls(&self, row: usize, place: usize) -> u64 {
        self.totals.get(row).and_then(|totals| totals.calls.get(place)).copied().unwrap_or(0)
    }

    /// Σ weight · length with the row on top of the stack.
    pub fn tet(&self, weights: &Weights<'_, N>, row: usize, place: usize) -> Scaled {
        let totals = self.totals.get(row);
        weights.unscale(totals.and_then(|totals| totals.tet.get(place)).copied().unwrap_or(0), place)
    }

    /// Σ weight · length of computing with this lock held; 0 for objects that are not locks.
    pub fn held(&self, weights: &Weights<'_, N>, object: ObjectId, place: usize) -> Scaled {
        let total = self.locks.get(object.0 as usize);
        weights.unscale(total.and_then(|total| total.get(place)).copied().unwrap_or(0), place)
    }

    /// Σ weight · length with the row anywhere on the stack, once per operation.
    pub fn tetid(&self, weights: &Weights<'_, N>, row: usize, place: usize) -> Scaled {
        let totals = self.totals.get(row);
        weights.unscale(totals.and_then(|totals| totals.tetid.get(place)).copied().unwrap_or(0), place)
    }

    /// Half-widths in nanoseconds of the 95 % intervals around [`FunctionTotals::tet`] and [`FunctionTotals::tetid`], and the
    /// number of samples in the row.
    ///
    /// `None` for an exact number.
    pub fn error_ns(
        &self,
        weights: &Weights<'_, N>,
        row: usize,
        place: usize,
    ) -> (Option<f64>, Option<f64>, u64) {
        let Some(errors) = self.errors.get(row) else { return (None, None, 0) };
        let of = |lanes: &[Errors; N]| lanes.get(place).copied().unwrap_or_default();
        let (tet, tetid) = (of(&errors.tet), of(&errors.tetid));
        let one = weights.unscale(1, place).as_ns_f64();
        let ns = |errors: &Errors| errors.half_width().map(|width| width * one);
        (ns(&tet), ns(&tetid), tet.samples().max(tetid.samples()))
    }
}

fn walk<'a, S: Sum, const N: usize>(
    weights: &Weights<'a, N>,
    attribution: &'a Attribution,
) -> FunctionTotals<N> {
    let rows = attribution.keys.len();
    let walked = weights.walked();
    let mut walk = Walk::<S, N> {
        attribution,
        totals: vec![Totals::none(); rows],
        open: vec![0; rows],
        stack: Vec::new(),
        entered: Vec::new(),
        so_far: [S::default(); N],
        weight: [S::default(); N],
        walked,
        calls: [0; N],
        computed: false,
        length: 0,
        held: Held { totals: Vec::new(), depth: Vec::new(), now: Vec::new() },
        stratum: NO_STRATUM,
        strata: vec![[S::default(); N]; attribution.strata.strata.len()],
        undivided: vec![[S::default(); N]; if attribution.strata.strata.is_empty() { 0 } else { rows }],
    };
    for thread in 0..weights.program.threads.len() {
        walk.thread(weights, ThreadId(thread as u32));
    }
    let wide = |totals: Totals<S, N>| Totals {
        calls: totals.calls,
        tet: totals.tet.map(S::to_wide),
        tetid: totals.tetid.map(S::to_wide),
    };
    let locks = walk.held.totals.into_iter().map(|total| total.map(S::to_wide)).collect();
    let strata: Vec<Lane<i128, N>> = walk.strata.into_iter().map(|sum| sum.map(S::to_wide)).collect();
    let undivided: Vec<Lane<i128, N>> = walk.undivided.into_iter().map(|sum| sum.map(S::to_wide)).collect();
    let mut totals =
        FunctionTotals { totals: walk.totals.into_iter().map(wide).collect(), errors: Vec::new(), locks };
    totals.spread(attribution, &strata);
    for (errors, undivided) in totals.errors.iter_mut().zip(&undivided) {
        for (errors, undivided) in errors.tet.iter_mut().zip(undivided) {
            errors.add_undivided(*undivided as f64);
        }
    }
    totals
}

impl<const N: usize> FunctionTotals<N> {
    /// Divides the sums of strata among rows by samples.
    fn spread(&mut self, attribution: &Attribution, sums: &[Lane<i128, N>]) {
        if sums.is_empty() {
            return;
        }
        let none = RowErrors { tet: [Errors::default(); N], tetid: [Errors::default(); N] };
        self.errors = vec![none; self.totals.len()];
        for (stratum, sum) in attribution.strata.strata.iter().zip(sums) {
            for share in divide(&attribution.keys, &attribution.strata, stratum) {
                let row = (self.totals.get_mut(share.key as usize), self.errors.get_mut(share.key as usize));
                let (Some(totals), Some(errors)) = row else { continue };
                for (place, whole) in sum.iter().enumerate() {
                    let upto = |count| part(*whole, count, stratum.samples);
                    totals.tet[place] = totals.tet[place]
                        .plus(upto(share.own_before + share.own).minus(upto(share.own_before)));
                    errors.tet[place].add(*whole as f64, share.own, stratum.samples);
                    if share.within > 0 {
                        totals.tetid[place] = totals.tetid[place].plus(upto(share.within));
                        errors.tetid[place].add(*whole as f64, share.within, stratum.samples);
                    }
                }
            }
        }
    }
}

/// Computing while locks are held, summed in the same way as computing in functions.
struct Held<S, const N: usize> {
    /// For each object: the sum of weight · length while it was held.
    totals: Vec<Lane<S, N>>,
    /// For each object: how many times the current thread holds it.
    depth: Vec<u32>,
    /// Objects that the thread holds.
    now: Vec<ObjectId>,
}

impl<S: Sum, const N: usize> Held<S, N> {
    fn take(&mut self, object: ObjectId, so_far: &Lane<S, N>, objects: usize) {
        if self.totals.is_empty() {
            self.totals.resize(objects, [S::default(); N]);
            self.depth.resize(objects, 0);
        }
        let depth = &mut self.depth[object.0 as usize];
        *depth += 1;
        if *depth == 1 {
            subtract(&mut self.totals[object.0 as usize], so_far);
            self.now.push(object);
        }
    }

    fn give_back(&mut self, object: ObjectId, so_far: &Lane<S, N>) {
        let Some(depth) = self.depth.get_mut(object.0 as usize).filter(|depth| **depth > 0) else { return };
        *depth -= 1;
        if *depth == 0 {
            add(&mut self.totals[object.0 as usize], so_far);
            self.now.retain(|held| *held != object);
        }
    }

    /// Ends a thread, which releases all locks that it holds.
    fn ends(&mut self, so_far: &Lane<S, N>) {
        for object in self.now.drain(..) {
            self.depth[object.0 as usize] = 0;
            add(&mut self.totals[object.0 as usize], so_far);
        }
    }
}

struct Walk<'a, S, const N: usize> {
    attribution: &'a Attribution,
    totals: Vec<Totals<S, N>>,
    /// Number of times that each row is on the stack.
    open: Vec<u32>,
    stack: Vec<FunctionRef>,
    /// Rows entered since the last compute operation.
    entered: Vec<u32>,
    /// C: weight · length of the thread so far, without `length`.
    so_far: Lane<S, N>,
    /// Weight of the current run of computations.
    weight: Lane<S, N>,
    /// Which parts of runs are on paths; `None` unless weights are from paths.
    walked: Option<Walked<'a, N>>,
    /// How much an entry into a function in the current run counts as a call: 1 if the run's weight is not 0.
    calls: [u64; N],
    /// Whether the thread has computed, so that `weight` is valid.
    computed: bool,
    /// Length of computing since the last change of run, stack or locks, not yet added.
    length: u64,
    held: Held<S, N>,
    /// Stratum of the current operation.
    stratum: u32,
    /// Σ weight · length of each stratum.
    strata: Vec<Lane<S, N>>,
    /// For each row: self time that is not divided because there are too few samples; empty without samples.
    undivided: Vec<Lane<S, N>>,
}

impl<S: Sum, const N: usize> Walk<'_, S, N> {
    fn thread(&mut self, weights: &Weights<'_, N>, thread: ThreadId) {
        let index = thread.0 as usize;
        let mut runs = weights.runs.of_thread(thread);
        let mut breaks = RunBreaks::default();
        self.so_far = [S::default(); N];
        self.computed = false;
        let done = weights.done[index];
        let is_sampled = !self.strata.is_empty();
        let operations = weights.program.threads[index].operations.iter();
        for (number, operation) in operations.enumerate().take(done) {
            if breaks.starts_run(operation) {
                self.settle();
                match runs.next().flatten() {
                    Some(run) => self.begin(weights, run),
                    // Another thread ran the `once` code.
                    None => continue,
                }
            }
            match *operation {
                Operation::Exec(length) | Operation::Once(_, length) => {
                    if is_sampled {
                        self.goes_on_in(self.attribution.strata.slot(index, number));
                    }
                    self.count_entries();
                    self.length += length.0;
                }
                Operation::ExecIn(function, length) => {
                    self.count_entries();
                    self.settle();
                    self.stratum = self.attribution.strata.slot(index, number);
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
                    self.held.take(object, &self.so_far, weights.program.objects.len());
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

    /// Sets the stratum of the next computing.
    #[inline]
    fn goes_on_in(&mut self, stratum: u32) {
        if stratum != self.stratum {
            self.settle();
            self.stratum = stratum;
        }
    }

    fn begin(&mut self, weights: &Weights<'_, N>, (point, _): (PointId, Ticks)) {
        self.computed = true;
        if let Some(walked) = &mut self.walked {
            self.calls = walked.begin(point).map(u64::from);
            return;
        }
        let weight = weights.lane(point);
        self.weight = weight.map(|weight| S::from_wide(i128::from(weight)));
        self.calls = weight.map(|weight| u64::from(weight != 0));
    }

    /// Adds the computing since the last change to the thread's sum and to the function on top.
    #[inline]
    fn settle(&mut self) {
        if self.length == 0 {
            return;
        }
        let product = self.product(self.length);
        self.length = 0;
        add(&mut self.so_far, &product);
        self.owned(self.stack.last().copied(), &product);
    }

    /// Adds compute time to its stratum if it has one, else to the function on top of the stack.
    #[inline]
    fn owned(&mut self, top: Option<FunctionRef>, product: &Lane<S, N>) {
        if let Some(sum) = self.strata.get_mut(self.stratum as usize) {
            add(sum, product);
        } else if let Some(top) = top
            && let Some(totals) = self.totals.get_mut(self.attribution.keys.own(top) as usize)
        {
            add(&mut totals.tet, product);
            if let Some(undivided) = self.undivided.get_mut(self.attribution.keys.own(top) as usize) {
                add(undivided, product);
            }
        }
    }

    #[inline]
    fn product(&mut self, length: u64) -> Lane<S, N> {
        if let Some(walked) = &mut self.walked {
            return walked.pass(length).map(|on_path| S::from_wide(i128::from(on_path)));
        }
        let length = S::from_wide(i128::from(length));
        self.weight.map(|weight| weight.times(length))
    }

    fn compute_in(&mut self, function: FunctionRef, length: Ticks) {
        let product = self.product(length.0);
        add(&mut self.so_far, &product);
        self.owned(Some(function), &product);
        let row = self.attribution.keys.opened_by(function) as usize;
        if self.open.get(row) == Some(&0) {
            add(&mut self.totals[row].tetid, &product);
        }
        if let Some(totals) = self.totals.get_mut(row) {
            add_calls(&mut totals.calls, &self.calls);
        }
    }

    fn enter(&mut self, function: FunctionRef) {
        self.stack.push(function);
        let row = self.attribution.keys.opened_by(function);
        if row == NO_KEY {
            return;
        }
        self.entered.push(row);
        let open = &mut self.open[row as usize];
        *open += 1;
        if *open == 1 {
            subtract(&mut self.totals[row as usize].tetid, &self.so_far);
        }
    }

    fn leave(&mut self) {
        // `Program::check` guarantees a call.
        let Some(function) = self.stack.pop() else { return };
        let row = self.attribution.keys.opened_by(function);
        if row == NO_KEY {
            return;
        }
        let open = &mut self.open[row as usize];
        *open -= 1;
        if *open == 0 {
            add(&mut self.totals[row as usize].tetid, &self.so_far);
        }
    }

    #[inline]
    fn count_entries(&mut self) {
        for row in self.entered.drain(..) {
            add_calls(&mut self.totals[row as usize].calls, &self.calls);
        }
    }
}

#[inline]
fn add_calls<const N: usize>(to: &mut [u64; N], calls: &[u64; N]) {
    for (to, calls) in to.iter_mut().zip(calls) {
        *to = to.wrapping_add(*calls);
    }
}
