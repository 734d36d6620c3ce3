//! Sentences about threads that wait forever.

use engine::program::quoted;
use engine::report::{Holder, Stuck, StuckThread, WaitsFor};

/// A sentence about when nothing more happens, and which threads wait forever for what.
pub(in crate::present) fn deadlock(stuck: &Stuck) -> String {
    format!("nothing more happens after {} ns (results are up to there): {}", stuck.end_ns, waiting(stuck))
}

/// Says which threads of a deadlock wait for what.
pub(crate) fn waiting(stuck: &Stuck) -> String {
    let mut cases: Vec<String> = stuck.threads.iter().map(case).collect();
    if stuck.more > 0 {
        cases.push(format!("{} more threads wait", stuck.more));
    }
    cases.join("; ")
}

pub(super) fn case(stuck: &StuckThread) -> String {
    let held = |holder: &Option<Holder>| match holder {
        None => String::new(),
        Some(holder) if holder.itself => ", held by itself".to_owned(),
        Some(holder) => {
            format!(", held by {}{}", holder.thread, if holder.ended { ", which has ended" } else { "" })
        }
    };
    let what = match &stuck.waits_for {
        WaitsFor::Creation => return format!("{} is never created", stuck.thread),
        WaitsFor::Signal { name } => format!("a signal {}", quoted(name)),
        WaitsFor::Semaphore { name } => format!("semaphore {}", quoted(name)),
        WaitsFor::Lock { name, holder } => format!("lock {}{}", quoted(name), held(holder)),
        WaitsFor::Condition { name } => format!("condition {}", quoted(name)),
        WaitsFor::SpinLock { name, holder } => format!("spin lock {}{}", quoted(name), held(holder)),
        WaitsFor::Reading { name, holder } => format!("reading under {}{}", quoted(name), held(holder)),
        WaitsFor::Writing { name, holder } => format!("writing under {}{}", quoted(name), held(holder)),
        WaitsFor::Barrier { name, arrived, of } => {
            format!("barrier {}, which {arrived} of {of} threads have reached", quoted(name))
        }
        WaitsFor::Once { name } => format!("once {}", quoted(name)),
        WaitsFor::OwnEnd => "its own end".to_owned(),
        WaitsFor::End { thread } => format!("the end of {thread}"),
        WaitsFor::WakeUp { name } => format!("wake-up {}", quoted(name)),
        WaitsFor::NotKnown => "something unknown".to_owned(),
    };
    let place = stuck.function.as_ref().map_or(String::new(), |function| format!(" in {function}"));
    format!("{} waits{place} for {what}", stuck.thread)
}
