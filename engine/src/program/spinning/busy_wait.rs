//! Time that threads spend polling for another thread's work: the functions that only wait, and the finding. [`super::spins`]
//! turns such time into waiting where samples and other threads show what ended it.

use super::mpi::{InMpi, Mpi};
use crate::finding::{Finding, SeenWaiting, Yielded};
use crate::program::Program;
use crate::program::naming::function_origin::is_openmp;
use crate::timeline::Timeline;
use probe_abi::SampleReason;
use std::collections::BTreeMap;

/// Parts of names of functions that only wait, keeping a CPU busy: those of the C library, libgomp, LLVM's OpenMP, crossbeam
/// and rayon, the Rust library, TBB, and the JVM's monitors, which read a thread's state by `SafeFetch`.
const WAITERS: [&str; 17] = [
    "pthread_spin_lock",
    "sched_yield",
    "thrd_yield",
    "do_spin",
    "gomp_barrier_wait",
    "gomp_team_barrier_wait",
    "gomp_mutex_lock_slow",
    "__kmp_wait",
    "__kmp_hyper_barrier",
    "crossbeam_utils::backoff",
    "rayon_core::sleep",
    "wait_until_cold",
    "hint::spin_loop",
    "machine_pause",
    "ObjectMonitor::TrySpin",
    "SafeFetch",
    "SpinPause",
];

/// Least share of busy waiting in the compute time that is reported.
pub(in crate::program) const WORTH_SAYING: f64 = 0.01;
/// Least number of `sched_yield` calls that is reported.
const FEWEST_YIELDS: u64 = 100;

/// Least number of samples from which the length of polling is computed.
const TELL: usize = 200;

/// The finding, if much busy waiting counts as computing.
pub(in crate::program) fn finding(timeline: &Timeline, program: &Program, mpi: &Mpi) -> Option<Finding> {
    let ran_ns = timeline.threads.iter().map(|thread| thread.ran().0).fold(0, u64::saturating_add);
    let seen = seen(program, mpi);
    let yields = yields(timeline);
    let share = |ns: u64| ns as f64 / ran_ns.max(1) as f64;
    let is_much = |ns: u64| share(ns) >= WORTH_SAYING;
    let seen_ns = seen.as_ref().map_or(0, |seen| seen.share_of(ran_ns));
    let yielded = yields.as_ref().filter(|yields| yields.times >= FEWEST_YIELDS && is_much(yields.ns));
    if yielded.is_none() && !is_much(seen_ns) {
        return None;
    }
    // Time before a yield may be work. Samples distinguish work from polling; with too few samples, all of it may be polling.
    // Samples of waiting are as good, but only those of computing are in the program, so the timeline's are counted.
    let ticks = timeline.threads.iter().flat_map(|thread| &thread.samples);
    let is_sampled = ticks.filter(|sample| sample.reason == SampleReason::Tick).count() >= TELL;
    // If samples count these yields as waiting, a finding that they count as computing would contradict that.
    let is_waiting = |finding: &Finding| matches!(finding, Finding::Spinning { .. });
    if is_sampled && !is_much(seen_ns) && program.findings.iter().any(is_waiting) {
        return None;
    }
    let yielded =
        yielded.cloned().map(|yields| if is_sampled { Yielded { ns: 0, ..yields } } else { yields });
    // Both numbers may describe the same time: a thread that yields in such a function is sampled there, too.
    let most_ns = seen_ns.max(yielded.as_ref().map_or(0, |yields| yields.ns));
    let seen = seen.filter(|_| is_much(seen_ns)).map(|seen| SeenWaiting {
        samples: seen.waiting,
        of: seen.all,
        ns: seen_ns,
        function: seen.most.to_owned(),
    });
    Some(Finding::BusyWait { yielded, seen, most_ns, ran_ns })
}

