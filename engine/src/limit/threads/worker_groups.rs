//! Groups of threads that do the same: they mostly compute in the same function, do what one of them was started
//! with, and no thread waits for what another one gives.

use super::holders::{self, Sums};
use super::started_alike::merged;
use super::thread_group::{EVEN, Group};
use super::thread_samples::ThreadSamples;
use crate::attribution::Owners;
use crate::program::{FunctionRef, ObjectId, Operation, Program, is_java_wait};
use crate::schedule::RunOutcome;
use rustc_hash::{FxHashMap, FxHashSet};

/// A thread that starts others belongs to their group if it computes at least this fraction (one part in `LITTLE`) of what
/// the busiest thread computes.
const LITTLE: u64 = 4;
/// A function counts as computed nearly as much as the top function if at most this fraction (one part in `NEAR`) is missing.
const NEAR: u64 = 4;
/// At most this number of functions are what a thread mostly computes.
const MAIN_FUNCTIONS: usize = 3;

/// Groups of all threads, except threads in the background.
pub(in crate::limit) fn groups(program: &Program, owners: &Owners, seen: &[ThreadSamples]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: FxHashMap<(Option<FunctionRef>, Option<&str>), Places> = FxHashMap::default();
    let mut roles: Vec<Role> = Vec::new();
    let mut computed = vec![0; program.threads.len()];
    for (number, thread) in program.threads.iter().enumerate() {
        if thread.background.is_some() {
            continue;
        }
        let mut sums = Sums::default();
        holders::of_thread(program, owners, number, None, &mut sums);
        let keys = main_functions(&sums);
        computed[number] = sums.all();
        let meets = thread.operations.iter().filter(|operation| is_queue(operation)).nth(3).is_some();
        let role = Role::of(program, &thread.operations, seen.get(number));
        let process = thread.process.as_deref();
        let of_function = keys.iter().filter_map(|key| places.get(&(*key, process)));
        let place = of_function.filter_map(|places| places.first_like(&role, &roles)).min();
        match place.and_then(|place| groups.get_mut(place)) {
            Some(group) => {
                group.threads.push(number);
                group.meets |= meets;
            }
            None => {
                for key in keys {
                    places.entry((key, process)).or_default().put(groups.len(), &role);
                }
                groups.push(Group { threads: vec![number], meets });
                roles.push(role);
            }
        }
    }
    let is_started = started_in_process(program);
    let starters: Vec<Group> = groups
        .iter_mut()
        .flat_map(|group| without_starters(program, group, &computed, &is_started))
        .collect();
    groups.extend(starters);
    merged(program, seen, groups)
}

/// What a thread mostly computes: its top function, and functions with nearly as much computing. Two threads that do
/// the same may differ in which of these is on top.
fn main_functions(sums: &Sums) -> Vec<Option<FunctionRef>> {
    let sorted = sums.sorted();
    let Some((_, most)) = sorted.first().copied() else { return vec![None] };
    let near = sorted.into_iter().take_while(|(_, ticks)| *ticks >= most - most / NEAR);
    near.map(|(function, _)| Some(function)).take(MAIN_FUNCTIONS).collect()
}

/// Threads that were started by another thread of their process.
fn started_in_process(program: &Program) -> FxHashSet<usize> {
    let process = |thread: usize| program.threads.get(thread).map(|thread| &thread.process);
    let threads = program.threads.iter().enumerate();
    let started = threads.flat_map(|(parent, thread)| {
        let children = thread.operations.iter().filter_map(|operation| match operation {
            Operation::Create(child) => Some(child.0 as usize),
            _ => None,
        });
        children.filter(move |child| process(*child) == process(parent))
    });
    started.collect()
}

/// Removes from a group its starters: threads that start others of it, were started by no thread of their process, and compute
/// little. Starters are no workers; each becomes a group of its own.
fn without_starters(
    program: &Program,
    group: &mut Group,
    computed: &[u64],
    is_started: &FxHashSet<usize>,
) -> Vec<Group> {
    let of = |thread: usize| computed.get(thread).copied().unwrap_or(0);
    let most = group.threads.iter().map(|thread| of(*thread)).max().unwrap_or(0);
    let members: FxHashSet<usize> = group.threads.iter().copied().collect();
    let starts = |operation: &Operation| matches!(operation, Operation::Create(thread) if members.contains(&(thread.0 as usize)));
    let is_starter = |thread: &usize| {
        of(*thread) < most / LITTLE
            && !is_started.contains(thread)
            && program.threads.get(*thread).is_some_and(|thread| thread.operations.iter().any(starts))
    };
    let starters: Vec<usize> = group.threads.iter().copied().filter(is_starter).collect();
    group.threads.retain(|thread| !starters.contains(thread));
    starters.into_iter().map(|thread| Group { threads: vec![thread], meets: group.meets }).collect()
}

/// An index of groups by the role of each group's first thread.
#[derive(Debug, Default)]
struct Places {
    all: Vec<usize>,
    alone: Vec<usize>,
    by_entry: FxHashMap<FunctionRef, Vec<usize>>,
    by_object: FxHashMap<ObjectId, Vec<usize>>,
}

impl Places {
    fn put(&mut self, place: usize, role: &Role) {
        self.all.push(place);
        if role.is_alone() {
            self.alone.push(place);
        }
        for function in &role.mostly {
            self.by_entry.entry(*function).or_default().push(place);
        }
        for object in role.takes.iter().chain(&role.gives) {
            self.by_object.entry(*object).or_default().push(place);
        }
    }

