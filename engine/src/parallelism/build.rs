//! Makes rows from the accounts: converts to integer nanoseconds, adds names, sorts.

use super::balance::{Balance, Meter, Total};
use super::clock::{PHASES, SCALE, busy_at};
use super::result::{
    AwaitedObject, Link, Parallelism, ParallelismRow, ParallelismRowKind, StateTime, StateTimes,
};
use super::round::{apportion, nearest};
use super::spread::RowErrors;
use crate::program::{Function, Operation, Program, words};
use crate::time::Ticks;

/// Parts of a tick in a nanosecond.
pub(super) const NS: u128 = SCALE * Ticks::PER_NS as u128;

/// Name of the row for recording's own time in a measured run.
const RECORDING: &str = "[longpole]";

/// Makes the rows of a run, whose parts of functions' time have been divided.
pub(super) fn build(program: &Program, balance: &Balance, errors: &[RowErrors]) -> Parallelism {
    let elapsed_ns = nearest(u128::from(balance.now), u128::from(Ticks::PER_NS));
    let ticks: Vec<u128> = balance.levels.iter().map(|ticks| u128::from(*ticks)).collect();
    let levels = apportion(&ticks, u128::from(Ticks::PER_NS), elapsed_ns);
    let places = balance.places;
    let own_of = |rows: std::ops::Range<u32>| own_cells(balance, rows, &levels);
    let mut builder = Builder { balance, errors, named: program.functions.len() as u32, rows: Vec::new() };
    let functions = own_of(0..places.outside() + 1);
    for (function, cells) in (0..).zip(functions) {
        let known = program.functions.get(function as usize);
        let mut row = builder.row(function, &cells);
        let own = (function < places.outside()).then(|| RECORDING.to_owned());
        row.name = known.map(|function| function.name.clone()).or(own);
        row.location = known.and_then(|function| function.location.clone());
        if known.is_none_or(|function| function.sampled) {
            row.calls = None;
        }
        row.is_foreign = known.is_none_or(is_foreign);
        builder.rows.push(row);
    }
    let objects = objects(program);
    let mut names = program.objects.iter().map(String::as_str).chain(words(program));
    for (number, object) in (0..places.objects).zip(&objects) {
        let place = places.object(number);
        let cells = rounded(&builder.meter(place).normalized);
        let mut row = builder.row(place, &cells);
        (row.kind, row.of) = (object.kind(), *object);
        row.name = names.next().map(str::to_owned);
        let queue = balance.queues.get(number as usize).map_or(&[][..], |queue| &queue.lengths);
        let ns = queue.iter().map(|ticks| nearest(u128::from(*ticks), u128::from(Ticks::PER_NS)));
        row.queue = pairs(ns);
        builder.rows.push(row);
    }
    let threads = own_of(places.thread(0)..places.part(0));
    for (number, cells) in (0..).zip(threads) {
        let mut row = builder.row(places.thread(number), &cells);
        (row.kind, row.calls) = (ParallelismRowKind::Thread, Some(1));
        row.name = program.threads.get(number as usize).map(|thread| thread.name.clone());
        builder.rows.push(row);
    }
    builder.link();
    let mut rows: Vec<ParallelismRow> =
        builder.rows.into_iter().filter(ParallelismRow::has_anything).collect();
    rows.sort_by(|a, b| a.order().cmp(&b.order()).then_with(|| a.name.cmp(&b.name)));
    let nobody_busy_ns = levels.first().copied().unwrap_or(0);
    Parallelism {
        elapsed_ns,
        nobody_busy_ns,
        levels: by_busy(&levels),
        threads: places.threads,
        samples: program.samples.count(),
        rows,
        trust: program.trust,
        findings: program.findings.clone(),
        ..Parallelism::default()
    }
}

/// Code that a user who tunes a program does not change.
fn is_foreign(function: &Function) -> bool {
    !function.is_authors() || function.is_outermost()
}

impl ParallelismRow {
    fn has_anything(&self) -> bool {
        let states =
            |states: &StateTimes| states.busy.ns | states.spinning.ns | states.blocked.ns | states.ready.ns;
        self.calls.is_some_and(|calls| calls > 0) || states(&self.own) | states(&self.total) > 0
    }

