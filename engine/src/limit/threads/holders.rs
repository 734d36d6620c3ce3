//! Computing by function: of a thread, of a part of a thread, or while a lock is held.

use crate::attribution::Owners;
use crate::limit::FunctionShare;
use crate::program::{CallWalk, FunctionRef, ObjectId, Operation, Program, Walk};
use crate::time::Ticks;
use rustc_hash::{FxHashMap, FxHashSet};

/// Sums of ticks by the function for which they count; `None`: no function.
#[derive(Debug, Default)]
pub(in crate::limit) struct Sums(FxHashMap<Option<FunctionRef>, u64>);

impl Sums {
    fn add(&mut self, function: Option<FunctionRef>, length: u64) {
        let sum = self.0.entry(function).or_insert(0);
        *sum = sum.saturating_add(length);
    }

    /// The functions with their sums in ticks, the largest first.
    pub(in crate::limit) fn sorted(&self) -> Vec<(FunctionRef, u64)> {
        let mut sums: Vec<(FunctionRef, u64)> =
            self.0.iter().filter_map(|(function, sum)| Some(((*function)?, *sum))).collect();
        sums.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        sums
    }

    /// The sum of all ticks, including those of no function.
    pub(in crate::limit) fn all(&self) -> u64 {
        self.0.values().fold(0u64, |all, sum| all.saturating_add(*sum))
    }

    /// The function with the largest sum, and its share of all ticks.
    pub(in crate::limit) fn first(&self, program: &Program) -> Option<FunctionShare> {
        self.parts(program, 1).into_iter().next()
    }

    /// The functions with the largest sums, and their shares of all ticks; at most `most` functions.
    pub(in crate::limit) fn parts(&self, program: &Program, most: usize) -> Vec<FunctionShare> {
        let all = self.all().max(1) as f64;
        let parts = self.sorted().into_iter().take(most).filter(|(_, sum)| *sum > 0);
        let part = |(function, sum): (FunctionRef, u64)| {
            let function = program.functions.get(function.0 as usize)?.name.clone();
            Some(FunctionShare { function, share: sum as f64 / all })
        };
        parts.filter_map(part).collect()
    }
}

/// Adds a thread's computing to `sums`; `range`: only the part between these ticks of the thread's own computing.
pub(in crate::limit) fn of_thread(
    program: &Program,
    owners: &Owners,
    thread: usize,
    range: Option<(u64, u64)>,
    sums: &mut Sums,
) {
    let Some(thread) = program.threads.get(thread) else { return };
    let mut walk = CallWalk::default();
    let mut before = 0u64;
    for operation in &thread.operations {
        if let Operation::Exec(Ticks(length)) | Operation::ExecIn(_, Ticks(length)) = *operation {
            let after = before.saturating_add(length);
            let inside = match range {
                Some((from, to)) => after.min(to).saturating_sub(before.max(from)),
                None => length,
            };
            if inside > 0 {
                sums.add(owners.computing(&walk, operation), inside);
            }
            before = after;
        }
        walk.pass(operation);
    }
}

/// Adds parts of a thread's computing to `sums`. `parts`: from which to which tick of its own computing, in order and apart.
pub(in crate::limit) fn of_parts(
    program: &Program,
    owners: &Owners,
    thread: usize,
    parts: &[(u64, u64)],
    sums: &mut Sums,
) {
    let Some(thread) = program.threads.get(thread) else { return };
    let mut walk = CallWalk::default();
    let (mut before, mut left) = (0u64, parts);
    for operation in &thread.operations {
        if let Operation::Exec(Ticks(length)) | Operation::ExecIn(_, Ticks(length)) = *operation {
            let after = before.saturating_add(length);
            left = &left[left.partition_point(|(_, to)| *to <= before)..];
            let within = left.iter().take_while(|(from, _)| *from < after);
            let inside = within.map(|(from, to)| after.min(*to).saturating_sub(before.max(*from)));
            let inside = inside.fold(0, u64::saturating_add);
            if inside > 0 {
                sums.add(owners.computing(&walk, operation), inside);
            }
            before = after;
        }
        walk.pass(operation);
    }
}

/// Sums the computing of all threads while they hold one of these locks. The key `None` counts, too, so that shares are
/// right.
pub(in crate::limit) fn under(program: &Program, owners: &Owners, locks: &[ObjectId]) -> Sums {
    let locks: FxHashSet<ObjectId> = locks.iter().copied().collect();
    let mut sums = Sums::default();
    for thread in &program.threads {
        let mut walk = Walk::holding(|lock| locks.contains(&lock));
        for operation in &thread.operations {
            if walk.holds()
                && let Operation::Exec(length) | Operation::ExecIn(_, length) = operation
            {
                sums.add(owners.computing(&walk, operation), length.0);
            }
            walk.pass(operation);
        }
    }
    sums
}
