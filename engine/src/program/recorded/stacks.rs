//! Finds what a sampled stack shows about a wait or a wake-up: the innermost function outside of the language and the C
//! library. Records show already that a thread slept in `read`, for example.

use super::model::Primitive;
use crate::program::naming::function_origin::{is_openmp, takes_the_gil};
use crate::program::{Function, Program};

/// The program's name of that function.
pub(super) fn function_of(program: &Program, stack: u32) -> Option<&str> {
    let functions = || {
        let places = program.samples.stack(stack).map(|(_, place)| place.function);
        places.filter_map(|function| program.functions.get(function.0 as usize))
    };
    let own = functions().find(|function| !is_of_the_system(function));
    own.or_else(|| functions().next()).map(|function| function.name.as_str())
}

/// What the innermost functions of a waiting thread's stack show about the futex word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsIn {
    /// The lock of a Python interpreter, made of a condition variable.
    Gil,
    /// Another word for a lock or a signal.
    A(Primitive),
}

/// What a thread with this stack waits for; `None` if the functions do not show it.
pub(super) fn waits_in(program: &Program, stack: u32) -> Option<WaitsIn> {
    let places = program.samples.stack(stack).map(|(_, place)| place.function);
    let functions = places.filter_map(|function| program.functions.get(function.0 as usize));
    let innermost: Vec<&Function> = functions.take(INNERMOST).collect();
    if innermost.iter().any(|function| takes_the_gil(&function.name)) {
        return Some(WaitsIn::Gil);
    }
    let found = innermost.iter().find_map(|function| of_name(&function.name));
    // GNU's OpenMP library has only names of exported functions; its lock functions are exported.
    let binary = innermost.first().and_then(|function| function.module.as_deref());
    let waits_in_openmp = || binary.is_some_and(is_openmp);
    found.or_else(|| waits_in_openmp().then_some(Primitive::Signal)).map(WaitsIn::A)
}

/// Number of innermost functions that are examined.
const INNERMOST: usize = 6;

fn of_name(name: &str) -> Option<Primitive> {
    const LOCKS: [&str; 14] = [
        "mutex",
        "rwlock",
        "lll_lock",
        "mtx_lock",
        "spin_lock",
        "spinlock",
        "lock_slow",
        "lock_contended",
        "sem_wait",
        "semaphore",
        "critical_start",
        "kmpc_critical",
        "kmp_acquire",
        "omp_set_lock",
    ];
    const SIGNALS: [&str; 8] =
        ["_cond", "cond_", "condvar", "condition", "barrier", "park", "latch", "_join"];
    let name = name.split('(').next().unwrap_or(name).to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    match (has(&LOCKS), has(&SIGNALS)) {
        (true, false) => Some(Primitive::Lock),
        (_, true) => Some(Primitive::Signal),
        (false, false) => None,
    }
}

/// Whether the function belongs to the language or the C library, or has no name: then it shows no more than the
/// waiting call.
pub(super) fn is_of_the_system(function: &Function) -> bool {
    function.module.is_none() || !function.is_authors()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_wait_for_locks_and_signals_are_known_by_name() {
        let lock =
            ["pthread_mutex_lock", "__lll_lock_wait", "std::sys::sync::mutex::futex::Mutex::lock_contended"];
        let signal =
            ["__pthread_cond_wait", "pthread_barrier_wait", "std::thread::park", "parking_lot_core::park"];
        assert!(lock.iter().all(|name| of_name(name) == Some(Primitive::Lock)));
        assert!(signal.iter().all(|name| of_name(name) == Some(Primitive::Signal)));
        assert!(["second", "worker(std::mutex&)", "block_sort"].iter().all(|name| of_name(name).is_none()));
    }
}
