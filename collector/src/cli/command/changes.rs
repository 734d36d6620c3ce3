//! What changes of single functions and locks bring, for somebody who moves a slider: each step is simulated beforehand.

use crate::page::{Curve, Stop};
use engine::attribution::is_start_up;
use engine::predict::{Model, Timing};
use engine::program::{FunctionRef, ObjectId, Program};
use engine::report::{Cpus, Report};
use engine::what_if::{Edit, edited};

/// Functions and locks at most.
const MOST: usize = 20;
/// What is left of a function.
const FACTORS: [f64; 4] = [0.9, 0.8, 0.5, 0.0];
/// How many locks there are instead of one.
const PARTS: [u32; 3] = [2, 4, 8];
/// Operations simulated for all curves together: a large program has fewer of them.
const OPERATIONS: usize = 60_000_000;

/// The functions with the largest share of the critical path on any CPU count, and the locks with the largest share of waits:
/// as many as there is time for. What cannot be changed is left out.
pub fn curves(program: &Program, report: &Report, cpus: &[Cpus], model: &Model) -> Vec<Curve> {
    let operations: usize = program.threads.iter().map(|thread| thread.operations.len()).sum();
    let of_one = operations.max(1).saturating_mul(cpus.len() * (1 + FACTORS.len()));
    let most = (OPERATIONS / of_one).min(MOST);
    let locks: Vec<Change> = locks(report, program).into_iter().take(most / 3).collect();
    let functions = functions(report, program).into_iter().take(most - locks.len());
    let changes: Vec<Change> = functions.chain(locks).collect();
    let found = super::on_all_cores(&changes, |change| curve(program, *change, cpus, model));
    found.into_iter().flatten().collect()
}

#[derive(Clone, Copy)]
enum Change {
    Function(FunctionRef),
    Lock(ObjectId),
}

fn curve(program: &Program, change: Change, cpus: &[Cpus], model: &Model) -> Option<Curve> {
    let steps: Vec<(f64, Edit)> = match change {
        Change::Function(function) => {
            FACTORS.map(|factor| (factor, Edit::Scale(vec![function], factor))).to_vec()
        }
        Change::Lock(lock) => PARTS.map(|parts| (f64::from(parts), Edit::SplitLock(lock, parts))).to_vec(),
    };
    let times = |program: &Program| {
        let timing = Timing::new(program, model).ok()?;
        Some(cpus.iter().map(|cpus| timing.time_ns(*cpus)).collect())
    };
    let mut stops = vec![Stop { value: 1.0, times_ns: times(program)? }];
    for (value, edit) in steps {
        stops.push(Stop { value, times_ns: times(&edited(program, &[edit]).ok()?)? });
    }
    let (kind, name) = match change {
        Change::Function(function) => ("function", &program.functions.get(function.0 as usize)?.name),
        Change::Lock(lock) => ("lock", program.objects.get(lock.0 as usize)?),
    };
    Some(Curve { kind, name: name.clone(), stops })
}

fn functions(report: &Report, program: &Program) -> Vec<Change> {
    let share = |name: &str| {
        let results = report.results.iter().filter(|result| result.time_ns > 0.0);
        let shares = results.filter_map(|result| {
            let row = result.functions.iter().find(|row| row.function == name)?;
            Some(row.tet_ns / result.time_ns)
        });
        shares.fold(0.0, f64::max)
    };
    // Nobody makes faster what threads start with.
    let known = (0..).zip(&program.functions).filter(|(_, function)| !is_start_up(&function.name));
    let mut shares: Vec<(f64, FunctionRef)> =
        known.map(|(number, function)| (share(&function.name), FunctionRef(number))).collect();
    shares.retain(|(share, _)| *share > 0.0);
    shares.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.0.cmp(&b.1.0)));
    shares.into_iter().map(|(_, function)| Change::Function(function)).collect()
}

fn locks(report: &Report, program: &Program) -> Vec<Change> {
    let mut waited: Vec<(f64, &str)> = report
        .locks
        .iter()
        .filter_map(|row| Some((row.wait_ns?, row.lock.as_str())))
        .filter(|(waited, _)| *waited > 0.0)
        .collect();
    waited.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let number = |lock: &str| program.objects.iter().position(|object| object == lock);
    let numbers = waited.into_iter().filter_map(|(_, lock)| u32::try_from(number(lock)?).ok());
    numbers.map(|number| Change::Lock(ObjectId(number))).collect()
}
