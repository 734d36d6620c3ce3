//! Using all cores of this machine.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Work on things that are independent of each other: each core takes the next one. The answers are in the order of the things.
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
