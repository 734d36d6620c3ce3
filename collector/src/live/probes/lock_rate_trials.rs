//! Decides which families of lock functions of a running program get probes: those whose calls, counted for a moment,
//! would cost little with probes. The other families never get any.
//!
//! A probed call takes microseconds, and a program that serves others may lock a hundred thousand times a second:
//! a trial with probes would slow it down. So hardware breakpoints count the calls ([`count_calls`]), as for other
//! functions: in the threads that run most, at a few entry points at a time.

use super::c_libraries::{CLibraries, LibcChoice};
use super::tally::Tally;
use super::trials::Trials;
use crate::live::main_loop::LibcChosen;
use capture::probe::{AT_ONCE, Calls, LibcProbes, count_calls};
use capture::target::{Process, mapped};
use engine::event::OperationsTried;
use probe_abi::SyncFamily;
use std::collections::BTreeMap;
use std::time::Duration;

/// Length of one trial of a few functions.
const TRIAL: Duration = Duration::from_millis(50);
/// Largest number of threads in a trial.
const MOST_THREADS: usize = 4;
/// Least running time (seconds) of tried threads that shows how a program behaves when it runs.
const LEAST_RUN_S: f64 = 0.01;
/// Share of one CPU that probes may always cost in a program that hardly runs.
const LEAST_OF_CPU: f64 = 0.001;
/// Number of checks for a C library that is not there yet: the loader may not be finished.
const MOST_LOOKS: u8 = 4;

/// Processes whose families of lock functions wait for a trial.
#[derive(Debug, Default)]
pub(super) struct LockRateTrials {
    waiting: BTreeMap<u32, Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    since_ns: u64,
    looks: u8,
}

/// The result of a process's trial.
pub(super) enum Tried {
    /// The families of the process get probes, except those in [`LibcProbes::unfit`].
    Decided(Box<LibcChosen>),
    /// The process has no C library that can be probed: the reason.
    Without(String),
}

/// Counted calls of a family's functions.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// Calls in a second of a tried thread's running time.
    each_s: f64,
    /// Calls in a second, in all threads.
    wall_each_s: f64,
    ran_s: f64,
    /// Entry points whose calls could be counted.
    known: usize,
    /// The family is already too expensive; its other entry points need no trial.
    over: bool,
}

impl LockRateTrials {
    /// Queues a process for a trial; its operations are missing from `since_ns` on.
    pub(super) fn wait(&mut self, pid: u32, since_ns: u64) {
        self.waiting.insert(pid, Waiting { since_ns, looks: 0 });
    }

    /// Removes a process that has ended.
    pub(super) fn forget(&mut self, pid: u32) {
        self.waiting.remove(&pid);
    }

    /// Tries the queued processes among these.
    pub(super) fn run(
        &mut self,
        tally: &Tally,
        pids: &[u32],
        libc: &mut CLibraries,
        trials: &mut Trials,
    ) -> Vec<Tried> {
        let mut done = Vec::new();
        for &pid in pids {
            let Some(waiting) = self.waiting.get_mut(&pid) else { continue };
            let Ok(process) = Process::open(pid) else { continue };
            let probes = match libc.of_process(&process) {
                LibcChoice::Probes(probes) => probes,
                LibcChoice::Inside => {
                    self.waiting.remove(&pid);
                    continue;
                }
                LibcChoice::None(_) if waiting.looks < MOST_LOOKS => {
                    waiting.looks += 1;
                    continue;
                }
                LibcChoice::None(why) => {
                    self.waiting.remove(&pid);
                    done.push(Tried::Without(why));
                    continue;
                }
            };
            let since_ns = waiting.since_ns;
            self.waiting.remove(&pid);
            let threads = Threads::of(pid, &tally.busiest(pid));
            let mut unfit = Vec::new();
            for (family, counted) in count(&process, &probes, &threads, trials) {
                let tried = counted.told(trials);
                match trials.fits(&tried) {
                    true => trials.spend(&tried),
                    false => unfit.push((family, tried)),
                }
            }
            let probes = LibcProbes { unfit, ..probes };
            let chosen = LibcChosen { missing_since_ns: since_ns, probes, executed: None };
            done.push(Tried::Decided(Box::new(chosen)));
        }
        done
    }
}

/// The threads of a trial, and the number of all threads of the process.
struct Threads {
    tried: Vec<u32>,
    all: usize,
}

impl Threads {
    /// Picks the busiest threads, then others of the process.
    fn of(pid: u32, busiest: &[u32]) -> Threads {
        let names = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let mut all: Vec<u32> = names.filter_map(|name| name.file_name().to_str()?.parse().ok()).collect();
        let rank = |thread: &u32| busiest.iter().position(|busy| busy == thread).unwrap_or(usize::MAX);
        all.sort_by_key(rank);
        Threads { tried: all.iter().copied().take(MOST_THREADS).collect(), all: all.len() }
    }
}

