//! Divides computing evenly among threads, between barriers and until they are joined.

use crate::program::{ObjectId, Operation, Program};
use rustc_hash::{FxHashMap, FxHashSet};

/// The computing of a thread between two points at which other threads wait for it: thread, first and last operation,
/// ticks.
struct Stretch {
    thread: usize,
    from: usize,
    to: usize,
    computed: u64,
}

/// Threads of a group are alike if each computes at least this share of their mean. A thread that computes less must
/// have other work, too.
const SHARES: f64 = 0.25;
/// Threads are uneven if one of them computes more than this multiple of their mean.
const UNEVEN: f64 = 1.1;

/// Divides computing evenly in groups of stretches, each thread in the first of these kinds that contains it:
/// - stretches up to the same turn of a barrier;
/// - whole lives of threads that one thread creates and joins;
/// - whole lives of the groups `alike`, which may meet at a barrier that is not recorded.
///
/// Returns the thread whose computing exceeded its group's mean most; `None`: nothing was uneven.
pub(super) fn even(program: &mut Program, alike: &[Vec<usize>]) -> Option<usize> {
    let mut turns: FxHashMap<(ObjectId, u32), Vec<Stretch>> = FxHashMap::default();
    let mut groups: Vec<Vec<Stretch>> = Vec::new();
    let mut meets = vec![false; program.threads.len()];
    for (number, thread) in program.threads.iter().enumerate() {
        let mut seen: FxHashMap<ObjectId, u32> = FxHashMap::default();
        let mut stretch = Stretch { thread: number, from: 0, to: 0, computed: 0 };
        for (place, operation) in thread.operations.iter().enumerate() {
            match operation {
                Operation::Exec(length) | Operation::ExecIn(_, length) => {
                    stretch.computed = stretch.computed.saturating_add(length.0);
                }
                Operation::Barrier(barrier, _) => {
                    let turn = seen.entry(*barrier).or_insert(0);
                    *turn += 1;
                    let next = Stretch { thread: number, from: place, to: place, computed: 0 };
                    let done = Stretch { to: place, ..std::mem::replace(&mut stretch, next) };
                    turns.entry((*barrier, *turn)).or_default().push(done);
                    if let Some(meets) = meets.get_mut(number) {
                        *meets = true;
                    }
                }
                _ => {}
            }
        }
    }
    groups.extend(turns.into_values());
    for thread in &program.threads {
        let created: FxHashSet<usize> = thread.operations.iter().filter_map(created).collect();
        let joined = thread.operations.iter().filter_map(|operation| match operation {
            Operation::Join(other) => Some(other.0 as usize),
            _ => None,
        });
        let mut group: Vec<usize> =
            joined.filter(|other| created.contains(other) && meets.get(*other) == Some(&false)).collect();
        group.sort_unstable();
        group.dedup();
        let whole = |other: usize| {
            let operations = &program.threads.get(other)?.operations;
            // A thread that waits for others on the way is not simply longer.
            let meets_others = operations.iter().any(is_meeting);
            let computed = operations.iter().filter_map(computes).fold(0, u64::saturating_add);
            (!meets_others).then_some(Stretch { thread: other, from: 0, to: operations.len(), computed })
        };
        groups.push(group.into_iter().filter_map(whole).collect());
    }
    for group in groups.iter().filter(|group| group.len() > 1) {
        for stretch in group {
            if let Some(meets) = meets.get_mut(stretch.thread) {
                *meets = true;
            }
        }
    }
    let left = alike.iter().filter(|group| group.iter().all(|thread| meets.get(*thread) == Some(&false)));
    groups.extend(left.filter_map(|group| uneven(program, group)));
    let mut most: Option<(u64, usize)> = None;
    for group in groups.iter().filter(|group| group.len() > 1) {
        let sum = group.iter().fold(0u64, |sum, stretch| sum.saturating_add(stretch.computed));
        let mean = sum / group.len() as u64;
        for stretch in group.iter().filter(|stretch| stretch.computed > 0) {
            let more = stretch.computed.saturating_sub(mean);
            if more > 0 && most.is_none_or(|(most, _)| more > most) {
                most = Some((more, stretch.thread));
            }
            let factor = mean as f64 / stretch.computed as f64;
            let operations = program.threads.get_mut(stretch.thread);
            let operations =
                operations.and_then(|thread| thread.operations.get_mut(stretch.from..stretch.to));
            for operation in operations.unwrap_or_default() {
                if let Operation::Exec(length) | Operation::ExecIn(_, length) = operation {
                    *length = length.scaled(factor);
                }
            }
        }
    }
    most.map(|(_, thread)| thread)
}

/// The thread whose computing exceeds its group's mean most, in the groups that `even` uses.
pub(crate) fn most_to_do(program: &Program, alike: &[Vec<usize>]) -> Option<usize> {
    even(&mut program.clone(), alike)
}

/// The computing of a group of threads during their whole lives, if each computes a good part of the mean and one
/// clearly more.
fn uneven(program: &Program, group: &[usize]) -> Option<Vec<Stretch>> {
    let whole = |thread: &usize| {
        let operations = &program.threads.get(*thread)?.operations;
        let computed = operations.iter().filter_map(computes).fold(0, u64::saturating_add);
        Some(Stretch { thread: *thread, from: 0, to: operations.len(), computed })
    };
    let all: Vec<Stretch> = group.iter().filter_map(whole).collect();
    let computed = || all.iter().map(|stretch| stretch.computed);
    let mean = computed().fold(0, u64::saturating_add) as f64 / all.len().max(1) as f64;
    let (least, most) = (computed().min().unwrap_or(0) as f64, computed().max().unwrap_or(0) as f64);
    (most > UNEVEN * mean && least >= SHARES * mean).then_some(all)
}

/// Whether threads that do the same work may wait for one of them that computes more.
pub(crate) fn is_uneven(program: &Program, group: &[usize]) -> bool {
    uneven(program, group).is_some()
}

/// The thread that an operation creates.
pub(crate) fn created(operation: &Operation) -> Option<usize> {
    match operation {
        Operation::Create(other) => Some(other.0 as usize),
        _ => None,
    }
}

fn computes(operation: &Operation) -> Option<u64> {
    match operation {
        Operation::Exec(length) | Operation::ExecIn(_, length) => Some(length.0),
        _ => None,
    }
}

/// Whether threads interact at this operation, so that one thread may wait for another.
pub(crate) fn is_meeting(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Wait(_)
            | Operation::SemWait(_)
            | Operation::CondWait(..)
            | Operation::Await(_)
            | Operation::Signal(_)
            | Operation::SemPost(_)
            | Operation::CondSignal(_)
            | Operation::CondBroadcast(_)
            | Operation::Release(_)
    )
}