    /// The order of rows: functions, objects, threads; in each, the largest times first.
    fn order(&self) -> (u8, std::cmp::Reverse<(u64, u64, u64)>) {
        let class = match self.kind {
            ParallelismRowKind::Function => 0,
            ParallelismRowKind::Lock | ParallelismRowKind::Barrier | ParallelismRowKind::Condition => 1,
            ParallelismRowKind::Thread => 2,
        };
        let waited = self.own.blocked.ns.saturating_add(self.own.spinning.ns);
        (class, std::cmp::Reverse((self.normalized_total_ns, self.normalized_self_ns, waited)))
    }
}

/// Self times of the rows that together have all busy time, by the number of busy processors, in nanoseconds. All rows add up
/// to the time in which any thread is busy, and each is within a nanosecond of its exact value.
fn own_cells(balance: &Balance, rows: std::ops::Range<u32>, levels: &[u64]) -> Vec<Vec<u64>> {
    let busy_ns = levels.iter().skip(1).sum();
    let cells = rows.map(|row| balance.meters.get(row as usize).map_or(&[][..], |meter| &meter.normalized));
    let cells: Vec<&[u128]> = cells.collect();
    let sums: Vec<u128> = cells.iter().map(|cells| cells.iter().sum()).collect();
    let sums = apportion(&sums, NS, busy_ns);
    cells.iter().zip(sums).map(|(cells, ns)| apportion(cells, NS, ns)).collect()
}

/// One row's time in integer nanoseconds for each number of busy processors. They add up to the row's sum, rounded to
/// the nearest nanosecond.
fn rounded(normalized: &[u128]) -> Vec<u64> {
    let sum = normalized.iter().fold(0u128, |sum, cell| sum.wrapping_add(*cell));
    apportion(normalized, NS, nearest(sum, NS))
}

/// Pairs of a number of busy processors and its value; `values` are by place of that number.
fn by_busy(values: &[u64]) -> Vec<(u32, u64)> {
    let told = values.iter().enumerate().filter(|(_, value)| **value > 0);
    told.map(|(place, value)| (busy_at(place), *value)).collect()
}

fn pairs(values: impl Iterator<Item = u64>) -> Vec<(u32, u64)> {
    (0u32..).zip(values).filter(|(_, value)| *value > 0).collect()
}

struct Builder<'a> {
    balance: &'a Balance,
    errors: &'a [RowErrors],
    /// Number of functions with names; the rows after them are recording's own time and code outside of functions.
    named: u32,
    /// The rows, in the order of the accounts' row numbers.
    rows: Vec<ParallelismRow>,
}