    /// The first group whose first thread is like `role`. Only groups with something in common are compared.
    fn first_like(&self, role: &Role, roles: &[Role]) -> Option<usize> {
        let is_like = |place: &&usize| roles.get(**place).is_some_and(|other| other.is_like(role));
        if role.is_alone() {
            return self.all.iter().find(is_like).copied();
        }
        let objects = role.takes.iter().chain(&role.gives).filter_map(|object| self.by_object.get(object));
        let started = role.mostly.iter().filter_map(|function| self.by_entry.get(function));
        let lists = objects.chain(started).chain([&self.alone]);
        lists.filter_map(|list| list.iter().find(is_like)).min().copied()
    }
}

/// What a thread does for others: the semaphores and conditions that it waits for and posts or signals, and the
/// functions that it runs.
#[derive(Debug, Default)]
struct Role {
    takes: FxHashSet<ObjectId>,
    gives: FxHashSet<ObjectId>,
    /// The function that the thread was started with.
    entry: Option<FunctionRef>,
    /// Functions that are on the thread's stack most of the time, `entry` among them.
    mostly: FxHashSet<FunctionRef>,
}

impl Role {
    fn of(program: &Program, operations: &[Operation], seen: Option<&ThreadSamples>) -> Role {
        let entry = seen.and_then(|seen| seen.entry);
        let mostly = seen.map(ThreadSamples::mostly).unwrap_or_default();
        let mut role = Role { entry, mostly, ..Role::default() };
        // Each Java thread waits in a futex word of its own, whatever it waits for.
        let is_own =
            |object: ObjectId| program.objects.get(object.0 as usize).is_some_and(|name| is_java_wait(name));
        for operation in operations {
            match *operation {
                Operation::Wait(object) | Operation::SemWait(object) | Operation::CondWait(object, _) => {
                    role.takes.insert(object);
                }
                Operation::Signal(object)
                | Operation::SemPost(object)
                | Operation::CondSignal(object)
                | Operation::CondBroadcast(object) => {
                    role.gives.insert(object);
                }
                _ => {}
            }
        }
        role.takes.retain(|object| !is_own(*object));
        role.gives.retain(|object| !is_own(*object));
        role
    }

    fn is_alone(&self) -> bool {
        self.takes.is_empty() && self.gives.is_empty()
    }

    /// Whether both threads do the same: neither feeds the other, or each feeds the other, and both run the function
    /// that one of them was started with. If that function is unknown, both must use a common object. The first and the
    /// last stage of a pipeline may compute the same function.
    fn is_like(&self, other: &Role) -> bool {
        let meets = |one: &Role, other: &Role| {
            one.takes
                .iter()
                .chain(&one.gives)
                .any(|object| other.takes.contains(object) || other.gives.contains(object))
        };
        let started_alike = match (self.entry, other.entry) {
            (Some(own), Some(of_other)) => other.mostly.contains(&own) || self.mostly.contains(&of_other),
            _ => false,
        };
        let is_known = self.entry.is_some() && other.entry.is_some();
        let same =
            if is_known { started_alike } else { self.is_alone() || other.is_alone() || meets(self, other) };
        if !same {
            return false;
        }
        let feeds = |from: &Role, to: &Role| {
            from.gives.iter().any(|object| to.takes.contains(object) && !to.gives.contains(object))
        };
        // Threads of a runtime wake each other, each in a futex word of its own. These threads were started alike.
        match (feeds(self, other), feeds(other, self)) {
            (false, false) => true,
            (true, true) => started_alike,
            _ => false,
        }
    }
}

fn is_queue(operation: &Operation) -> bool {
    crate::experiment::is_meeting(operation)
}

/// Whether threads share the work evenly: one more thread does not divide what a single thread does alone.
pub(in crate::limit) fn is_even(threads: &[usize], base: &RunOutcome) -> bool {
    let busy = || threads.iter().filter_map(|thread| base.threads.get(*thread)).map(|used| used.busy as f64);
    busy().fold(0.0, f64::max) <= EVEN * busy().sum::<f64>() / threads.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::json;

    /// The main thread of `git repack` starts two workers and computes a little of what they compute.
    #[test]
    fn a_thread_that_starts_workers_and_computes_little_is_no_worker() {
        let sizes = |own: u64| {
            let program = format!(
                r#"{{"format":"longpole-program","version":1,"threads":[
                    {{"name":"main","ops":[["create","a"],["create","b"],["exec","delta",{own}]]}},
                    {{"name":"a","ops":[["exec","delta",100]]}},
                    {{"name":"b","ops":[["exec","delta",90]]}}]}}"#
            );
            let program = json::read(&program).expect("a program");
            let groups = groups(&program, &Owners::of(&program), &[]);
            groups.iter().map(|group| group.threads.clone()).collect::<Vec<_>>()
        };
        assert_eq!(sizes(5), [vec![1, 2], vec![0]]);
        assert_eq!(sizes(60), [vec![0, 1, 2]]);
    }

    #[test]
    fn threads_started_alike_that_wake_each_other_are_one_group() {
        let role = |entry, takes, gives| Role {
            takes: FxHashSet::from_iter([ObjectId(takes)]),
            gives: FxHashSet::from_iter([ObjectId(gives)]),
            entry: Some(FunctionRef(entry)),
            mostly: FxHashSet::from_iter([FunctionRef(entry)]),
        };
        assert!(role(1, 0, 1).is_like(&role(1, 1, 0)), "each by a word of its own");
        assert!(!role(1, 0, 1).is_like(&role(2, 1, 0)), "two that hand a token over");
        assert!(!role(1, 0, 1).is_like(&role(1, 1, 2)), "a stage and the next one");
    }
}
