//! Distributes work over all cores of this machine.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Works on independent things: each core takes the next one. Answers are in the order of the things.
pub fn on_all_cores<T: Sync, A: Send>(things: &[T], work: impl Fn(&T) -> A + Sync) -> Vec<A> {
    let next = AtomicUsize::new(0);
    let answers: Mutex<Vec<(usize, A)>> = Mutex::new(Vec::with_capacity(things.len()));
    let work = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(thing) = things.get(place) else { break };
            let answer = work(thing);
            answers.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((place, answer));
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(things.len());
    std::thread::scope(|scope| {
        for _ in 1..cores {
            scope.spawn(work);
        }
        work();
    });
    let mut answers = answers.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Runs two functions at once. Each may use all cores, so one makes progress while the other has work for only one
/// core.
pub fn both<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), other)
    })
}

/// The result of the first attempt, by number, that has one. Attempts are independent: each core makes the next one.
pub fn first_on_all_cores<A: Send>(count: usize, attempt: &(dyn Fn(usize) -> Option<A> + Sync)) -> Option<A> {
    let numbers: Vec<usize> = (0..count).collect();
    let best: Mutex<Option<(usize, A)>> = Mutex::new(None);
    let found = || best.lock().unwrap_or_else(PoisonError::into_inner);
    on_all_cores(&numbers, |&number| {
        if found().as_ref().is_some_and(|(first, _)| *first < number) {
            return;
        }
        if let Some(answer) = attempt(number) {
            let mut found = found();
            if found.as_ref().is_none_or(|(first, _)| number < *first) {
                *found = Some((number, answer));
            }
        }
    });
    best.into_inner().unwrap_or_else(PoisonError::into_inner).map(|(_, answer)| answer)
}

#[cfg(test)]
mod tests {
    use super::first_on_all_cores;

    #[test]
    fn the_first_answer_on_all_cores_is_that_of_the_lowest_number() {
        for first in 0..20 {
            assert_eq!(first_on_all_cores(20, &|number| (number >= first).then_some(number)), Some(first));
        }
        assert_eq!(first_on_all_cores(20, &|_| None::<()>), None);
        assert_eq!(first_on_all_cores(0, &Some), None);
    }
}
