//! Changes in words, for FIX and `what-if`.

use super::short::short;
use crate::cpu_words::cpus;
use engine::event::SupportSubject;
use engine::experiment::{Edit, GoroutineChange};
use engine::program::system_call_name;
use engine::report::Cpus;

/// Names for a change, in the form in which a reader sees them.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The changed function; empty if there is none.
    pub function: &'a str,
    /// The lock's name, or `the lock` if the text has already named it.
    pub lock: &'a str,
    /// The CPU count without the change.
    pub now: Cpus,
}

/// An edit in words: `split the lock in 8`, `parse 2x faster`.
pub fn words(edit: &Edit, about: About<'_>) -> String {
    let About { function, lock, now } = about;
    match edit {
        Edit::SplitLock(_, parts) => format!("split {lock} in {parts}"),
        Edit::GroupCommit(_, threads) => format!("one sync for {threads} (group commit)"),
        Edit::MoveOut(..) => format!("move {function} out of {lock}"),
        Edit::Scale(_, factor) if *factor == 0.5 => format!("{function} 2x faster"),
        Edit::Scale(_, factor) => format!("{function} at {} %", (factor * 1000.0).round() / 10.0),
        Edit::FewerCalls(..) => format!("half as many calls of {}", system_call_name(function)),
        Edit::Divide(_, among) if function.is_empty() => {
            format!("divide that work among {among} threads")
        }
        Edit::Divide(_, among) => format!("divide {function} among {among} threads"),
        Edit::Processes(_) => "processes instead of threads".to_owned(),
        Edit::FreeLocks(_) => format!("no wait for {lock}"),
        Edit::Cpus(more) => format!("{} instead of {now}", cpus(*more)),
        Edit::MoreThreads { threads, more: 1, .. } if threads.len() == 1 => {
            "a second thread for that stage".to_owned()
        }
        Edit::MoreThreads { threads, more, .. } => {
            format!("{} threads instead of {}", threads.len().saturating_add(*more), threads.len())
        }
        Edit::MoreSleepers { threads, more } => {
            format!("{} threads instead of {}", threads.len().saturating_add(*more), threads.len())
        }
        Edit::FewerThreads { threads, kept } => format!("{kept} threads instead of {}", threads.len()),
        Edit::DivideEvenly(_) => "divide the work evenly".to_owned(),
        Edit::FreeDevices(_) | Edit::FreeIo => "free I/O".to_owned(),
        Edit::NoSyncs => "sync files less often".to_owned(),
        Edit::NoSleeps => "do not sleep".to_owned(),
        Edit::NoPolling(_) => "condition variable instead of polling".to_owned(),
        Edit::NoSpinning => "sleep instead of spinning for locks".to_owned(),
        Edit::NoSpunWaits if function.is_empty() => "no spinning until others are ready".to_owned(),
        Edit::NoSpunWaits => "join parallel regions, or make them larger".to_owned(),
        Edit::Permits { now, then, .. } => format!("{then} permits instead of {now}"),
        Edit::LessSupportWork { subject, .. } => match subject {
            SupportSubject::Memory => "use less memory, or keep it",
            SupportSubject::Waiting => "let threads sleep and wake less often",
            SupportSubject::Files => "fewer, larger file operations",
            SupportSubject::Network => "send and receive more at once",
            SupportSubject::Processes => "start fewer threads and processes",
            SupportSubject::Other => "fewer system calls",
            SupportSubject::GarbageCollection => "a larger heap, or fewer objects",
            SupportSubject::Compilation => "run longer, or compile beforehand",
            SupportSubject::Serialization => "send less to other processes",
            SupportSubject::Allocation => "allocate less, or another allocator",
        }
        .to_owned(),
        Edit::Overlap { .. } => format!("overlap {} with others' work", short(function)),
        Edit::Goroutines(change) => match change {
            GoroutineChange::LessLocked { .. } => format!("hold {lock} less, or split it"),
            GoroutineChange::MorePermits { then, .. } => format!("{then} places in the channel"),
            GoroutineChange::SecondOfStage { .. } => "a second goroutine for that stage".to_owned(),
            GoroutineChange::Cpus(more) => format!("{more} CPUs instead of {now}"),
        },
        Edit::WakeOne(_) => "wake one thread instead of all".to_owned(),
        Edit::WritersFirst { .. } => format!("let writers of {lock} go first"),
        Edit::LargerTasks { .. } => "hand over more at a time".to_owned(),
        Edit::OwnLines { is_false: true, .. } => "a cache line for each thread's word".to_owned(),
        Edit::OwnLines { .. } => "let each thread change its own copy".to_owned(),
        Edit::CostAsOn(_) if function.is_empty() => "share less memory".to_owned(),
        Edit::CostAsOn(_) => format!("share less memory in {}", short(function)),
        Edit::EvenRounds { .. } => "smaller tasks, or the longest first".to_owned(),
        Edit::NoTurns => "let threads work at the same time".to_owned(),
        Edit::FreeHandOver => "free wake-ups".to_owned(),
        Edit::NoQuota => "no limit on the container's CPU time".to_owned(),
    }
}
