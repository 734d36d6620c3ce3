//! Predicted times for changes of single functions and locks, for a slider: each step is simulated beforehand.

use crate::page::{Curve, Stop};
use engine::attribution::Owners;
use engine::experiment::{Edit, edited};
use engine::predict::{Model, Timing};
use engine::program::{FunctionRef, ObjectId, Program, is_start_up};
use engine::report::{Cpus, Report};

/// Largest number of functions and locks with changes.
const MOST: usize = 20;
/// Prefers this many sliders with fewer steps to fewer sliders with more steps.
const FEW: usize = 3;
/// Largest number of operations simulated for all curves together: a large program has fewer curves, with fewer steps.
const OPERATIONS: usize = 200_000_000;

/// The steps of a slider.
struct Steps {
    /// Parts of a function that remain.
    factors: &'static [f64],
    /// Numbers of locks into which one lock is split.
    parts: &'static [u32],
}

const ALL: Steps = Steps { factors: &[0.9, 0.8, 0.5, 0.0], parts: &[2, 4, 8] };
const SOME: Steps = Steps { factors: &[0.5, 0.0], parts: &[2, 8] };
const ONE: Steps = Steps { factors: &[0.5], parts: &[8] };

/// Curves for the functions with the largest share of the critical path on any CPU count, and for the locks with the
/// longest waits: as many as there is time for. Functions and locks that cannot be changed have none. `report` is that
/// of `program`.
pub fn curves(program: &Program, owners: &Owners, report: &Report, model: &Model) -> Vec<Curve> {
    let cpus: Vec<Cpus> = report.results.iter().map(|result| result.cpus).collect();
    let operations: usize = program.threads.iter().map(|thread| thread.operations.len()).sum();
    let most = |steps: &Steps| {
        let of_one = operations.saturating_mul(cpus.len() * steps.factors.len()).max(1);
        (OPERATIONS / of_one).min(MOST)
    };
    let steps = [ALL, SOME].into_iter().find(|steps| most(steps) >= FEW).unwrap_or(ONE);
    let most = most(&steps);
    let locks: Vec<Change> = locks(report, program, most / 3);
    let functions = functions(report, program).into_iter().take(most - locks.len());
    let changes: Vec<Change> = functions.chain(locks).collect();
    let simulated: Vec<(Change, f64)> = changes.iter().flat_map(|change| change.each(&steps)).collect();
    let found = super::on_all_cores(&simulated, |(change, value)| {
        let after = edited(program, &[change.edit(owners, *value)]).ok()?;
        let timing = Timing::new(&after, model).ok()?;
        let times_ns = cpus.iter().map(|cpus| timing.time_ns(*cpus)).collect();
        Some(Stop { value: *value, times_ns })
    });
    let mut found = found.into_iter();
    let before = Stop { value: 1.0, times_ns: report.results.iter().map(|result| result.time_ns).collect() };
    let curve = |change: Change| {
        let after: Vec<Option<Stop>> = found.by_ref().take(change.each(&steps).len()).collect();
        let after: Vec<Stop> = after.into_iter().collect::<Option<_>>()?;
        let stops = std::iter::once(before.clone()).chain(after).collect();
        let (kind, name) = change.named(program)?;
        Some(Curve { kind, name: name.clone(), stops })
    };
    changes.into_iter().filter_map(curve).collect()
}

#[derive(Clone, Copy)]
enum Change {
    Function(FunctionRef),
    Lock(ObjectId),
}

impl Change {
    fn each(self, steps: &Steps) -> Vec<(Change, f64)> {
        match self {
            Change::Function(_) => steps.factors.iter().map(|factor| (self, *factor)).collect(),
            Change::Lock(_) => steps.parts.iter().map(|parts| (self, f64::from(*parts))).collect(),
        }
    }

    fn edit(self, owners: &Owners, value: f64) -> Edit {
        match self {
            Change::Function(function) => Edit::Scale(owners.owned_by(function), value),
            Change::Lock(lock) => Edit::SplitLock(lock, value as u32),
        }
    }

    fn named(self, program: &Program) -> Option<(&'static str, &String)> {
        match self {
            Change::Function(function) => {
                Some(("function", &program.functions.get(function.0 as usize)?.name))
            }
            Change::Lock(lock) => Some(("lock", program.objects.get(lock.0 as usize)?)),
        }
    }
}

fn functions(report: &Report, program: &Program) -> Vec<Change> {
    let largest = report.largest_shares(|row| row.tet_ns);
    // Functions that only start threads cannot be made faster.
    let known = (0..).zip(&program.functions).filter(|(_, function)| !is_start_up(&function.name));
    let share = |name: &str| largest.get(name).copied().unwrap_or(0.0);
    let mut shares: Vec<(f64, FunctionRef)> =
        known.map(|(number, function)| (share(&function.name), FunctionRef(number))).collect();
    shares.retain(|(share, _)| *share > 0.0);
    shares.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.0.cmp(&b.1.0)));
    shares.into_iter().map(|(_, function)| Change::Function(function)).collect()
}

/// Locks with waits, the longest first, at most `most`.
fn locks(report: &Report, program: &Program, most: usize) -> Vec<Change> {
    let mut waited: Vec<(f64, &str)> = report
        .locks
        .iter()
        .filter_map(|row| Some((row.wait_ns?, row.lock.as_str())))
        .filter(|(waited, _)| *waited > 0.0)
        .collect();
    waited.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let number = |lock: &str| program.objects.iter().position(|object| object == lock);
    let numbers = waited.into_iter().filter_map(|(_, lock)| u32::try_from(number(lock)?).ok());
    numbers.take(most).map(|number| Change::Lock(ObjectId(number))).collect()
}
