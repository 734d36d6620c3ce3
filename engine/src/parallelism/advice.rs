//! What can be done about a row of a run. It follows from the numbers of busy processors and runnable threads while the
//! row was busy (1989, section 3.1: "what can be done to improve performance"; 3.2: each problem and its sign).

use super::result::{AwaitedObject, Parallelism, ParallelismRow, ParallelismRowKind};
use crate::cpus::Cpus;
use crate::program::ObjectMeaning;
use serde::Serialize;

/// What the user can do about a row. In JSON `{"kind":"parallelize","alone":0.71}`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Advice {
    /// The row runs alone while other processors are idle: make it parallel.
    Parallelize {
        /// Share of the row's normalized time in which it runs alone.
        alone: f64,
    },
    /// All processors are busy while the row runs: only faster code helps.
    Optimize {
        /// Share of the row's normalized time in which all processors are busy.
        all_busy: f64,
    },
    /// The row already runs in parallel, and processors are idle: more threads would use them.
    MoreThreads {
        /// Busy processors, on average.
        busy: f64,
    },
    /// Other threads spin while the row runs: more threads would spin, too.
    OthersSpin {
        /// Spinning threads, on average.
        spinning: f64,
    },
    /// Threads wait for the lock: split it, or hold it for a shorter time.
    Split {
        /// Average number of waiting threads while at least one waits.
        queue: f64,
    },
    /// Threads wait for an interpreter's own lock: only processes in place of threads avoid it.
    Processes {
        /// Average number of waiting threads while at least one waits.
        queue: f64,
    },
    /// Threads wait at this barrier for the last one to arrive: divide the work more evenly.
    Balance {
        /// Average number of waiting threads while at least one waits.
        queue: f64,
    },
    /// Threads wait for the product of another thread: produce it earlier.
    Earlier {
        /// Average number of waiting threads while at least one waits.
        queue: f64,
    },
    /// Threads wait for a futex, which may be a lock or stand for a product of another thread.
    Wait {
        /// Average number of waiting threads while at least one waits.
        queue: f64,
    },
    /// Threads wait for a device while no processor is busy: begin to read or write earlier.
    Overlap,
    /// The thread works alone while other processors are idle: give it less to do.
    Less {
        /// Share of the row's normalized time in which it runs alone.
        alone: f64,
    },
}

/// Rows with less than this share of the elapsed time get no advice.
const WORTH: f64 = 0.02;
/// Advice depends on conditions that hold for at least this share of a row's time.
const MOSTLY: f64 = 0.5;
/// If at least this number of threads, on average, are runnable but not busy, they are assumed to spin: a thread that
/// is ready would be busy.
const SPINNING: f64 = 0.5;

impl Parallelism {
    /// What can be done about a row of this run; `None`: the run shows nothing that could be done.
    pub fn advice(&self, row: &ParallelismRow) -> Option<Advice> {
        match row.kind {
            ParallelismRowKind::Function => self.about_code(row),
            ParallelismRowKind::Thread => self.about_thread(row),
            ParallelismRowKind::Lock | ParallelismRowKind::Barrier | ParallelismRowKind::Condition => {
                self.about_object(row)
            }
        }
    }

    /// Number of processors; of unlimited ones, the most that the run could use.
    pub(super) fn processors(&self) -> u32 {
        let most = self.levels.iter().map(|(level, _)| *level).max().unwrap_or(0);
        match self.cpus {
            Some(Cpus::Count(count)) => count.get(),
            Some(Cpus::Infinite) => self.threads.max(most),
            None => most,
        }
    }