fn yields(timeline: &Timeline) -> Option<Yielded> {
    let most = timeline.threads.iter().max_by_key(|thread| thread.yields)?;
    let sum = |part: fn(&crate::timeline::Thread) -> u64| {
        timeline.threads.iter().map(part).fold(0, u64::saturating_add)
    };
    Some(Yielded {
        times: sum(|thread| thread.yields),
        ns: sum(|thread| thread.yielded.0),
        most: format!("{}/{}", most.comm, most.tid),
    })
}

struct Waiting<'a> {
    waiting: u64,
    all: u64,
    most: &'a str,
}

impl Waiting<'_> {
    fn share_of(&self, ns: u64) -> u64 {
        let part = u128::from(ns) * u128::from(self.waiting) / u128::from(self.all.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

/// Samples of computing in functions that only wait, and the functions with most of these samples. A rank of MPI waits in a
/// call of MPI.
fn seen<'a>(program: &'a Program, mpi: &Mpi) -> Option<Waiting<'a>> {
    let samples = &program.samples;
    let of_stack = |stack: u32| match mpi.stack(stack) {
        InMpi::Waits(call) => Some(call),
        _ => waiter(program, stack),
    };
    let by_stack: Vec<Option<&str>> =
        (0u32..).zip(&samples.stacks).map(|(stack, _)| of_stack(stack)).collect();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut all = 0;
    for sample in samples.threads.iter().flatten() {
        all += 1;
        if let Some(name) = by_stack.get(sample.stack as usize).copied().flatten() {
            *counts.entry(name).or_insert(0) += 1;
        }
    }
    let (most, _) = counts.iter().max_by_key(|(name, count)| (**count, std::cmp::Reverse(**name)))?;
    Some(Waiting { waiting: counts.values().sum(), all, most })
}

/// Whether a function only waits, keeping a CPU busy.
pub(in crate::program) fn is_waiter(name: &str, module: &str) -> bool {
    WAITERS.iter().any(|part| name.contains(part)) || is_openmp(module)
}

/// Whether a function takes a spin lock, spinning while the lock is not free.
pub(in crate::program) fn is_spin_lock(name: &str) -> bool {
    name.contains("pthread_spin_lock")
}

/// Parts of names of functions that take locks of the C library and Rust, which spin briefly before they sleep.
const SLEEPING_LOCKS: [&str; 5] =
    ["pthread_mutex", "pthread_rwlock", "lll_lock", "sync::mutex::futex", "sync::rwlock::futex"];

/// Whether a function takes a lock that spins and then sleeps while the lock is not free.
pub(in crate::program) fn is_sleeping_lock(name: &str) -> bool {
    SLEEPING_LOCKS.iter().any(|part| name.contains(part))
}

/// Largest number of patterns that are used, and the longest pattern: files are not trusted.
const MOST_PATTERNS: usize = 64;
const LONGEST_PATTERN: usize = 256;

/// Whether the name matches a pattern that the user gave, with parameters or without.
pub(in crate::program) fn is_declared(patterns: &[String], name: &str) -> bool {
    let plain = name.split_once('(').map_or(name, |(plain, _)| plain);
    patterns
        .iter()
        .take(MOST_PATTERNS)
        .filter(|pattern| pattern.len() <= LONGEST_PATTERN)
        .any(|pattern| crate::glob::matches(pattern, name) || crate::glob::matches(pattern, plain))
}