impl Builder<'_> {
    fn meter(&self, place: u32) -> &Meter {
        const NONE: &Meter = &Meter {
            normalized: Vec::new(),
            by_runnable: [const { Vec::new() }; PHASES],
            runnable: [0; PHASES],
        };
        self.balance.meters.get(place as usize).unwrap_or(NONE)
    }

    fn row(&self, place: u32, cells: &[u64]) -> ParallelismRow {
        let meter = self.meter(place);
        let none = Total::default();
        let total = self.balance.totals.get(place as usize).unwrap_or(&none);
        let own_ns = cells.iter().sum();
        let is_outside = (self.named..=self.balance.places.outside()).contains(&place);
        // Code outside of functions is on no stack, so time on its behalf is only its self time.
        let total_cells = if is_outside { cells.to_vec() } else { rounded(&total.normalized) };
        let total_cells = at_least(total_cells, cells);
        let errors = self.errors.get(place as usize).copied().unwrap_or_default();
        let ns = |width: Option<f64>| width.map(|width| width / NS as f64);
        let time = meter.time();
        let own = |place: usize| StateTime {
            ns: nearest(time[place], NS),
            runnable: mean(meter.runnable[place], time[place]),
            by_runnable: pairs(meter.by_runnable[place].iter().map(|time| nearest(*time, NS))),
        };
        let whole = |place: usize| {
            if is_outside {
                return own(place);
            }
            let runnable = mean(total.runnable[place], total.time[place]);
            StateTime { ns: nearest(total.time[place], NS), runnable, by_runnable: Vec::new() }
        };
        let states = |of: &dyn Fn(usize) -> StateTime| StateTimes {
            busy: of(0),
            spinning: of(1),
            ready: of(2),
            blocked: of(3),
        };
        ParallelismRow {
            normalized_self_ns: own_ns,
            normalized_total_ns: total_cells.iter().sum(),
            normalized_others_ns: self
                .balance
                .others
                .get(place as usize)
                .map_or(0, |time| nearest(*time, NS)),
            error_self_ns: ns(errors.own.half_width()),
            error_total_ns: ns(errors.total.half_width()),
            own: states(&own),
            total: states(&whole),
            calls: self.balance.calls.get(place as usize).copied(),
            by_busy: by_busy(cells),
            total_by_busy: by_busy(&total_cells),
            ..ParallelismRow::default()
        }
    }

    /// Adds callers and callees, and the functions that run while an object is held.
    fn link(&mut self) {
        let named = |row: u32| self.rows.get(row as usize).map(|row| (row.name.clone(), row.kind));
        let mut links: Vec<(u32, bool, Link)> = Vec::new();
        let places = self.balance.places;
        for (&(caller, callee), arc) in &self.balance.arcs {
            let normalized_ns = nearest(arc.normalized, NS);
            if arc.calls == 0 && normalized_ns == 0 {
                continue;
            }
            let link = |(name, kind)| Link { name, kind, calls: arc.calls, normalized_ns };
            links.extend(named(caller).map(|other| (callee, true, link(other))));
            if !places.is_object(caller) {
                links.extend(named(callee).map(|other| (caller, false, link(other))));
            }
        }
        // Functions that run while an object is the innermost one count as the object's callees.
        for (&(function, object), normalized) in &self.balance.within {
            let normalized_ns = nearest(*normalized, NS);
            let calls = self.balance.arcs.get(&(object, function)).map_or(0, |arc| arc.calls);
            if normalized_ns > 0 {
                let link = |(name, kind)| Link { name, kind, calls, normalized_ns };
                links.extend(named(function).map(|other| (object, false, link(other))));
            }
        }
        links.sort_by(|a, b| b.2.normalized_ns.cmp(&a.2.normalized_ns).then_with(|| a.2.name.cmp(&b.2.name)));
        for (row, is_caller, link) in links {
            let Some(row) = self.rows.get_mut(row as usize) else { continue };
            if is_caller { row.callers.push(link) } else { row.callees.push(link) }
        }
    }
}

/// Makes the total at least as large as the self time. Rounding both separately may make it smaller.
fn at_least(total: Vec<u64>, own: &[u64]) -> Vec<u64> {
    if total.iter().sum::<u64>() < own.iter().sum() { own.to_vec() } else { total }
}

fn mean(sum: u128, time: u128) -> f64 {
    if time == 0 { 0.0 } else { sum as f64 / time as f64 }
}

/// The kind of each object, derived from what threads do with it.
fn objects(program: &Program) -> Vec<AwaitedObject> {
    use AwaitedObject as A;
    let mut objects = vec![A::None; program.objects.len()];
    for operation in program.threads.iter().flat_map(|thread| &thread.operations) {
        let (object, of) = match *operation {
            Operation::Lock(object) => (object, A::Mutex),
            Operation::CondWait(object, mutex) => {
                set(&mut objects, mutex.0, A::Mutex);
                (object, A::ConditionVariable)
            }
            Operation::Held(object, _) => (object, A::Lock),
            Operation::ReadLock(object) | Operation::WriteLock(object) => (object, A::ReadWriteLock),
            Operation::SpinLock(object) => (object, A::SpinLock),
            Operation::Barrier(object, _) => (object, A::Barrier),
            Operation::SemWait(object) => (object, A::Semaphore),
            Operation::Wait(object) => (object, A::Event),
            Operation::Once(object, _) => (object, A::Once),
            Operation::Io(object, _) if program.meaning(object).is_time() => (object, A::Timer),
            Operation::Io(object, _) => (object, A::Device),
            _ => continue,
        };
        set(&mut objects, object.0, of);
    }
    objects.extend(words(program).map(|_| A::Futex));
    objects
}

fn set(objects: &mut [AwaitedObject], number: u32, of: AwaitedObject) {
    let object = objects.get_mut(number as usize).filter(|object| **object == AwaitedObject::None);
    if let Some(object) = object {
        *object = of;
    }
}
