//! Thread states at the edge between two windows: from facts at a window's start, and to facts for the next window.

use crate::event::{Condition, Facts, ThreadBefore, ThreadFact, ThreadState};
use crate::time::Timestamp;
use crate::timeline::model::{BaseStack, Birth, External, State, Thread, Wake};
use crate::timeline::thread::name::clean_name;
use crate::timeline::thread::pending_wakeup::PendingWakeup;
use crate::timeline::thread::stack::{Stacks, StepLog};
use crate::timeline::thread::thread_tracker::{RunState, ThreadTracker, Unseen};
use crate::timeline::thread::wait_reason::WaitReason;
use probe_abi::Call;

/// A thread that was alive at the start of the window.
pub(in crate::timeline) fn tracker(fact: &ThreadFact, facts: &Facts) -> ThreadTracker {
    let start_ns = facts.start_ns;
    let start = Timestamp(start_ns);
    let out = Thread {
        pid: fact.pid,
        tid: fact.tid,
        start_time_ns: fact.start_time_ns,
        comm: clean_name(fact.comm.as_bytes()),
        start,
        end: start,
        birth: Birth::BeforeWindow,
        nice: fact.nice,
        cpus: fact.cpus.clone(),
        base_stacks: vec![BaseStack { first_step: 0, time: start, functions: Vec::new() }],
        ..Thread::default()
    };
    let listed = RunState::Unseen(Unseen::Listed { state: fact.state, seen_ns: fact.seen_ns });
    let mut tracker = ThreadTracker::new(out, listed, true);
    tracker.cpu_time = fact.cpu_time_ns.map(|cpu_time| (fact.seen_ns, cpu_time));
    tracker.held = facts.launched == Some(fact.pid);
    let Some(before) = &fact.before else { return tracker };
    tracker.preempted = before.preempted;
    tracker.exiting = before.exiting;
    tracker.functions_lost = before.functions_lost;
    tracker.woken = before.woken.then_some(PendingWakeup {
        time_ns: start_ns,
        wake: Wake::External(External::BeforeWindow),
        call: Call::NONE,
        futex: before.futex,
        other_word: None,
    });
    tracker.state = match before.condition {
        Condition::Unseen => listed,
        Condition::UnseenSinceContradiction => RunState::Unseen(Unseen::Contradiction),
        Condition::UnseenSinceGap => RunState::Unseen(Unseen::Gap),
        Condition::UnseenNotListed => RunState::Unseen(Unseen::NotListed),
        Condition::Forked => RunState::Forked { parent: None },
        Condition::Running { cpu } => RunState::Running { cpu },
        Condition::Runnable => RunState::Runnable,
        Condition::Blocked { task_state } => RunState::Blocked {
            reason: before.futex.map_or(WaitReason::of(task_state, Call::NONE), WaitReason::Futex),
        },
        Condition::Gap => RunState::Gap,
    };
    let mut steps = Vec::new();
    let mut log = StepLog { time: start, steps: &mut steps };
    tracker.stacks = Stacks::resume(&before.stacks, &before.active_stacks, &mut log);
    tracker.out.steps = steps;
    tracker
}

/// The facts for a window that begins at `start_ns`. `threads` are as of all earlier records.
pub(in crate::timeline) fn facts(threads: &[ThreadTracker], facts: &Facts, start_ns: u64) -> Facts {
    Facts {
        start_ns,
        processes: facts.processes.clone(),
        threads: threads
            .iter()
            .filter(|thread| thread.state != RunState::Dead)
            .map(|thread| thread_fact(thread, start_ns))
            .collect(),
        functions: facts.functions.clone(),
        addresses: facts.addresses.clone(),
        modules: facts.modules.clone(),
        hit_costs: facts.hit_costs,
        sampling: facts.sampling,
        mappings: facts.mappings.clone(),
        idle_wake: facts.idle_wake,
        line_transfer: facts.line_transfer,
        tick_ns: facts.tick_ns,
        idle_tick_ns: facts.idle_tick_ns,
        cpu_quota: facts.cpu_quota,
        // The command was released before this window.
        launched: None,
        code: facts.code.clone(),
        spin: facts.spin.clone(),
        // Runs on other CPU counts are about the complete program, not about a window.
        cpu_runs: facts.cpu_runs.clone(),
        hosts: facts.hosts.clone(),
        end: None,
    }
}