fn count(
    process: &Process,
    probes: &LibcProbes,
    threads: &Threads,
    trials: &Trials,
) -> BTreeMap<SyncFamily, Counted> {
    let mut families: BTreeMap<SyncFamily, Counted> =
        SyncFamily::ALL.into_iter().map(|family| (family, Counted::default())).collect();
    let mut points = entries(process, probes);
    while !points.is_empty() {
        points.retain(|(family, _)| !families.get(family).is_some_and(|counted| counted.over));
        let few: Vec<(SyncFamily, u64)> = points.drain(..points.len().min(AT_ONCE)).collect();
        let asked: Vec<(u32, u64)> = few
            .iter()
            .flat_map(|(_, address)| threads.tried.iter().map(move |thread| (*thread, *address)))
            .collect();
        let calls = count_calls(&asked, TRIAL);
        for ((family, _), calls) in few.iter().zip(calls.chunks(threads.tried.len().max(1))) {
            let known: Vec<Calls> = calls.iter().copied().flatten().collect();
            let Some(counted) = families.get_mut(family).filter(|_| !known.is_empty()) else { continue };
            counted.add(&known, threads.all as f64 / known.len() as f64);
            counted.over = !trials.fits(&counted.told(trials));
        }
    }
    families
}

impl Counted {
    fn add(&mut self, calls: &[Calls], threads_each: f64) {
        let ran_s = calls.iter().map(|calls| calls.ran_ns as f64 / 1e9).sum::<f64>();
        let count = calls.iter().map(|calls| calls.count as f64).sum::<f64>();
        self.each_s += count / ran_s.max(1e-9);
        self.wall_each_s += count / TRIAL.as_secs_f64() * threads_each;
        // A breakpoint that was soon switched off ran only briefly, but that is enough to know its rate: the longest
        // run of a breakpoint counts.
        self.ran_s = self.ran_s.max(ran_s);
        self.known += 1;
    }

    /// The rate of calls, and the share of the process's CPU time that probes on them would cost.
    fn told(&self, trials: &Trials) -> OperationsTried {
        if self.known == 0 {
            return OperationsTried { calls: None, cost_ppm: 0 };
        }
        let each_call = trials.operation_ns() / 1e9;
        let hardly_runs = self.wall_each_s * each_call <= LEAST_OF_CPU && self.ran_s < LEAST_RUN_S;
        let cost = if hardly_runs { 0.0 } else { self.each_s * each_call };
        OperationsTried { calls: Some(self.each_s.round() as u64), cost_ppm: (cost * 1e6).round() as u64 }
    }
}

/// Entry addresses of each family's functions in a process; the operations that are most frequent in programs come first.
fn entries(process: &Process, probes: &LibcProbes) -> Vec<(SyncFamily, u64)> {
    let modules = mapped(process).unwrap_or_default();
    let mut entries: Vec<(u16, SyncFamily, u64)> = Vec::new();
    for file in probes.files.iter().filter(|file| !file.is_loader) {
        let inode = file.file.key().inode();
        let Some(module) = modules.iter().find(|module| module.inode == inode) else {
            continue;
        };
        entries.extend(file.functions.functions.iter().filter_map(|call| {
            let first = if call.entry_is_closed { call.leaves.first()? } else { &call.entry };
            Some((order(call.name), call.operation.family(), module.address(first.offset)?))
        }));
    }
    entries.sort_unstable();
    entries.dedup_by_key(|(_, _, address)| *address);
    entries.into_iter().map(|(_, family, address)| (family, address)).collect()
}

/// Acquisitions and releases come first: one of them usually decides.
fn order(name: &str) -> u16 {
    match name {
        _ if name.ends_with("_lock") || name.ends_with("lock_rdlock") || name.ends_with("_wait") => 0,
        _ if name.ends_with("init") || name.ends_with("destroy") => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(count: u64, ran_us: u64) -> Vec<Calls> {
        vec![Calls { count, ran_ns: ran_us * 1_000 }]
    }

    fn unfit(trials: &Trials, points: &[Vec<Calls>]) -> Option<OperationsTried> {
        let mut counted = Counted::default();
        for calls in points {
            counted.add(calls, 1.0);
        }
        let tried = counted.told(trials);
        (!trials.fits(&tried)).then_some(tried)
    }

    #[test]
    fn lock_functions_that_would_cost_too_much_get_no_probes() {
        // 20 µs a call: a quarter of 2 % are 250 a second.
        let trials = Trials::new(Some(20_000), None);
        let hot = unfit(&trials, &[calls(32, 400), calls(0, 50_000)]).expect("too dear");
        assert_eq!(hot, OperationsTried { calls: Some(80_000), cost_ppm: 1_600_000 });
        assert_eq!(unfit(&trials, &[calls(2, 50_000), calls(2, 50_000)]), None);
        assert_eq!(unfit(&trials, &[calls(0, 50_000)]), None, "not used at all");
    }

    #[test]
    fn lock_calls_of_a_sleeping_program_are_counted_over_the_whole_trial() {
        let trials = Trials::new(Some(20_000), None);
        assert_eq!(unfit(&trials, &[calls(2, 20)]), None, "two calls in 50 ms");
        assert!(unfit(&trials, &[calls(30, 300)]).is_some(), "600 a second");
    }

    #[test]
    fn lock_functions_whose_calls_cannot_be_counted_get_no_probes() {
        let trials = Trials::new(Some(20_000), None);
        assert_eq!(unfit(&trials, &[]), Some(OperationsTried { calls: None, cost_ppm: 0 }));
    }
}
