//! Permits of a semaphore: connections of a pool, tokens, threads that may do something at once.

use super::edit::EditError;
use crate::program::{ObjectId, Operation, Program};
use rustc_hash::FxHashMap;

/// Number of permits that a semaphore starts with; 0 if nothing initializes it.
pub fn permits(program: &Program, semaphore: ObjectId) -> u32 {
    let operations = program.threads.iter().flat_map(|thread| &thread.operations);
    let counts = operations.filter_map(|operation| match *operation {
        Operation::SemInit(object, count) if object == semaphore => Some(count),
        _ => None,
    });
    counts.max().unwrap_or(0)
}

/// Makes the semaphore start with this many permits.
pub(super) fn set_permits(program: &mut Program, semaphore: ObjectId, permits: u32) -> Result<(), EditError> {
    let mut is_set = false;
    for operation in program.threads.iter_mut().flat_map(|thread| &mut thread.operations) {
        if let Operation::SemInit(object, count) = operation
            && *object == semaphore
        {
            *count = permits;
            is_set = true;
        }
    }
    if is_set { Ok(()) } else { Err(EditError::NothingToChange("nothing sets how many permits there are")) }
}

/// A bounded resource: a semaphore of which each thread returns what it has taken, such as connections of a pool,
/// tokens, or a limit of requests in progress. A semaphore that one thread posts for another passes work on and does
/// not count (a method of longpole's own).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permits {
    pub(crate) semaphore: ObjectId,
    pub(crate) permits: u32,
    /// Number of threads that take a permit.
    pub(crate) users: u32,
}

/// The permits of one semaphore that one thread holds.
#[derive(Clone, Copy, Default)]
struct Taken {
    now: i64,
    /// Whether the thread posted without having taken a permit, or took several.
    otherwise: bool,
}

/// Semaphores of a program that have fewer permits than threads want at once.
pub(crate) fn bounded(program: &Program) -> Vec<Permits> {
    let mut counts: FxHashMap<ObjectId, u32> = FxHashMap::default();
    let mut users: FxHashMap<ObjectId, Option<u32>> = FxHashMap::default();
    for thread in &program.threads {
        let mut taken: FxHashMap<ObjectId, Taken> = FxHashMap::default();
        for operation in &thread.operations {
            let (object, change) = match *operation {
                Operation::SemInit(object, count) => {
                    // If a semaphore is initialized a second time, it has another meaning from then on.
                    let again = counts.insert(object, count).is_some();
                    if again {
                        users.insert(object, None);
                    }
                    continue;
                }
                Operation::SemWait(object) => (object, 1),
                Operation::SemPost(object) => (object, -1),
                _ => continue,
            };
            let of = taken.entry(object).or_default();
            of.now += change;
            of.otherwise |= !(0..=1).contains(&of.now);
        }
        for (object, Taken { otherwise, .. }) in taken {
            let users = users.entry(object).or_insert(Some(0));
            *users = users.filter(|_| !otherwise).map(|users| users.saturating_add(1));
        }
    }
    let all = users.into_iter().filter_map(|(semaphore, users)| {
        let (users, permits) = (users?, *counts.get(&semaphore)?);
        (permits > 0 && permits < users).then_some(Permits { semaphore, permits, users })
    });
    let mut all: Vec<Permits> = all.collect();
    all.sort_by_key(|permits| permits.semaphore);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(threads: &str) -> Program {
        let text = format!(r#"{{"format":"longpole-program","version":1,"threads":[{threads}]}}"#);
        crate::program::json::read(&text).expect("a program")
    }

    fn permits(threads: &str) -> Vec<(u32, u32)> {
        bounded(&program(threads)).iter().map(|of| (of.permits, of.users)).collect()
    }

    #[test]
    fn a_semaphore_has_permits_only_if_each_user_returns_them() {
        let user = |name: &str| {
            format!(r#"{{"name":"{name}","ops":[["sem_wait","s"],["exec",1],["sem_post","s"]]}}"#)
        };
        let main = |count: u32| format!(r#"{{"name":"m","ops":[["sem_init","s",{count}]]}}"#);
        let all = |count| [main(count), user("a"), user("b"), user("c")].join(",");
        assert_eq!(permits(&all(2)), [(2, 3)]);
        assert_eq!(permits(&all(3)), [], "enough for all");
        let other = r#"{"name":"p","ops":[["sem_post","s"]]}"#;
        assert_eq!(permits(&[all(2), other.to_owned()].join(",")), [], "one thread posts for another");
        let twice = r#"{"name":"p","ops":[["sem_init","s",1]]}"#;
        assert_eq!(permits(&[all(2), twice.to_owned()].join(",")), [], "set twice");
    }
}
