//! Computes the cost of cache lines that several threads change, and how it grows with CPUs. (This method is longpole's
//! own.)
//!
//! A line serves one CPU at a time. So threads that change it are customers of one server: each computes for a while
//! and then wants the line. Mean value analysis of closed queueing networks (Reiser and Lavenberg, 1980) gives how long
//! `k` threads wait for it, in units of one service: `wait(1) = 1`, `wait(k) = 1 + queue(k - 1)`, `queue(k) = k wait(k)
//! / (think + wait(k))`. Samples give the share of their time that threads are at the line, which determines `think`.
//!
//! A change takes less than one service for a thread that has the line to itself; that part is measured when recording
//! starts ([`crate::event::LineTransfer`]). The gain of giving each thread its own line is a range. It goes from the
//! wait without that part up to all time at the line, where the change no longer needs an atomic instruction.

use crate::cpus::Cpus;
use crate::event::LineTransfer;
use crate::program::{LineFact, Program};

/// Used if none was measured: of `lock add` with 40 ns of work in between.
const USUAL: LineTransfer = LineTransfer { alone_ps: 3_100, shared_ps: 19_000 };
/// Smallest factor of a thread's compute times.
const LEAST_FACTOR: f64 = 0.05;
/// More threads are computed as this many.
const MOST_THREADS: usize = 256;

/// How much the threads of a program use one cache line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LineLoad {
    /// For each thread, by its index in the program: the share of its time at the line.
    parts: Vec<(usize, f64)>,
    /// The part of all threads' time at the line.
    share: f64,
    /// Number of threads that change the line, and number of those that run at once on the recorded CPUs.
    threads: usize,
    at_once: usize,
    /// Computing of each thread between two visits, in services of the line.
    think: f64,
    /// Length of a visit by a thread that has the line to itself, as a multiple of one service.
    alone: f64,
}

impl LineLoad {
    /// The lines of a recorded program, in the order of its [`crate::program::Recorded::lines`].
    pub(crate) fn of(program: &Program) -> Vec<LineLoad> {
        let Some(machine) = &program.machine else { return Vec::new() };
        let takes = machine.line_transfer.filter(|takes| takes.shared_ps > 0).unwrap_or(USUAL);
        let alone = (takes.alone_ps as f64 / takes.shared_ps as f64).min(1.0);
        machine.lines.iter().map(|fact| LineLoad::of_fact(fact, program.recorded_cpus, alone)).collect()
    }

    pub(super) fn of_fact(fact: &LineFact, cpus: Option<u32>, alone: f64) -> LineLoad {
        let part = |count: u64, of: u64| (count as f64 / of.max(1) as f64).min(1.0);
        let sum = |count: fn(&crate::program::LineThread) -> u64| {
            fact.threads.iter().map(count).fold(0, u64::saturating_add)
        };
        let (at_line, of_threads) = (sum(|thread| thread.at_line), sum(|thread| thread.samples));
        let most = fact.threads.iter().map(|thread| thread.at_line).max().unwrap_or(0);
        // Number of threads in units of the busiest one: a thread that is rarely at the line makes no other thread
        // wait.
        let threads = at_line.checked_div(most).and_then(|threads| usize::try_from(threads).ok());
        let threads = threads.unwrap_or(2).clamp(2, MOST_THREADS);
        let at_once = threads.min(cpus.map_or(MOST_THREADS, |cpus| cpus as usize).max(2));
        let place = |thread: u32| usize::try_from(thread).unwrap_or(usize::MAX);
        let parts =
            fact.threads.iter().map(|thread| (place(thread.thread), part(thread.at_line, thread.samples)));
        LineLoad {
            parts: parts.collect(),
            share: part(at_line, fact.samples),
            threads,
            at_once,
            think: think(part(at_line, of_threads), at_once),
            alone,
        }
    }

    /// The part of the program's CPU time at the line.
    pub(crate) fn share(&self) -> f64 {
        self.share
    }

    /// The smallest part of the program's CPU time that a line for each thread saves.
    pub(crate) fn least(&self) -> f64 {
        self.share * (1.0 - self.alone / wait(self.at_once, self.think)).max(0.0)
    }

    /// Length of a visit on `cpus` CPUs with `more` additional threads, as a multiple of its length on the recorded
    /// machine.
    fn growth(&self, cpus: Cpus, more: usize) -> f64 {
        let threads = self.threads.saturating_add(more).min(cpus.or(MOST_THREADS)).min(MOST_THREADS);
        let visit = if threads < 2 { self.alone } else { wait(threads, self.think) };
        visit / wait(self.at_once, self.think)
    }

    /// Growth of the program's CPU time by `more` additional threads at this line, as a share of that time.
    pub(crate) fn growth_with(&self, more: usize, cpus: Cpus) -> f64 {
        self.share * (self.growth(cpus, more) - self.growth(cpus, 0))
    }
}

/// The program with its compute times on this number of CPUs, as its cache lines change them; `None`: compute times
/// stay as recorded.
pub(super) fn grown<'a>(
    program: &Program,
    lines: impl IntoIterator<Item = &'a LineLoad>,
    cpus: Cpus,
) -> Option<Program> {
    let lines: Vec<&LineLoad> = lines.into_iter().collect();
    let growths: Vec<f64> = lines.iter().map(|line| line.growth(cpus, 0)).collect();
    if growths.iter().all(|growth| (growth - 1.0).abs() < 1e-3) {
        return None;
    }
    let mut factors = vec![1.0; program.threads.len()];
    for (line, growth) in lines.iter().zip(&growths) {
        for (thread, part) in &line.parts {
            if let Some(factor) = factors.get_mut(*thread) {
                *factor += part * (growth - 1.0);
            }
        }
    }
    // Some samples may be at several lines.
    Some(program.clone().computing(|thread, _| factors.get(thread).copied().unwrap_or(1.0).max(LEAST_FACTOR)))
}

/// Time for which one of `threads` threads waits for the line and holds it, as a multiple of one service.
fn wait(threads: usize, think: f64) -> f64 {
    let mut queue = 0.0;
    let mut wait = 1.0;
    for count in 1..=threads {
        wait = 1.0 + queue;
        queue = count as f64 * wait / (think + wait);
    }
    wait
}

/// Computing of each thread between two visits, as a multiple of one service, if the thread is at the line for the
/// share `part` of its time.
fn think(part: f64, threads: usize) -> f64 {
    // Bisection: the part falls as `think` grows.
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        let waits = wait(threads, middle);
        if waits / (middle + waits) > part { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measured nanoseconds for a round of `lock add` on one line and 40 ns of work, on two CPUs: 65 ns if both threads
    /// run, 43 ns alone.
    #[test]
    fn two_threads_at_one_cache_line_take_as_long_as_measured() {
        let service_ns = USUAL.shared_ps as f64 / 1e3;
        let both_ns = wait(2, 40.0 / service_ns) * service_ns;
        assert!((24.0..26.0).contains(&both_ns), "{both_ns}");
    }

    #[test]
    fn threads_always_at_a_cache_line_wait_for_all_others() {
        assert!((wait(8, 0.0) - 8.0).abs() < 1e-9);
        let rarely = think(0.01, 2);
        assert!(wait(8, rarely) < 1.1, "{}", wait(8, rarely));
        let half = think(0.5, 2);
        assert!((wait(2, half) / (half + wait(2, half)) - 0.5).abs() < 1e-6);
    }
}
