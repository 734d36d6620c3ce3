//! Finds by each thread's samples with which function the thread was started, and which functions are on its stack.

use crate::attribution::Owners;
use crate::program::{FunctionRef, Program};
use rustc_hash::{FxHashMap, FxHashSet};

/// A function is what threads do if at least this share of their samples has it on the stack.
const MOSTLY: f64 = 0.6;
/// A function distinguishes some threads from others if at least this share of all its samples are from them.
const OWN: f64 = 0.8;
/// A thread counts as the twin of another if it has at least this share of the other's samples.
const TWIN: f64 = 0.1;

/// The function that a thread was started with is unknown with fewer samples than this.
const TELL: u32 = 8;

/// Functions on the stack in the samples of one thread.
#[derive(Clone, Debug, Default)]
pub(in crate::limit) struct ThreadSamples {
    /// The outermost function of most samples, among functions that a user can change: the thread was probably started
    /// with it.
    pub(in crate::limit) entry: Option<FunctionRef>,
    samples: u32,
    /// Samples in which `entry` was the outermost function.
    at_entry: u32,
    /// For each function: number of samples with it on the stack, and the sum of its depths in them; 0 is the
    /// innermost.
    functions: FxHashMap<FunctionRef, (u32, u32)>,
    /// For each function: number of samples in which it computed, including standard functions that it called.
    computing: FxHashMap<FunctionRef, u32>,
}

impl ThreadSamples {
    /// The function that the thread was started with, if enough samples agree.
    pub(super) fn told_entry(&self) -> Option<FunctionRef> {
        // Truncated stacks end in any function, so most samples must agree.
        let is_most = self.at_entry.saturating_mul(2) > self.samples;
        self.entry.filter(|_| self.samples >= TELL && is_most)
    }

    /// The functions that most of the thread's samples have on the stack, and `entry`.
    pub(super) fn mostly(&self) -> FxHashSet<FunctionRef> {
        let least = MOSTLY * f64::from(self.samples);
        let functions = self.functions.iter().filter(|(_, (count, _))| f64::from(*count) >= least);
        functions.map(|(function, _)| *function).chain(self.entry).collect()
    }

    /// Whether one thread runs the function that the other was started with. The first thread of a process may call the
    /// function with which it starts other threads, as with OpenMP.
    fn does_as(&self, other: &ThreadSamples) -> bool {
        let does = |one: &ThreadSamples, entry: Option<FunctionRef>| {
            entry.is_some_and(|entry| one.mostly().contains(&entry))
        };
        does(self, other.entry) || does(other, self.entry)
    }
}

/// The samples by thread; the program must still have its samples.
pub(in crate::limit) fn of_threads(program: &Program, owners: &Owners) -> Vec<ThreadSamples> {
    let of_thread = |thread: usize| {
        let mut seen = ThreadSamples::default();
        let mut entries: FxHashMap<FunctionRef, u32> = FxHashMap::default();
        for sample in program.samples.of_thread(thread) {
            seen.samples += 1;
            let own = program.samples.stack(sample.stack).map(|(_, place)| place.function);
            let mut own: Vec<FunctionRef> = own.collect();
            if let Some(owner) = own.first().and_then(|innermost| owners.owner(*innermost)) {
                *seen.computing.entry(owner).or_insert(0) += 1;
            }
            own.retain(|own| owners.owner(*own) == Some(*own));
            if let Some(entry) = own.last() {
                *entries.entry(*entry).or_insert(0) += 1;
            }
            // A recursive function counts once.
            let mut known: Vec<FunctionRef> = Vec::new();
            own.retain(|function| {
                let new = !known.contains(function);
                known.push(*function);
                new
            });
            for (function, depth) in own.into_iter().zip(0u32..) {
                let (count, depths) = seen.functions.entry(function).or_insert((0, 0));
                *count += 1;
                *depths = depths.saturating_add(depth);
            }
        }
        let most = entries.into_iter().max_by_key(|(function, count)| (*count, std::cmp::Reverse(*function)));
        seen.at_entry = most.map_or(0, |(_, count)| count);
        seen.entry = most.map(|(function, _)| function);
        seen
    };
    (0..program.threads.len()).map(of_thread).collect()
}

/// Half of the 95 % interval of a function's share of all samples, relative to the share: 1.96 √((1 − p) / n) for `n` samples,
/// a share `p` of all (binomial). 0 for a function without samples, since its time was measured.
pub(in crate::limit) fn relative_error(seen: &[ThreadSamples], function: FunctionRef) -> f64 {
    let all: f64 = seen.iter().map(|seen| f64::from(seen.samples)).sum();
    let own: f64 =
        seen.iter().filter_map(|seen| seen.computing.get(&function)).map(|own| f64::from(*own)).sum();
    if own > 0.0 { 1.96 * ((1.0 - own / all) / own).sqrt() } else { 0.0 }
}

