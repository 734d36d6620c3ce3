//! Adds threads where threads mostly sleep in their work: they wait for answers, are throttled, or imitate something
//! slow. (This change is longpole's own.) A wait for a socket counts only if it is known to be for an answer: other
//! waits may be for the next request.

use crate::program::{ObjectId, ObjectMeaning, Operation, Program, Thread, Walk};
use crate::time::Ticks;
use rustc_hash::{FxHashMap, FxHashSet};

/// Divides the sleeping of these threads among them and `more` additional threads.
pub(super) fn more_sleepers(program: &mut Program, threads: &[usize], more: usize) {
    let factor = threads.len() as f64 / (threads.len() as f64 + more as f64).max(1.0);
    for number in threads {
        let Some(thread) = program.threads.get(*number) else { continue };
        let places = sleeps_of_its_own(program, thread);
        let Some(thread) = program.threads.get_mut(*number) else { continue };
        for place in places {
            if let Some(Operation::Sleep(length) | Operation::Io(_, length)) =
                thread.operations.get_mut(place)
            {
                *length = length.scaled(factor);
            }
        }
    }
}

/// How often a thread sleeps, or waits for an answer, without a lock or a permit, and the sum of these times.
pub(crate) fn own_sleep(program: &Program, thread: &Thread) -> (usize, Ticks) {
    let places = sleeps_of_its_own(program, thread);
    let length = |place: &usize| match thread.operations.get(*place) {
        Some(Operation::Sleep(length) | Operation::Io(_, length)) => length.0,
        _ => 0,
    };
    (places.len(), Ticks(places.iter().map(length).fold(0u64, u64::saturating_add)))
}

/// Indices of a thread's sleeps and waits for answers during which another thread could work: without a lock or a permit.
/// Without sleeps that it repeats in the background, and without periodic timers.
fn sleeps_of_its_own(program: &Program, thread: &Thread) -> Vec<usize> {
    let returned = returned(thread);
    let mut permits: FxHashMap<ObjectId, u32> = FxHashMap::default();
    let mut walk = Walk::holding(|_| true);
    let mut places = Vec::new();
    for (place, operation) in thread.operations.iter().enumerate().take(thread.once()) {
        match *operation {
            Operation::Sleep(_) if !walk.holds() && permits.is_empty() => places.push(place),
            Operation::Io(device, _)
                if !walk.holds()
                    && permits.is_empty()
                    && program.meaning(device) == ObjectMeaning::Answer =>
            {
                places.push(place);
            }
            Operation::SemWait(object) | Operation::Wait(object) if returned.contains(&object) => {
                *permits.entry(object).or_insert(0) += 1;
            }
            Operation::SemPost(object) | Operation::Signal(object) => {
                let left = permits.get(&object).map_or(0, |count| count.saturating_sub(1));
                if left == 0 {
                    permits.remove(&object);
                } else {
                    permits.insert(object, left);
                }
            }
            _ => walk.pass(operation),
        }
    }
    places
}

/// Semaphores of which the thread returns what it has taken, one permit at a time; it may have one permit at the start.
/// A lock of Python's that one thread takes and another releases does not count: it would seem to be held forever.
fn returned(thread: &Thread) -> FxHashSet<ObjectId> {
    let mut given: FxHashSet<ObjectId> = FxHashSet::default();
    // For each semaphore: permits that the thread holds now, relative to the start, with their minimum and maximum so
    // far.
    let mut counts: FxHashMap<ObjectId, (i64, i64, i64)> = FxHashMap::default();
    for operation in &thread.operations {
        let (object, change) = match *operation {
            Operation::SemWait(object) | Operation::Wait(object) => (object, 1),
            Operation::SemPost(object) | Operation::Signal(object) => (object, -1),
            _ => continue,
        };
        let (now, least, most) = counts.entry(object).or_insert((0, 0, 0));
        *now += change;
        (*least, *most) = ((*least).min(*now), (*most).max(*now));
        if change < 0 {
            given.insert(object);
        }
    }
    given.retain(|object| counts.get(object).is_some_and(|(_, least, most)| most - least <= 1));
    given
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::json;
    use crate::time::Ticks;

    #[test]
    fn sleep_under_a_lock_or_with_a_permit_is_not_divided_among_more_threads() {
        let program = r#"{"format":"longpole-program","version":1,"threads":[
            {"name":"w","ops":[["sleep",80],["lock","m"],["sleep",80],["unlock","m"],["sem_wait","s"],["sleep",80],
                ["sem_post","s"],["exec","f",10],["sleep",80]]}]}"#;
        let mut program = json::read(program).expect("a program");
        more_sleepers(&mut program, &[0], 3);
        let lengths = program.threads[0].operations.iter().filter_map(|operation| match operation {
            Operation::Sleep(length) => Some(*length),
            _ => None,
        });
        assert_eq!(lengths.collect::<Vec<_>>(), [20, 80, 80, 20].map(Ticks::from_ns));
    }

    /// Python's locks are semaphores that another thread may post: a sleep after such a post is not under the lock.
    #[test]
    fn a_sleep_after_another_thread_s_permit_is_posted_is_not_under_it() {
        let program = r#"{"format":"longpole-program","version":1,"threads":[
            {"name":"w","ops":[["sem_wait","s"],["sem_wait","s"],["sleep",80],["sem_post","s"],["sleep",80]]}]}"#;
        let program = json::read(program).expect("a program");
        assert_eq!(own_sleep(&program, &program.threads[0]).0, 2);
    }

    #[test]
    fn a_sleep_with_a_permit_held_from_the_start_is_not_the_thread_s_own() {
        let program = r#"{"format":"longpole-program","version":1,"threads":[
            {"name":"w","ops":[["sem_post","s"],["sleep",80],["sem_wait","s"],["sleep",80],["sem_post","s"]]}]}"#;
        let program = json::read(program).expect("a program");
        assert_eq!(sleeps_of_its_own(&program, &program.threads[0]), [1]);
    }
}
