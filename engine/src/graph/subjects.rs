//! What can be made faster: functions, threads, locks and kinds of time, and which edges belong to each.

use super::activity::{ActivityGraph, ActivityKind};
use crate::program::{FunctionRef, ObjectId, Operation, Program, ThreadId};
use rustc_hash::FxHashMap;

/// A part of a program's time (1994, section VI: an activity, or a class of them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// What threads compute with this function on top of the stack.
    Function(FunctionRef),
    /// Whatever takes time in this thread.
    Thread(ThreadId),
    /// Whatever takes time in a thread while it has this lock.
    Lock(ObjectId),
    /// One kind of time in all threads.
    Class(Class),
}

/// A kind of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Computing.
    Compute,
    /// Waiting for devices.
    Io,
    /// Waiting for time to pass.
    Wait,
}

/// The most subjects that are looked at in one walk.
pub(super) const AT_ONCE: usize = u64::BITS as usize;

/// The subjects of a program, and which edges belong to locks.
#[derive(Debug)]
pub struct Subjects {
    /// Functions that compute, threads, locks and classes that have any time at all, in this order.
    pub all: Vec<Subject>,
    /// Edges that take time while a lock is held.
    locked: FxHashMap<ObjectId, Vec<u32>>,
}

impl Subjects {
    /// Looks at all edges and all operations once.
    pub fn of(program: &Program, graph: &ActivityGraph) -> Subjects {
        let locked = locked(program, graph);
        let mut there = std::collections::BTreeSet::new();
        for edge in 0..graph.edges() {
            if graph.length(edge) == 0 {
                continue;
            }
            there.insert(Subject::Thread(graph.thread(edge)));
            there.extend(class(graph.kind(edge)).map(Subject::Class));
            there.extend(function(graph, edge).map(Subject::Function));
        }
        there.extend(locked.keys().map(|lock| Subject::Lock(*lock)));
        Subjects { all: there.into_iter().collect(), locked }
    }

    /// For each edge the subjects of this list that it belongs to, one bit each. Not more than 64 subjects.
    pub(super) fn marks(&self, graph: &ActivityGraph, subjects: &[Subject]) -> Vec<u64> {
        let mut functions: FxHashMap<FunctionRef, u64> = FxHashMap::default();
        let mut threads: FxHashMap<ThreadId, u64> = FxHashMap::default();
        let mut classes: FxHashMap<Class, u64> = FxHashMap::default();
        let mut marks = vec![0_u64; graph.edges()];
        for (place, subject) in subjects.iter().take(AT_ONCE).enumerate() {
            let bit = 1 << place;
            match subject {
                Subject::Function(function) => *functions.entry(*function).or_default() |= bit,
                Subject::Thread(thread) => *threads.entry(*thread).or_default() |= bit,
                Subject::Class(class) => *classes.entry(*class).or_default() |= bit,
                Subject::Lock(lock) => {
                    for edge in self.locked.get(lock).into_iter().flatten() {
                        marks[*edge as usize] |= bit;
                    }
                }
            }
        }
        for (edge, mark) in marks.iter_mut().enumerate() {
            if graph.length(edge) == 0 {
                continue;
            }
            if let Some(function) = function(graph, edge) {
                *mark |= functions.get(&function).copied().unwrap_or(0);
            }
            if !threads.is_empty() {
                *mark |= threads.get(&graph.thread(edge)).copied().unwrap_or(0);
            }
            if let Some(class) = class(graph.kind(edge)) {
                *mark |= classes.get(&class).copied().unwrap_or(0);
            }
        }
        marks
    }
}

/// The function whose own time an edge is.
pub(super) fn function(graph: &ActivityGraph, edge: usize) -> Option<FunctionRef> {
    (graph.kind(edge) == ActivityKind::Compute).then(|| graph.function(edge)).flatten()
}

fn class(kind: ActivityKind) -> Option<Class> {
    match kind {
        ActivityKind::Compute => Some(Class::Compute),
        ActivityKind::Io => Some(Class::Io),
        ActivityKind::Sleep => Some(Class::Wait),
        ActivityKind::Step | ActivityKind::Wake | ActivityKind::Start | ActivityKind::End => None,
    }
}

/// Edges that take time while their thread has a lock, by lock.
fn locked(program: &Program, graph: &ActivityGraph) -> FxHashMap<ObjectId, Vec<u32>> {
    // The edges that take time of each thread are in the order of its operations.
    let mut timed: Vec<Vec<u32>> = vec![Vec::new(); program.threads.len()];
    for edge in 0..graph.edges() {
        if graph.length(edge) > 0
            && let Some(edges) = timed.get_mut(graph.thread(edge).0 as usize)
        {
            edges.push(edge as u32);
        }
    }
    let mut locked: FxHashMap<ObjectId, Vec<u32>> = FxHashMap::default();
    for (thread, edges) in program.threads.iter().zip(&timed) {
        let mut held: Vec<(ObjectId, u32)> = Vec::new();
        let mut edges = edges.iter().peekable();
        for (number, operation) in thread.operations.iter().enumerate() {
            while let Some(edge) = edges.next_if(|edge| graph.operation(**edge as usize) as usize == number) {
                for (lock, _) in &held {
                    locked.entry(*lock).or_default().push(*edge);
                }
            }
            match *operation {
                Operation::Held(lock, _)
                | Operation::Lock(lock)
                | Operation::ReadLock(lock)
                | Operation::WriteLock(lock)
                | Operation::SpinLock(lock) => match held.iter_mut().find(|(held, _)| *held == lock) {
                    Some((_, times)) => *times += 1,
                    None => held.push((lock, 1)),
                },
                Operation::Freed(lock, _)
                | Operation::Unlock(lock)
                | Operation::ReadWriteUnlock(lock)
                | Operation::SpinUnlock(lock) => {
                    if let Some((_, times)) = held.iter_mut().find(|(held, _)| *held == lock) {
                        *times -= 1;
                    }
                    held.retain(|(_, times)| *times > 0);
                }
                _ => {}
            }
        }
    }
    locked
}
