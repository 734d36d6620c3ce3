//! The paper's way (2001, Fig. 5): shorten each segment by ε, schedule again, compare. O(segments²) for each CPU count. For
//! tests, and for the benchmark that shows what the sweep saves; no analysis uses it.

use super::lanes::scale;
use crate::cpus::Cpus;
use crate::program::{Operation, Program, ProgramError, ThreadId};
use crate::schedule::{Simulation, Step, Vertex};
use crate::time::Ticks;

/// The weight of one compute operation, found by shortening that operation and scheduling the program again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortened {
    /// Index of the thread.
    pub thread: ThreadId,
    /// Index in the thread's operations.
    pub operation: usize,
    /// P·weight.
    pub scaled_weight: i128,
    /// Whether shortening changed the order in which threads pass synchronization objects. If so (only possible with ties),
    /// the weight belongs to another order than the analysed one.
    pub reordered: bool,
}

/// P·weight of each compute operation longer than ε = 1 tick.
///
/// Exact if no two different times of the schedule are within ε: give lengths in whole nanoseconds.
///
/// # Errors
/// The program fails [`Program::check`].
pub fn weights(program: &Program, cpus: Cpus) -> Result<Vec<Shortened>, ProgramError> {
    let (whole, order) = scheduled(program, cpus)?;
    let mut shorter = program.clone();
    let mut weights = Vec::new();
    for thread in 0..program.threads.len() {
        for (operation, original) in program.threads[thread].operations.iter().enumerate() {
            let Some(shortened) = shorten(original) else { continue };
            shorter.threads[thread].operations[operation] = shortened;
            let (time, new_order) = scheduled(&shorter, cpus)?;
            shorter.threads[thread].operations[operation] = *original;
            weights.push(Shortened {
                thread: ThreadId(thread as u32),
                operation,
                scaled_weight: whole - time,
                reordered: new_order != order,
            });
        }
    }
    Ok(weights)
}

/// P·T_P, as the sum of the stretches between vertices.
///
/// # Errors
/// The program fails [`Program::check`].
pub fn time(program: &Program, cpus: Cpus) -> Result<i128, ProgramError> {
    Ok(scheduled(program, cpus)?.0)
}

fn shorten(operation: &Operation) -> Option<Operation> {
    let less = |length: Ticks| (length.0 > 1).then(|| Ticks(length.0 - 1));
    match *operation {
        Operation::Exec(length) => less(length).map(Operation::Exec),
        Operation::ExecIn(function, length) => less(length).map(|length| Operation::ExecIn(function, length)),
        Operation::Once(object, length) => less(length).map(|length| Operation::Once(object, length)),
        _ => None,
    }
}

/// For each object and side: the threads and operations in the order in which they took effect.
type Order = Vec<(u8, u32, Vec<(ThreadId, u32)>)>;

fn scheduled(program: &Program, cpus: Cpus) -> Result<(i128, Order), ProgramError> {
    let mut simulation = Simulation::new(program)?.traced();
    let scale = i128::from(scale(cpus, program.threads.len()));
    let (mut sum, mut last, mut executing) = (0_i128, 0_u64, 0_i128);
    let mut vertices: Vec<Vertex> = Vec::new();
    while let Some(now) = simulation.next_instant(&mut vertices) {
        sum += i128::from(now.0 - last) * executing.max(scale);
        last = now.0;
        executing += vertices.iter().map(|vertex| i128::from(vertex.change)).sum::<i128>();
    }
    let schedule = simulation.finish();
    Ok((sum, order(program, &schedule.trace)))
}

fn order(program: &Program, trace: &[Step]) -> Order {
    let mut sides = std::collections::BTreeMap::<(u8, u32), Vec<(ThreadId, u32)>>::new();
    for step in trace {
        let operation = program.threads[step.thread.0 as usize].operations[step.operation as usize];
        let side = match operation {
            Operation::CondWait(condition, _) if step.begins => Some((5, condition.0)),
            _ => side(&operation),
        };
        if let Some(side) = side {
            sides.entry(side).or_default().push((step.thread, step.operation));
        }
    }
    sides.into_iter().map(|((side, object), steps)| (side, object, steps)).collect()
}

/// The object and side in whose order an operation is. Givers and takers are ordered separately, since the order between a
/// giver and a taker affects only the time.
fn side(operation: &Operation) -> Option<(u8, u32)> {
    Some(match *operation {
        Operation::Signal(object) | Operation::SemPost(object) | Operation::SemInit(object, _) => {
            (0, object.0)
        }
        Operation::Wait(object) | Operation::SemWait(object) => (1, object.0),
        Operation::Lock(object) | Operation::CondWait(_, object) => (2, object.0),
        Operation::ReadLock(object) | Operation::WriteLock(object) => (3, object.0),
        Operation::SpinLock(object) => (4, object.0),
        Operation::CondSignal(object) | Operation::CondBroadcast(object) => (5, object.0),
        Operation::Barrier(object, _) => (6, object.0),
        Operation::Once(object, _) => (7, object.0),
        _ => return None,
    })
}