    fn about_code(&self, row: &ParallelismRow) -> Option<Advice> {
        let whole = row.normalized_total_ns;
        if row.is_foreign || whole == 0 || (whole as f64) < WORTH * self.elapsed_ns as f64 {
            return None;
        }
        let processors = self.processors();
        let share = |of: &dyn Fn(u32) -> bool| {
            let part: u64 = row.total_by_busy.iter().filter(|(level, _)| of(*level)).map(|(_, ns)| ns).sum();
            part as f64 / whole as f64
        };
        let all_busy = share(&|level| level >= processors);
        if all_busy >= MOSTLY {
            return Some(Advice::Optimize { all_busy });
        }
        let busy = row.busy_processors();
        // At most all spinning of the run happened while this row ran.
        let at_most = self.spun_ns() as f64 / whole as f64;
        let spinning = (row.total.busy.runnable - self.busy_beside(row)).min(at_most);
        if spinning >= SPINNING {
            return Some(Advice::OthersSpin { spinning });
        }
        let alone = share(&|level| level == 1);
        Some(if alone < MOSTLY { Advice::MoreThreads { busy } } else { Advice::Parallelize { alone } })
    }

    /// Advice about one of several threads, if it does most of the work that is done alone (section 3.2: load
    /// imbalance).
    fn about_thread(&self, row: &ParallelismRow) -> Option<Advice> {
        let alone_ns = |row: &ParallelismRow| -> u64 {
            row.by_busy.iter().filter(|(level, _)| *level == 1).map(|(_, ns)| ns).sum()
        };
        let own = alone_ns(row);
        // Checked first, since comparing with all threads takes time: there may be a hundred thousand.
        let may_be = own > 0
            && own as f64 >= MOSTLY * row.normalized_self_ns as f64
            && own as f64 >= WORTH * self.elapsed_ns as f64
            && self.threads > 1
            && self.processors() > 1;
        let all = || {
            self.rows.iter().filter(|row| row.kind == ParallelismRowKind::Thread).map(alone_ns).sum::<u64>()
        };
        (may_be && own as f64 >= MOSTLY * all() as f64)
            .then(|| Advice::Less { alone: own as f64 / row.normalized_self_ns as f64 })
    }

    /// The average number of busy processors while the row was busy, weighted by the row's processor time, like the
    /// average number of runnable threads.
    fn busy_beside(&self, row: &ParallelismRow) -> f64 {
        // Where `level` processors are busy, the row's processor time is its normalized time multiplied by `level`.
        let (sum, time) = row.total_by_busy.iter().fold((0.0, 0.0), |(sum, time), &(level, ns)| {
            let processor_time = f64::from(level) * ns as f64;
            (sum + f64::from(level) * processor_time, time + processor_time)
        });
        if time > 0.0 { sum / time } else { 0.0 }
    }

    /// Sum of the time for which threads spin, nanoseconds.
    fn spun_ns(&self) -> u64 {
        let threads = self.rows.iter().filter(|row| row.kind == ParallelismRowKind::Thread);
        threads.map(|row| row.own.spinning.ns).fold(0, u64::saturating_add)
    }

    fn about_object(&self, row: &ParallelismRow) -> Option<Advice> {
        let waited = row.own.blocked.ns.saturating_add(row.own.spinning.ns);
        if (waited as f64) < WORTH * self.elapsed_ns as f64 || waited == 0 {
            return None;
        }
        let queue = row.queue_length();
        match (row.kind, row.of) {
            (ParallelismRowKind::Lock, _) if is_interpreters(row) => Some(Advice::Processes { queue }),
            (ParallelismRowKind::Lock, _) => Some(Advice::Split { queue }),
            (ParallelismRowKind::Barrier, _) => Some(Advice::Balance { queue }),
            (_, AwaitedObject::Device) if self.nobody_busy_ns as f64 >= WORTH * self.elapsed_ns as f64 => {
                Some(Advice::Overlap)
            }
            (_, AwaitedObject::Device | AwaitedObject::Timer) => None,
            (_, AwaitedObject::Futex) => Some(Advice::Wait { queue }),
            _ => Some(Advice::Earlier { queue }),
        }
    }
}

fn is_interpreters(lock: &ParallelismRow) -> bool {
    lock.name.as_deref().is_some_and(|name| ObjectMeaning::of(name).is_interpreter_lock())
}