/// The function of a stack's innermost frame that only waits: the innermost one inlined there, or one around it.
fn waiter(program: &Program, stack: u32) -> Option<&str> {
    for (_, place) in program.samples.stack(stack) {
        let function = program.functions.get(place.function.0 as usize)?;
        if is_waiter(&function.name, function.module.as_deref().unwrap_or_default()) {
            return Some(&function.name);
        }
        if !place.inlined {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Function, FunctionRef, Place, PlaceId, Sample, Samples};
    use crate::time::{Nanos, Timestamp};
    use crate::timeline::{Interval, StackSample, State, Thread};

    fn thread(ran_ns: u64, yields: u64, yielded_ns: u64) -> Thread {
        Thread {
            tid: 7,
            comm: "worker".to_owned(),
            end: Timestamp(ran_ns),
            intervals: vec![Interval {
                start: Timestamp(0),
                state: State::Running { cpu: Some(0) },
                first_step: 0,
            }],
            yields,
            yielded: Nanos(yielded_ns),
            ..Thread::default()
        }
    }

    fn timeline(threads: Vec<Thread>) -> Timeline {
        Timeline { threads, ..Timeline::default() }
    }

    #[test]
    fn many_yields_are_a_note_with_their_time_and_a_few_are_none() {
        let few = timeline(vec![thread(100_000_000, 99, 50_000_000)]);
        assert_eq!(finding(&few, &Program::default(), &Mpi::default()), None);
        let short = timeline(vec![thread(100_000_000, 5000, 900_000)]);
        assert_eq!(finding(&short, &Program::default(), &Mpi::default()), None);
        let many = timeline(vec![thread(100_000_000, 5000, 30_000_000), thread(100_000_000, 1, 0)]);
        let yielded = Yielded { times: 5001, ns: 30_000_000, most: "worker/7".to_owned() };
        let (most_ns, ran_ns) = (30_000_000, 200_000_000);
        let wanted = Finding::BusyWait { yielded: Some(yielded), seen: None, most_ns, ran_ns };
        assert_eq!(finding(&many, &Program::default(), &Mpi::default()), Some(wanted));
        // Two threads take turns by yields. Without this rule their note would be "asked again and again for 96 % of
        // all CPU time", though 43 % of spinning is known.
        let mut sampled = Program::default();
        // All samples are of waiting, so the program keeps no sample. Only one of the two notes may appear.
        let sample =
            StackSample { time: Timestamp(1), stack: 0, reason: SampleReason::Tick, truncated: false };
        let mut many = many;
        many.threads[0].samples = vec![sample; TELL];
        let note = finding(&many, &sampled, &Mpi::default());
        sampled.findings.push(Finding::Spinning {
            spun_ns: 30_000_000,
            ran_ns,
            waits: 1,
            guessed: 0,
            hand_overs: 0,
        });
        assert_eq!(
            finding(&many, &sampled, &Mpi::default()),
            None,
            "they count as waiting, not as computing"
        );
        let Some(Finding::BusyWait { yielded: Some(yielded), most_ns: 0, .. }) = note else {
            panic!("{note:?}")
        };
        assert_eq!(
            (yielded.times, yielded.ns),
            (5001, 0),
            "none of these samples was in a function that waits"
        );
    }

    #[test]
    fn samples_in_spin_loops_and_runtimes_are_a_note_about_busy_waiting() {
        let function = |name: &str, module: &str| Function {
            name: name.to_owned(),
            module: Some(module.to_owned()),
            ..Function::default()
        };
        let place = |function, inlined| Place { function: FunctionRef(function), line: None, inlined };
        let program = Program {
            functions: vec![
                function("Work", "app"),
                function("[libgomp.so.1.0.0]", "libgomp.so.1.0.0"),
                function("core::hint::spin_loop", "app"),
            ],
            samples: Samples {
                places: vec![place(0, false), place(1, false), place(2, true)],
                // Work; libgomp called from Work; a spin loop inlined into Work; Work called from libgomp.
                stacks: vec![
                    vec![PlaceId(0)],
                    vec![PlaceId(1), PlaceId(0)],
                    vec![PlaceId(2), PlaceId(0)],
                    vec![PlaceId(0), PlaceId(1)],
                ],
                threads: vec![[0, 0, 1, 1, 1, 2, 3, 3].map(|stack| Sample { operation: 0, stack }).to_vec()],
                ..Samples::default()
            },
            ..Program::default()
        };
        let (most_ns, ran_ns) = (40_000_000, 80_000_000);
        let function = "[libgomp.so.1.0.0]".to_owned();
        let seen = SeenWaiting { samples: 4, of: 8, ns: most_ns, function };
        let wanted = Finding::BusyWait { yielded: None, seen: Some(seen), most_ns, ran_ns };
        assert_eq!(
            finding(&timeline(vec![thread(80_000_000, 0, 0)]), &program, &Mpi::default()),
            Some(wanted)
        );
    }
}
