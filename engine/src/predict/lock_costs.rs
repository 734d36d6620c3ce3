//! Computes the CPU time of locks on other numbers of CPUs. (This method is longpole's own.)
//!
//! Threads that find a lock taken go to sleep and are woken, which is CPU time of the recorded run. On one CPU hardly any thread
//! finds a lock taken. So this time is computed as that of a cache line ([`super::shared_lines`]) whose visits by a thread that
//! is alone take almost no time.
//!
//! How much of it is really absent is not known before a run on that number of CPUs. So there are two more predictions: one with
//! the CPU time as recorded, and one without all kernel work for threads that wait for each other. Together they are a range.

use super::shared_lines::{LineLoad, grown};
use crate::cpus::Cpus;
use crate::event::SupportSubject;
use crate::program::{Operation, Program, SupportWork};

/// Time at a lock that is free, as a part of one at which threads wait: an atomic instruction instead of two system calls.
const FREE: f64 = 0.05;
/// A smaller share of the CPU time changes no answer.
const LITTLE: f64 = 0.05;

/// How locks change CPU times on other numbers of CPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LockCosts {
    /// All locks as one line.
    locks: Option<LineLoad>,
    /// Whether waits for the locks are not simulated, so that more CPUs must lengthen computing.
    lengthen: bool,
    /// Share of the CPU time in which the kernel puts threads to sleep and wakes them.
    waiting: f64,
    recorded: Option<Cpus>,
}

impl LockCosts {
    pub fn of(program: &Program) -> LockCosts {
        let recorded = program.recorded_cpus.filter(|cpus| *cpus > 1).and_then(Cpus::count);
        let Some(machine) = program.machine.as_ref().filter(|_| recorded.is_some()) else {
            return LockCosts::default();
        };
        let is_waiting = |work: &&SupportWork| work.subject == SupportSubject::Waiting && work.threads > 1;
        let waiting = program.recorded.support.iter().filter(is_waiting).map(SupportWork::share).sum();
        let mut operations = program.threads.iter().flat_map(|thread| &thread.operations);
        let is_lock = |operation: &Operation| {
            matches!(operation, Operation::Lock(_) | Operation::WriteLock(_) | Operation::SpinLock(_))
        };
        let locks = machine.lock_work.as_ref();
        LockCosts {
            locks: locks.map(|fact| LineLoad::of_fact(fact, program.recorded_cpus, FREE)),
            lengthen: !operations.any(is_lock),
            waiting,
            recorded,
        }
    }

    /// Whether no CPU time changes.
    pub fn is_empty(&self) -> bool {
        self.locks.is_none() && self.waiting < LITTLE
    }

    /// The locks, if they change computing on this number of CPUs.
    pub fn locks(&self, cpus: Cpus) -> Option<&LineLoad> {
        let is_fewer = self.recorded.is_some_and(|recorded| cpus < recorded);
        self.locks.as_ref().filter(|_| is_fewer || self.lengthen)
    }

    /// Other programs that this number of CPUs may run: with the CPU time of locks as recorded, longer, or absent.
    pub fn others(&self, program: &Program, lines: &[LineLoad], cpus: Cpus) -> Vec<Program> {
        let Some(recorded) = self.recorded.filter(|recorded| *recorded != cpus && !self.is_empty()) else {
            return Vec::new();
        };
        let as_recorded = || grown(program, lines, cpus).unwrap_or_else(|| program.clone());
        let mut others = Vec::new();
        if self.locks(cpus).is_some() {
            others.push(as_recorded());
        }
        if cpus < recorded && self.waiting >= LITTLE {
            others.push(as_recorded().computing(|_, _| 1.0 - self.waiting));
        } else if let (None, Some(locks)) = (self.locks(cpus), &self.locks) {
            let all: Vec<LineLoad> = lines.iter().chain([locks]).cloned().collect();
            others.extend(grown(program, &all, cpus));
        }
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::{Model, Timing};
    use crate::program::{LineFact, LineThread, MachineFacts};

    /// Two threads that compute 100 ms each on two CPUs; `at` of 100 samples of each are at locks.
    fn program(at: u64) -> Program {
        let thread = r#"{"name":"T","ops":[["exec","f",100000000]]}"#;
        let text = format!(
            r#"{{"format":"longpole-program","version":1,"threads":[{thread},{}]}}"#,
            thread.replace("\"T\"", "\"U\"")
        );
        let mut program = crate::program::json::read(&text).expect("a program");
        program.recorded_cpus = Some(2);
        let of = |thread| LineThread { thread, at_line: at, samples: 100 };
        let lock_work = (at > 0).then(|| LineFact { threads: vec![of(0), of(1)], samples: 200 });
        program.machine = Some(MachineFacts { lock_work, ..MachineFacts::default() });
        let work = SupportWork {
            subject: SupportSubject::Waiting,
            threads: 2,
            samples: at,
            all: 200,
            ..SupportWork::default()
        };
        program.recorded.support = vec![work];
        program
    }

    fn ms(program: &Program, cpus: Cpus) -> (f64, Option<(f64, f64)>) {
        let timing = Timing::new(program, &Model::default()).expect("a program");
        let time_ns = timing.time_ns(cpus);
        let ms = |ns: f64| (ns / 1e6).round();
        (ms(time_ns), timing.may_be_ns(cpus, time_ns).map(|(low, high)| (ms(low), ms(high))))
    }

    #[test]
    fn time_at_contended_locks_is_absent_on_one_cpu_and_a_range() {
        let two = Cpus::count(2).expect("two");
        assert_eq!(ms(&program(0), Cpus::ONE), (200.0, None));
        let contended = program(60);
        assert_eq!(ms(&contended, two), (100.0, None));
        let (one, range) = ms(&contended, Cpus::ONE);
        assert!((80.0..86.0).contains(&one), "{one}");
        assert_eq!(range, Some((one, 200.0)));
    }

    #[test]
    fn more_threads_at_a_lock_that_is_not_simulated_take_longer() {
        let mut four = program(60);
        four.threads = four.threads.iter().cycle().take(4).cloned().collect();
        let of = |thread| LineThread { thread, at_line: 60, samples: 100 };
        let fact = LineFact { threads: (0..4).map(of).collect(), samples: 400 };
        four.machine.iter_mut().for_each(|machine| machine.lock_work = Some(fact.clone()));
        let (time, range) = ms(&four, Cpus::count(4).expect("four"));
        // Four CPUs gain little: the lock is busy most of the time.
        assert!(time > 150.0, "{time}");
        assert_eq!(range, Some((100.0, time)));
    }
}
