//! What samples show of each thread: the function that it was started with, and which functions were on its stack.

use crate::attribution::Owners;
use crate::program::{FunctionRef, Program};
use rustc_hash::{FxHashMap, FxHashSet};

/// A function is what threads do if so large a share of their samples saw it.
const MOSTLY: f64 = 0.6;
/// It distinguishes them from others if this large a share of all its samples are theirs.
const OWN: f64 = 0.8;
/// A thread with this share of another one's samples computes as that one does.
const TWIN: f64 = 0.1;

/// Fewer samples do not tell what a thread was started with.
const TELL: u32 = 8;

/// What samples show of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadSamples {
    /// The outermost function that a user can change, according to most of its samples.
    pub(super) entry: Option<FunctionRef>,
    samples: u32,
    /// In how many of them that function was the outermost one.
    at_entry: u32,
    /// In how many samples a function was on the stack, and how deep inside others, summed.
    functions: FxHashMap<FunctionRef, (u32, u32)>,
    /// In how many samples it was what computed, with what standard functions computed for it.
    computing: FxHashMap<FunctionRef, u32>,
}

impl ThreadSamples {
    /// What it was started with, if enough samples tell.
    pub(super) fn told_entry(&self) -> Option<FunctionRef> {
        // Stacks that end before their beginning end in any function.
        let is_most = self.at_entry.saturating_mul(2) > self.samples;
        self.entry.filter(|_| self.samples >= TELL && is_most)
    }

    /// The functions that most of its samples saw, what it was started with among them.
    pub(super) fn mostly(&self) -> FxHashSet<FunctionRef> {
        let least = MOSTLY * f64::from(self.samples);
        let functions = self.functions.iter().filter(|(_, (count, _))| f64::from(*count) >= least);
        functions.map(|(function, _)| *function).chain(self.entry).collect()
    }

    /// Whether both do what one of them was started with: the first thread of a process may call what it starts others
    /// with, as OpenMP's does.
    fn does_as(&self, other: &ThreadSamples) -> bool {
        let does = |one: &ThreadSamples, entry: Option<FunctionRef>| {
            entry.is_some_and(|entry| one.mostly().contains(&entry))
        };
        does(self, other.entry) || does(other, self.entry)
    }
}

/// By thread; the program still has its samples.
pub(super) fn of_threads(program: &Program, owners: &Owners) -> Vec<ThreadSamples> {
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

/// Half of the 95 % interval of a function's share by its samples, as a part of the share: 1.96 √((1 − p) / n) for n samples of
/// it, p of all (binomial). 0 for a function that no sample saw, since its time was measured.
pub(super) fn relative_error(seen: &[ThreadSamples], function: FunctionRef) -> f64 {
    let all: f64 = seen.iter().map(|seen| f64::from(seen.samples)).sum();
    let own: f64 =
        seen.iter().filter_map(|seen| seen.computing.get(&function)).map(|own| f64::from(*own)).sum();
    if own > 0.0 { 1.96 * ((1.0 - own / all) / own).sqrt() } else { 0.0 }
}

/// Whether another thread that does what this one was started with computes, too: then one such thread is no stage that lacks
/// a second one.
/// Threads of a runtime run what is to be done in turn, so that they need not be known to do the same.
pub(super) fn has_twin(seen: &[ThreadSamples], thread: usize) -> bool {
    let Some(own) = seen.get(thread).filter(|own| own.entry.is_some()) else { return false };
    let mut others = seen.iter().enumerate().filter(|(other, _)| *other != thread);
    others.any(|(_, other)| own.does_as(other) && f64::from(other.samples) >= TWIN * f64::from(own.samples))
}

/// The innermost function that these threads are in most of the time, and others are not: what they do, where the function
/// that computes most does so for others, too.
pub(super) fn apart(seen: &[ThreadSamples], threads: &[usize]) -> Option<FunctionRef> {
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

    /// Four goroutines under one mutex were a pipeline, and one of its stages lacked a second thread.
    #[test]
    fn a_thread_that_was_started_alike_and_computes_is_a_twin() {
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
    fn few_samples_of_a_function_leave_much_open() {
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

    /// Both threads of an OpenMP region with a critical section were "a stage" that lacked a second thread: the first one calls
    /// in `main` what the other was started with.
    #[test]
    fn a_thread_that_calls_what_others_were_started_with_is_a_twin() {
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