/// Whether another thread does the same and computes, too: then this thread is no stage that lacks a second thread.
/// Threads of a runtime take any work that is ready, so they may be twins without being recognized as one group.
pub(in crate::limit) fn has_twin(seen: &[ThreadSamples], thread: usize) -> bool {
    let Some(own) = seen.get(thread).filter(|own| own.entry.is_some()) else { return false };
    let mut others = seen.iter().enumerate().filter(|(other, _)| *other != thread);
    others.any(|(_, other)| own.does_as(other) && f64::from(other.samples) >= TWIN * f64::from(own.samples))
}

/// The innermost function that these threads are in most of the time, and other threads are not. It describes the
/// threads better than the function that computes most, if that one computes for other threads, too.
pub(in crate::limit) fn apart(seen: &[ThreadSamples], threads: &[usize]) -> Option<FunctionRef> {
    let mut own: FxHashMap<FunctionRef, (u32, u32)> = FxHashMap::default();
    let mut samples = 0u32;
    for seen in threads.iter().filter_map(|thread| seen.get(*thread)) {
        samples = samples.saturating_add(seen.samples);
        for (function, (count, depth)) in &seen.functions {
            let sums = own.entry(*function).or_insert((0, 0));
            *sums = (sums.0.saturating_add(*count), sums.1.saturating_add(*depth));
        }
    }
    let all = |function: &FunctionRef| {
        let counts = seen.iter().filter_map(|seen| seen.functions.get(function));
        counts.map(|(count, _)| f64::from(*count)).sum::<f64>()
    };
    let telling = own.into_iter().filter(|(function, (count, _))| {
        let count = f64::from(*count);
        count >= MOSTLY * f64::from(samples) && count >= OWN * all(function)
    });
    let depth = |(count, depths): (u32, u32)| f64::from(depths) / f64::from(count.max(1));
    let innermost = telling.min_by(|a, b| depth(a.1).total_cmp(&depth(b.1)).then(a.0.cmp(&b.0)));
    innermost.map(|(function, _)| function)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goroutines that wait for one mutex are not a pipeline in which one stage needs a second thread.
    #[test]
    fn a_thread_started_with_the_same_function_that_computes_is_a_twin() {
        let seen = |entry: Option<u32>, samples| ThreadSamples {
            entry: entry.map(FunctionRef),
            samples,
            ..ThreadSamples::default()
        };
        let goroutines = [seen(Some(1), 100), seen(Some(1), 30), seen(Some(2), 100)];
        assert!(has_twin(&goroutines, 0) && has_twin(&goroutines, 1));
        assert!(!has_twin(&goroutines, 2), "a stage of its own");
        assert!(!has_twin(&[seen(Some(1), 100), seen(Some(1), 2)], 0), "one that hardly computes");
        assert!(!has_twin(&[seen(None, 100), seen(None, 100)], 0), "not known");
    }

    #[test]
    fn the_error_of_a_sampled_share_shrinks_with_its_samples() {
        let seen = |samples, own| ThreadSamples {
            samples,
            computing: [(FunctionRef(1), own)].into_iter().collect(),
            ..ThreadSamples::default()
        };
        // 100 of 400: 1.96 √(0.75 / 100).
        let error = relative_error(&[seen(200, 60), seen(200, 40)], FunctionRef(1));
        assert!((error - 0.1697).abs() < 0.0001, "{error}");
        assert_eq!(relative_error(&[seen(4, 4)], FunctionRef(1)), 0.0, "all of them");
        assert_eq!(relative_error(&[seen(4, 4)], FunctionRef(2)), 0.0, "measured in another way");
    }

    /// The first thread of an OpenMP region calls in `main` the function that the other thread was started with: neither is a
    /// stage that lacks a second thread.
    #[test]
    fn a_thread_that_calls_another_one_s_first_function_is_a_twin() {
        let seen = |entry: u32, functions: &[(u32, u32)]| ThreadSamples {
            entry: Some(FunctionRef(entry)),
            samples: 100,
            functions: functions
                .iter()
                .map(|(function, count)| (FunctionRef(*function), (*count, 0)))
                .collect(),
            ..ThreadSamples::default()
        };
        let region = [seen(0, &[(0, 100), (1, 95)]), seen(1, &[(1, 100)])];
        assert!(has_twin(&region, 0) && has_twin(&region, 1));
        assert!(region[0].mostly().contains(&FunctionRef(1)));
        let stages = [seen(0, &[(0, 100), (1, 20)]), seen(1, &[(1, 100)])];
        assert!(!has_twin(&stages, 0), "it seldom does what the other one does");
    }
}