fn thread_fact(thread: &ThreadTracker, start_ns: u64) -> ThreadFact {
    let (state, seen_ns) = match thread.state {
        // /proc was read after the waking, so its state shows nothing about the sleep before the waking.
        RunState::Unseen(Unseen::Listed { state, seen_ns }) => match thread.woken {
            Some(woken) if woken.time_ns <= seen_ns => (ThreadState::Unknown, seen_ns),
            _ => (state, seen_ns),
        },
        _ => (ThreadState::Unknown, start_ns),
    };
    let cpu_time = cpu_time_at(thread, start_ns);
    let (stacks, active_stacks) = thread.stacks.facts();
    ThreadFact {
        tid: thread.out.tid,
        pid: thread.out.pid,
        start_time_ns: thread.out.start_time_ns,
        comm: thread.out.comm.clone(),
        state,
        seen_ns: cpu_time.map_or(seen_ns, |(seen_ns, _)| seen_ns),
        cpu_time_ns: cpu_time.map(|(_, cpu_time)| cpu_time),
        nice: thread.out.nice,
        cpus: thread.out.cpus.clone(),
        awaits: None,
        before: Some(Box::new(ThreadBefore {
            condition: condition(thread.state),
            woken: thread.woken.is_some(),
            futex: match (thread.state, thread.woken) {
                (RunState::Blocked { reason: WaitReason::Futex(futex) }, _) => Some(futex),
                (_, Some(woken)) => woken.futex,
                _ => None,
            },
            preempted: thread.preempted,
            exiting: thread.exiting,
            functions_lost: thread.functions_lost,
            stacks,
            active_stacks,
        })),
    }
}

/// An instant and the thread's CPU time then: `start_ns`, or when /proc was read if that was later.
///
/// `None` if a part of it is not known.
fn cpu_time_at(thread: &ThreadTracker, start_ns: u64) -> Option<(u64, u64)> {
    let (seen_ns, cpu_time) = thread.cpu_time?;
    if seen_ns >= start_ns {
        return Some((seen_ns, cpu_time));
    }
    let open = match thread.state {
        RunState::Running { .. } => start_ns.saturating_sub(thread.since_ns.max(seen_ns)),
        RunState::Unseen(Unseen::Listed { state: ThreadState::Sleeping | ThreadState::Stopped, .. })
        | RunState::Runnable
        | RunState::Blocked { .. } => 0,
        _ => return None,
    };
    let (ran, unknown) = ran_between(&thread.out, thread.since_ns, seen_ns, start_ns);
    (unknown == 0).then(|| (start_ns, cpu_time.saturating_add(ran).saturating_add(open)))
}

/// Time in `Running` and in `Unknown` intervals between two instants. The thread's last interval ends at `end_ns`.
pub(in crate::timeline) fn ran_between(
    thread: &Thread,
    end_ns: u64,
    from_ns: u64,
    until_ns: u64,
) -> (u64, u64) {
    let ends = thread.intervals.iter().skip(1).map(|next| next.start.0).chain(std::iter::once(end_ns));
    let mut sums = (0u64, 0u64);
    for (interval, end) in thread.intervals.iter().zip(ends) {
        let length = end.min(until_ns).saturating_sub(interval.start.0.max(from_ns));
        match interval.state {
            State::Running { .. } => sums.0 = sums.0.saturating_add(length),
            State::Unknown(_) => sums.1 = sums.1.saturating_add(length),
            State::Runnable | State::Blocked(_) => {}
        }
    }
    sums
}

fn condition(now: RunState) -> Condition {
    match now {
        RunState::Unseen(Unseen::Listed { .. }) | RunState::Dead => Condition::Unseen,
        RunState::Unseen(Unseen::NotListed) => Condition::UnseenNotListed,
        RunState::Unseen(Unseen::Contradiction) => Condition::UnseenSinceContradiction,
        RunState::Unseen(Unseen::Gap) => Condition::UnseenSinceGap,
        RunState::Forked { .. } => Condition::Forked,
        RunState::Running { cpu } => Condition::Running { cpu },
        RunState::Runnable => Condition::Runnable,
        RunState::Blocked { reason: WaitReason::Kernel { task_state, .. } } => {
            Condition::Blocked { task_state }
        }
        // The futex call is stored separately, so any sleeping state works.
        RunState::Blocked { reason: WaitReason::Futex(_) } => Condition::Blocked { task_state: 1 },
        RunState::Gap => Condition::Gap,
    }
}
